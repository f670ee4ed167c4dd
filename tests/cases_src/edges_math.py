"""Edges of arithmetic: empty, rank 0, not a number, infinite, the least and the largest integer."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import (
    b1,
    bf16,
    c64,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    inf,
    nan,
    op,
    s,
    u8,
    u16,
    u32,
    u64,
)

_FLOATS = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-30, -1e20, 3.0]
_BIG = {"tol": (2e-5, 1e-6)}

UNARY = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Digamma",
    "Erf", "Erfc", "Exp", "Expm1", "Floor", "Inv", "IsFinite", "IsInf", "IsNan", "Lgamma", "Log",
    "Log1p", "Neg", "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sign", "Sin", "Sinh",
    "Sqrt", "Square", "Tan", "Tanh", "Ndtri", "Erfinv", "BesselI0e", "BesselI1e",
)  # fmt: skip
ACTIVATIONS = ("Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign")
BINARY = (
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "MulNoNan", "FloorDiv", "FloorMod",
    "Pow", "Maximum", "Minimum", "SquaredDifference", "Atan2", "Mod", "Xdivy", "Xlogy", "Xlog1py",
)  # fmt: skip
COMPARE = (
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "ApproximateEqual",
)  # fmt: skip
REDUCE = ("Sum", "Prod", "Max", "Min", "Mean", "All", "Any", "EuclideanNorm")


def _sign_op(name: str) -> bool:
    return name in ("Sin", "Cos", "Tan")


def unary() -> list[Any]:
    """Every function at the edges, on an empty array, at rank 0, in half precision."""
    cases = []
    for name in UNARY:
        args = [v for v in _FLOATS if not (_sign_op(name) and abs(v) == 1e20)]
        cases += [
            op(name, x=f32(args), **_BIG),
            op(name, x=f64([[]])),
            op(name, x=f32(0.5), **_BIG),
        ]
        if name not in ("Erfinv", "Ndtri"):
            cases.append(op(name, x=f16([-1, 0, 0.5, 2])))
    cases += [op(n, features=f32(_FLOATS), **_BIG) for n in ACTIVATIONS]
    cases += [op(n, features=f64(-0.5)) for n in ACTIVATIONS]
    cases += [op(n, features=bf16([-3, 0, 0.5, 20])) for n in ACTIVATIONS]
    return cases


def whole_unary() -> list[Any]:
    """Integers wrap around."""
    cases = []
    for make in (i8, i16, i32, i64):
        info = np.iinfo(make(0).dtype)
        extremes = make([info.min, info.max, 0, -1, 7])
        cases += [op(n, x=extremes) for n in ("Abs", "Neg", "Sign", "Square")]
    cases += [op("Invert", x=make([0, 1, 255])) for make in (u8, u16, u32, u64)]
    cases += [op("PopulationCount", x=make([0, 1, 255])) for make in (u8, u16, u32, u64)]
    cases += [op("BitwiseXor", x=i32([-1, 5]), y=i32([7, -8]))]
    cases += [op(n, x=i32([-1, 5, 1]), y=i32([1, 31, 0])) for n in ("LeftShift", "RightShift")]
    return cases


def binary() -> list[Any]:
    """Every pair of edges, and broadcasting of empty arrays and scalars."""
    row, column = f32([_FLOATS]), f32(_FLOATS)[:, None]
    cases = []
    for name in BINARY:
        if name != "Mod":
            cases.append(op(name, x=column, y=row, **_BIG))
        cases += [
            op(name, x=f32(np.zeros((3, 0))), y=f32([[1.0]])),
            op(name, x=f64(7), y=f64(-2)),
            op(name, x=f32([1, 2]), y=f32([1, 2, 3]), says="ncompatible shapes"),
        ]
    cases += [op(n, x=column, y=row) for n in COMPARE if n != "ApproximateEqual"]
    cases += [op(n, x=s([b"a", b"b"]), y=s(b"b")) for n in ("Equal", "NotEqual")]
    cases += [op(n, x=b1([True, False]), y=b1([[True], [False]])) for n in ("LogicalAnd", "Equal")]
    cases += [
        op("Equal", x=i32([1, 2]), y=i32([1, 2, 3]), incompatible_shape_error=False),
        op("NotEqual", x=i32([1, 2]), y=i32([1, 2, 3]), incompatible_shape_error=False),
        op("ApproximateEqual", x=f32([1, 2, nan]), y=f32([1.000001, 2.1, nan])),
    ]
    return cases


def whole_binary() -> list[Any]:
    """Integer arithmetic wraps around; division by zero is an error."""
    cases = []
    for make in (i8, i16, i32, i64):
        info = np.iinfo(make(0).dtype)
        x, y = make([info.min, info.max, -7, 7, 0]), make([3, 2, -2, 2, 5])
        names = ("AddV2", "Sub", "Mul", "FloorDiv", "FloorMod", "Maximum", "TruncateDiv")
        cases += [op(n, x=x, y=y) for n in names]
    cases += [op("SquaredDifference", x=i32([-(2**31), 5]), y=i32([7, 9]))]
    cases += [op("NextAfter", x1=f32([1, -1, 0, nan, inf]), x2=f32([2, 0, -1, 0, 0]))]
    cases += [op(n, x=i32([7, -7]), y=i32([2, -2])) for n in ("TruncateMod", "Mod", "Div")]
    cases += [
        op(n, x=i32([1]), y=i32([0]), says="division by zero")
        for n in ("FloorDiv", "FloorMod", "Div", "Mod")
    ]
    cases += [
        op("Pow", x=i32([2, -3, 0, 7]), y=i32([10, 3, 0, 1])),
        op("Pow", x=i32([2]), y=i32([-1]), says="Integers to negative integer powers"),
        op("AddV2", x=u8([200]), y=u8([100])),
        op("Add", x=s([b"a", b""]), y=s(b"z")),
        op("Mul", x=c64([1 + 2j, inf]), y=c64([3 - 1j, 0])),
        op("Div", x=c64([1 + 2j]), y=c64([3 - 1j])),
        op("ComplexAbs", x=c64([3 + 4j, 0])),
        op("Sign", x=c64([3 + 4j, 0])),
        op("Sqrt", x=c64([-4, 3 + 4j])),
        op("Log", x=c64([-1, 3 + 4j])),
    ]
    return cases


def reductions() -> list[Any]:
    """Every reduction of nothing, over no axis, over negative axes, with NaN."""
    cases: list[Any] = []
    for name in REDUCE:
        make = b1 if name in ("All", "Any") else f32
        full = make(np.arange(12).reshape(2, 3, 2) % 5)
        axes = i32([]), i32([0, -1]), i32(1), i64([0, 1, 2]), i32([-3])
        cases += [op(name, input=full, axis=axis) for axis in axes]
        cases += [
            op(name, input=full, axis=i32([2, 0]), keep_dims=True),
            op(name, input=make(np.zeros((0, 3))), axis=i32([0])),
            op(name, input=make(np.zeros((0, 3))), axis=i32([1]), keep_dims=True),
            op(name, input=make(1), axis=i32([])),
            op(name, input=full, axis=i32([3]), says="Invalid reduction dimension"),
            op(name, input=full, axis=i32([0, 0]), says="duplicate dimension: 0"),
        ]
        if make is f32:
            cases.append(op(name, input=f32([[nan, 1], [inf, -inf]]), axis=i32([1])))
            cases.append(op(name, input=f16([1, 2, 4.5]), axis=i32([0])))
    for name in ("Sum", "Prod", "Max", "Min", "Mean"):
        cases.append(op(name, input=i32([2**31 - 1, 1, 3]), axis=i32([0])))
        cases.append(op(name, input=i32(np.zeros((2, 0))), axis=i32([1])))
    for name in ("ArgMax", "ArgMin"):
        cases += [
            op(name, input=f32([[3, 1, 3], [nan, 2, nan]]), dimension=i32(-1)),
            op(name, input=f32([[3, 1, 3], [nan, 2, 1]]), dimension=i32(0), output_type="int32"),
            op(name, input=b1([[True, False]]), dimension=i32(1)),
            op(name, input=f32(3), dimension=i32(0), says="Expected dimension in the range"),
            op(name, input=f32([]), dimension=i32(0), says="empty"),
            op(name, input=f32(np.zeros((0, 2))), dimension=i32(1)),
            op(name, input=f32([1]), dimension=i32(2), says="Expected dimension in the range"),
        ]
    for name in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
        x = f32([[1, 2, 3], [4, 5, 6]])
        cases += [
            op(name, x=x, axis=i32(axis), exclusive=exclusive, reverse=reverse, **_BIG)
            for axis, exclusive, reverse in [(0, False, False), (-1, True, False), (1, True, True)]
        ]
        cases += [
            op(name, x=f32([]), axis=i32(0)),
            op(name, x=x, axis=i32(2), says="range"),
            # What TensorFlow makes of NaN in CumulativeLogsumexp is an accident.
            op(name, x=f32([1 if name == "CumulativeLogsumexp" else nan, 1]), axis=i32(0)),
        ]
    return cases


def casts() -> list[Any]:
    """Between all kinds of numbers; what does not fit does as the processor does."""
    fit = [0.0, 1.9, -1.9, 100.4]
    names = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64",
             "bool", "complex64", "uint8", "uint16", "uint32", "uint64")  # fmt: skip
    plain = [n for n in names if not n.startswith("uint")]
    cases = [op("Cast", x=f32(fit), DstT=n) for n in plain]
    cases += [op("Cast", x=i64([-1, 2**31, -(2**40), 300]), DstT=n) for n in names]
    cases += [op("Cast", x=b1([True, False]), DstT=n) for n in names]
    cases += [op("Cast", x=c64([1.5 + 2j]), DstT=n) for n in ("float32", "int32", "bool")]
    cases += [
        op("Cast", x=f64([1e300, -1e300, nan, 1e-300]), DstT=n, Truncate=t)
        for n in ("float32", "float16", "bfloat16")
        for t in (False, True)
    ]
    cases += [
        op("Cast", x=f32([1.00390625, 3.0117188, 65519, 65520]), DstT=n, Truncate=t)
        for n in ("float16", "bfloat16")
        for t in (False, True)
    ]
    cases += [
        op("Cast", x=f32([]), DstT="int32"),
        op("Cast", x=f32(2.7), DstT="int32"),
        op("Cast", x=f32([1]), DstT="string", says="Cast float to string is not supported"),
        op("Bitcast", input=f32([1, -2]), type="int32"),
        op("Bitcast", input=i32([[1, 2]]), type="int64"),
        op("Bitcast", input=f64(1), type="uint8"),
        op("Bitcast", input=u8([1, 2, 3]), type="int32", says="Cannot bitcast"),
    ]
    return cases


def products() -> list[Any]:
    """Matrix products with nothing in them, and with what cannot be multiplied."""
    return [
        op("MatMul", a=f32(np.zeros((2, 0))), b=f32(np.zeros((0, 3)))),
        op("MatMul", a=f32(np.zeros((0, 2))), b=f32(np.ones((2, 3)))),
        op("MatMul", a=f32([[1, 2]]), b=f32([[nan], [inf]])),
        op("MatMul", a=i32([[2**31 - 1, 2]]), b=i32([[2], [1]])),
        op("MatMul", a=f16([[1, 2], [3, 4]]), b=f16([[1, 2], [3, 4]]), transpose_a=True),
        op("MatMul", a=bf16([[1, 2], [3, 4]]), b=bf16([[1, 2], [3, 4]]), transpose_b=True),
        op("MatMul", a=c64([[1j, 2]]), b=c64([[1], [1j]])),
        op("MatMul", a=f32([1, 2]), b=f32([[1]]), says="different ndims"),
        op("MatMul", a=f32([[1, 2]]), b=f32([[1]]), says="Matrix size-incompatible"),
        *(
            op(name, x=f32(np.ones(x)), y=f32(np.ones(y)))
            for name in ("BatchMatMul", "BatchMatMulV2")
            for x, y in [((2, 1, 3), (2, 3, 2)), ((0, 1, 3), (0, 3, 2)), ((1, 0, 3), (1, 3, 0))]
        ),
        op("BatchMatMulV2", x=f32(np.ones((3, 1, 1, 2))), y=f32(np.ones((4, 2, 1)))),
        op("BatchMatMulV2", x=c64([[1j, 2]]), y=c64([[1j, 3]]), adj_y=True),
        op(
            "BatchMatMulV2",
            x=f32(np.ones((2, 1, 2))),
            y=f32(np.ones((3, 2, 1))),
            says="batch dim",
        ),
        op("BatchMatMulV2", x=f32([1.0]), y=f32([[1.0]]), says="ndims must be >= 2"),
        op("BatchMatMulV3", x=i8([[1, 2]]), y=i8([[100], [100]]), Tout="int32"),
        op("BatchMatMulV3", x=u8([[1, 2]]), y=i8([[100], [-100]]), Tout="int32"),
        op("Einsum", inputs=[f32([[1, 2]]), f32([[3], [4]])], equation="ij,jk->ki"),
        op("Einsum", inputs=[f32([[1, 2], [3, 4]])], equation="ii->"),
        op("Einsum", inputs=[f32([[1, 2], [3, 4]])], equation="...->..."),
        op("Einsum", inputs=[f32([[1, 2]]), f32([3])], equation="ij,j->i", says="dimension"),
        op("Einsum", inputs=[f32(np.ones((2, 0, 3))), f32(np.ones((0,)))], equation="abc,b->ac"),
    ]


def steps_and_counts() -> list[Any]:
    """Ranges, bins, sorts and segments at their edges."""
    some = f32([3, 1, 2, 7, inf, -inf])
    return [
        op("Range", start=f32(0), limit=f32(1), delta=f32(0.3)),
        op("Range", start=i32(5), limit=i32(-5), delta=i32(-3)),
        op("Range", start=i32(5), limit=i32(5), delta=i32(1)),
        op("Range", start=i32(0), limit=i32(5), delta=i32(0), says="delta"),
        op("Range", start=i32(0), limit=i32(-5), delta=i32(1), says="start"),
        op("Range", start=i64(2**62), limit=i64(2**62 + 2), delta=i64(1)),
        op("LinSpace", start=f32(0), stop=f32(1), num=i32(4)),
        op("LinSpace", start=f64(5), stop=f64(5), num=i32(1)),
        op("LinSpace", start=f32(0), stop=f32(1), num=i32(0), says="num"),
        *(op("TopKV2", input=some[None], k=i32(k)) for k in (0, 1, 6)),
        op("TopKV2", input=i32([[5, 5, 7], [1, 1, 1]]), k=i32(2)),
        op("TopKV2", input=f32(np.zeros((0, 3))), k=i32(2)),
        op("TopKV2", input=f32([1.0]), k=i32(2), says="at least k columns"),
        op("TopKV2", input=f32([1.0]), k=i32(-1), says="k"),
        op("Unique", x=f32([2, nan, 2, nan])),
        op("Unique", x=s([b"b", b"a", b"b"])),
        op("Unique", x=i32([]), out_idx="int64"),
        op("UniqueWithCounts", x=i64([3, 3, -1])),
        op("UniqueV2", x=i32([[1, 2], [1, 2]]), axis=i32([0])),
        op("Bucketize", input=f32([-1, 0, 5, 100, inf]), boundaries=[0.0, 10.0, 100.0]),
        op("Bucketize", input=i32([-1, 0, 5]), boundaries=[]),
        *(
            op(
                f"UnsortedSegment{kind}",
                data=f32([[1, 2], [3, 4], [5, 6]]),
                segment_ids=i32([2, 0, -1]),
                num_segments=i32(3),
            )
            for kind in ("Sum", "Max", "Min", "Prod")
        ),
        *(
            op(
                f"UnsortedSegment{kind}",
                data=i32([1, 2]),
                segment_ids=i32([0, 0]),
                num_segments=i32(2),
            )
            for kind in ("Sum", "Max", "Min", "Prod")
        ),
        op(
            "UnsortedSegmentSum",
            data=f32([1]),
            segment_ids=i32([3]),
            num_segments=i32(3),
            says="is out of range [0, 3)",
        ),
        *(
            op(f"Segment{kind}", data=f32([[1, 2], [3, 4], [5, 6]]), segment_ids=i32([0, 0, 2]))
            for kind in ("Sum", "Mean", "Max", "Min", "Prod")
        ),
        op("SegmentSum", data=f32([1, 2]), segment_ids=i32([1, 0]), says="not increasing"),
        op("SegmentSum", data=f32([1, 2]), segment_ids=i32([0]), says="same size"),
        op("SegmentSum", data=f32([]), segment_ids=i32([])),
        op(
            "HistogramFixedWidth",
            values=f32([-1, 0, 4.99, 5, 9]),
            value_range=f32([0, 5]),
            nbins=i32(5),
        ),
        op("ClipByValue", t=f32([nan, -5, 5]), clip_value_min=f32(-1), clip_value_max=f32(2)),
        op("CheckNumerics", tensor=f32([1, 2]), message="m"),
        op("CheckNumerics", tensor=f32([1, nan]), message="m", says="m : Tensor had NaN"),
        op("CheckNumerics", tensor=f32([inf]), message="m", says="m : Tensor had Inf"),
        op("AddN", inputs=[f32([1]), f32([2]), f32([nan])]),
        op("AddN", inputs=[f32([1]), f32([2, 3])], says="shape"),
        op("AccumulateNV2", inputs=[f32([1]), f32([2])], shape=[1]),
        op("Cross", a=f32([[1, 2, 3]]), b=f32([[4, 5, 6]])),
        op("Cross", a=f32([1, 2]), b=f32([4, 5]), says="3"),
    ]


CASES = [
    *unary(),
    *whole_unary(),
    *binary(),
    *whole_binary(),
    *reductions(),
    *casts(),
    *products(),
    *steps_and_counts(),
]
