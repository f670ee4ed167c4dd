"""Put what scales and moves the channels of a convolution into its filter and one bias.

In:   a GraphRewriter.
Out:  its graph, in which a convolution by a constant filter is followed by one BiasAdd rather than
      by normalisation with constant statistics, products and sums; how many nodes went.
Not:  touches no convolution whose own result somebody reads.

All of these do x · k + b to each channel.  With f · k for the filter f, the product costs
nothing.  Results differ from those of the single ops by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, shape_of
from penstock.dataclass import dataclass
from penstock.graph.graph import Node
from penstock.passes.graph_rewriter import GraphRewriter, value_of

#: Without one of these there is nothing to do.
SCALED: Final = frozenset({"Conv2D", "DepthwiseConv2dNative"})
_TYPES: Final = frozenset({dtypes.float32, dtypes.float64})
_BATCH_NORMS: Final = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


@dataclass(frozen=True, slots=True)
class _Affine:
    """What is done to each channel: first times ``scale``, then plus ``bias``."""

    scale: Array
    bias: Array

    def then(self, other: _Affine) -> _Affine:
        """First this, then the other."""
        return _Affine(self.scale * other.scale, self.bias * other.scale + other.bias)


@dataclass(frozen=True, slots=True)
class _FilterChannels:
    """Where the channels of a convolution's results are, and how many there are."""

    count: int
    layout: bytes

    def spread(self, value: Value | None) -> Array | None:
        """A number for each channel; None if ``value`` has none, or more than that."""
        shape = shape_of(value)
        if value is None or len(shape) > 4:
            return None
        sizes = [1] * (4 - len(shape)) + list(shape)
        own = sizes.pop(self.layout.index(b"C"))
        if sizes != [1, 1, 1] or own not in (1, self.count):
            return None
        return np.broadcast_to(np.asarray(value, np.float64).reshape(own), self.count)

    def row(self, value: Value | None) -> Array | None:
        """A list of exactly one number for each channel; None for anything else."""
        if value is None or shape_of(value) != (self.count,):
            return None
        return np.asarray(value, np.float64)


def fold_batch_norm(draft: GraphRewriter) -> int:
    """Fold what follows convolutions into them; returns how many nodes went."""
    convolutions = [
        node for node in draft.graph if node.op.name in SCALED and node.output_types[0] in _TYPES
    ]
    return sum(_fold(draft, node) for node in convolutions)


def _fold(draft: GraphRewriter, conv: Node) -> int:
    filters = value_of(conv.input(1).src)
    if filters is None or np.ndim(filters) != 4 or 0 in filters.shape:
        return 0
    is_depthwise = conv.op.name != "Conv2D"
    count = int(np.prod(filters.shape[2:])) if is_depthwise else filters.shape[3]
    channels = _FilterChannels(count, conv.attrs["data_format"])
    if channels.layout not in (b"NHWC", b"NCHW"):
        return 0
    steps = list(_steps(draft, conv, channels))
    if not steps or (len(steps) == 1 and steps[0][0].op.name == "BiasAdd"):
        return 0
    whole = steps[0][1]
    for _, affine in steps[1:]:
        whole = whole.then(affine)
    if not (np.isfinite(whole.scale).all() and np.isfinite(whole.bias).all()):
        return 0
    _scale_filter(draft, conv, filters, whole.scale)
    _put_bias(draft, conv, [node for node, _ in steps], whole.bias)
    return len(steps)


def _steps(
    draft: GraphRewriter, conv: Node, channels: _FilterChannels
) -> Iterator[tuple[Node, _Affine]]:
    """The nodes after a convolution that can be folded into it, and what they do."""
    node = conv
    while len(node.out_edges) == 1 and not node.out_edges[0].is_control:
        edge = node.out_edges[0]
        other = edge.dst
        affine = _affine_of(other, edge.dst_slot, channels)
        used = {edge.src_slot for edge in other.out_edges} - {-1, 0}
        if affine is None or used or draft.device(other) != draft.device(conv):
            return
        if any(_waits(e.src) != _waits(conv.input(1).src) for e in other.inputs if e and e != edge):
            return  # not the same frame, or not alive together
        yield other, affine
        node = other


def _waits(node: Node) -> set[Node]:
    return {edge.src for edge in node.control_inputs}


def _affine_of(node: Node, slot: int, channels: _FilterChannels) -> _Affine | None:
    """What a node does to the channels of the values at an input; None if something else."""
    values = [
        None if e is None or i == slot else value_of(e.src) for i, e in enumerate(node.inputs)
    ]
    name = node.op.name
    if name in _BATCH_NORMS:
        return _batch_norm(node, values, channels) if slot == 0 else None
    if name == "BiasAdd":
        bias = channels.row(values[1])
        is_same = slot == 0 and node.attrs["data_format"] == channels.layout
        return None if bias is None or not is_same else _Affine(np.ones(channels.count), bias)
    if len(values) != 2 or (slot and not node.op.traits.commutes):
        return None
    numbers = channels.spread(values[1 - slot])
    return None if numbers is None else _arithmetic(name, numbers)


def _arithmetic(name: str, numbers: Array) -> _Affine | None:
    zeros, ones = np.zeros_like(numbers), np.ones_like(numbers)
    match name:
        case "Mul":
            return _Affine(numbers, zeros)
        case "RealDiv" | "Div" if np.all(numbers != 0):
            return _Affine(1 / numbers, zeros)
        case "Add" | "AddV2":
            return _Affine(ones, numbers)
        case "Sub":
            return _Affine(ones, -numbers)
        case _:
            return None


def _batch_norm(node: Node, values: list[Any], channels: _FilterChannels) -> _Affine | None:
    """Normalisation by given statistics."""
    rows = [channels.row(value) for value in values[1:]]
    if node.attrs["is_training"] or node.attrs["data_format"] != channels.layout:
        return None
    scale, offset, mean, variance = rows
    if scale is None or offset is None or mean is None or variance is None:
        return None
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + np.float32(node.attrs["epsilon"]))
        return _Affine(factor, offset - mean * factor)


def _scale_filter(draft: GraphRewriter, conv: Node, filters: Array, scale: Array) -> None:
    """Give a convolution a filter of its own."""
    if (scale == 1).all():
        return
    shape = filters.shape[2:] if conv.op.name != "Conv2D" else filters.shape[3:]
    # Rounded twice, the scale and the product: in the scale's own type it takes four times as long.
    scaled = filters * scale.astype(filters.dtype).reshape(shape)
    edge = conv.input(1)
    made = draft.add_const(conv, f"{conv.name}/scaled_filter", scaled, conv.output_types[0])
    draft.graph.add_control_edges(_waits(edge.src), made)
    draft.graph.remove_edge(edge)
    draft.graph.add_edge(made, 0, conv, 1)


def _put_bias(draft: GraphRewriter, conv: Node, steps: list[Node], bias: Array) -> None:
    """One BiasAdd, under the name of the last step, instead of all steps; none if it is 0."""
    graph, dtype, last = draft.graph, conv.output_types[0], steps[-1]
    waits = {src for step in steps for src in _waits(step)} - set(steps)
    gone: dict[Node, list[tuple[Node, int]]] = {step: [] for step in steps}
    if not (bias.any() or waits or draft.is_root(last)):
        draft.replace({**gone, last: [(conv, 0)] * len(last.output_types)})
        return
    value = bias.astype(dtype.numpy)
    numbers = draft.add_const(conv, f"{last.name}/bias", value, dtype)
    graph.add_control_edges(_waits(conv.input(1).src), numbers)
    attrs = {"T": dtype, "data_format": conv.attrs["data_format"]}
    made = draft.take_name(last, "BiasAdd", attrs)
    graph.add_edge(conv, 0, made, 0)
    graph.add_edge(numbers, 0, made, 1)
    graph.add_control_edges(waits, made)
    draft.replace({**gone, last: [(made, 0)] * len(last.output_types)})
