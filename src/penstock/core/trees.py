"""State as a tree: what stateful things say of themselves, and how it is taken apart again.

In:   None, booleans, numbers, texts and values, in tuples in tuples.
Out:  the parts, of the kinds that are wanted; ValueError if they are of others.
Not:  knows nothing that has state.

A stranger may have written a tree: whoever makes something of one takes it apart by the functions
here.  A value, as ``core/values.py`` has it, is none of Python's own numbers and texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, dtype_of, has_dtype

#: None, a boolean, a number, a text, a value, or a tuple of such.
Tree: TypeAlias = Any
#: The smallest number that stands in a tree, and the first that is too large.
LEAST: Final = -(1 << 63)
_MOST: Final = 1 << 128


def parts(tree: Tree, count: int) -> tuple[Tree, ...]:
    """The so many parts of a tree."""
    found = listed(tree)
    if len(found) != count:
        refuse(f"{len(found)} parts where {count} should be")
    return found


def listed(tree: Tree) -> tuple[Tree, ...]:
    """The parts of a tree, however many."""
    if type(tree) is not tuple:
        refuse(f"a {type(tree).__name__} where a list should be")
    return tree


def number(tree: Tree, least: int = 0) -> int:
    """A number in a tree."""
    if type(tree) is not int or not least <= tree < _MOST:
        refuse(f"no number from {least} on")
    return tree


def text(tree: Tree) -> str:
    """A text in a tree."""
    if type(tree) is not str:
        refuse(f"a {type(tree).__name__} where a text should be")
    return tree


def flag(tree: Tree) -> bool:
    """A boolean in a tree."""
    if type(tree) is not bool:
        refuse(f"a {type(tree).__name__} where a boolean should be")
    return tree


def is_value(tree: Tree) -> bool:
    """Whether a part of a tree is what travels on an edge."""
    # Exactly: a float64 of numpy is a value, and a float of Python by inheritance.
    return tree is not None and type(tree) not in (bool, int, float, str, tuple)


def any_value(tree: Tree) -> Value:
    """A value in a tree, of whatever type."""
    if not is_value(tree):
        refuse(f"a {type(tree).__name__} where a value should be")
    return tree


def value(tree: Tree, dtype: DType) -> Value:
    """A value of a type in a tree."""
    found = any_value(tree)
    is_empty = isinstance(found, np.ndarray) and not found.size
    if not has_dtype(found, dtype) or (not is_empty and dtype_of(found) is not dtype):
        refuse(f"a value that is no {dtype}")
    return found


def values(tree: Tree, types: Sequence[DType]) -> tuple[Value, ...]:
    """Values of these types in a tree."""
    return tuple(map(value, parts(tree, len(types)), types))


def dtype_named(tree: Tree) -> DType:
    """The type whose name stands in a tree."""
    found = next((known for known in dtypes.ALL if known.name == text(tree)), None)
    if found is None:
        refuse(f"no type {text(tree)[:40]!r}")
    return found


def types_of(types: Sequence[DType]) -> Tree:
    """The names of types."""
    return tuple(dtype.name for dtype in types)


def types_in(tree: Tree) -> tuple[DType, ...]:
    """Types whose names stand in a tree."""
    return tuple(map(dtype_named, listed(tree)))


def sizes_of(shape: TensorShape) -> Tree:
    """A shape as its sizes; None if it has no rank."""
    return shape.dims


def shape_in(tree: Tree) -> TensorShape:
    """The shape whose sizes stand in a tree."""
    sizes = optional(listed, tree)
    return TensorShape.of(None if sizes is None else [optional(number, size) for size in sizes])


def optional(read: Callable[[Tree], Any], tree: Tree) -> Any:
    """What ``read`` makes of a tree; None if there is none."""
    return None if tree is None else read(tree)


def refuse(why: str) -> NoReturn:
    """Raise ValueError: a tree is not what it should be."""
    raise ValueError(f"there is {why}")
