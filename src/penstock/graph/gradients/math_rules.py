"""Gradients of arithmetic: functions of one and of two numbers, reductions, products.

In:   nodes, as ``rules.At``.
Out:  formulas, noted in ``RULES``.
Not:  knows no shapes beforehand: what is broadcast is found out while the graph runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from penstock.core import dtypes
from penstock.errors import UnimplementedError
from penstock.graph.gradients.rules import At, Gradients, Rule, no_gradient, rule, table
from penstock.graph.gradients.values import NodeOutput, apply

#: Two factors, and whether each is turned.
_Product: TypeAlias = tuple[str, str, bool, bool]

#: d f(x) by x, y and dy.
_UNARY: Final[dict[str, Callable[[NodeOutput, NodeOutput, NodeOutput], NodeOutput]]] = {
    "Abs": lambda x, _y, dy: dy * x.to("Sign"),
    "Acos": lambda x, _y, dy: -dy / (1 - x * x).to("Sqrt"),
    # Calculus divides in these two, but TensorFlow's gradient of functions multiplies.
    "Acosh": lambda _x, y, dy: dy * y.to("Sinh"),
    "Asinh": lambda _x, y, dy: dy * y.to("Cosh"),
    "Asin": lambda x, _y, dy: dy / (1 - x * x).to("Sqrt"),
    "Atan": lambda x, _y, dy: dy / (1 + x * x),
    "Atanh": lambda x, _y, dy: dy / (1 - x * x),
    "Cos": lambda x, _y, dy: -dy * x.to("Sin"),
    "Cosh": lambda x, _y, dy: dy * x.to("Sinh"),
    "Exp": lambda _x, y, dy: dy * y,
    "Expm1": lambda x, _y, dy: dy * x.to("Exp"),
    "Inv": lambda _x, y, dy: -dy * y * y,
    "Log": lambda x, _y, dy: dy / x,
    "Log1p": lambda x, _y, dy: dy / (1 + x),
    "Neg": lambda _x, _y, dy: -dy,
    "Reciprocal": lambda _x, y, dy: -dy * y * y,
    "Sign": lambda x, _y, _dy: x.to("ZerosLike"),
    "Rsqrt": lambda x, y, dy: -0.5 * dy * y / x,
    "Sigmoid": lambda _x, y, dy: dy * y * (1 - y),
    "Sin": lambda x, _y, dy: dy * x.to("Cos"),
    "Sinh": lambda x, _y, dy: dy * x.to("Cosh"),
    "Sqrt": lambda _x, y, dy: 0.5 * dy / y,
    "Square": lambda x, _y, dy: 2 * dy * x,
    "Tan": lambda _x, y, dy: dy * (1 + y * y),
    "Tanh": lambda _x, y, dy: dy * (1 - y * y),
}
#: Both partial gradients by x, y, z = f(x, y) and dz, before what was broadcast is summed.
_BINARY: Final[
    dict[
        str,
        Callable[[NodeOutput, NodeOutput, NodeOutput, NodeOutput], tuple[NodeOutput, NodeOutput]],
    ]
] = {
    "Add": lambda _x, _y, _z, dz: (dz, dz),
    "AddV2": lambda _x, _y, _z, dz: (dz, dz),
    "Sub": lambda _x, _y, _z, dz: (dz, -dz),
    "Mul": lambda x, y, _z, dz: (dz * _conjugate(y), _conjugate(x) * dz),
    "MulNoNan": lambda x, y, _z, dz: (dz.to("MulNoNan", y), x.to("MulNoNan", dz)),
    "Div": lambda x, y, _z, dz: (dz / y, dz * (-x / y / y)),
    "RealDiv": lambda x, y, _z, dz: (dz / y, dz * (-x / y / y)),
    "DivNoNan": lambda x, y, _z, dz: (
        dz.to("DivNoNan", y),
        dz * (-x).to("DivNoNan", y).to("DivNoNan", y),
    ),
    "Maximum": lambda x, y, _z, dz: _chosen(x.to("GreaterEqual", y), dz),
    "Minimum": lambda x, y, _z, dz: _chosen(x.to("LessEqual", y), dz),
    "SquaredDifference": lambda x, y, _z, dz: (2 * dz * (x - y), -2 * dz * (x - y)),
    "Pow": lambda x, y, z, dz: (dz * y * x.to("Pow", y - 1), dz * z * _log(x)),
    "Xlogy": lambda x, y, _z, dz: (dz * _if_not_zero(x).to("Xlogy", y), dz * x.to("Xdivy", y)),
    "Xlog1py": lambda x, y, _z, dz: (
        dz * _if_not_zero(x).to("Xlog1py", y),
        dz * x.to("Xdivy", y + 1),
    ),
    "Xdivy": lambda x, y, _z, dz: (
        dz * _if_not_zero(x).to("Xdivy", y),
        dz * (-x).to("Xdivy", y * y),
    ),
}
_NONE: Final = (
    "EditDistance", "Equal", "FloorDiv", "Greater", "GreaterEqual", "Less", "LessEqual",
    "LinSpace", "LogicalAnd", "LogicalNot", "LogicalOr", "NotEqual", "OnesLike", "RandomUniform",
    "Range", "Rank", "Shape", "Floor", "Size", "StatelessMultinomial",
    "StatelessRandomNormal", "StatelessRandomUniform", "StatelessTruncatedNormal", "StopGradient",
    "TruncateDiv", "ZerosLike",
)  # fmt: skip


def _unary(formula: Any) -> Rule:
    return lambda at: [formula(at.x[0], at.y[0], at.dy[0])]


def _binary(formula: Any) -> Rule:
    def gradients(at: At) -> Gradients:
        x, y = at.x
        parts = formula(x, y, at.y[0], at.dy[0])
        return summed_back(x, y, *parts)

    return gradients


table(_UNARY, _unary)
table(_BINARY, _binary)
table(dict.fromkeys(_NONE, no_gradient), lambda same: same)


def summed_back(x: NodeOutput, y: NodeOutput, dx: NodeOutput, dy: NodeOutput) -> list[NodeOutput]:
    """Gradients of operands that were broadcast against each other."""
    axes = apply(x.graph, "BroadcastGradientArgs", x.shape, y.shape)
    pairs = ((x, dx, axes[0]), (y, dy, axes[1]))
    return [part.to("Sum", axis).shaped(given.shape) for given, part, axis in pairs]


def _conjugate(x: NodeOutput) -> NodeOutput:
    return x.to("Conj") if x.dtype.is_complex else x


def _chosen(first: NodeOutput, dz: NodeOutput) -> tuple[NodeOutput, NodeOutput]:
    """The gradient goes to the operand that was taken."""
    zeros = dz.to("ZerosLike")
    return first.to("SelectV2", dz, zeros), first.to("SelectV2", zeros, dz)


def _log(x: NodeOutput) -> NodeOutput:
    """The logarithm of positive numbers, and of numbers not equal to zero if complex."""
    zeros = x.to("ZerosLike")
    valid = x.to("NotEqual", zeros) if x.dtype.is_complex else x.to("Greater", zeros)
    return valid.to("SelectV2", valid.to("SelectV2", x, x.to("OnesLike")).to("Log"), zeros)


def _if_not_zero(x: NodeOutput) -> NodeOutput:
    """One where ``x`` is not zero, and zero elsewhere."""
    return x.to("NotEqual", x.to("ZerosLike")).to("Cast", DstT=x.dtype)


@rule("Cast")
def _cast(at: At) -> Gradients:
    return [at.dy[0].to("Cast", DstT=at.attrs["SrcT"])]


@rule("Conj")
def _conj(at: At) -> Gradients:
    return [at.dy[0].to("Conj")]


@rule("Select")
def _select(at: At) -> Gradients:
    zeros = at.dy[0].to("ZerosLike")
    first, second = at.x[0].to("Select", at.dy[0], zeros), at.x[0].to("Select", zeros, at.dy[0])
    return [None, first, second]


def _kept_shape(at: At) -> NodeOutput:
    """The shape of a reduction's input with ones where it was reduced."""
    x = at.x[0]
    shape = x.shape
    rank = shape.to("Size")
    axes = at.x[1].to("Cast", DstT=dtypes.int32).shaped(shape.number([-1]))
    axes = (axes + rank).to("FloorMod", rank)
    every = rank.number(0).to("Range", rank, rank.number(1))
    return apply(x.graph, "DynamicStitch", [every, axes], [shape, axes.to("OnesLike")])[0]


@rule("Sum")
def _sum(at: At) -> Gradients:
    return [at.dy[0].shaped(_kept_shape(at)).to("BroadcastTo", at.x[0].shape), None]


@rule("Mean")
def _mean(at: At) -> Gradients:
    spread = at.dy[0].shaped(_kept_shape(at)).to("BroadcastTo", at.x[0].shape)
    counts = [value.to("Size").to("Cast", DstT=spread.dtype) for value in (at.x[0], at.y[0])]
    return [spread * counts[1] / counts[0], None]


@rule("Max", "Min")
def _extreme(at: At) -> Gradients:
    """All that are extreme share the gradient."""
    x, shape = at.x[0], _kept_shape(at)
    extreme = x.to("Equal", at.y[0].shaped(shape)).to("Cast", DstT=x.dtype)
    count = extreme.to("Sum", at.x[1], keep_dims=True).shaped(shape)
    return [extreme / count * at.dy[0].shaped(shape), None]


#: The products that are the gradients of a product of a and b, by which of them were turned.
_FACTORS: Final[dict[tuple[bool, bool], tuple[_Product, _Product]]] = {
    (False, False): (("z", "b", False, True), ("a", "z", True, False)),
    (True, False): (("b", "z", False, True), ("a", "z", False, False)),
    (False, True): (("z", "b", False, False), ("z", "a", True, False)),
    (True, True): (("b", "z", True, True), ("z", "a", True, True)),
}


@rule("MatMul")
def _mat_mul(at: At) -> Gradients:
    if at.x[0].dtype.is_complex:
        raise UnimplementedError("MatMul gradient for complex is not supported yet.")
    turned = at.attrs["transpose_a"], at.attrs["transpose_b"]
    return _products("MatMul", ("transpose_a", "transpose_b"), turned, at)


@rule("BatchMatMul", "BatchMatMulV2")
def _batch_mat_mul(at: At) -> Gradients:
    turned = at.attrs["adj_x"], at.attrs["adj_y"]
    dx, dy = _products("BatchMatMulV2", ("adj_x", "adj_y"), turned, at)
    x, y = at.x
    shapes = [value.shape.to("Slice", value.number([0], dtypes.int32), _all_but_two(value))
              for value in (x, y)]  # fmt: skip
    axes = apply(x.graph, "BroadcastGradientArgs", *shapes)
    pairs = ((x, dx, axes[0]), (y, dy, axes[1]))
    return [part.to("Sum", axis).shaped(given.shape) for given, part, axis in pairs]


def _all_but_two(value: NodeOutput) -> NodeOutput:
    return (value.shape.to("Size") - 2).shaped(value.number([1], dtypes.int32))


def _products(
    op: str, names: tuple[str, str], turned: tuple[bool, bool], at: At
) -> tuple[NodeOutput, NodeOutput]:
    """Gradients of a product, whichever of its operands are turned."""
    values = dict(zip("abz", (*at.x, at.dy[0]), strict=True))

    def product(left: str, right: str, *turns: bool) -> NodeOutput:
        return values[left].to(op, values[right], **dict(zip(names, turns, strict=True)))

    first, second = _FACTORS[turned]
    return product(*first), product(*second)
