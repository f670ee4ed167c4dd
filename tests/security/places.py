"""Every place in a case where a graph tells an op a whole number, and how to put another there.

In:   a GraphDef, and what a step of it is fed.
Out:  places: attributes, small constants, small feeds; the whole of a list, its first or its last.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from google.protobuf.message import Message

from penstock.core.values import Array
from penstock.defs import tensors
from penstock.errors import OpError

#: What is put into attributes, which have 64 bits, and into tensors.
ATTRS: Final = (2**31 - 1, -(2**31), 0, -1, 2**62)
TENSORS: Final = (2**31 - 1, 2**62, -1, 0, -(2**63))
#: Larger tensors are data, not sizes.
_LARGEST: Final = 32


class Place(NamedTuple):
    """One place, which can be changed again and again."""

    what: str
    #: What can stand there.
    numbers: tuple[int, ...]
    #: Puts a number there; ``restore`` undoes it.
    put: Callable[[int], None]
    restore: Callable[[], None]


def places_of(graph: Message, feeds: dict[str, Any]) -> Iterator[Place]:
    """All places of a graph, of its functions' bodies, and of what a step is fed."""
    bodies = (body for function in graph.library.function for body in function.node_def)
    for node in (*graph.node, *bodies):
        for name in sorted(node.attr):
            yield from _attr_places(node, name)
    for name, value in feeds.items():
        if _is_told(value):
            yield from _feed_places(feeds, name, value)


def _attr_places(node: Any, name: str) -> Iterator[Place]:  # noqa: C901  (a table of fields)
    attr, kept = node.attr[name], node.attr[name].SerializeToString()
    what = f"{node.op} {node.name}.{name}"

    def restore() -> None:
        attr.ParseFromString(kept)

    kind = attr.WhichOneof("value")
    if kind == "i":
        yield Place(what, ATTRS, lambda number: setattr(attr, "i", number), restore)
    elif kind == "list":
        for part in _parts(len(attr.list.i)):

            def put_some(number: int, part: slice = part) -> None:
                for at in range(len(attr.list.i))[part]:
                    attr.list.i[at] = number

            yield Place(f"{what}[{_text(part)}]", ATTRS, put_some, restore)
    elif kind == "tensor" and node.op == "Const":
        value = _value(attr.tensor)
        if _is_told(value):
            for part in _parts(np.size(value)):

                def put(number: int, part: slice = part) -> None:
                    attr.tensor.CopyFrom(tensors.to_proto(_changed(value, part, number)))

                yield Place(
                    f"{what}[{_text(part)}]", _fitting(np.asarray(value).dtype), put, restore
                )


def _feed_places(feeds: dict[str, Any], name: str, value: Any) -> Iterator[Place]:
    for part in _parts(np.size(value)):

        def put(number: int, part: slice = part) -> None:
            feeds[name] = _changed(value, part, number)

        yield Place(
            f"fed {name}[{_text(part)}]",
            _fitting(np.asarray(value).dtype),
            put,
            lambda: feeds.__setitem__(name, value),
        )


def _value(tensor: Any) -> Any:
    """A constant; an empty array if it is none."""
    try:
        return tensors.from_proto(tensor)
    except OpError:
        return np.array([], np.int32)


def _parts(size: int) -> tuple[slice, ...]:
    """All, the first, the last; each different one once."""
    every, first, last = slice(None), slice(0, 1), slice(size - 1, size)
    return (every, first, last)[: (0, 1, 3)[min(size, 2)]]


def _text(part: slice) -> str:
    return ":" if part == slice(None) else str(part.start)


def _is_told(value: Any) -> bool:
    """Whether a tensor may be sizes, numbers of things, places."""
    array = np.asarray(value)
    return array.dtype in (np.int32, np.int64) and 0 < array.size <= _LARGEST


def _fitting(dtype: Any) -> tuple[int, ...]:
    limits = np.iinfo(dtype)
    return tuple(dict.fromkeys(min(max(n, limits.min), limits.max) for n in TENSORS))


def _changed(value: Any, part: slice, number: int) -> Array:
    array = np.array(value)
    array.reshape(-1)[part] = number
    return array
