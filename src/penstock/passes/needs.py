"""What is needed of a graph in which calls were lowered.

In:   what every call became, and what it does beside its results.
Out:  the nodes that others need, or that run for their own sake.
Not:  takes nothing away, and does not know what lowers.

A call's effects happen when it runs.  A call that nobody needs does not run, unless it is itself
the effect of another one; so who needs a result of a call needs its effects as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from penstock.graph.graph import Node


class Needs:
    """The effects of calls, and who brings them about."""

    def __init__(self) -> None:
        #: Nodes that run for their own sake; one that was lowered since stands for what it became.
        self.roots: list[Node] = []
        #: The results of calls of which some are fetched; whatever else reads them is no matter.
        self.fetched: list[Node] = []
        #: Nodes that functions name (``control_ret``), or that are done for their effects.
        self.effects: set[Node] = set()
        #: What has to run for a call that was lowered and is gone.
        self._became: dict[Node, Sequence[Node]] = {}
        #: Effects, by the nodes with the results that bring them.
        self._brought: dict[Node, list[Node]] = {}

    def note(
        self, call: Node, results: Sequence[Node], effects: Sequence[Node], end: Node | None
    ) -> None:
        """A call that may not be needed became results, and effects that happen if it is.

        ``end`` has to be done if the call is itself an effect.
        """
        self._became[call] = [*results, *effects, *([end] if end is not None else [])]
        brought = [*effects, *self._brought.pop(call, ())]
        if brought:
            for node in results:
                self._brought.setdefault(node, []).extend(brought)

    def needed(self, own: Collection[Node]) -> set[Node]:
        """All that the graph's own nodes need, and that runs for its own sake.

        Results that nobody reads are not, unless something with effects would not run then.
        """
        read = self.reached(own)
        whole = self.reached([*own, *self.fetched]) if self.fetched else read
        return whole if any(map(has_effects, whole - read)) else read

    def reached(self, wanted: Iterable[Node]) -> set[Node]:
        """All that somebody needs who wants some nodes, and that runs for its own sake."""
        needed = {*wanted, *self.roots}
        waiting = list(needed)
        while waiting:
            for source in self._sources(waiting.pop()):
                if source not in needed:
                    needed.add(source)
                    waiting.append(source)
        return needed

    def _sources(self, node: Node) -> list[Node]:
        became = self._became.get(node)
        sources = [edge.src for edge in node.in_edges()] if became is None else became
        return [*sources, *self._brought.get(node, ())]


def has_effects(node: Node) -> bool:
    """Whether a node does more than compute its outputs."""
    return node.op.is_stateful or node.op.traits.is_impure
