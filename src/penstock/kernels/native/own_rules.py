"""Ops that the optimiser makes of others.

In:   arrays, lists.
Out:  arrays.
Not:  knows no pass.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from penstock.kernels.native.array_rules import multiplied
from penstock.kernels.native.elementwise_rules import softmax_of
from penstock.kernels.native.emitter import MAX_COST
from penstock.kernels.native.list_rules import Elements
from penstock.kernels.native.parts import Known, Operand, Traced
from penstock.kernels.native.rules import FLOATS, Written, broadcast_shape, of_types, rule

#: Functions that may come after a product, as operations are called.
_FUNCTIONS: Final = {"Relu": "relu", "Relu6": "relu6", "Sigmoid": "sigmoid", "Tanh": "tanh"}
_BIAS: Final = b"BiasAdd"


@rule("_FusedGates", admits=of_types(FLOATS))
def _gates(node: Written) -> list[Operand]:
    *xs, w, bias = node.inputs
    node.need(all(len(x.shape) == 2 for x in (*xs, w)))
    node.need(len({x.shape[0] for x in xs}) == 1)
    joined = node.emitter.concatenate(xs, 1) if len(xs) > 1 else xs[0]
    total = multiplied(node, joined, w, False, False, bias)  # noqa: FBT003
    rows, columns = total.shape
    functions = node.attrs["functions"]
    node.need(columns % len(functions) == 0)
    size, made = columns // len(functions), []
    for at, function in enumerate(functions):
        begin = at * size
        part = node.emitter.slice(total, [0, begin], [rows, begin + size], [1, 1])
        made.append(_applied(node, function.decode(), part))
    return made


@rule(
    "_FusedMatMul",
    admits=lambda attrs, inputs, _: inputs[0] in FLOATS and _is_known(attrs["fused_ops"]),
)
def _fused_product(node: Written) -> Operand:
    x, y, bias = (node.array(slot) for slot in range(3))
    node.need(len(x.shape) == len(y.shape) == 2)
    attrs = node.attrs
    made = multiplied(node, x, y, attrs["transpose_a"], attrs["transpose_b"], bias)
    for function in attrs["fused_ops"][1:]:
        made = _applied(node, function.decode(), made)
    return made


def _is_known(fused: Any) -> bool:
    names = [name.decode() for name in fused[1:]]
    return tuple(fused[:1]) == (_BIAS,) and len(names) < 2 and _FUNCTIONS.keys() >= {*names}


def _applied(node: Written, function: str, x: Operand) -> Operand:
    return node.emitter.same(_FUNCTIONS[function], x) if function else x


@rule("_ItemMatMul", admits=of_types(FLOATS))
def _item_product(node: Written) -> Operand:
    """The product of a list's element; of all of them before the loop that reads one by one."""
    x, y, elements, emitter = node.array(0), node.array(1), node.inputs[2], node.emitter
    node.need(len(x.shape) == len(y.shape) == 2)
    content = elements.content if isinstance(elements, Elements) else None
    levels = [one.level for one in (content, y) if isinstance(one, Traced)]
    if content is None or content.shape[1:] != x.shape or max(levels, default=0) == emitter.level:
        return multiplied(node, x, y, False, node.attrs["transpose_b"])  # noqa: FBT003
    cost = prod(content.shape) * (y.shape[0] if node.attrs["transpose_b"] else y.shape[1]) // 8
    if isinstance(content, Known) or cost > MAX_COST // 2:
        return multiplied(node, x, y, False, node.attrs["transpose_b"])  # noqa: FBT003
    rows = emitter.reshape(content, [prod(content.shape[:-1]), content.shape[-1]])
    made = multiplied(node, rows, y, False, node.attrs["transpose_b"])  # noqa: FBT003
    every = emitter.reshape(made, [*content.shape[:-1], made.shape[-1]])
    return emitter.row(every, node.array(3))


@rule("_SliceAt")
def _slice_at(node: Written) -> Operand:
    x, index, axis = node.array(0), node.array(1), node.attrs["axis"]
    node.need(not index.shape and 0 <= axis < len(x.shape) and x.shape[axis])
    node.emitter.need_index(index, x.shape[axis])
    part = node.emitter.one_at(x, {axis: index})
    return node.emitter.reshape(part, [*x.shape[:axis], *x.shape[axis + 1 :]])


@rule("_ScaledSoftmax")
def _scaled_softmax(node: Written) -> Operand:
    x = node.array(0)
    scale = node.emitter.full(node.attrs["scale"], x.dtype, x.shape)
    return softmax_of(node, node.emitter.same("mul", x, scale))


@rule("_LayerNorm")
def _layer_norm(node: Written) -> Operand:
    emitter, count = node.emitter, node.attrs["N"]
    following = [name.decode() for name in node.attrs["fused_ops"]]
    terms = [node.array(slot) for slot in range(count)]
    args = dict(zip(following, map(node.array, range(count + 1, len(node.inputs))), strict=True))

    def apply(what: str, x: Operand, y: Operand) -> Operand:
        shape = broadcast_shape(x.shape, y.shape)
        return emitter.same(what, emitter.broadcast(x, shape), emitter.broadcast(y, shape))

    x = apply("add", *terms) if count > 1 else terms[0]
    mean, variance = _moments_of(node, x, node.known(count))
    epsilon = emitter.full(node.attrs["epsilon"], x.dtype, variance.shape)
    factor: Operand = emitter.same("rsqrt", emitter.same("add", variance, epsilon))
    if node.attrs["is_centered"]:
        result = apply("mul", apply("sub", x, mean), factor)
        result = apply("mul", result, args["Mul"]) if "Mul" in args else result
        return apply("add", result, args["Add"]) if "Add" in args else result
    factor = apply("mul", factor, args["Mul"]) if "Mul" in args else factor
    term = apply("mul", emitter.same("neg", mean), factor)
    term = apply("add", term, args["Add"]) if "Add" in args else term
    return apply("add", apply("mul", x, factor), term)


@rule("_Moments")
def _moments(node: Written) -> list[Operand]:
    return _moments_of(node, node.array(0), node.known(1))


def _moments_of(node: Written, x: Operand, indices: Any) -> list[Operand]:
    """The mean along some axes, which stay, and the mean square of the distances from it."""
    emitter, rank = node.emitter, len(x.shape)
    numbers = indices.reshape(-1).tolist()
    node.need(all(-rank <= number < rank for number in numbers))
    axes = sorted({number % rank for number in numbers})
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    count = emitter.full(prod(x.shape[axis] for axis in axes), x.dtype, kept)

    def mean_of(values: Operand) -> Operand:
        return emitter.same(
            "div", emitter.reshape(emitter.reduce("sum", values, axes), kept), count
        )

    mean = mean_of(x)
    spread = emitter.same("squared_difference", x, emitter.broadcast(mean, x.shape))
    return [mean, mean_of(spread)]
