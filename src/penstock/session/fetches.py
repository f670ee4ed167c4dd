"""What the caller wants back, and in which nesting.

In:   a name, a Tensor, Operation or Variable, or a list, tuple, dict or nesting of them.
Out:  ``FetchPlan``: the distinct endpoints to fetch, the nodes to run, and how to put the
      results together again; values that the caller may keep.
Not:  looks nothing up in the graph; whether the names exist is for others to say.

``x:0`` is a tensor; ``x`` is an operation, which is run and gives None.  Quantised tensors come
back as plain integers, and resource handles as the bytes of their message, as TensorFlow's front
end has them.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.names import parse_endpoint
from penstock.core.values import Array, ResourceHandle, Value, as_value
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, OpError
from penstock.exceptions import from_exception
from penstock.graph.graph import Graph
from penstock.kernels.parallel.strided_copies import copy_apart
from penstock.session.handles import as_bytes

_Rebuild: TypeAlias = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The flat form of a nesting of fetches."""

    #: Distinct endpoints such as ``x:0``, in order of first mention.
    endpoints: tuple[str, ...]
    #: Names of distinct nodes to run.
    targets: tuple[str, ...]
    #: From the endpoints' values to the caller's nesting.
    rebuild: _Rebuild


def plan_fetches(fetches: Any, graph: Graph) -> FetchPlan:
    """Flatten ``fetches``; raises InvalidArgumentError for what names nothing in ``graph``."""
    planner = _Planner(graph)
    rebuild = planner.visit(fetches)
    if type(fetches) is list and planner.has_each_once(fetches):
        rebuild = list
    return FetchPlan(tuple(planner.endpoints), tuple(planner.targets), rebuild)


def name_of(element: Any, graph: Graph) -> str:
    """The name of what is fetched, given as text or as an object that has a name.

    A variable, which has a name but is no tensor, is fetched by that of its value.
    """
    if isinstance(element, str):
        return element
    check_owner(element, graph, "Fetch argument cannot be interpreted as a Tensor")
    is_variable = hasattr(type(element), "fetch_name")
    name = element.fetch_name if is_variable else getattr(element, "name", None)
    if not isinstance(name, str):
        raise InvalidArgumentError(
            f"Fetch argument {element!r} has invalid type {type(element).__name__}",
            next_step="give a name such as 'x:0', a Tensor, an Operation, or a nesting of them",
        )
    return name


def check_owner(element: Any, graph: Graph, reason: str) -> None:
    """Raise InvalidArgumentError if something is a part of another graph than ``graph``.

    What merely has a name, such as a tensor of TensorFlow's own, stands for that name.
    """
    owner = getattr(element, "graph", graph)
    if owner is not graph and isinstance(owner, Graph):
        raise InvalidArgumentError(
            f"{reason}: {element} is not an element of this graph",
            next_step="it is part of another graph: open a session on that one, build inside of "
            f"`with graph.as_default():`, or give a name, '{element}', that both graphs have",
        )


def copies(values: Mapping[str, Value], which: Collection[str]) -> dict[str, Value]:
    """The same values, some of them copied, since others have or get their memory."""
    return {name: copy_of(v, name) if name in which else v for name, v in values.items()}


def copy_of(value: Value, name: str) -> Value:
    """A value in memory that nobody else knows; raises ResourceExhaustedError if there is none."""
    try:
        return copy_apart(value) if isinstance(value, np.ndarray) else value
    except MemoryError as cause:
        raise _no_memory_for_copy(name, cause) from cause


def _no_memory_for_copy(name: str, cause: MemoryError) -> OpError:
    error = from_exception(cause).copy()
    error.details = (f"  for      a copy of {name}",)
    return error


#: What most single results are: nobody can change them, and callers have no other form of them.
_AS_THEY_ARE: Final = frozenset(
    {np.float32, np.float64, np.int32, np.int64, np.bool_, np.uint8, bytes}
)


def handed_out(values: Sequence[Value], names: Sequence[str]) -> list[Any]:
    """Values that the caller may keep and change: arrays that others hold are copied.

    Raises:
        ResourceExhaustedError: there is no memory for a copy; ``names`` says of which value.

    """
    given: list[Any] = []
    #: Identities of arrays that are given: an array may have come under two names.
    own: set[int] = set()
    for value in values:
        if type(value) in _AS_THEY_ARE:
            given.append(value)
            continue
        if isinstance(value, np.ndarray) and value.ndim:
            is_shared = value.base is not None and not _is_alone(value)
            if is_shared or not value.flags.writeable or id(value) in own:
                value = copy_of(value, names[len(given)])
            own.add(id(value))
            given.append(value if value.dtype.char not in "OV" else _in_callers_form(value))
        else:
            given.append(_in_callers_form(as_value(value)))
    return given


def _in_callers_form(value: Value) -> Any:
    """Quantised integers as plain ones, a handle as the bytes of its message; others as is.

    Raises:
        InvalidArgumentError: an array of handles, for which there is no form.

    """
    if isinstance(value, np.ndarray):
        dtype = value.dtype
        if dtype.names is not None:
            return value.view(dtype[0])
        if dtype.hasobject and value.size and isinstance(value.flat[0], ResourceHandle):
            raise InvalidArgumentError("Fetching of non-scalar resource tensors is not supported.")
    elif isinstance(value, np.void):
        return value[0] if value.dtype.names is not None else value
    elif isinstance(value, ResourceHandle):
        return as_bytes(value)
    return value


def _is_alone(view: Array) -> bool:
    """Whether a view is another form of an array that nobody else knows."""
    if not view.flags.c_contiguous or _holders_of_base(view) != _ONLY_THE_VIEW:
        return False
    base: Any = view.base
    return type(base) is np.ndarray and base.base is None and base.nbytes == view.nbytes


def _holders_of_base(view: Array) -> int:
    return sys.getrefcount(view.base)


#: What is counted if nothing but the view holds an array; how much Python adds to that differs
#: between its versions.
_ONLY_THE_VIEW: Final = _holders_of_base(np.empty(2).reshape(2, 1))


class _Planner:
    """Collects endpoints and targets; dictionaries keep the order of first mention."""

    def __init__(self, graph: Graph) -> None:
        self._graph: Final = graph
        self.endpoints: dict[str, int] = {}
        self.targets: dict[str, None] = {}

    def visit(self, fetches: Any) -> _Rebuild:
        """Note what is asked for; returns how to rebuild this part."""
        if isinstance(fetches, Mapping):
            return self._visit_mapping(fetches)
        if isinstance(fetches, (list, tuple)):
            return self._visit_sequence(fetches)
        return self._visit_element(name_of(fetches, self._graph))

    def has_each_once(self, visited: Sequence[Any]) -> bool:
        """Whether what was visited are single tensors, of which no two are the same."""
        is_flat = not any(isinstance(item, (Mapping, list, tuple)) for item in visited)
        return is_flat and len(self.endpoints) == len(visited)

    def _visit_mapping(self, fetches: Mapping[Any, Any]) -> _Rebuild:
        parts = {key: self.visit(item) for key, item in fetches.items()}

        def rebuild(values: Sequence[Any]) -> Any:
            # A copy has the class and, say, the factory of a defaultdict.
            result = copy.copy(fetches) if isinstance(fetches, dict) else {}
            for key, part in parts.items():
                result[key] = part(values)
            return result

        return rebuild

    def _visit_sequence(self, fetches: Sequence[Any]) -> _Rebuild:
        parts = [self.visit(item) for item in fetches]
        make: Any = type(fetches)
        if hasattr(fetches, "_fields"):  # a namedtuple takes its fields one by one
            return lambda values: make(*[part(values) for part in parts])
        return lambda values: make([part(values) for part in parts])

    def _visit_element(self, name: str) -> _Rebuild:
        endpoint = parse_endpoint(name)
        if ":" not in name or endpoint.slot < 0:
            self.targets[endpoint.node] = None
            return lambda _values: None
        index = self.endpoints.setdefault(f"{endpoint.node}:{endpoint.slot}", len(self.endpoints))
        return lambda values: values[index]
