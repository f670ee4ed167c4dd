"""Shapes of what leads into branches and loops, and out of them.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  joins what a Merge may get, and goes into no function; ``penstock.shapes`` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import TensorShape
from penstock.kernels.api.partial_shapes import join
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures(
    {
        "DeviceIndex Timestamp": " -> []",
        "FakeParam": " -> @shape",
        "LoopCond": "[] -> []",
        "_HostCast": "s -> s",
    }
)


@shape_rule(
    *("Enter", "Exit", "NextIteration", "RefEnter", "RefExit", "RefIdentity"),
    *("RefNextIteration", "RefSwitch", "Switch", "_SwitchN"),
)
def hand_on(node: ShapeContext) -> Sequence[TensorShape]:
    """The first input's own, and what lies behind it."""
    count = len(node.attrs.output_types)
    held = node.held(0) if node.attrs.input_types[0].base.is_object else None
    if held is not None:
        node.holds.update(dict.fromkeys(range(count), held))
    return [node.input(0)] * count


@shape_rule("RefSelect")
def ref_select(node: ShapeContext) -> TensorShape:
    """What is true of all that may be chosen."""
    known = node.input(1)
    for other in node.inputs[2:]:
        known = join(known, other)
    return known


@shape_rule("SymbolicGradient")
def symbolic_gradient(node: ShapeContext) -> Sequence[TensorShape]:
    """The gradients of a function's arguments have the arguments' shapes."""
    return node.inputs[: len(node.attrs.output_types)]


@shape_rule("_ArrayToList", "_ListToArray")
def listed(node: ShapeContext) -> Sequence[TensorShape]:
    """Each as it was."""
    return node.inputs
