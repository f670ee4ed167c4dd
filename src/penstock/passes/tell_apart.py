"""Tell which feeds and fetches share memory with what outlives the step.

In:   a request's graph, with its feeds and fetches as nodes.
Out:  ``Shared``: feeds of which something may be kept, and fetches of which somebody else may
      have the memory.  Both must be copies, since the caller may change arrays at any time.
Not:  copies nothing; the session does.  Changes no graph.

The law: what is fed may be changed as soon as ``run`` has returned, and what is fetched as soon
as it is there; neither changes anything else.  Kernels need not know it.  A value is kept by
nodes that have state, call functions or the user's code, and by whoever fetches an object that
it is part of; since kernels hand on views of their inputs, what is computed from a value
may be that value still, but not behind products and convolutions.  So a feed is shared if a way
leads from it to a node that keeps; a fetch, if it or any value that it is computed from goes such
a way, or comes from such a node.

Feeds of graphs without state, as networks are, are never copied.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from penstock.catalogue.op_traits import traits_of
from penstock.catalogue.registry import get_op, is_builtin_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import OF_THE_STEP, Role, role_of
from penstock.kernels.api.registry import kernels_of

#: Edges that lead to a place, not to a value.
_PLACES: Final = frozenset({dtypes.resource})


class Shared(NamedTuple):
    """Places of feeds and of fetches, in the request's order."""

    feeds: frozenset[int]
    fetches: frozenset[int]


NOTHING: Final = Shared(frozenset(), frozenset())


def tell_apart(graph: Graph) -> Shared:
    """Which of a request's feeds and fetches must be copies."""
    lasting = [node for node in graph if _lasts(node)]
    keeping = [node for node in lasting if any(map(_is_value, node.input_types))]
    keeping += [node for node in graph if _is_kept(node)]
    giving = [node for node in lasting if _gives(node)]
    if not keeping and not giving:
        return NOTHING
    kept = _reached((source for node in keeping for source in _sources(node)), _values_of)
    # What is shared may be seen by whatever is computed from it.
    seen = _reached([*kept, *giving], _readers_of)
    return Shared(_places(Role.ARG, kept), _places(Role.RETVAL, seen))


def _places(role: Role, nodes: Iterable[Node]) -> frozenset[int]:
    return frozenset(node.attrs["index"] for node in nodes if node.role is role)


def _is_kept(node: Node) -> bool:
    """Whether a node is a fetch that may have other tensors in it, which live on with it."""
    return node.role is Role.RETVAL and node.input_types[0].base is dtypes.variant


def _gives(node: Node) -> bool:
    """Whether the outputs of one that lasts may be somebody else's memory, to be written to."""
    if node.op.traits.reads_variable and node.output_types[0].base is not dtypes.variant:
        return False
    return any(map(_is_value, node.output_types))


def _lasts(node: Node) -> bool:
    """Whether a node has to do with what outlives the step."""
    if is_builtin_op(node.op.name):
        return _builtin_lasts(node.op.name, node.input_types)
    # A function may do anything, and so may a kernel of somebody's that does not say it is pure.
    known = () if node.op.is_function or node.op.is_stateful else kernels_of(node.op.name)
    return not known or not all(kernel.traits.is_pure for kernel in known)


@functools.lru_cache(maxsize=4096)
def _builtin_lasts(op: str, input_types: tuple[DType, ...]) -> bool:
    """The same for nodes of an op of TensorFlow."""
    found, traits = get_op(op), traits_of(op)
    if role_of(op) in OF_THE_STEP or traits.of_the_step or traits.keeps_nothing:
        return False
    calls = found.takes_functions
    if found.is_stateful or calls or traits.calls_user_code:
        return True
    return any(kind.is_ref or kind.base in _PLACES for kind in input_types)


def _is_value(kind: DType) -> bool:
    return not kind.is_ref and kind.base not in _PLACES


def _sources(node: Node) -> list[Node]:
    """The nodes whose values a node takes."""
    return [e.src for e in node.inputs if e is not None and _is_value(node.input_types[e.dst_slot])]


def _values_of(node: Node) -> list[Node]:
    """The nodes whose values a node may hand on."""
    return [] if node.op.traits.makes_new else _sources(node)


def _readers_of(node: Node) -> list[Node]:
    """The nodes that may hand on a node's values."""
    return [
        e.dst
        for e in node.out_edges
        if not e.is_control
        and _is_value(e.dst.input_types[e.dst_slot])
        and not e.dst.op.traits.makes_new
    ]


def _reached(first: Iterable[Node], following: Callable[[Node], list[Node]]) -> set[Node]:
    found, waiting = set[Node](), list(first)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += following(node)
    return found
