"""Why a node is what it is, in one request.

In:   a graph in any form, a node's name, and what is fetched and fed if that is known.
Out:  an ``Explanation``.
Not:  runs nothing but predicates, and those only for feeds whose values are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from penstock.config import Config
from penstock.explanations import (
    compiled,
    devices,
    frames,
    journey,
    liveness,
    needs,
    shapes,
)
from penstock.explanations.explanation import Explanation, Fact
from penstock.explanations.request import Question
from penstock.session.graphs import graph_of
from penstock.session.session import Session

_Answer: TypeAlias = Callable[[Question], Iterator[Fact]]
_ANSWERS: Final[tuple[_Answer, ...]] = (
    needs.facts,
    liveness.facts,
    frames.facts,
    devices.facts,
    journey.facts,
    compiled.facts,
    shapes.facts,
)


def explain(
    graph: Any,
    node: str,
    fetches: Sequence[str] = (),
    feeds: Mapping[str, Any] | Sequence[str] = (),
    *,
    config: Config | None = None,
) -> Explanation:
    """Say why a node is dead, pruned, folded, fused, compiled or not, and on its device.

    Args:
        graph: a ``Session``; a ``Graph``, or a GraphDef in any form that ``Session`` takes.
        node: the node's name.
        fetches: names of the tensors and operations of one step; if none are given, all that
            nobody reads.
        feeds: names of what the step feeds, or values by name; if none are given, all
            placeholders, of unknown values.
        config: of the session that would run it; a given session has its own.

    Raises:
        NotFoundError: there is no such node.
        InvalidArgumentError: a fetch or a feed is not in the graph, or there is no graph.

    """
    session = graph if isinstance(graph, Session) else None
    given = graph_of(graph if session is None else session.graph)
    config = (config or Config()) if session is None else session.config
    question = Question(given, node, fetches, feeds, config, session)
    facts = tuple(fact for answer in _ANSWERS for fact in answer(question))
    return Explanation(question.node.name, question.node.op.name, facts)
