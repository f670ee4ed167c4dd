"""XLA's own ops, with the answers of XLA itself: the functions are compiled by it."""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from cases_src.casebook import bf16, f16, f32, f64, graph, i8, i32, i64, inf, nan, normal, u64

_X = f32(np.arange(6)).reshape(2, 3)


def _fields(**numbers: list[int] | int) -> bytes:
    """A message of numbers: ``f3=[1, 2]`` is field 3."""
    out = b""
    for name, value in numbers.items():
        field = int(name[1:])
        if isinstance(value, int):
            out += bytes([field << 3, value])
        else:
            out += bytes([field << 3 | 2, len(value), *value])
    return out


def xla(tf: Any, op: str, label: str, **args: Any) -> Any:
    """One op inside a function that XLA compiles."""
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    del label
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op).lower()
    made = getattr(gen_xla_ops, snake, None) or getattr(tf.raw_ops, op)
    fed = {k: tf.constant(v) for k, v in args.items() if isinstance(v, np.ndarray)}
    rest = {k: v for k, v in args.items() if k not in fed}
    # What XLA wants to know while it compiles stays a constant inside.
    static = {k: v for k, v in fed.items() if k not in _ARRAYS}

    def compute(*arrays: Any) -> Any:
        inside = dict(zip([k for k in fed if k in _ARRAYS], arrays, strict=True))
        outside = {k: tf.constant(args[k]) for k in static}
        if op == "XlaOptimizationBarrier":
            inside = {"input": [inside["input"], inside["input"] + 1]}
        return tf.nest.flatten(made(**inside, **outside, **rest))

    function = tf.function(compute, jit_compile=True, autograph=False)
    return function(*[v for k, v in fed.items() if k in _ARRAYS])


_ARRAYS = ("input", "update", "operand", "lhs", "rhs", "a", "b", "keys", "values", "start_indices",
           "indices", "padding_value")  # fmt: skip


def case(op: str, label: str = "", **args: Any) -> Any:
    """A case of ``xla``."""
    tol = args.pop("tol", (1e-5, 1e-6))
    says, also = args.pop("says", ""), args.pop("also", ())

    def xla_of(tf: Any, _label: str) -> Any:
        return xla(tf, op, label, **args)

    return graph(xla_of, f"{op}{label}", tol=tol, says=says, also=also)


def _pad(low: list[int], high: list[int], interior: list[int]) -> Any:
    return case("XlaPad", input=_X, padding_value=f32(9), padding_low=i64(low),
                padding_high=i64(high), padding_interior=i64(interior))  # fmt: skip


_IMAGES, _FILTERS = normal(2, 5, 6, 4), normal(3, 2, 4, 6, seed=1)
_NHWC = _fields(f7=0, f8=3, f11=[1, 2], f3=2, f4=3, f6=[0, 1], f9=0, f10=3, f12=[1, 2])
_NCHW = _fields(f7=0, f8=1, f11=[2, 3], f3=2, f4=3, f6=[0, 1], f9=0, f10=1, f12=[2, 3])


def _conv(images: Any, filters: Any, **changed: Any) -> Any:
    args: dict[str, Any] = {
        "window_strides": i64([1, 1]), "padding": i64([[0, 0], [0, 0]]),
        "lhs_dilation": i64([1, 1]), "rhs_dilation": i64([1, 1]), "feature_group_count": i64(1),
        "dimension_numbers": _NHWC, "precision_config": b"", "preferred_element_type": "float32",
    }  # fmt: skip
    return case("XlaConvV2", lhs=images, rhs=filters, **{**args, **changed}, tol=(1e-4, 1e-5))


def _dot(lhs: Any, rhs: Any, to: str = "float32", **fields: Any) -> Any:
    return case("XlaDotV2", lhs=lhs, rhs=rhs, dimension_numbers=_fields(**fields),
                precision_config=b"", preferred_element_type=to)  # fmt: skip


def _gather(indices: Any, sizes: list[int], **fields: Any) -> Any:
    return case("XlaGather", operand=normal(4, 5, 3), start_indices=indices,
                slice_sizes=i32(sizes), dimension_numbers=_fields(**fields),
                indices_are_sorted=False)  # fmt: skip


def with_function(tf: Any, op: str, how: str, *arrays: Any, **args: Any) -> Any:
    """One op with a function of single numbers, compiled by XLA."""
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    del how
    named = {}
    for key in ("reducer", "computation", "update_computation", "select", "scatter", "comparator"):
        if key in args:
            function, single = _FUNCTIONS[args[key]]
            spec = [tf.TensorSpec([], dtype) for dtype in single]
            build = tf.function(functools.partial(function, tf), autograph=False)
            named[key] = build.get_concrete_function(*spec)
    rest = {key: value for key, value in args.items() if key not in named}
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op).lower()
    made = getattr(gen_xla_ops, snake)

    def compute(*inputs: Any) -> Any:
        statics = {k: tf.constant(v) if isinstance(v, np.ndarray) else v for k, v in rest.items()}
        return tf.nest.flatten(_CALLS[op](made, inputs, {**statics, **named}))

    return tf.function(compute, jit_compile=True, autograph=False)(*map(tf.constant, arrays))


def _add(tf: Any, x: Any, y: Any) -> Any:
    return tf.raw_ops.AddV2(x=x, y=y)


def _largest(tf: Any, x: Any, y: Any) -> Any:
    return tf.raw_ops.Maximum(x=x, y=y)


def _at_least(tf: Any, x: Any, y: Any) -> Any:
    return tf.raw_ops.GreaterEqual(x=x, y=y)


def _largest_and_where(tf: Any, x: Any, i: Any, y: Any, j: Any) -> Any:
    first = tf.raw_ops.GreaterEqual(x=x, y=y)
    return [tf.where(first, x, y), tf.where(first, i, j)]


def _less(tf: Any, x: Any, y: Any, i: Any, j: Any) -> Any:
    del i, j
    return tf.raw_ops.Less(x=x, y=y)


def _scalar_only(tf: Any, x: Any, y: Any) -> Any:
    """A sum that works for single numbers only."""
    return tf.reshape(tf.stack([x, y]), [2])[0] + y


_FUNCTIONS: dict[str, Any] = {
    "add": (_add, ["float32"] * 2),
    "largest": (_largest, ["float32"] * 2),
    "at_least": (_at_least, ["float32"] * 2),
    "pairs": (_largest_and_where, ["float32", "int32"] * 2),
    "less": (_less, ["float32", "float32", "int32", "int32"]),
    "scalar_only": (_scalar_only, ["float32"] * 2),
}
_CALLS: dict[str, Any] = {
    "XlaReduce": lambda made, x, args: made(input=x[0], init_value=x[1], **args),
    "XlaVariadicReduceV2": lambda made, x, args: made(
        inputs=list(x[:2]), init_values=list(x[2:]), **args
    ),
    "XlaReduceWindow": lambda made, x, args: made(input=x[0], init_value=x[1], **args),
    "XlaScatter": lambda made, x, args: made(operand=x[0], updates=x[1], **args),
    "XlaSelectAndScatter": lambda made, x, args: made(
        operand=x[0], source=x[1], init_value=x[2], **args
    ),
    "XlaVariadicSort": lambda made, x, args: made(inputs=list(x), **args),
}


def call(op: str, how: str, *arrays: Any, **args: Any) -> Any:
    """A case of ``with_function``."""

    def xla_of(tf: Any, _op: str, _how: str) -> Any:
        return with_function(tf, op, how, *arrays, **args)

    return graph(xla_of, op, how)


def _reduce_window(how: str, start: Any, **changed: Any) -> Any:
    args = {"window_dimensions": i64([2, 2]), "window_strides": i64([1, 2]),
            "base_dilations": i64([1, 1]), "window_dilations": i64([1, 1]),
            "padding": i64([[0, 0], [0, 0]])}  # fmt: skip
    return call("XlaReduceWindow", how, normal(4, 5), start, computation=how, **{**args, **changed})


def _scatter(how: str, indices: Any, updates: Any, **numbers: Any) -> Any:
    return call("XlaScatter", how, normal(4, 3), updates, update_computation=how,
                scatter_indices=indices, dimension_numbers=_fields(**numbers),
                indices_are_sorted=False)  # fmt: skip


def _bits(algorithm: int, state: list[int], shape: list[int], dtype: str, **says: Any) -> Any:
    return case("XlaRngBitGenerator", algorithm=i32(algorithm), initial_state=u64(state),
                shape=i32(shape), dtype=dtype, **says)  # fmt: skip


_KEY, _COUNTER, _LAST = 0x0123456789ABCDEF, 0xFEDCBA9876543210, 2**64 - 1

CASES = [
    call("XlaReduce", "add", normal(3, 4, 5), f32(1), dimensions_to_reduce=[0, 2], reducer="add"),
    call(
        "XlaReduce", "largest", normal(3, 4), f32(-9), dimensions_to_reduce=[1], reducer="largest"
    ),
    call(
        "XlaReduce",
        "scalar_only",
        normal(3, 4),
        f32(1),
        dimensions_to_reduce=[1],
        reducer="scalar_only",
    ),
    call(
        "XlaReduce", "add", f32(np.zeros((2, 0))), f32(1), dimensions_to_reduce=[1], reducer="add"
    ),
    call(
        "XlaVariadicReduceV2",
        "pairs",
        f32([[3, 1, 7], [5, 9, 2]]),
        i32([[0, 1, 2]] * 2),
        f32(-inf),
        i32(0),
        dimensions_to_reduce=[1],
        reducer="pairs",
    ),
    _reduce_window("add", f32(0)),
    _reduce_window("largest", f32(-99), padding=i64([[1, 0], [2, 1]])),
    _reduce_window("add", f32(0), base_dilations=i64([2, 1]), window_dilations=i64([1, 2])),
    _scatter("add", i32([[2], [0], [2], [9]]), normal(4, 3, seed=3), f1=[1], f2=[0], f3=[0], f4=1),
    _scatter("largest", i32([[1, 1], [0, 2]]), f32([5, -5]), f2=[0, 1], f3=[0, 1], f4=1),
    call(
        "XlaSelectAndScatter",
        "at_least",
        normal(4, 6),
        f32([[1, 2, 3], [4, 5, 6]]),
        f32(0),
        select="at_least",
        scatter="add",
        window_dimensions=i64([2, 2]),
        window_strides=i64([2, 2]),
        padding=i64([[0, 0], [0, 0]]),
    ),
    call(
        "XlaSelectAndScatter",
        "at_least",
        normal(3, 3),
        f32([[1, 2], [3, 4]]),
        f32(0.5),
        select="at_least",
        scatter="add",
        window_dimensions=i64([2, 2]),
        window_strides=i64([1, 1]),
        padding=i64([[0, 0], [0, 0]]),
    ),
    call(
        "XlaVariadicSort",
        "less",
        f32([[3, 1, 2, 1], [0, -1, 5, 5]]),
        i32([[1, 2, 3, 4]] * 2),
        dimension=i32(1),
        comparator="less",
        is_stable=True,
    ),
    _pad([1, -1], [0, 2], [1, 0]),
    _pad([0, 0], [0, 0], [0, 2]),
    _pad([-1, -2], [0, 0], [2, 1]),
    _pad([-2, 0], [0, 0], [0, 0]),
    _pad([2, 1], [-1, -3], [0, 1]),
    _pad([-2, 1], [4, -3], [3, 1]),
    case("XlaDynamicSlice", input=_X, start_indices=i32([1, 2]), size_indices=i32([1, 2])),
    case("XlaDynamicSlice", input=_X, start_indices=i32([-5, 0]), size_indices=i32([2, 1])),
    case("XlaDynamicUpdateSlice", input=_X, update=f32([[7, 8]]), indices=i32([5, 5])),
    case("XlaDynamicUpdateSlice", input=_X, update=f32([[7]]), indices=i32([0, -1])),
    *(
        case(
            "XlaReducePrecision",
            operand=t([1.1, 3e4, -1e-7, 3.3, 0.1, nan, -inf, 6.2e-5, 0, 1.75]),
            exponent_bits=e,
            mantissa_bits=m,
        )
        for t in (f32, f64, f16, bf16)
        for e, m in [(5, 3), (8, 7), (4, 0), (5, 10)]
    ),
    case("XlaBroadcastHelper", lhs=_X, rhs=f32([1, 2]), broadcast_dims=i64([0])),
    case("XlaBroadcastHelper", lhs=f32([1, 2, 3]), rhs=_X, broadcast_dims=i64([1])),
    case("XlaSort", input=f32([[3, 1, nan, 0.5, -inf, -1]])),
    case("XlaKeyValueSort", keys=f32([3, 1, 2, 1]), values=i32([1, 2, 3, 4])),
    case("XlaEinsum", a=_X, b=_X, equation="ab,cb->ac"),
    case("XlaOptimizationBarrier", input=_X),
    case(
        "XlaConcatND",
        inputs=[f32([[n, 2 * n]]) for n in range(4)],
        num_concats=[2, 2],
        paddings=[0, 1],
    ),
    case("XlaSplitND", input=_X, N=4, num_splits=[2, 2], paddings=[0, 1]),
    case("XlaSplitND", input=_X, N=3, num_splits=[1, 3]),
    case(
        "XlaDot",
        lhs=normal(2, 3),
        rhs=normal(3, 4),
        dimension_numbers=_fields(f1=[1], f2=[0]),
        precision_config=b"",
    ),
    case(
        "XlaConv",
        lhs=_IMAGES,
        rhs=_FILTERS,
        window_strides=i64([1, 2]),
        padding=i64([[0, 1], [1, 0]]),
        lhs_dilation=i64([1, 1]),
        rhs_dilation=i64([1, 1]),
        feature_group_count=i64(1),
        dimension_numbers=_NHWC,
        precision_config=b"",
        tol=(1e-4, 1e-5),
    ),
    case("XlaSharding", input=_X, sharding=b""),
    case("XlaSpmdFullToShardShape", input=_X, manual_sharding=b""),
    _dot(normal(2, 3), normal(3, 4), f1=[1], f2=[0]),
    _dot(normal(5, 2, 3), normal(4, 5, 3), f1=[2], f2=[2], f3=[0], f4=[1]),
    _dot(normal(2), normal(3)),
    _dot(normal(2, 3), normal(3, 2), f1=[0, 1], f2=[1, 0]),
    _dot(i8([[100, 100]]), i8([[100], [100]]), "int32", f1=[1], f2=[0]),
    _conv(_IMAGES, _FILTERS),
    _conv(_IMAGES, _FILTERS, window_strides=i64([2, 3]), padding=i64([[1, 0], [2, 1]])),
    _conv(_IMAGES, _FILTERS, lhs_dilation=i64([2, 1]), rhs_dilation=i64([1, 2])),
    _conv(_IMAGES, _FILTERS, padding=i64([[-1, 0], [0, -2]])),
    _conv(_IMAGES, normal(3, 2, 2, 6), feature_group_count=i64(2)),
    _conv(_IMAGES.transpose(0, 3, 1, 2), _FILTERS, dimension_numbers=_NCHW),
    _conv(_IMAGES, _FILTERS, batch_group_count=2),
    _gather(i32([[2], [0], [9]]), [1, 5, 3], f1=[1, 2], f2=[0], f3=[0], f4=1),
    _gather(i32([[0, 1], [3, 3]]), [2, 1, 2], f1=[0, 2], f2=[1], f3=[0, 2], f4=1),
    _gather(i32([[2, 1], [0, 1]]), [1, 1, 3], f1=[2], f2=[0, 1], f3=[1], f4=2),
]

CASES += [
    _bits(algorithm, state, shape, dtype)
    for algorithm, state in [(1, [_KEY, _COUNTER, 5]), (3, [_KEY, _COUNTER]), (2, [_KEY, _COUNTER])]
    for shape, dtype in [
        ([], "uint32"), ([9], "uint32"), ([5], "uint64"), ([4, 3], "uint8"), ([3, 5, 2], "uint32"),
        ([0, 2], "uint32"), ([], "uint64"),
    ]
]  # fmt: skip
CASES += [
    *(_bits(2, [_KEY, _LAST], shape, "uint32")
      for shape in ([7], [3, 3], [3, 5], [1, 3], [7, 3], [3, 4, 2], [2, 2, 3])),
    _bits(2, [_KEY, _LAST], [3, 3], "uint64"),
    _bits(1, [_KEY, _LAST, 5], [9], "uint32"),
    _bits(1, [_KEY, _LAST, _LAST], [9], "uint32"),
    _bits(1, [_KEY, _LAST], [9], "uint64"),
    _bits(1, [0, 0, 0], [300, 7], "uint32"),
    _bits(0, [_KEY, _COUNTER], [2], "uint32", says="unknown algorithm", also=("INVALID_ARGUMENT",)),
    _bits(2, [_KEY], [2], "uint32", says=" ", also=("INVALID_ARGUMENT",)),
]  # fmt: skip
