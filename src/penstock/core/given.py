"""What a caller gives, found out without trusting it.

In:   anything at all: numbers, arrays, nested lists, objects of strangers.
Out:  the same as numpy may read it; the types in it; text that shows it.
Not:  makes no tensor, and knows no dtype that somebody wants.

Lists may be nested a hundred thousand deep, contain themselves, or be few objects that stand for
very many elements; subclasses of Python's types may say one thing and be another.  So a list is
asked nothing but by the methods of ``list`` itself, each is looked at once however often it occurs,
and how many elements there are is known before numpy visits them all.
"""

from __future__ import annotations

import itertools
import math
import reprlib
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.memory import fits_memory
from penstock.errors import InvalidArgumentError, ResourceExhaustedError

#: As many dimensions as numpy has.
MAX_RANK: Final = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
_NESTS: Final = (list, tuple, range)
#: Different lists of one depth, each with the types of its elements.
_Level: TypeAlias = Sequence[tuple[Sequence[Any], set[type[Any]]]]
#: Python's own numbers and texts, and how one is made of what a subclass has made of it.
_LEAVES: Final[dict[type[Any], Callable[[Any], Any]]] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: memoryview(value).tobytes(),
}
#: Numpy's own numbers, which are read as they are.
_NUMBERS: Final[frozenset[type[Any]]] = frozenset(
    {
        np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
        np.float16, np.float32, np.float64, np.complex64, np.complex128,
    }
)  # fmt: skip
#: Types of which nothing need be asked.
_PLAIN: Final[frozenset[type[Any]]] = frozenset({*_LEAVES, bool})
_NOTHING: Final[frozenset[type[Any]]] = frozenset()
#: What numpy reads as a whole, or not at all, though it may have a length and elements.
_WHOLE: Final = (str, bytes, bytearray, memoryview, np.generic, np.ndarray)
_ARRAY_LIKE: Final = ("__array__", "__array_interface__", "__array_struct__", "__buffer__", "keys")
#: Bytes that an element of a list takes at least.
_POINTER: Final = 8
#: The longest text that shows a value.
_LONGEST: Final = 60
_REPR: Final = reprlib.Repr()


class UnevenError(ValueError):
    """Rows of nested lists differ in length."""


def readable(value: Any) -> tuple[Any, Set[type[Any]]]:
    """``value`` as numpy may read it, and the types of what stands in it.

    That is an exact array, of which nothing more is said; even lists, or one number or text, of
    Python's own classes; or something else as it is.

    Raises:
        UnevenError: rows differ in length.
        InvalidArgumentError: lists are nested too deep, or contain themselves.
        ResourceExhaustedError: there are too many elements for the memory.
        Exception: whatever an object raises when it is looked at.

    """
    kind = type(value)
    if kind in _PLAIN or kind in _NUMBERS:
        return value, {kind}
    if kind is list:  # the common one
        kinds = set(map(type, value))
        if kinds <= _PLAIN:
            return value, kinds
    if isinstance(value, np.ndarray):
        return np.asarray(value), _NOTHING  # an array itself, whatever its class says
    if is_sequence(value):
        value = _taken(value)
    if not issubclass(type(value), _NESTS):
        return _exact_leaf(value), {type(value)}
    kinds = _check_even(value)
    if any(map(_is_subclass, kinds)):
        value = _exact_lists(value, {})
    return value, {kind for kind in kinds if not issubclass(kind, _NESTS)}


def as_array(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """``value`` as an array of numpy's types; lists of texts as objects.

    Numpy's own texts lose the zeros at their ends.

    Raises:
        ValueError, TypeError: numpy makes nothing of it.
        OpError: like ``readable``.

    """
    given, kinds = readable(value)
    return np.array(given, object) if kinds & {str, bytes} else np.asarray(given)


def _check_even(value: Any) -> set[type[Any]]:
    """The types in nested lists, which must have the form of an array that fits memory."""
    sizes: list[int] = []
    found = {type(value)}
    for level in _levels(value):
        lengths = {len(row) for row, _ in level}
        if len(lengths) > 1:
            raise UnevenError("rows differ in length")
        sizes += lengths
        kinds = set().union(*(kinds for _, kinds in level))
        nested = {kind for kind in kinds if issubclass(kind, _NESTS)}
        if nested and nested != kinds:
            raise UnevenError("some elements are lists, and some are not")
        _check_size(math.prod(sizes))
        if not kinds <= _PLAIN and not nested and any(map(is_sequence, _strangers(level))):
            raise TypeError("neither a number nor an array stands in the lists")
        found |= kinds
    return found


def _strangers(level: _Level) -> Iterator[Any]:
    """An element of each type that is not Python's or numpy's own."""
    for row, kinds in level:
        for kind in kinds:
            if not _is_known(kind):
                yield next(item for item in row if type(item) is kind)


def has_leaf(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Whether an object of ``kind`` stands anywhere in nested lists, or is the value itself.

    Raises:
        InvalidArgumentError: lists are nested too deep, or contain themselves.

    """
    if not isinstance(value, _NESTS):
        return issubclass(type(value), kind)
    return any(
        issubclass(own, kind) for level in _levels(value) for _, kinds in level for own in kinds
    )


def leaves(value: Any) -> Iterator[Any]:
    """All that stands in nested lists, from left to right; of a list that occurs again, nothing."""
    waiting, seen = [value], set()
    while waiting:
        part = waiting.pop()
        if not isinstance(part, (list, tuple)):
            yield part
        elif id(part) not in seen:
            seen.add(id(part))
            waiting += reversed(_exact(part))


def _levels(value: Any) -> Iterator[_Level]:
    """All different lists of each depth, as exact ones, with the types of their elements."""
    rows = {id(value): value}
    for _ in range(MAX_RANK):
        level = [(row, _types(row)) for row in map(_exact, rows.values())]
        yield level
        rows = {
            id(item): item
            for row, kinds in level
            if not kinds <= _PLAIN and any(issubclass(kind, _NESTS) for kind in kinds)
            for item in row
            if isinstance(item, _NESTS)
        }
        if not rows:
            return
    raise InvalidArgumentError(
        f"Lists are nested more than {MAX_RANK} deep, or contain themselves",
        next_step="give an array, or lists no deeper than a tensor has dimensions",
    )


def _types(row: Sequence[Any]) -> set[type[Any]]:
    return {int} if isinstance(row, range) else set(map(type, row))


# -- what strangers made of Python's classes -------------------------------------------


def _is_subclass(kind: type[Any]) -> bool:
    """Whether a type is one of Python's, but with methods of a stranger's."""
    return not _is_known(kind) and issubclass(kind, (*_NESTS, *_LEAVES))


def _is_known(kind: type[Any]) -> bool:
    return kind.__module__ in ("builtins", "numpy")


def _exact_leaf(value: Any) -> Any:
    """A number or a text of Python's own class; of any other class, the object itself."""
    if not _is_subclass(type(value)):
        return value
    base = next(base for base in _LEAVES if isinstance(value, base))
    return _LEAVES[base](value)


def _exact_lists(value: Any, known: dict[int, Any]) -> Any:
    """Nested lists as exact ones, of exact leaves; what occurs again is made once."""
    if not issubclass(type(value), _NESTS):
        return _exact_leaf(value)
    if id(value) not in known:
        known[id(value)] = [_exact_lists(item, known) for item in _exact(value)]
    return known[id(value)]


def _exact(row: Any) -> Sequence[Any]:
    """What a list, tuple or range really holds, whatever its class makes of it."""
    if type(row) in _NESTS:
        exact: Sequence[Any] = row
    elif isinstance(row, list):
        exact = list.__getitem__(row, slice(None))
    else:
        exact = tuple.__getitem__(row, slice(None))
    return exact


def is_sequence(value: Any) -> bool:
    """Whether numpy would go through a stranger's elements, as through those of a list."""
    kind = type(value)
    # Of the class itself: what its metaclass has is the class's, and not the value's.
    names = {name for base in kind.__mro__ for name in vars(base)}
    if issubclass(kind, (*_NESTS, *_WHOLE)) or not names >= {"__getitem__", "__len__"}:
        return False
    if not names.isdisjoint(_ARRAY_LIKE):
        return False
    try:
        memoryview(value)
    except TypeError:
        return True
    return False


def _taken(value: Any) -> list[Any]:
    """The elements of a stranger's sequence, which must be as many as it says."""
    count = len(value)
    _check_size(count)
    elements = list(itertools.islice(iter(value), count + 1))
    if len(elements) != count:
        raise UnevenError(f"a sequence of {count} elements does not give as many")
    return elements


def _check_size(count: int) -> None:
    if not fits_memory(count * _POINTER):
        raise ResourceExhaustedError(f"{count} elements are too many for the memory that is left")


# -- text ------------------------------------------------------------------------------


def class_name(value: Any) -> str:
    """The name of a value's class, whatever its metaclass says."""
    name: str = type.__dict__["__name__"].__get__(type(value))
    return name


def shown(value: Any) -> str:
    """The beginning of a value's text, or of what it is if it does not tell."""
    try:
        text = str(value) if isinstance(value, (*_WHOLE, int, float)) else _REPR.repr(value)
        return text[:_LONGEST]
    except Exception:  # noqa: BLE001  (its class may raise what it likes)
        return f"a {class_name(value)}"
