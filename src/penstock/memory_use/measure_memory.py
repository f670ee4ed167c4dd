"""``measure_memory``: run some steps node by node, and count what their tensors take.

In:   a session or a graph, fetches and feeds.
Out:  ``MemoryUse``.
Not:  sees no memory inside of kernels; that of compiled regions is the memory of their nodes, which
      may be less than these have one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, Final

from penstock.config import RunOptions
from penstock.core.values import Value
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Graph, Node
from penstock.memory_use.memory_use import Growth, Kept, MemoryUse
from penstock.runtime.live_tensors import Live, LiveTensors, Owner
from penstock.runtime.memory_bound import add_kept, owner_of
from penstock.session.session import Session
from penstock.state.contents import contents
from penstock.state.node_hook import Activation, NodeHook

#: Only who looked twice knows what grows.
_LEAST_STEPS: Final = 3
#: By name, kind and device.
_Key = tuple[str, str, str]


def measure_memory(
    graph: Any, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, *, steps: int = 4
) -> MemoryUse:
    """Run some steps node by node, and find out what their tensors take.

    Args:
        graph: a ``Session`` of this process; or a graph in any form that one takes.
        fetches: like ``Session.run``'s.
        feed_dict: like ``Session.run``'s.
        steps: how many are run; what grows in each is told of if there are three or more.

    Returns:
        What was alive at the highest peak; what the session keeps; what grew in each step.

    Raises:
        InvalidArgumentError: there are no steps, or the session is at a server.
        OpError: a step fails.

    """
    if steps < 1:
        raise InvalidArgumentError(f"{steps} steps take no memory")
    with ExitStack() as stack:
        session = graph if isinstance(graph, Session) else stack.enter_context(Session(graph))
        if session.target:
            raise InvalidArgumentError(
                f"The tensors of a session at {session.target} are not in this process",
                next_step="measure with a session without a target",
            )
        measured = _Measured(session)
        for _ in range(steps):
            measured.step(fetches, feed_dict)
        return measured.use()


class _Measured(NodeHook):
    """What was seen after each step."""

    def __init__(self, session: Session) -> None:
        self._session: Final = session
        #: What nodes have made in any of the steps; and all that is there in the one at hand.
        self._made: Final = LiveTensors()
        self._tensors = LiveTensors()
        self._peaks: list[tuple[int, list[Live]]] = []
        #: The bytes of each resource, and of what each node has made that is still there.
        self._kept: list[dict[_Key, int]] = []
        self._left: list[dict[_Key, int]] = []

    def step(self, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> None:
        """Run one step."""
        self._tensors = tensors = LiveTensors()
        for name, value in (feed_dict or {}).items():
            tensors.add(Owner(getattr(name, "name", str(name)), "feed"), value)
        add_kept(tensors, self._session.resources)
        self._session.run(fetches, feed_dict, RunOptions(node_hook=self))
        self._peaks.append(tensors.peak())
        self._kept.append(dict(self._resources()))
        self._left.append(_summed(self._made.alive()))

    def after(self, at: Activation, outputs: Sequence[Value]) -> Sequence[Value]:
        """Count what a node has made; see ``NodeHook``."""
        for slot, value in enumerate(outputs):
            owner = owner_of(at, slot)
            self._tensors.add(owner, value)
            self._made.add(owner, value)
        return outputs

    def _resources(self) -> Iterator[tuple[_Key, int]]:
        for manager in self._session.resources.managers:
            for (_, kind, name), resource in manager.everything():
                yield (name, kind, manager.device), contents(resource).size

    def use(self) -> MemoryUse:
        """What was found."""
        kept = [Kept(*key, size) for key, size in self._kept[-1].items()]
        highest = max(self._peaks, key=lambda peak: peak[0])
        return MemoryUse(
            tuple(peak for peak, _ in self._peaks),
            tuple(highest[1]),
            tuple(sorted(kept, key=lambda one: one.bytes, reverse=True)),
            tuple(sorted(self._growth(), key=lambda one: one.per_step, reverse=True)),
        )

    def _growth(self) -> Iterator[Growth]:
        """Resources that grew, with who uses them; or, if none did, what nodes have left."""
        users = _users(self._session.graph)
        grown = [Growth(*key, sizes, users(key[0])) for key, sizes in _growing(self._kept)]
        yield from grown
        if not grown:
            yield from (Growth(*key, sizes) for key, sizes in _growing(self._left))


def _summed(live: list[Live]) -> dict[_Key, int]:
    found: dict[_Key, int] = {}
    for one in live:
        key = one.owner.name, one.owner.op, one.owner.device
        found[key] = found.get(key, 0) + one.size
    return found


def _growing(seen: list[dict[_Key, int]]) -> Iterator[tuple[_Key, tuple[int, ...]]]:
    """What has more bytes after each step than after the one before.

    The first step makes what stays; so it is what came after that counts.
    """
    for key in seen[-1] if len(seen) >= _LEAST_STEPS else ():
        sizes = tuple(step.get(key, 0) for step in seen)
        if all(before < after for before, after in pairwise(sizes)):
            yield key, sizes


def _users(graph: Graph) -> Callable[[str], tuple[str, ...]]:
    """Who uses the resource of a name: nodes that read what its maker gives."""
    makers: dict[str, list[Node]] = {}
    for node in graph:
        shared = node.attrs.get("shared_name")
        name = shared.decode() if isinstance(shared, bytes) and shared else node.name
        makers.setdefault(name, []).append(node)

    def of(name: str) -> tuple[str, ...]:
        found = {e.dst.name: None for maker in makers.get(name, ()) for e in maker.out_edges}
        return tuple(found)

    return of
