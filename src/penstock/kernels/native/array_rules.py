"""Ops that move elements, reduce them along axes, or multiply matrices.

In:   arrays; axes and sizes that are known while the program is written.
Out:  arrays.
Not:  no sizes that only a step knows.  Indices are guarded: one out of range has the nodes say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.parts import Known, Operand, Traced, UnsupportedError
from penstock.kernels.native.products import product
from penstock.kernels.native.rules import FLOATS, INTEGERS, Written, broadcast_shape, of_types, rule

_REDUCTIONS: Final = {"Sum": "sum", "Mean": "sum", "Prod": "prod", "Max": "max", "Min": "min"}


def _axis(node: Written, number: Any, rank: int) -> int:
    node.need(-rank <= int(number) < rank)
    return int(number) % rank


# -- shapes --------------------------------------------------------------------------------------


#: What only looks at a shape.
SIZES: Final = frozenset({"Shape", "Size", "Rank"})


@rule(*SIZES, admits=lambda _a, _i, outputs: outputs[0] in INTEGERS)
def _metadata(node: Written) -> Known:
    shape = node.array(0).shape
    value = {"Shape": shape, "Size": prod(shape), "Rank": len(shape)}[node.op]
    return Known(np.asarray(value, node.types[0].numpy))


@rule("ToBool", admits=lambda _a, inputs, _o: inputs[0] is dtypes.bool_)
def _truth(node: Written) -> Operand:
    node.need(not node.array(0).shape)  # of others, the number of elements counts
    return node.array(0)


@rule("Reshape")
def _reshape(node: Written) -> Operand:
    x, sizes = node.array(0), node.known(1).tolist()
    node.need(isinstance(sizes, list) and sizes.count(-1) <= 1 and min(sizes, default=0) >= -1)
    if -1 in sizes:
        rest = prod(size for size in sizes if size != -1)
        node.need(rest and prod(x.shape) % rest == 0)
        sizes[sizes.index(-1)] = prod(x.shape) // rest
    node.need(prod(sizes) == prod(x.shape))
    return node.emitter.reshape(x, sizes)


@rule("Squeeze")
def _squeeze(node: Written) -> Operand:
    x, axes = node.array(0), node.attrs["squeeze_dims"]
    gone = {_axis(node, axis, len(x.shape)) for axis in axes}
    if not axes:
        gone = {axis for axis, size in enumerate(x.shape) if size == 1}
    node.need(all(x.shape[axis] == 1 for axis in gone))
    kept = [size for axis, size in enumerate(x.shape) if axis not in gone]
    return node.emitter.reshape(x, kept)


@rule("ExpandDims")
def _expand_dims(node: Written) -> Operand:
    x, axis = node.array(0), node.known(1)
    node.need(axis.size == 1)
    sizes = list(x.shape)
    sizes.insert(_axis(node, axis.item(), len(x.shape) + 1), 1)
    return node.emitter.reshape(x, sizes)


@rule("Transpose")
def _transpose(node: Written) -> Operand:
    x, order = node.array(0), node.known(1).tolist()
    node.need(sorted(order) == list(range(len(x.shape))))
    return node.emitter.transpose(x, order) if order else x


@rule("Fill")
def _fill(node: Written) -> Operand:
    sizes, x = node.known(0), node.array(1)
    node.need(sizes.ndim == 1 and (sizes >= 0).all() and not x.shape)
    return node.emitter.broadcast(x, sizes.tolist(), ())


@rule("Range", "BroadcastGradientArgs", admits=lambda _a, i, _o: i[0] in INTEGERS)
def _computed_before(_node: Written) -> Operand:
    """What is computed from sizes while the program is written, or not at all."""
    raise UnsupportedError


# -- parts ---------------------------------------------------------------------------------------


@rule("ConcatV2")
def _concat(node: Written) -> Operand:
    *parts, _ = node.inputs
    axis_value = node.known(len(parts))
    rank = len(parts[0].shape)
    node.need(axis_value.ndim == 0 and rank)
    axis = _axis(node, axis_value, rank)
    rests = {(*part.shape[:axis], *part.shape[axis + 1 :], len(part.shape)) for part in parts}
    node.need(len(rests) == 1)
    return node.emitter.concatenate(parts, axis)


@rule("Pack")
def _pack(node: Written) -> Operand:
    shape = node.array(0).shape
    node.need(all(part.shape == shape for part in node.inputs))
    axis = _axis(node, node.attrs["axis"], len(shape) + 1)
    sizes = [*shape[:axis], 1, *shape[axis:]]
    made = node.emitter.concatenate([node.emitter.reshape(x, sizes) for x in node.inputs], axis)
    if not shape:
        node.emitter.numbers_of[made] = list(node.inputs)
    return made


@rule("Unpack")
def _unpack(node: Written) -> list[Operand]:
    x = node.array(0)
    axis = _axis(node, node.attrs["axis"], len(x.shape))
    node.need(x.shape[axis] == len(node.types))
    kept = [*x.shape[:axis], *x.shape[axis + 1 :]]
    return [
        node.emitter.reshape(_part(node.emitter, x, axis, at, at + 1), kept)
        for at in range(x.shape[axis])
    ]


@rule("Split")
def _split(node: Written) -> list[Operand]:
    number, x, count = node.known(0), node.array(1), len(node.types)
    node.need(number.ndim == 0 and len(x.shape))
    axis = _axis(node, number, len(x.shape))
    node.need(x.shape[axis] % count == 0)
    size = x.shape[axis] // count
    starts = range(0, size * count, size) if size else [0] * count
    return [_part(node.emitter, x, axis, start, start + size) for start in starts]


def _part(emitter: Emitter, x: Operand, axis: int, begin: int, end: int) -> Operand:
    begins, ends = [0] * len(x.shape), list(x.shape)
    begins[axis], ends[axis] = begin, end
    return emitter.slice(x, begins, ends, [1] * len(ends))


@rule("Slice")
def _slice(node: Written) -> Operand:
    x, begins, sizes = node.array(0), node.known(1).tolist(), node.known(2).tolist()
    node.need(len(begins) == len(sizes) == len(x.shape))
    ends = []
    for begin, size, n in zip(begins, sizes, x.shape, strict=True):
        end = n if size == -1 else begin + size
        node.need(0 <= begin <= end <= n)
        ends.append(end)
    return node.emitter.slice(x, begins, ends, [1] * len(ends))


@rule("StridedSlice")
def _strided_slice(node: Written) -> Operand:
    x, attrs = node.array(0), node.attrs
    starts, stops, steps = (_numbers(node, slot) for slot in (1, 2, 3))
    node.need(len(starts) == len(stops) == len(steps))
    axis_of, layout = _layout(node, len(starts), len(x.shape))
    begins, ends, strides = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
    met: dict[int, Operand] = {}
    gone = set()
    for place, axis in axis_of.items():
        bit, step, size = 1 << place, _static(node, steps[place]), x.shape[axis]
        node.need(step > 0)
        if attrs["shrink_axis_mask"] & bit:
            node.need(step == 1 and size)
            gone.add(axis)
            start = starts[place]
            if isinstance(start, Traced) and not attrs["begin_mask"] & bit:
                node.emitter.need_index(start, size)
                met[axis] = start
                continue
            number = 0 if attrs["begin_mask"] & bit else _static(node, start)
            begins[axis] = _axis(node, number, size)
            ends[axis] = begins[axis] + 1
            continue
        first = None if attrs["begin_mask"] & bit else _static(node, starts[place])
        last = None if attrs["end_mask"] & bit else _static(node, stops[place])
        begins[axis], ends[axis], strides[axis] = slice(first, last, step).indices(size)
        ends[axis] = max(ends[axis], begins[axis])
    part = node.emitter.one_at(node.emitter.slice(x, begins, ends, strides), met)
    kept = [axis for axis in layout if axis not in gone]
    return node.emitter.reshape(part, [1 if axis is None else part.shape[axis] for axis in kept])


def _layout(node: Written, count: int, rank: int) -> tuple[dict[int, int], list[int | None]]:
    """Which place of a slice is about which axis; and all axes in order, None for new ones."""
    dots = node.attrs["ellipsis_mask"]
    new = node.attrs["new_axis_mask"] & ~dots
    node.need(dots & (dots - 1) == 0)
    named = sum(not (dots | new) >> place & 1 for place in range(count))
    node.need(named <= rank)
    axis_of: dict[int, int] = {}
    layout: list[int | None] = []
    axis = 0
    for place in range(count):
        if new >> place & 1:
            layout.append(None)
            continue
        many = 1
        if dots >> place & 1:
            many = rank - named
        else:
            axis_of[place] = axis
        layout += range(axis, axis + many)
        axis += many
    return axis_of, [*layout, *range(axis, rank)]


def _numbers(node: Written, slot: int) -> Sequence[Operand]:
    """The numbers of a vector, of which only some may be known."""
    vector = node.array(slot)
    if isinstance(vector, Traced):
        node.need(vector in node.emitter.numbers_of)
        return node.emitter.numbers_of[vector]
    node.need(vector.value.ndim == 1)
    return [Known(np.asarray(number)) for number in vector.value]


def _static(node: Written, number: Operand) -> int:
    node.need(isinstance(number, Known))
    assert isinstance(number, Known)
    return int(number.value.item())


@rule("GatherV2", admits=lambda attrs, _i, _o: not attrs["batch_dims"])
def _gather_along(node: Written) -> Operand:
    axis = node.known(2)
    node.need(axis.ndim == 0 and not axis.item())
    return _gathered(node)


@rule("Gather")
def _gather(node: Written) -> Operand:
    return _gathered(node)


def _gathered(node: Written) -> Operand:
    x, indices = node.array(0), node.array(1)
    node.need(len(x.shape))
    node.emitter.need_index(indices, x.shape[0])
    node.need(x.shape[0])
    return node.emitter.rows(x, indices)


# -- reductions ----------------------------------------------------------------------------------


def _axes(node: Written, rank: int) -> list[int]:
    numbers = node.known(1).reshape(-1).tolist()
    axes = sorted({_axis(node, number, rank) for number in numbers})
    node.need(len(axes) == len(numbers))
    return axes


def _kept(node: Written, x: Operand, result: Operand, axes: Sequence[int]) -> Operand:
    if not node.attrs["keep_dims"]:
        return result
    sizes = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    return node.emitter.reshape(result, sizes)


@rule(*_REDUCTIONS, admits=of_types(FLOATS))
def _reduce(node: Written) -> Operand:
    x, emitter = node.array(0), node.emitter
    axes = _axes(node, len(x.shape))
    result = emitter.reduce(_REDUCTIONS[node.op], x, axes)
    if node.op == "Mean":
        count = prod(x.shape[axis] for axis in axes)
        result = emitter.same("div", result, emitter.full(count, x.dtype, result.shape))
    return _kept(node, x, result, axes)


@rule("All", "Any")
def _all_or_any(node: Written) -> Operand:
    x = node.array(0)
    axes = _axes(node, len(x.shape))
    return _kept(node, x, node.emitter.reduce(node.op.lower(), x, axes), axes)


@rule("ArgMax", admits=lambda _a, i, o: i[0] in FLOATS and o[0] in INTEGERS)
def _arg_max(node: Written) -> Operand:
    x, emitter = node.array(0), node.emitter
    axis = _axis(node, node.known(1).item(), len(x.shape))
    node.need(x.shape[axis])
    found = emitter.place_of_most(x, axis, node.types[0].numpy)
    emitter.need_index(found, x.shape[axis])  # NaN is no maximum
    return found


# -- products ------------------------------------------------------------------------------------


@rule("MatMul", admits=of_types(FLOATS))
def _product(node: Written) -> Operand:
    x, y = node.array(0), node.array(1)
    node.need(len(x.shape) == len(y.shape) == 2)
    return multiplied(node, x, y, node.attrs["transpose_a"], node.attrs["transpose_b"])


@rule(
    "BatchMatMul", "BatchMatMulV2",
    admits=of_types(FLOATS),
)  # fmt: skip
def _batch_product(node: Written) -> Operand:
    x, y = node.array(0), node.array(1)
    node.need(len(x.shape) >= 2 and len(y.shape) >= 2)
    batch = broadcast_shape(x.shape[:-2], y.shape[:-2])
    x = node.emitter.broadcast(x, [*batch, *x.shape[-2:]])
    y = node.emitter.broadcast(y, [*batch, *y.shape[-2:]])
    return multiplied(node, x, y, node.attrs["adj_x"], node.attrs["adj_y"])


def multiplied(
    node: Written,
    x: Operand,
    y: Operand,
    turn_x: object,
    turn_y: object,
    bias: Operand | None = None,
) -> Operand:
    """The product of two matrices, or of batches of them; each may be turned first."""
    node.need(x.shape[-2 if turn_x else -1] == y.shape[-1 if turn_y else -2])
    columns = y.shape[-2 if turn_y else -1]
    node.need(bias is None or bias.shape == (columns,))
    return product(node.emitter, x, y, bias, is_x_turned=bool(turn_x), is_y_turned=bool(turn_y))
