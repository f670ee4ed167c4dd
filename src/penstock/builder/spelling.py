"""The spellings of an op's name: ``MatMul`` as ``mat_mul``.

In:   the name of an op, or what a caller wrote for one.
Out:  its name as a Python function, or the op that is meant.
Not:  reads no signatures.

A word begins at a capital that follows a small letter, or that a small letter follows:
``mat_mul``, ``batch_mat_mul_v2``, ``l2_loss``, ``conv2d``, ``irfft2d``, ``lrn``.  Since
opinions differ on where the digits belong, any other way to place the underscores is
understood too, as long as it can only mean one op.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from penstock.catalogue.plugins import load_plugins
from penstock.catalogue.registry import all_ops, count_ops, find_op, listed_ops
from penstock.core.similar import similar

_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z0-9])(?=[A-Z][a-z])")


def snake_case(op: str) -> str:
    """The name of the function that makes an ``op``."""
    return _WORD_START.sub("_", op).lower().replace(">", "_")


def find_spelling(text: str) -> str | None:
    """The op that ``text`` means: its own name, its snake case, or any obvious variant."""
    if find_op(text) is not None:
        return text
    found = _meaning(text, count_ops())
    if found is None and load_plugins():
        return find_spelling(text)
    return found


@functools.lru_cache(maxsize=4096)
def _meaning(text: str, _count: int) -> str | None:
    """The op that is spelled so, or obviously meant, among all that there are by now."""
    ops = tuple(all_ops())
    return _by_snake_case(ops).get(text) or _by_letters(ops).get(_letters(text))


def near_spellings(text: str) -> list[str]:
    """A few snake-case names that resemble ``text``."""
    names = [snake_case(op) for op in listed_ops()]
    return similar(text.lower(), names)


@functools.lru_cache(maxsize=2)
def _by_snake_case(ops: tuple[str, ...]) -> dict[str, str]:
    return {snake_case(op): op for op in ops}


@functools.lru_cache(maxsize=2)
def _by_letters(ops: tuple[str, ...]) -> dict[str, str]:
    """Ops by their letters alone; those that cannot be told apart are left out."""
    found: dict[str, str] = {}
    shared = set()
    for op in ops:
        key = _letters(op)
        if key in found:
            shared.add(key)
        found[key] = op
    return {key: op for key, op in found.items() if key not in shared}


def _letters(text: str) -> str:
    """``text`` without inner underscores; a leading one marks the runtime's own ops."""
    bare = text.lstrip("_")
    return "_" * (len(text) - len(bare)) + bare.replace("_", "").replace(">", "").lower()
