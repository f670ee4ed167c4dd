"""Two steps, node by node: which is the first that differs, and by how much.

In:   a session or a graph, and another one, or values that were kept; fetches and feeds.
Out:  a ``Comparison``.
Not:  says not which of the two is right.

Nodes are compared by name, in the order in which the first step computed them: what differs first
is where a difference arose, or something that merely ran before it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock import checkpoint
from penstock.comparison.collected import NodeValue, alive, collect, compiled_values
from penstock.comparison.difference import Difference, difference
from penstock.core.files import FileSystem
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.printable import printable


class NodeDifference(NamedTuple):
    """A node whose values differ."""

    #: As ``NodeValue`` has it.
    key: str
    op: str
    difference: Difference

    def __str__(self) -> str:
        return printable(f"{self.key} ({self.op}): {self.difference.text}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of a comparison."""

    #: In the order in which the first step computed them.
    differences: tuple[NodeDifference, ...]
    #: How many values both have.
    compared: int
    #: Keys of values that only one of them has.
    only_in_one: tuple[str, ...]
    only_in_other: tuple[str, ...]

    @property
    def first(self) -> NodeDifference | None:
        """The first node that differs; None if none does."""
        return self.differences[0] if self.differences else None

    def __bool__(self) -> bool:
        """Whether all that both have is equal, and that is something."""
        return not self.differences and self.compared > 0


def compare(
    one: Any,
    other: Any,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> Comparison:
    """Compare the values of all nodes that two steps have in common.

    Args:
        one: a ``Session``, or a graph in any form that one takes.
        other: another one; values by key (``node:slot``); or the prefix of a checkpoint that has
            them, as ``dump_all`` writes it.
        fetches: like ``Session.run``'s, by names.
        feed_dict: like ``Session.run``'s, by names.
        rtol: numbers may differ by so much of themselves …
        atol: … and by so much.

    Raises:
        InvalidArgumentError: a tolerance is below zero.
        OpError: a step fails, or the checkpoint cannot be read.

    """
    first = collect(one, fetches, feed_dict)
    if isinstance(other, Mapping):
        values: Mapping[str, Any] = other
    elif isinstance(other, (str, os.PathLike)) and not _is_graph(other):
        store = checkpoint.load(os.fspath(other))
        values = {name: store[name] for name in store}
    else:
        values = {k: v.value for k, v in alive(collect(other, fetches, feed_dict)).items()}
    return _compared(first, values, rtol, atol)


def compare_tiers(
    graph: Any,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> Comparison:
    """Compare what the dataflow executor computes with what compiled functions do.

    Args:
        graph: in any form that ``Session`` takes; without variables, unless fetches set them.
        fetches: like ``Session.run``'s, by names.
        feed_dict: like ``Session.run``'s, by names.
        rtol: like ``compare``'s.
        atol: like ``compare``'s.

    """
    first = collect(graph, fetches, feed_dict)
    return _compared(first, compiled_values(graph, first, feed_dict), rtol, atol)


def _is_graph(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a graph, and not the prefix of a checkpoint."""
    return not FileSystem().exists(f"{os.fspath(path)}.index")


def _compared(
    first: list[NodeValue], values: Mapping[str, Any], rtol: float, atol: float
) -> Comparison:
    if not (rtol >= 0 and atol >= 0):
        raise InvalidArgumentError(f"rtol={rtol}, atol={atol}: neither is below zero")
    own = alive(first)
    both = [one for key, one in own.items() if key in values]
    differences = []
    for one in both:
        found = difference(one.value, values[one.key], rtol, atol)
        if found is not None:
            differences.append(NodeDifference(one.key, one.op, found))
    return Comparison(
        tuple(differences),
        len(both),
        tuple(key for key in own if key not in values),
        tuple(key for key in values if key not in own),
    )
