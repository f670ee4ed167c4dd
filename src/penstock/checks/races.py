"""PS101: a variable that is read and written, or written twice, in no order.

In:   a subject.
Out:  a remark for each writer whose order with some other access the graph leaves open.
Not:  says nothing of different requests: whoever runs them orders them.

What two accesses do depends on who is first, unless an edge, or a way of edges, leads from one to
the other; accesses in two branches of one predicate never happen both.  Sums commute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from penstock.checks.rule import Remark
from penstock.checks.subject import Before, Subject, hands_references_on, origin
from penstock.core import dtypes
from penstock.dataclass import dataclass
from penstock.graph.graph import Edge, Node
from penstock.graph.initializers import VARIABLES
from penstock.graph.references import References
from penstock.graph.roles import HANDS_REFERENCES_ON

_READS: Final = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
#: These ask for nothing that a write could change twice.
_ASKS: Final = frozenset({"IsVariableInitialized", "VarIsInitializedOp"})
_WRITES: Final = (
    "Assign",
    "ResourceApply",
    "ResourceSparseApply",
    "ResourceScatter",
    "ResourceStridedSliceAssign",
    "ResourceCountUpTo",
    "Scatter",
    "Apply",
    "SparseApply",
    "StridedSliceAssign",
    "CountUpTo",
)
_LOCK: Final = "MutexLock"
_SUMS: Final = frozenset(
    {
        *("AssignAdd", "AssignSub", "AssignAddVariableOp", "AssignSubVariableOp"),
        *("ScatterAdd", "ScatterSub", "ResourceScatterAdd", "ResourceScatterSub"),
    }
)
#: Variables with more accesses are looked at no further: there are pairs of them.
_MAX_ACCESSES: Final = 300


@dataclass(frozen=True, slots=True)
class _Variable:
    """What happens to one variable."""

    node: Node
    writers: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)
    #: What asks whether it has a value: who does that before reading expects to be first.
    asking: list[Node] = field(default_factory=list)

    @property
    def accesses(self) -> list[Node]:
        """All that reads or writes it, each once."""
        return list(dict.fromkeys([*self.writers, *self.readers]))


def look(subject: Subject) -> Iterator[Remark]:
    """Accesses without order."""
    variables = _variables(subject)
    locks = [node for node in subject.order if node.op.name == _LOCK]
    looked_at = {node for v in variables for node in (*v.accesses, *v.asking)}
    before = subject.before({*locks, *looked_at})
    for variable in variables:
        if variable.writers and len(variable.accesses) <= _MAX_ACCESSES:
            yield from _races(subject, variable, before)


def _variables(subject: Subject) -> list[_Variable]:
    found: dict[Node, _Variable] = {}
    references = References(subject.order)
    for node in subject.order:
        for edge in node.inputs:
            if edge is not None and (_is_handle(edge) or _is_reference(edge, references)):
                source = origin(edge, hands_references_on).src
                if source.op.name in VARIABLES:
                    _note(found.setdefault(source, _Variable(source)), edge, references)
    return list(found.values())


def _note(variable: _Variable, edge: Edge, references: References) -> None:
    """See what the reader of a reference does with it."""
    node = edge.dst
    is_place = _is_handle(edge) or node.input_types[edge.dst_slot].is_ref
    if node.op.name in _ASKS:
        variable.asking.append(node)
    elif is_place and node.op.name.startswith(_WRITES):
        variable.writers.append(node)
    elif _reads(edge, references):
        variable.readers.append(node)


def _is_handle(edge: Edge) -> bool:
    return edge.src.output_types[edge.src_slot] is dtypes.resource


def _is_reference(edge: Edge, references: References) -> bool:
    """Whether who reads the edge reads the variable, when it runs."""
    return edge.src.output_types[edge.src_slot].is_ref or references.is_read(edge.src)


def _reads(edge: Edge, references: References) -> bool:
    node = edge.dst
    if _is_handle(edge):
        return node.op.name in _READS
    hands_on = node.role in HANDS_REFERENCES_ON and node.output_types[0].is_ref
    return not (hands_on or references.is_read(node))


def _races(subject: Subject, variable: _Variable, before: Before) -> Iterator[Remark]:
    for request in subject.requests:
        together = set(before.of(request))
        for writer in variable.writers:
            for rival in variable.accesses:
                if writer is rival or not {writer, rival} <= together:
                    continue
                if _is_race(subject, variable, writer, rival, before):
                    yield _remark(variable, writer, rival)


def _is_race(
    subject: Subject, variable: _Variable, writer: Node, rival: Node, before: Before
) -> bool:
    if {writer.op.name, rival.op.name} <= _SUMS or any(
        before.comes(asking, rival) for asking in variable.asking
    ):
        return False
    is_ordered = before.comes(writer, rival) or before.comes(rival, writer)
    is_locked = _are_locked(writer, rival, before)
    return not (is_ordered or is_locked or subject.excludes(writer, rival))


def _are_locked(one: Node, other: Node, before: Before) -> bool:
    """Whether both hold a mutex, the same one."""
    held = [
        {origin(lock.input(0), hands_references_on).src for lock in before.of([n])
         if lock.op.name == _LOCK}
        for n in (one, other)
    ]  # fmt: skip
    return bool(held[0] & held[1])


def _remark(variable: _Variable, writer: Node, rival: Node) -> Remark:
    does = "writes" if rival in variable.writers else "reads"
    return Remark(
        writer,
        f"writes the variable '{variable.node.name}', which '{rival.name}' {does} in the same "
        "step, and nothing orders the two",
        f"add a control dependency between '{writer.name}' and '{rival.name}', or run them in two "
        "steps",
        (rival, variable.node),
    )
