"""The bodies that take the place of calls, branches and loops.

In:   functions of the library, and the types of devices that their nodes may run on.
Out:  for each its body; or, if that must not be opened, a body that does nothing but call it.
Not:  changes no graph but those that it makes.

A body is opened unless its function says ``_noinline``, has control flow of TensorFlow 1, or an
op without a kernel here.  As a branch or in a loop, a function that others may stand in for
(``api_implements``) is called, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

from penstock.catalogue.registry import get_op
from penstock.defs.attrs import Attr, FuncAttr
from penstock.errors import OpError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Graph, Node
from penstock.graph.instantiate import FunctionBody, instantiate
from penstock.graph.roles import CONTROL_FLOW, Role
from penstock.kernels.api.registry import find_kernel
from penstock.passes.lowerable import CALLS, CHOICES, named_function
from penstock.passes.needs import has_effects

#: Stateful by declaration, though they only bring in arguments and take out results.
_BORDERS: Final = frozenset({Role.ARG, Role.RETVAL})
#: Ops whose nodes call functions.
_CALLING: Final = CALLS | CHOICES
#: Makes a body out of a function's name and attributes.
Instantiate: TypeAlias = Callable[[FunctionLibrary, str, Mapping[str, Attr]], FunctionBody]


class Bodies:
    """The bodies of functions; each is read any number of times and never changed."""

    def __init__(
        self,
        library: FunctionLibrary,
        device_types: Collection[str],
        instantiate: Instantiate = instantiate,
    ) -> None:
        self._library = library
        self._instantiate = instantiate
        self._device_types = device_types
        #: By name and identity of the attributes; None if the function makes no sense.  The
        #: attributes are kept, so that no others get their place in memory.  All that have none
        #: are one: else a function that calls another one twice would have it read twice, and
        #: so on, down to all that they call.
        self._known: dict[tuple[str, int], tuple[FuncAttr, FunctionBody | None]] = {}
        #: Whether all nodes of a body can be those of another graph, by the body's identity.
        self._may_move: dict[int, bool] = {}
        #: Whether none of them has effects, by the same.
        self._purity: dict[int, bool] = {}

    def opened(self, function: FuncAttr) -> FunctionBody | None:
        """The body of a function that is called; None if it must not be opened."""
        body = self._body(function)
        return body if body is not None and self._may_open(body) else None

    def branches(
        self, functions: Sequence[FuncAttr], callers: Collection[str]
    ) -> list[FunctionBody] | None:
        """A body for each function of an If, Case or While; None if one makes no sense.

        Those in ``callers`` are called: they would go on for ever.
        """
        found = []
        for function in functions:
            body = self._body(function)
            if body is None:
                return None
            is_stand_in = "api_implements" in self._marks(body)
            if is_stand_in or function.name in callers or not self._may_open(body):
                body = _calling(self._library, function, body)
            found.append(body)
        return found

    def pure(
        self, functions: Sequence[FuncAttr], callers: Collection[str]
    ) -> list[FunctionBody] | None:
        """The bodies of functions that only compute; None if one does more, or is to be called."""
        found = []
        for function in functions:
            body = None if function.name in callers else self.opened(function)
            if body is None or "api_implements" in self._marks(body) or not self._is_pure(body):
                return None
            found.append(body)
        return found

    def _is_pure(self, body: FunctionBody) -> bool:
        """Whether nothing in a body has effects, functions that it calls included."""
        if id(body) not in self._purity:
            self._purity[id(body)] = self._only_computes(body)
        return self._purity[id(body)]

    def _only_computes(self, body: FunctionBody) -> bool:
        met: dict[str, Mapping[str, Attr]] = {}
        waiting = [body]
        for one in waiting:  # grows
            for node in one.graph:
                if node.role not in _BORDERS and not _is_call(node) and has_effects(node):
                    return False
                for function in _called_by(node):
                    if function.name not in met:
                        met[function.name] = function.attrs
                        found = self._body(function)
                        if found is None:
                            return False
                        waiting.append(found)
                    elif met[function.name] != function.attrs:
                        return False  # it may call itself, each time with others
        return True

    def _body(self, function: FuncAttr) -> FunctionBody | None:
        key = function.name, id(function.attrs) if function.attrs else 0
        if key not in self._known:
            self._known[key] = function, self._instantiated(function)
        return self._known[key][1]

    def _instantiated(self, function: FuncAttr) -> FunctionBody | None:
        try:
            return self._instantiate(self._library, function.name, function.attrs)
        except OpError:  # it is told when the function is called
            return None

    def _marks(self, body: FunctionBody) -> Mapping[str, Any]:
        marks: Mapping[str, Any] = self._library.get(body.name).attr
        return marks

    def _may_open(self, body: FunctionBody) -> bool:
        if id(body) not in self._may_move:
            self._may_move[id(body)] = all(map(self._can_run, body.graph))
        marks = self._marks(body)
        return self._may_move[id(body)] and not ("_noinline" in marks and marks["_noinline"].b)

    def _can_run(self, node: Node) -> bool:
        if node.role in CONTROL_FLOW:
            return False
        return node.op.is_function or any(
            find_kernel(node.op.name, device_type, node.attrs) is not None
            for device_type in self._device_types
        )


def _is_call(node: Node) -> bool:
    """Whether a node does what its functions do, whatever its op is declared as."""
    return node.op.is_function or node.op.name in _CALLING


def _called_by(node: Node) -> list[FuncAttr]:
    """The functions that a node calls."""
    if node.op.is_function:
        return [named_function(node)]
    values = node.attrs.values() if node.op.name in _CALLING else ()
    listed = [value if isinstance(value, tuple) else (value,) for value in values]
    return [value for many in listed for value in many if isinstance(value, FuncAttr)]


def _calling(library: FunctionLibrary, function: FuncAttr, body: FunctionBody) -> FunctionBody:
    """A body of one node, which calls a function."""
    graph, op = Graph(library), library.op_def(function.name)
    defaults = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    call = graph.add_node(function.name, op, {**defaults, **function.attrs})
    for index, dtype in enumerate(body.arg_types):
        arg = graph.add_node(f"arg_{index}", get_op("_Arg"), {"T": dtype, "index": index})
        graph.add_edge(arg, 0, call, index)
    for index, dtype in enumerate(body.ret_types):
        result = graph.add_node(f"result_{index}", get_op("_Retval"), {"T": dtype, "index": index})
        graph.add_edge(call, index, result, 0)
    return FunctionBody("", graph, body.arg_types, body.ret_types, (call,))
