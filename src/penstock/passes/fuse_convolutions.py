"""Make one node of a convolution, its bias and what is applied to the result.

In:   a GraphRewriter.
Out:  the GraphRewriter with fused nodes, where a kernel for them is there; how many nodes went.
Not:  touches no convolution whose own result somebody reads.

A bias and an activation may follow.  Where kernels in C are wanted, so may the sum with what
another way through the network gives, and an activation without a bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.core import dtypes
from penstock.dataclass import dataclass
from penstock.graph.graph import Edge, Node
from penstock.kernels.api.registry import find_kernel
from penstock.passes.graph_rewriter import GraphRewriter

#: The op that stands for a convolution with what comes after it.  Without one of the former there
#: is nothing to do.
FUSED: Final = {
    "Conv2D": "_FusedConv2D",
    "Conv3D": "_FusedConv3D",
    "DepthwiseConv2dNative": "_FusedDepthwiseConv2dNative",
    "MatMul": "_FusedMatMul",
}
_SUMS: Final = frozenset({"Add", "AddV2"})
_ACTIVATIONS: Final = frozenset({"Relu", "Relu6", "Elu", "LeakyRelu"})


@dataclass(frozen=False, slots=True)
class _Fusing:
    """A convolution, what comes after it, and what that reads."""

    first: Node
    #: With the names that the fused node has for them.
    others: list[tuple[str, Node]]
    #: What the others read besides the result of what comes before.
    args: list[Edge]

    @property
    def steps(self) -> list[Node]:
        """All nodes, in order."""
        return [self.first, *(node for _, node in self.others)]

    @property
    def last(self) -> Node:
        """What gives the result."""
        return self.steps[-1]


def fuse_convolutions(
    draft: GraphRewriter, are_sums_wanted: Callable[[], bool] = lambda: False
) -> int:
    """Fuse what follows convolutions and products; returns how many nodes went.

    Args:
        draft: the graph.
        are_sums_wanted: whether sums with other results, and activations without a bias, are to be
            fused; asked if there are convolutions.

    """
    found = [node for node in draft.graph if node.op.name in FUSED]
    with_sums = bool(found) and are_sums_wanted()
    return sum(_fuse(draft, node, with_sums=with_sums) for node in found)


def _fuse(draft: GraphRewriter, node: Node, *, with_sums: bool) -> int:
    fusing = _Fusing(node, [], [])
    _take_bias(draft, fusing)
    if with_sums and node.op.name == "Conv2D":
        _take_sum(draft, fusing)
    _take_activation(draft, fusing, needs_bias=not (with_sums and _is_plain(node)))
    if not fusing.others:
        return 0
    attrs = _attrs(fusing)
    # A bias that is a variable is read when it is added, not before; a filter as before.
    if attrs is None or not draft.has_no_effects(node):
        return 0
    if not all(draft.is_pure(other) for _, other in fusing.others):
        return 0
    if find_kernel(FUSED[node.op.name], "CPU", attrs) is None:
        return 0
    _put_in_place(draft, fusing, attrs)
    return len(fusing.others)


def _take_bias(draft: GraphRewriter, fusing: _Fusing) -> None:
    added = _next(draft, fusing.last)
    if added is None or added.op.name != "BiasAdd":
        return
    # What a bias is added to has the depth last or second, whatever the number of dimensions.
    layout = fusing.first.attrs.get("data_format", b"NHWC").replace(b"D", b"")
    if added.input(0).src is fusing.last and added.attrs["data_format"] == layout:
        fusing.others.append(("BiasAdd", added))
        fusing.args.append(added.input(1))


def _take_sum(draft: GraphRewriter, fusing: _Fusing) -> None:
    """Take the sum with the result of something else, if an activation comes after that."""
    total = _next(draft, fusing.last)
    if total is None or total.op.name not in _SUMS or not (fusing.args or _is_plain(fusing.first)):
        return
    activation = _next(draft, total)
    if activation is None or activation.op.name not in ("Relu", "Relu6"):
        return
    edge = total.input(0 if total.input(1).src is fusing.last else 1)
    if edge.src is fusing.last:  # the sum of the result with itself
        return
    fusing.args.append(edge)
    fusing.others.append(("Add", total))


def _take_activation(draft: GraphRewriter, fusing: _Fusing, *, needs_bias: bool) -> None:
    activation = _next(draft, fusing.last)
    if activation is None or activation.op.name not in _ACTIVATIONS:
        return
    if fusing.args or not needs_bias:
        fusing.others.append((activation.op.name, activation))


def _is_plain(node: Node) -> bool:
    """Whether a convolution has numbers of float32, and the depth last."""
    is_float = node.output_types[0] is dtypes.float32
    return is_float and node.attrs.get("data_format") in (b"NHWC", b"NDHWC")


def _next(draft: GraphRewriter, node: Node) -> Node | None:
    """The only consumer of a node, if it runs in the same place, whenever the node does."""
    if len(node.out_edges) != 1 or node.out_edges[0].is_control:
        return None
    consumer = node.out_edges[0].dst
    if consumer.control_inputs or draft.device(consumer) != draft.device(node):
        return None
    return consumer


def _attrs(fusing: _Fusing) -> dict[str, Any] | None:
    """The attributes of the fused node."""
    node, last, count = fusing.first, fusing.last, len(fusing.args)
    dtype = node.output_types[0]
    names = tuple(name.encode() for name, _ in fusing.others)
    attrs: dict[str, Any] = {
        name: value for name, value in node.attrs.items() if not name.startswith("_")
    }
    attrs |= {"fused_ops": names, "num_args": count, "epsilon": 1e-4, "leakyrelu_alpha": 0.2}
    if last.op.name == "LeakyRelu":
        attrs["leakyrelu_alpha"] = last.attrs["alpha"]
    if node.op.name == "Conv2D":
        attrs |= {"TArgs": (dtype,) * count, "num_host_args": 0, "filter_format": b"HWIO"}
    if node.op.name == "DepthwiseConv2dNative" and attrs.pop("explicit_paddings", ()):
        return None
    return attrs


def _put_in_place(draft: GraphRewriter, fusing: _Fusing, attrs: dict[str, Any]) -> None:
    """One node, under the name of the last step, instead of all steps."""
    first, last = fusing.first, fusing.last
    waits = [edge.src for edge in first.control_inputs]
    made = draft.take_name(last, FUSED[first.op.name], attrs)
    for slot, edge in enumerate([first.input(0), first.input(1), *fusing.args]):
        draft.graph.add_edge(edge.src, edge.src_slot, made, slot)
    draft.graph.add_control_edges(waits, made)
    draft.replace({**dict.fromkeys(fusing.steps[:-1], ()), last: [(made, 0)]})
