"""What one pass of the optimiser has made of each node.

In:   the graph before the pass, and after it.
Out:  the nodes that are not what they were, and in words what became of them.
Not:  knows no pass by name, and keeps no node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

from penstock.graph.graph import Graph, Node

_SHOWN: Final = 3
#: Who reads a node that is gone is looked for so many steps away.
_MAX_STEPS: Final = 16


class NodeSeen(NamedTuple):
    """A node as it was between two passes."""

    op: str
    #: Names and slots of what it reads; slot -1 of what it waits for.
    inputs: tuple[tuple[str, int], ...]


#: All nodes between two passes, by name.
Snapshot: TypeAlias = Mapping[str, NodeSeen]


class Change(NamedTuple):
    """What became of a node."""

    text: str
    #: The nodes that stand in its place, or have its work.
    instead: tuple[str, ...] = ()
    #: Whether it is a node no more that anybody reads.
    is_over: bool = True


def snapshot(graph: Graph) -> Snapshot:
    """A graph between two passes."""
    return {node.name: NodeSeen(node.op.name, tuple(_inputs(node))) for node in graph}


class Changes:
    """What differs between two snapshots."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self._before: Final = before
        self._after: Final = after

    def of(self, name: str) -> Change | None:
        """What became of a node that was there before; None if nothing did."""
        old, new = self._before[name], self._after.get(name)
        if new is not None and new.op != old.op:
            return Change(f"it is a {new.op} now", (name,), is_over=False)
        readers = self._readers.get(name, set())
        left = {one for one in self._still_there(readers) if _reads(self._after[one], name)}
        if new is not None and (left or not readers):
            return None
        return self._gone(name, readers)

    def changed(self) -> Iterator[tuple[str, Change]]:
        """All nodes of which something became, in the order of the graph."""
        touched = set(self._before.keys() - self._after.keys())
        for name, new in self._after.items():
            old = self._before.get(name)
            if old is None:
                continue
            if old.op != new.op:
                touched.add(name)
            if old.inputs != new.inputs:
                touched |= {source for source, _ in old.inputs} - {s for s, _ in new.inputs}
        for name in self._before:
            change = self.of(name) if name in touched else None
            if change is not None:
                yield name, change

    def _gone(self, name: str, readers: set[str]) -> Change:
        """What became of a node that nobody reads any more."""
        instead = sorted(set(self._read_instead(name, readers)))
        if instead:
            return Change(f"who read it reads {self._listed(instead)} instead", tuple(instead))
        own = [one for one in self._added if one.startswith(f"{name}/")]
        if own:
            text = f"{len(own)} nodes stand in its place: {self._listed(own)}"
            return Change(text, tuple(own))
        into = [*self._absorbing(name, readers)] or self._added
        if into:
            return Change(f"it became part of {self._listed(into)}", tuple(into))
        return Change("nobody needs it any more")

    def _read_instead(self, name: str, readers: set[str]) -> Iterator[str]:
        """What those who read the node read at the same places now."""
        for reader in self._still_there(readers):
            old, new = self._before[reader], self._after[reader]
            if old.op != new.op:
                continue  # which is another node now
            for (before, _), (now, _) in zip(old.inputs, new.inputs, strict=False):
                if before == name != now:
                    yield now

    def _absorbing(self, name: str, readers: set[str]) -> Iterator[str]:
        """The nodes behind it that do another work now: they have its work as well."""
        seen, front = {name}, readers
        for _ in range(_MAX_STEPS):
            gone: set[str] = set()
            for one in front - seen:
                seen.add(one)
                new = self._after.get(one)
                if new is None:
                    gone |= self._readers.get(one, set())
                elif new.op != self._before[one].op:
                    yield one
            front = gone

    def _still_there(self, names: set[str]) -> list[str]:
        # To intersect with all names would take as long as there are names.
        return [name for name in names if name in self._after]

    @cached_property
    def _readers(self) -> Mapping[str, set[str]]:
        """By node, who read it before."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for name, seen in self._before.items():
            for source, _ in seen.inputs:
                found[source].add(name)
        return found

    @cached_property
    def _added(self) -> list[str]:
        return sorted(self._after.keys() - self._before.keys())

    def _listed(self, names: list[str]) -> str:
        known = self._after
        shown = ", ".join(f"{one} ({known[one].op})" for one in names[:_SHOWN] if one in known)
        return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _inputs(node: Node) -> Iterator[tuple[str, int]]:
    for edge in node.in_edges():
        yield edge.src.name, -1 if edge.is_control else edge.src_slot


def _reads(seen: NodeSeen, name: str) -> bool:
    return any(source == name for source, _ in seen.inputs)
