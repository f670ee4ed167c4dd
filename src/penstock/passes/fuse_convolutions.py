"""Make one node of a convolution, its bias and what is applied to the result.

In:   a GraphRewriter.
Out:  the GraphRewriter with fused nodes, where a kernel for them is there; how many nodes went.
Not:  touches no convolution whose own result somebody reads.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.graph.graph import Edge, Node
from penstock.kernels.api.registry import find_kernel
from penstock.passes.graph_rewriter import GraphRewriter

#: The op that stands for a convolution with what comes after it.
_FUSED: Final = {
    "Conv2D": "_FusedConv2D",
    "DepthwiseConv2dNative": "_FusedDepthwiseConv2dNative",
    "MatMul": "_FusedMatMul",
}
_ACTIVATIONS: Final = frozenset({"Relu", "Relu6", "Elu", "LeakyRelu"})


def fuse_convolutions(draft: GraphRewriter) -> int:
    """Fuse what follows convolutions and products; returns how many nodes went."""
    found = [node for node in draft.graph if node.op.name in _FUSED]
    return sum(_fuse(draft, node) for node in found)


def _fuse(draft: GraphRewriter, node: Node) -> int:
    added = _next(draft, node)
    if added is None or added.op.name != "BiasAdd":
        return 0
    layout = node.attrs.get("data_format", b"NHWC")
    if added.input(0).src is not node or added.attrs["data_format"] != layout:
        return 0
    activation = _next(draft, added)
    steps = [node, added]
    if activation is not None and activation.op.name in _ACTIVATIONS:
        steps.append(activation)
    attrs = _attrs(steps)
    # A bias that is a variable is read when it is added, not before.
    if attrs is None or not all(map(draft.is_pure, steps)):
        return 0
    if find_kernel(_FUSED[node.op.name], "CPU", attrs) is None:
        return 0
    _put_in_place(draft, steps, attrs)
    return len(steps) - 1


def _next(draft: GraphRewriter, node: Node) -> Node | None:
    """The only consumer of a node, if it runs in the same place, whenever the node does."""
    if len(node.out_edges) != 1 or node.out_edges[0].is_control:
        return None
    consumer = node.out_edges[0].dst
    if consumer.control_inputs or draft.device(consumer) != draft.device(node):
        return None
    return consumer


def _attrs(steps: list[Node]) -> dict[str, Any] | None:
    """The attributes of the fused node."""
    node, dtype = steps[0], steps[0].output_types[0]
    names = tuple(step.op.name.encode() for step in steps[1:])
    attrs: dict[str, Any] = {
        name: value for name, value in node.attrs.items() if not name.startswith("_")
    }
    attrs |= {"fused_ops": names, "num_args": 1, "epsilon": 1e-4, "leakyrelu_alpha": 0.2}
    if steps[-1].op.name == "LeakyRelu":
        attrs["leakyrelu_alpha"] = steps[-1].attrs["alpha"]
    if node.op.name == "Conv2D":
        attrs |= {"TArgs": (dtype,), "num_host_args": 0, "filter_format": b"HWIO"}
    if node.op.name == "DepthwiseConv2dNative" and attrs.pop("explicit_paddings", ()):
        return None
    return attrs


def _put_in_place(draft: GraphRewriter, steps: list[Node], attrs: dict[str, Any]) -> None:
    """One node, under the name of the last step, instead of all steps."""
    first, added, last = steps[0], steps[1], steps[-1]
    sources: list[Edge] = [first.input(0), first.input(1), added.input(1)]
    waits = [edge.src for edge in first.control_inputs]
    made = draft.take_name(last, _FUSED[first.op.name], attrs)
    for slot, edge in enumerate(sources):
        draft.graph.add_edge(edge.src, edge.src_slot, made, slot)
    draft.graph.add_control_edges(waits, made)
    draft.replace({**dict.fromkeys(steps[:-1], ()), last: [(made, 0)]})
