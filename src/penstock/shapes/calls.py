"""Go into functions: what is known of what they return, given what is known of what they take.

In:   a node that calls functions: a call, If, While, Case, For.
Out:  what is known of its outputs.
Not:  goes into functions that are under way already; nothing is known of what recursion returns.

A function is looked at once per distinct shapes of its arguments.  ``For`` and ``While`` go around
until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, TypeAlias

from penstock.core.shapes import SCALAR, UNKNOWN
from penstock.defs.attrs import Attr, FuncAttr
from penstock.errors import OpError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Graph, Node
from penstock.graph.instantiate import instantiate
from penstock.graph.roles import Role
from penstock.kernels.api.partial_shapes import join
from penstock.kernels.api.shape_context import Held
from penstock.shapes.facts import Known, KnownShapes

#: Makes what infers the shapes of a body, from what is known of the arguments.
LookInto: TypeAlias = Callable[[Graph, Sequence[Known], "Calls"], KnownShapes]

#: More nodes of bodies than this are not looked at for one graph, however often each.
_MAX_NODES: Final = 200_000
#: Functions that call functions are followed no deeper.
_MAX_DEPTH: Final = 30
#: Loops whose variables change their shapes more often than this have unknown ones.
_MAX_ROUNDS: Final = 16

_NOTHING: Final[Known] = (UNKNOWN, None)
_PLAIN: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BRANCHES: Final = frozenset({"Case", "If", "StatelessCase", "StatelessIf", "_If"})
_LOOPS: Final = frozenset({"StatelessWhile", "While", "_While"})
#: How many inputs stand in front of a function's arguments.
_IN_FRONT: Final = {"RemoteCall": 1, "For": 3, **dict.fromkeys(_BRANCHES, 1)}
#: The ops whose results functions tell; beside the functions themselves, as ops.
CALLS: Final = _PLAIN | _BRANCHES | _LOOPS | {"For", "RemoteCall"}


class Calls:
    """What the functions of one library return."""

    def __init__(self, library: FunctionLibrary, look_into: LookInto) -> None:
        self._library = library
        self._look_into = look_into
        #: Bodies by function and attributes; None if there is none.
        self._bodies: dict[Hashable, Graph | None] = {}
        #: What a function returns, by what is known of its arguments as well.
        self._returned: dict[Hashable, list[Known]] = {}
        #: Functions that are being looked into.
        self._under_way: list[str] = []
        #: How many nodes of bodies may still be looked at.
        self._nodes_left = _MAX_NODES

    @staticmethod
    def is_call(node: Node) -> bool:
        """Whether what a node gives is told by functions."""
        return node.op.is_function or node.op.name in CALLS

    def outputs(self, node: Node, given: Sequence[Known]) -> list[Known]:
        """What is known of the outputs of a node that calls functions."""
        op, attrs = node.op.name, node.attrs
        args = list(given[_IN_FRONT.get(op, 0) :])
        if op in _LOOPS:
            found = self._loop(attrs["body"], args)
        elif op == "For":
            found = self._loop(attrs["body"], args, (SCALAR, None))
        elif op in _BRANCHES:
            branches = attrs.get("branches") or (attrs["then_branch"], attrs["else_branch"])
            found = [_joined(each) for each in zip(*self._all(branches, args), strict=False)]
        elif node.op.is_function:
            found = self.returned(FuncAttr(op, attrs), args)
        else:
            found = self.returned(attrs["f"], args)
        count = len(node.output_types)
        found = (found + [_NOTHING] * count)[:count]
        return _with_stated(found, attrs.get("output_shapes"))

    def _all(self, branches: Sequence[FuncAttr], args: Sequence[Known]) -> list[list[Known]]:
        return [self.returned(branch, args) for branch in branches]

    def _loop(self, body: FuncAttr, args: list[Known], *counter: Known) -> list[Known]:
        """What is true of a loop's variables in each iteration."""
        for _ in range(_MAX_ROUNDS):
            made = self.returned(body, [*counter, *args])
            if len(made) != len(args):
                break
            joined = [_joined(pair) for pair in zip(args, made, strict=True)]
            if joined == args:
                return args
            args = joined
        return [_NOTHING] * len(args)

    def returned(self, function: FuncAttr, args: Sequence[Known]) -> list[Known]:
        """What is known of a function's results; nothing at all for one that is under way."""
        is_deep = len(self._under_way) >= _MAX_DEPTH or self._nodes_left <= 0
        if function.name in self._under_way or is_deep:
            return []
        key = _key(function.name, function.attrs)
        whole = key and (key, tuple(args))
        if whole in self._returned:
            return self._returned[whole]
        self._under_way.append(function.name)
        try:
            body = self._body(key, function)
            found = [] if body is None else self._results(body, args)
        finally:
            self._under_way.pop()
        if whole is not None:
            self._returned[whole] = found
        return found

    def _body(self, key: Hashable, function: FuncAttr) -> Graph | None:
        if key is not None and key in self._bodies:
            return self._bodies[key]
        body: Graph | None
        try:
            body = instantiate(self._library, function.name, function.attrs).graph
        except OpError:  # the run will raise it, if it comes there
            body = None
        if key is not None:
            self._bodies[key] = body
        return body

    def _results(self, body: Graph, args: Sequence[Known]) -> list[Known]:
        self._nodes_left -= len(body)
        inside = self._look_into(body, args, self)
        results = [node for node in body if node.role is Role.RETVAL]
        results.sort(key=lambda node: node.attrs["index"])
        return [_behind(inside, node) for node in results]


def _behind(inside: KnownShapes, result: Node) -> Known:
    edge = result.inputs[0]
    if edge is None:
        return _NOTHING
    facts = inside.facts(edge.src)
    return facts.shapes[edge.src_slot], facts.holds.get(edge.src_slot)


def _joined(each: Sequence[Known]) -> Known:
    """What is true of whichever of them it is."""
    shape, held = each[0]
    for other, behind in each[1:]:
        shape = join(shape, other)
        held = joined_held(held, behind)
    return shape, held


def joined_held(one: Held | None, other: Held | None) -> Held | None:
    """What lies behind a handle that is one or the other."""
    if one is None or other is None or one.dtype is not other.dtype:
        return None
    return Held(join(one.shape, other.shape), one.dtype)


def _with_stated(found: list[Known], stated: Attr) -> list[Known]:
    """The same, with the shapes that the node itself states; nothing where these differ."""
    if not isinstance(stated, tuple) or len(stated) != len(found):
        return found
    return [
        (shape.merge_with(other) if shape.is_compatible_with(other) else join(shape, other), held)
        for (shape, held), other in zip(found, stated, strict=True)
    ]


def _key(name: str, attrs: Mapping[str, Attr]) -> Hashable:
    """What tells calls of one function apart; None if its attributes cannot be compared."""
    key = name, tuple(sorted(attrs.items(), key=lambda item: item[0]))
    try:
        hash(key)
    except TypeError:
        return None
    return key
