"""The library of kernels in C with each kind of vectors, and as many threads as a test says."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from penstock.kernels.c.library import Library, loaded

#: Those that this processor has; none where there was no C compiler.
KINDS = range(loaded().penstock_kinds()) if loaded() is not None else range(0)


class Shared(Library):
    """A library whose work is shared by so many helpers, whoever asks for how many."""

    def __init__(self, kind: int, helpers: int) -> None:
        super().__init__(loaded(), kind)
        for name, function in list(vars(self).items()):
            types = getattr(function, "argtypes", None) or ()
            if len(types) == 3 and types[2] is ctypes.c_int:
                setattr(self, name, _with_helpers(function, helpers))


def _with_helpers(function: Callable[..., Any], helpers: int) -> Callable[..., Any]:
    return lambda kind, work, _asked: function(kind, work, helpers)


def each_way(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> Iterator[int]:
    """Let a module have the library with each kind of vectors, with helpers and without."""
    for kind in KINDS:
        for helpers in (0, 3):
            shared = Shared(kind, helpers)
            monkeypatch.setattr(module, "library", lambda it=shared: it)
            yield kind
