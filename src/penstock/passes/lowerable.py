"""Which nodes can be lowered.

In:   an If, a Case, a While or a call, and the bodies of its functions.
Out:  whether it is one that is to be lowered, what it calls, and whether that fits.
Not:  changes nothing, and reads no body but its types.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.defs.attrs import FuncAttr
from penstock.graph.functions import MUST_COMPILE
from penstock.graph.graph import Node
from penstock.graph.instantiate import FunctionBody
from penstock.kernels.control_flow.functional_ops import LOWERED

CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
BRANCHES: Final = frozenset({"If", "StatelessIf"})
CASES: Final = frozenset({"Case", "StatelessCase"})
_LOOPS: Final = frozenset({"While", "StatelessWhile"})
CHOICES: Final = BRANCHES | CASES | _LOOPS
#: Types whose values are neither true nor false.
_HANDLES: Final = frozenset({dtypes.resource, dtypes.variant})
#: A Case of more branches is left to its kernel.
_MOST_BRANCHES: Final = 16
#: Attributes that say of a node that a compiler is to have it whole.
_FOR_XLA: Final = ("_tpu_replicate", "_xla_compile_id")


class Kinds(enum.Flag):
    """Which nodes are lowered."""

    #: Calls of functions by their own names.
    NATIVE_CALLS = enum.auto()
    #: PartitionedCall and StatefulPartitionedCall.
    PARTITIONED_CALLS = enum.auto()
    CALLS = NATIVE_CALLS | PARTITIONED_CALLS
    #: If, Case and While that ask for it.
    CHOICES = enum.auto()
    #: The others as well, if their functions have no effects.
    PURE_CHOICES = enum.auto()


#: What TensorFlow lowers.
AS_TENSORFLOW: Final = Kinds.CALLS | Kinds.CHOICES


class LoweredKinds:
    """The nodes of some kinds."""

    __slots__ = ("_has_native", "_has_pure", "_ops")

    def __init__(self, kinds: Kinds) -> None:
        self._has_native = Kinds.NATIVE_CALLS in kinds
        self._has_pure = Kinds.PURE_CHOICES in kinds
        ops = {Kinds.PARTITIONED_CALLS: CALLS, Kinds.CHOICES: CHOICES}
        self._ops = frozenset().union(*(ops[kind] for kind in ops if kind in kinds))

    def has(self, node: Node) -> bool:
        """Whether a node is of one of the kinds; each node of a graph is asked."""
        name = node.op.name
        if name in self._ops:
            return self._has_pure or name not in CHOICES or asks(node)
        return node.op.is_function and self._has_native


def functions_of(node: Node) -> list[FuncAttr]:
    """The functions that a node calls, if it is one that can be lowered."""
    attrs, name = node.attrs, node.op.name
    if is_for_xla(node):
        return []
    if node.op.is_function:
        return [named_function(node)]
    if name in CALLS:
        return [attrs["f"]] if attrs["executor_type"] in (b"", b"DEFAULT") else []
    if name in BRANCHES:
        return [attrs["then_branch"], attrs["else_branch"]]
    if name in CASES:
        return list(attrs["branches"]) if len(attrs["branches"]) <= _MOST_BRANCHES else []
    return [attrs["cond"], attrs["body"]] if name in _LOOPS else []


def named_function(node: Node) -> FuncAttr:
    """The function that a node calls whose op it is."""
    own = {name: value for name, value in node.attrs.items() if name in node.op.attrs}
    return FuncAttr(node.op.name, own)


def asks(node: Node) -> bool:
    """Whether an If, a Case or a While is meant to be lowered; those of TensorFlow 2 are."""
    return node.attrs.get(LOWERED) is True


def is_for_xla(node: Node) -> bool:
    """Whether a node is marked for a compiler, which wants to see its functions."""
    marks = (node.attrs.get(name) for name in _FOR_XLA)
    is_named = any(isinstance(mark, bytes) and mark for mark in marks)
    return is_named or node.attrs.get(MUST_COMPILE) is True


def fits(node: Node, bodies: Sequence[FunctionBody]) -> bool:
    """Whether the functions take and give what the node does, and nothing is a reference."""
    if None in node.inputs:
        return False  # it is only there to be fed
    if any(dtype.is_ref for dtype in (*node.input_types, *node.output_types)):
        return False
    if node.op.name in BRANCHES:
        taken, given = node.input_types[1:], [node.output_types] * 2
        if not _may_decide(node, node.input_types[0]):
            return False
    elif node.op.name in CASES:
        taken, given = node.input_types[1:], [node.output_types] * len(bodies)
    elif node.op.name in _LOOPS:
        tests = bodies[0].ret_types
        taken, given = node.input_types, [tests, node.output_types]
        # Without variables, nothing would tell iterations apart.
        if not taken or len(tests) != 1 or not _may_decide(node, tests[0]):
            return False
    else:
        taken, given = node.input_types, [node.output_types]
    return all(
        body.arg_types == taken and body.ret_types == types
        for body, types in zip(bodies, given, strict=True)
    )


def _may_decide(node: Node, dtype: DType) -> bool:
    """Whether values of a type can say how an If or a While goes on."""
    return dtype is dtypes.bool_ if asks(node) else dtype not in _HANDLES
