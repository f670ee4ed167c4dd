"""Nested structures of values: lists, tuples, named tuples and dicts.

In:   a structure.
Out:  its leaves in a fixed order, or the same structure around other leaves.
Not:  knows not what a leaf is; whatever is no list, tuple, dict or None is one.

The leaves of a dict come in the order of its sorted keys; None has no leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

#: A leaf, None, or lists, tuples and dicts of structures.
Structure: TypeAlias = Any


def flatten(structure: Structure) -> list[Any]:
    """The leaves from left to right."""
    leaves: list[Any] = []
    #: Parts still to be visited, the next one last.
    waiting = [structure]
    while waiting:
        part = waiting.pop()
        children = _children(part)
        if children is not None:
            waiting += reversed(children)
        elif part is not None:
            leaves.append(part)
    return leaves


def pack(structure: Structure, leaves: Iterable[Any]) -> Structure:
    """A structure of the same form around ``leaves``."""
    return _pack(structure, iter(leaves))


def form(structure: Structure) -> str:
    """A text that two structures share exactly when their forms agree: ``[*, (*, *)]``.

    Lists and tuples of one length have one form, so ``return i, j`` fits ``[i, j]``.
    """
    if structure is None:
        return "None"
    if isinstance(structure, dict):
        return "{" + ", ".join(f"{k!r}: {form(structure[k])}" for k in _keys(structure)) + "}"
    children = _children(structure)
    return "*" if children is None else "[" + ", ".join(map(form, children)) + "]"


def _pack(structure: Structure, leaves: Iterator[Any]) -> Structure:
    if structure is None:
        return None
    if isinstance(structure, dict):
        packed = {key: _pack(structure[key], leaves) for key in _keys(structure)}
        return {key: packed[key] for key in structure}
    children = _children(structure)
    if children is None:
        return next(leaves)
    parts = [_pack(child, leaves) for child in children]
    if isinstance(structure, list):
        return parts
    return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)


def _children(part: Structure) -> Sequence[Any] | None:
    if isinstance(part, dict):
        return [part[key] for key in _keys(part)]
    return part if isinstance(part, (list, tuple)) else None


def _keys(structure: dict[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError:  # Keys of several kinds have no order of their own.
        return sorted(structure, key=lambda key: (type(key).__name__, repr(key)))
