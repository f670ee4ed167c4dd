"""In which branches a node runs, and why it is dead for some feeds.

In:   a question.
Out:  the Switches that a node depends on, what their predicates must be and, if values are fed,
      what they are and which feeds decide that.
Not:  runs nothing that has effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from penstock.checks.subject import Branch, forward_edges, is_dead_for_sure
from penstock.core.names import Endpoint
from penstock.errors import OpError
from penstock.explanations.explanation import Fact, Topic
from penstock.explanations.request import Question
from penstock.graph.graph import Node
from penstock.graph.roles import Role

#: More nodes than this before a predicate are not looked at.
_MAX_LOOKED_AT = 100_000
_SHOWN = 4
_SIDES = ("false", "true")


def facts(question: Question) -> Iterator[Fact]:
    """Branches, outermost first."""
    node = question.node_as_run
    if node is None or isinstance(question.subject.flow, OpError):
        return
    branches = question.subject.branches.get(node, frozenset())
    place = {one: number for number, one in enumerate(question.subject.order)}
    for branch in sorted(branches, key=lambda b: (place.get(b[0], -1), b[1], b[2])):
        yield _about(question, branch, branches)


def _about(question: Question, branch: Branch, others: frozenset[Branch]) -> Fact:
    predicate, slot, side = branch
    endpoint = question.endpoint(predicate, slot)
    name = f"{endpoint.node}:{endpoint.slot}"
    needs = f"it runs only if '{name}' is {_SIDES[side]}"
    if (predicate, slot, 1 - side) in others and side == 0:
        text = f"always: it needs '{name}' to be true, and to be false"
        return Fact(Topic.DEAD, text, is_trouble=True)
    if is_dead_for_sure(branch):
        text = f"always: {needs}, which is the constant {_SIDES[not side]}"
        return Fact(Topic.DEAD, text, is_trouble=True)
    flow = question.subject.flow
    frame = None if isinstance(flow, OpError) else flow.frame_of.get(predicate.id)
    if frame is not None and frame.parent is not None:
        return Fact(Topic.DEAD, f"{needs}, in each iteration of the loop '{frame.name}'")
    value = _value(question, endpoint)
    if value is None:
        return Fact(Topic.DEAD, f"{needs}{_fed_by(question, endpoint)}")
    if bool(value) == bool(side):
        return Fact(Topic.DEAD, f"not by '{name}', which is {_SIDES[bool(value)]}")
    text = f"{needs}, and it is {_SIDES[bool(value)]}{_fed_by(question, endpoint)}"
    return Fact(Topic.DEAD, text, is_trouble=True)


def _value(question: Question, endpoint: Endpoint) -> bool | None:
    """What a predicate is for the values that are fed; None if nobody can know without effects."""
    written = question.graph.find(endpoint.node)
    if not question.values or written is None:
        return None
    if any(node.op.is_stateful for node in _before(written) if node.role is not Role.PLACEHOLDER):
        return None
    try:
        found = np.asarray(question.value(endpoint))
    except OpError:
        return None
    return bool(found.reshape(-1)[0]) if found.size == 1 else None


def _fed_by(question: Question, endpoint: Endpoint) -> str:
    """The feeds that a predicate depends on, with their values."""
    written = question.graph.find(endpoint.node)
    if written is None:
        return ""
    _, fed = question.ends
    found = [
        f"'{node.name}:{slot}'{_shown(question.values, node.name, slot)}"
        for node in _before(written)
        for one, slot in fed
        if one is node
    ]
    if not found:
        return ""
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"; that depends on what is fed: {', '.join(found[:_SHOWN])}{more}"


def _shown(values: Mapping[Endpoint, Any], name: str, slot: int) -> str:
    """A short form of what is fed."""
    value = values.get(Endpoint(name, slot))
    if value is None:
        return ""
    array = np.asarray(value)
    return (
        f" = {array.tolist()}" if array.size <= _SHOWN else f" ({array.dtype}{list(array.shape)})"
    )


def _before(node: Node) -> list[Node]:
    """All that a node depends on, and itself."""
    seen = {node: None}
    for one in (waiting := [node]):
        for edge in forward_edges(one):
            if edge.src not in seen and len(seen) < _MAX_LOOKED_AT:
                seen[edge.src] = None
                waiting.append(edge.src)
    return list(seen)
