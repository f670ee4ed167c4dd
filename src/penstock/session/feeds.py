"""What the caller feeds, as the graph's own types.

In:   a feed dictionary's keys and values, and the graph.
Out:  canonical endpoints, and read-only values of the right type.
Not:  feeds nothing; the step does.  Does not know which arrays must be copied; ``tell_apart`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.forks import importing
from penstock.core.given import class_name, readable, shown
from penstock.core.names import parse_endpoint
from penstock.core.shapes import TensorShape
from penstock.core.values import (
    KEPT_TENSOR,
    Array,
    KeptTensor,
    ResourceHandle,
    Value,
    dtype_of,
    freeze,
    has_dtype,
)
from penstock.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.graph.static_shapes import declared_shape
from penstock.kernels.api.signatures import type_text
from penstock.session.fetches import check_owner, copy_of
from penstock.session.handles import handle_in

#: From what the caller gives to a value of the right type.
Feeder: TypeAlias = Callable[[Any], Value]
#: From a handle's name to the tensor that the session keeps under it.
Held: TypeAlias = Callable[[str], Value]

#: What is read by its content, whatever attributes a subclass adds.
_READ: Final = (np.ndarray, np.generic, list, tuple, str, bytes, int, float)
#: The most usual classes, of which no handle is.
_NO_HANDLES: Final = frozenset({float, int, bool, str, bytes, list, tuple, np.float32, np.int32})
#: Whose classes are no variants' classes, and which others are none.
_PLAIN: Final = frozenset({"builtins", "numpy"})
_NO_VARIANTS: Final = frozenset({ResourceHandle, Node})


class Feeds:
    """How one graph is fed."""

    __slots__ = ("_graph", "_held", "_kinds", "_known")

    def __init__(self, graph: Graph, held: Held) -> None:
        """``held`` gives the tensor that the session keeps under a handle."""
        self._graph = graph
        self._held = held
        #: Classes whose objects name tensors.  Only grows.
        self._kinds: set[type[Any]] = set()
        #: Endpoints of what was fed before, and what takes their values, by the caller's spelling.
        #: Only grows, and stays true, since nodes never change.
        self._known: dict[str, tuple[str, Feeder]] = {}

    def endpoint(self, key: Any) -> str:
        """The canonical form of a key: ``x:0`` for ``x``, a Tensor, or ``x:0``."""
        return _endpoint(self._name(key))

    def values(self, feed_dict: Mapping[Any, Any]) -> dict[str, Value]:
        """Feeds by canonical endpoint, as values of the right type.

        Raises:
            InvalidArgumentError: a key names no tensor of the graph, two name the same one, or
                a value does not fit.

        """
        if not isinstance(feed_dict, Mapping):
            raise InvalidArgumentError(
                f"feed_dict is a {type(feed_dict).__name__}, not a dictionary",
                next_step="write {'x:0': value}",
            )
        fed: dict[str, Value] = {}
        for key, value in feed_dict.items():
            text = key if type(key) is str else self._name(key)
            name, feed = self._known.get(text) or self._learn(text)
            if name in fed:
                raise InvalidArgumentError(f'Endpoint "{name}" fed more than once.')
            fed[name] = feed(value)
        return fed

    def feeder(self, key: Any, shared: Collection[str] = ()) -> tuple[str, Feeder]:
        """The canonical endpoint of a feed's key, and what takes the values fed to it.

        It copies them if the endpoint is one of those that are shared.
        """
        text = self._name(key)
        name, feed = self._known.get(text) or self._learn(text)
        return name, (lambda v: freeze(copy_of(feed(v), name))) if name in shared else feed

    def _learn(self, text: str) -> tuple[str, Feeder]:
        name = _endpoint(text)
        dtype, shape = signature_of(self._graph, name)
        known = self._known[text] = name, make_feeder(name, dtype, shape, self._held)
        return known

    def _name(self, key: Any) -> str:
        """The name of a tensor, given as text or as an object that has a name."""
        if isinstance(key, str):
            return key
        if getattr(key, "graph", self._graph) is not self._graph:
            check_owner(key, self._graph, "Cannot interpret feed_dict key as Tensor")
        if type(key) not in self._kinds:
            self._kinds.add(_checked_kind(key))
        name: str = key.name
        return name


def _checked_kind(key: Any) -> type[Any]:
    """The class of a key; raises InvalidArgumentError unless its objects name tensors."""
    if not isinstance(getattr(key, "name", None), str):
        raise InvalidArgumentError(
            f"Cannot interpret feed_dict key as Tensor: {key!r:.60} is a {type(key).__name__}",
            next_step="give a name such as 'x:0', or a Tensor",
        )
    if hasattr(type(key), "fetch_name"):
        raise InvalidArgumentError(
            f"Cannot interpret feed_dict key as Tensor: {key} is a variable",
            next_step="assign to it: session.run(variable.assign(value))",
        )
    return type(key)


def _endpoint(text: str) -> str:
    node, slot = parse_endpoint(text)
    if slot < 0:
        raise InvalidArgumentError(f"Cannot interpret feed_dict key '{text}' as a Tensor")
    return f"{node}:{slot}"


def signature_of(graph: Graph, endpoint: str) -> tuple[DType, TensorShape]:
    """The type and shape that a feed must have; raises InvalidArgumentError for a stranger.

    A placeholder's shape is what it promises.  That of any other tensor is inferred, and a feed
    must fit it as well, as in TensorFlow.
    """
    node, slot = output_of(graph, endpoint)
    dtype = node.output_types[slot].base
    if node.role is Role.PLACEHOLDER:
        return dtype, declared_shape(graph, node)
    # Few programs feed what the graph computes; all others need not wait for these modules.
    with importing:
        from penstock.shapes.infer import infer_shapes  # noqa: PLC0415

    with graph.lock:
        return dtype, infer_shapes(graph).shape(node, slot)


def output_of(graph: Graph, endpoint: str) -> tuple[Node, int]:
    """The node and slot of what is fed; raises InvalidArgumentError for a stranger."""
    name, slot = parse_endpoint(endpoint)
    node = graph.find(name)
    if node is None or slot >= len(node.output_types):
        raise InvalidArgumentError(
            f"Cannot interpret feed_dict key as Tensor: the graph has no tensor '{endpoint}'",
            next_step=graph.hint(name),
        )
    return node, slot


def as_fed(value: Any, dtype: DType, shape: TensorShape, endpoint: str, held: Held) -> Value:
    """``value`` as a read-only value for ``endpoint``.

    The handle of a tensor that the session keeps stands for that tensor, of whatever shape.

    Raises:
        InvalidArgumentError: the value has no such type, or its shape does not fit.

    """
    try:
        handle = _handle_fed(value, dtype)
        if handle is not None:
            if handle.container == KEPT_TENSOR:
                return _kept_tensor(held(handle.name), dtype, endpoint)
            value = handle
        if dtype.is_object and dtype is not dtypes.string:
            if not _is_held(value, dtype):
                raise _wrong_type(value, dtype, endpoint)
            return value
        array = _as_array(value, dtype, endpoint)
    except OpError as error:
        raise error if endpoint in error.reason else _about(endpoint, error) from error.__cause__
    except MemoryError as cause:
        raise ResourceExhaustedError(f"There is no memory for the value of {endpoint}") from cause
    except Exception as cause:  # whatever the value's class raises
        raise InvalidArgumentError(
            f"The value of feed {endpoint}, a {class_name(value)}, cannot be read: "
            f"{class_name(cause)}: {shown(cause)}",
            next_step="feed arrays, numbers, strings or lists of them",
        ) from cause
    if not shape.accepts(array.shape):
        raise InvalidArgumentError(
            f"Cannot feed value of shape {array.shape} for Tensor {endpoint}, "
            f"which has shape {shape}"
        )
    if array.ndim == 0:
        return array[()]
    # A view, so that the caller's own array stays writable; the graph's is not.
    view = array.view()
    view.flags.writeable = False
    return view


def _handle_fed(value: Any, dtype: DType) -> ResourceHandle | None:
    """The handle that is fed to a tensor of some type; None if something else is."""
    kind = type(value)
    if kind in _NO_HANDLES or (kind is KeptTensor and dtype is dtypes.string):
        return None
    return handle_in(value)


def _kept_tensor(value: Value, dtype: DType, endpoint: str) -> Value:
    """A tensor that the session keeps; raises InvalidArgumentError if it is of another type."""
    if not has_dtype(value, dtype):
        raise InvalidArgumentError(
            f"Expects {endpoint} to be {type_text(dtype)} but {type_text(dtype_of(value))} is "
            "provided"
        )
    return value


def make_feeder(endpoint: str, dtype: DType, shape: TensorShape, held: Held) -> Feeder:
    """A function that makes a value of what is fed to ``endpoint``; see ``as_fed``."""

    def feed(value: Any) -> Value:
        return as_fed(value, dtype, shape, endpoint, held)

    if dtype.is_object:
        return feed
    exact, scalar, accepts = dtype.numpy, dtype.numpy.type, shape.accepts
    takes_scalars = accepts(())
    #: Any one that fits, since the next array is mostly of the same: comparing takes a tenth.
    fitting = shape.dims

    def feed_array(value: Any) -> Value:
        nonlocal fitting
        kind = type(value)
        if kind is np.ndarray and value.dtype is exact:
            given = value.shape
            if given and (given == fitting or accepts(given)):
                fitting = given
                view = value.view()
                view.setflags(0)  # write=False; by keyword it takes twice as long
                return view
            if not given and takes_scalars:
                number: Value = value[()]
                return number
        elif kind is scalar and takes_scalars:
            return value
        return as_fed(value, dtype, shape, endpoint, held)

    return feed_array


def kept(fed: Mapping[str, Value], which: Collection[str]) -> dict[str, Value]:
    """The same feeds, some of them for what goes on when the caller may change its arrays."""
    return {
        name: freeze(copy_of(value, name)) if name in which else value
        for name, value in fed.items()
    }


def _as_array(value: Any, dtype: DType, endpoint: str) -> Array:
    if not issubclass(type(value), _READ) and _is_part_of_a_graph(value):
        raise InvalidArgumentError(
            f"The value of feed {endpoint} cannot be a node, a tensor or a handle",
            next_step="feed arrays, numbers, strings or lists of them",
        )
    try:
        given, kinds = readable(value)
        if dtype is dtypes.string:
            return _as_strings(given)
        if _has_text(given, kinds):
            raise TypeError("numbers are not read out of text")
        array = np.asarray(given, dtype.numpy)
        if isinstance(given, int) and dtype.is_integer and int(array) != int.__index__(given):
            raise OverflowError(f"{given} is no {dtype}")
    except (TypeError, ValueError, OverflowError) as cause:
        raise _wrong_type(value, dtype, endpoint) from cause
    return array


def _is_held(value: Any, dtype: DType) -> bool:
    """Whether a value is a handle, or an object of a variant's class, or an array of them."""
    if not isinstance(value, np.ndarray):
        kinds = {type(value)}
    elif np.asarray(value).dtype.hasobject:
        kinds = set(map(type, np.asarray(value).flat))
    else:
        return False
    if dtype is dtypes.resource:
        return all(issubclass(kind, ResourceHandle) for kind in kinds)
    return not any(kind in _NO_VARIANTS or kind.__module__ in _PLAIN for kind in kinds)


def _is_part_of_a_graph(value: Any) -> bool:
    return isinstance(value, (ResourceHandle, Node)) or hasattr(value, "graph")


def _has_text(given: Any, kinds: Set[type[Any]]) -> bool:
    """Whether numpy would have to read numbers out of text."""
    if not isinstance(given, np.ndarray):
        return any(issubclass(kind, (str, bytes)) for kind in kinds)
    if given.dtype.kind == "O":
        return any(isinstance(item, (str, bytes)) for item in given.flat)
    return given.dtype.kind in "SU"


def _wrong_type(value: Any, dtype: DType, endpoint: str) -> InvalidArgumentError:
    given = np.asarray(value).dtype if isinstance(value, np.ndarray) else class_name(value)
    return InvalidArgumentError(
        f"Type of feed value {shown(value)} with type {given} is not compatible with "
        f"Tensor {endpoint}, which has type {dtype}"
    )


def _about(endpoint: str, error: OpError) -> OpError:
    """An error that also says which feed it is about."""
    return type(error)(f"Feed {endpoint}: {error.reason}", next_step=error.next_step)


def _as_strings(value: Any) -> Array:
    """Text and bytes of any nesting as an object array of bytes."""
    array = value if isinstance(value, np.ndarray) else np.array(value, dtype=object)
    out = np.empty(array.shape, object)
    for index, item in np.ndenumerate(array):
        out[index] = _encoded(item)
    return out


def _encoded(item: Any) -> bytes:
    """Text or bytes as exact bytes, by the methods of Python's own classes."""
    if isinstance(item, str):
        return str.encode(item)
    if isinstance(item, (bytes, bytearray)):
        return memoryview(item).tobytes()
    raise TypeError(f"a {class_name(item)} is no string")
