"""Find the values that can go along with a call of a part that another task runs.

In:   the part of a graph that a master runs itself, and a part that it has another task run.
Out:  ``Exchange``: keys of what is fed, which the other part can have with its call, and of what
      it sends back, which can come with the answer; at the other end, a part that has arguments
      and results instead.
Not:  does not know how tasks call each other.

Otherwise each value is asked for by a call of its own.  What is fed is known when a step begins.
What comes back may come with the answer if nothing of the part is there for anything else, since
the answer comes last; and if the part waits for nobody, or both would wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from penstock.catalogue.registry import get_op
from penstock.core.dtypes import DType
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import OF_THE_STEP, Role
from penstock.state.rendezvous import RendezvousKey

#: So many results come together at most: who waits for the last one has none of the others.
_MAX_WANTED: Final = 8
#: What nothing in such a part may be: loops take their time, and what is dead cannot be told.
_UNSUITED: Final = frozenset(
    {Role.ENTER, Role.EXIT, Role.NEXT_ITERATION, Role.LOOP_COND, Role.SWITCH}
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Values that go along with each call of one part, by their rendezvous keys."""

    #: What goes there, and which of the request's feeds that is.
    given: tuple[str, ...] = ()
    feeds: tuple[int, ...] = ()
    #: What comes back.
    wanted: tuple[str, ...] = ()


NO_EXCHANGE: Final = Exchange()


def find_exchange(own: Graph, part: Graph) -> Exchange:
    """What can go along with calls of ``part``, of what it exchanges with ``own``."""
    fed = {_key(node): _feed_of(node) for node in own if node.role is Role.SEND and _is_fed(node)}
    received = [node for node in part if node.role is Role.RECV]
    given = [key for node in received if not node.control_inputs and (key := _key(node)) in fed]
    awaited = {_key(node) for node in own if node.role is Role.RECV}
    results = [node for node in part if node.role is Role.SEND and _key(node) in awaited]
    waits = len(given) < len(received)
    wanted = [] if waits or not _is_all_for(part, results) else list(map(_key, results))
    return Exchange(tuple(given), tuple(fed[key] for key in given), tuple(wanted))


def leave_to_calls(own: Graph, exchange: Exchange) -> None:
    """Send no longer what goes along with calls."""
    given = set(exchange.given)
    sends = [node for node in own if node.role is Role.SEND and _key(node) in given]
    fed = {node.input(0).src for node in sends}
    own.remove_nodes(sends)
    own.remove_nodes(node for node in fed if not node.out_edges)


def is_all_exchanged(own: Graph, wanted: Collection[str]) -> bool:
    """Whether a part exchanges nothing with others but what comes with their answers."""
    return all(
        node.role is Role.RECV and _key(node) in wanted and not node.control_inputs
        for node in own
        if node.role in (Role.SEND, Role.RECV)
    )


def take_from_calls(
    part: Graph, exchange: Exchange, first: int = 0
) -> tuple[tuple[DType, ...], tuple[DType, ...]]:
    """Give a part arguments for what is given, and results for what is wanted; their types.

    Args:
        part: the part, which is changed.
        exchange: what is given and wanted.
        first: the number of the first argument.

    Raises:
        InvalidArgumentError: the part exchanges no such value, or only after something else.

    """
    ends = {_key(node): node for node in part if node.role in (Role.RECV, Role.SEND)}
    arguments = [_end(ends, key, Role.RECV) for key in exchange.given]
    results = [_end(ends, key, Role.SEND) for key in exchange.wanted]
    types = (
        tuple(node.output_types[0] for node in arguments),
        tuple(node.input(0).src.output_types[node.input(0).src_slot].base for node in results),
    )
    moved = {}
    for index, (node, dtype) in enumerate(zip(arguments, types[0], strict=True), first):
        made = _new(part, node, "_Arg", dtype, index)
        moved[node] = [(made, 0)]
    part.redirect(moved)
    for index, (node, dtype) in enumerate(zip(results, types[1], strict=True)):
        made = _new(part, node, "_Retval", dtype, index)
        edge = node.input(0)
        part.add_edge(edge.src, edge.src_slot, made, 0)
    part.remove_nodes([*arguments, *results])
    return types


def _new(part: Graph, end: Node, op: str, dtype: DType, index: int) -> Node:
    name = f"{end.name}/{op}"
    while name in part:
        name += "_"
    return part.add_node(
        name,
        get_op(op),
        {"T": dtype, "index": index},
        device=end.requested_device,
        assigned_device=end.assigned_device,
    )


def _end(ends: dict[str, Node], key: str, role: Role) -> Node:
    node = ends.get(key)
    if node is None or node.role is not role or node.control_inputs:
        raise InvalidArgumentError(f"The registered graph cannot exchange '{key}' with its calls")
    return node


def _key(node: Node) -> str:
    """The key of a transfer outside of loops."""
    attrs = node.attrs
    return str(
        RendezvousKey(
            attrs["send_device"].decode(errors="surrogateescape"),
            attrs["send_device_incarnation"],
            attrs["recv_device"].decode(errors="surrogateescape"),
            attrs["tensor_name"].decode(errors="surrogateescape"),
        )
    )


def _is_fed(send: Node) -> bool:
    return send.input(0).src.role is Role.ARG


def _feed_of(send: Node) -> int:
    index: int = send.input(0).src.attrs["index"]
    return index


def _is_all_for(part: Graph, results: list[Node]) -> bool:
    """Whether there are some results, not too many, and nothing else that waits or has effects."""
    if not 0 < len(results) <= _MAX_WANTED or any(map(_may_wait, part)):
        return False
    needed, waiting = set(results), list(results)
    while waiting:
        for edge in waiting.pop().in_edges():
            if edge.src not in needed:
                needed.add(edge.src)
                waiting.append(edge.src)
    return len(needed) == len(part)


def _may_wait(node: Node) -> bool:
    """Whether a node may wait for something that another part does, whatever way that takes."""
    if node.role in _UNSUITED:
        return True
    only_reads = node.op.traits.reads_variable or node.op.traits.makes_handle
    is_open = node.op.is_stateful or node.op.is_function or node.op.traits.is_impure
    return is_open and node.role not in OF_THE_STEP and not only_reads
