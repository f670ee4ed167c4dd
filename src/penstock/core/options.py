"""Options whose fields hold what they say.

In:   a frozen dataclass that inherits from ``Options``.
Out:  the same, with every field compared with its declared type, and a short ``repr``.
Not:  converts nothing, and knows no single option.

A field's metadata may state the smallest ``minimum`` of its numbers.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from itertools import compress, count
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from penstock.dataclass import values_of
from penstock.errors import InvalidArgumentError

_Check: TypeAlias = Callable[[Any], bool]


class _Declared(NamedTuple):
    """What is known about one field."""

    name: str
    fits: _Check
    kind: Any
    minimum: float | None


class _Known(NamedTuple):
    """The fields of a class."""

    fields: tuple[_Declared, ...]
    #: Need no check; MISSING for a field of which each object gets a value of its own.
    defaults: tuple[Any, ...]
    values_of: Callable[[Any], tuple[Any, ...]]


#: What values of a type are called, one and several.
_WORDS: Final[Mapping[Any, tuple[str, str]]] = {
    bool: ("True or False", "truth values"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: ("text", "text"),
    NoneType: ("None", "None"),
}
#: The fields of every class that was met.  Only grows; lost updates do no harm.
_known: Final[dict[type[Any], _Known]] = {}


class Options:
    """Mixed into frozen dataclasses of options, with ``repr=False``."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Compare all fields with their types.

        Raises:
            InvalidArgumentError: a field holds something else, or too small a number.

        """
        known = _known.get(type(self)) or _learn(type(self))
        values = known.values_of(self)
        # Most fields have their defaults, which fit: to look at these again would take time.
        for place in compress(count(), map(operator.is_not, values, known.defaults)):
            declared = known.fields[place]
            if not declared.fits(values[place]):
                raise _wrong(type(self), declared, values[place])

    def __repr__(self) -> str:
        """The fields that differ from their defaults."""
        shown = [
            f"{field.name}={_shown(value)}"
            for field in fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
            if (value := getattr(self, field.name)) != _default(field)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _shown(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _learn(cls: type[Any]) -> _Known:
    hints = get_type_hints(cls)
    declared = []
    for field in fields(cls):
        kind, minimum = hints[field.name], field.metadata.get("minimum")
        declared.append(_Declared(field.name, _check_of(kind, minimum), kind, minimum))
    known = _known[cls] = _Known(
        tuple(declared),
        tuple(field.default for field in fields(cls)),
        values_of([field.name for field in declared]),
    )
    return known


def _wrong(cls: type[Any], declared: _Declared, value: object) -> InvalidArgumentError:
    kind = declared.kind
    ways = []
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        # Where the options have the members as attributes, nobody need import their class.
        has_them = all(getattr(cls, member.name, None) is member for member in kind)
        ways = [f"{(cls if has_them else kind).__name__}.{member.name}" for member in kind]
    return InvalidArgumentError(
        f"{cls.__name__}.{declared.name} is {value!r:.60}, but must be "
        f"{_described(kind, declared.minimum)}",
        next_step=f"write {' or '.join(ways)}" if ways else "",
    )


# -- types, and what is of them ----------------------------------------------------------------


def _check_of(kind: Any, minimum: float | None = None) -> _Check:
    """What tells whether a value is of a declared type."""
    args = get_args(kind)
    if get_origin(kind) is UnionType:
        checks = [_check_of(one, minimum) for one in args]
        return lambda value: any(check(value) for check in checks)
    if get_origin(kind) is Callable:
        return callable
    if get_origin(kind) is Mapping:
        return _mapping_check(_check_of(args[0]), _check_of(args[1], minimum))
    if get_origin(kind) is Sequence:
        fits = _check_of(args[0])
        return lambda value: isinstance(value, (list, tuple)) and all(map(fits, value))
    if kind in (int, float):
        lowest = -math.inf if minimum is None else minimum
        is_number = _is_whole if kind is int else _is_real
        return lambda value: is_number(value) and value >= lowest
    if kind is bool:
        return lambda value: isinstance(value, (bool, np.bool_))
    if hasattr(kind, "_fields"):
        return _tuple_check(kind)
    return lambda value: isinstance(value, kind)


def _mapping_check(fits_key: _Check, fits_item: _Check) -> _Check:
    def fits(value: Any) -> bool:
        is_mapping = isinstance(value, Mapping)
        return is_mapping and all(fits_key(k) and fits_item(v) for k, v in value.items())

    return fits


def _tuple_check(kind: Any) -> _Check:
    """The same for a named tuple, which checks nothing itself."""
    hints = get_type_hints(kind)
    checks = [_check_of(hints[name]) for name in kind._fields]

    def fits(value: Any) -> bool:
        return isinstance(value, kind) and all(
            check(item) for check, item in zip(checks, value, strict=True)
        )

    return fits


def _is_whole(value: object) -> bool:
    if type(value) is int:
        return True
    if isinstance(value, (bool, np.bool_, enum.Enum)):
        return False
    try:
        operator.index(value)  # type: ignore[arg-type]  # what is no number raises
    except TypeError:
        return False
    return True


def _is_real(value: Any) -> bool:
    is_number = isinstance(value, (int, float, np.integer, np.floating))
    return is_number and not isinstance(value, bool) and not math.isnan(value)


def _described(kind: Any, minimum: float | None, count: int = 0) -> str:
    """What a value must be; ``count`` is 1 where there may be several."""
    args = get_args(kind)
    if get_origin(kind) is UnionType:
        return " or ".join(_described(one, minimum) for one in args)
    if get_origin(kind) is Mapping:
        return (
            f"a dictionary of {_described(args[0], None, 1)} to {_described(args[1], minimum, 1)}"
        )
    if get_origin(kind) is Sequence:
        return f"a list of {_described(args[0], None, 1)}"
    word = _WORDS.get(kind, (f"a {kind.__name__}", f"{kind.__name__}s"))[count]
    return word if minimum is None else f"{word} of at least {minimum:g}"
