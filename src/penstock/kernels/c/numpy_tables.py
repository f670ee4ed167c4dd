"""The tables in which numpy keeps what it lets C call.

In:   the name of a capsule, as ``import_array`` and ``import_ufunc`` look for it.
Out:  the addresses in it, in places that do not change from version to version.
Not:  knows what is in which place; whoever asks does.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from types import ModuleType
from typing import Any, Final

from penstock.core.forks import importing

#: The module's names, from numpy 2 on and before.
_PATHS: Final = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")


@functools.cache
def numpys_module() -> ModuleType | None:
    """The module that has the tables; None if numpy has none."""
    for path in _PATHS:
        try:
            with importing:
                return importlib.import_module(path)
        except ImportError:
            continue
    return None


def table_of(name: str) -> Any:
    """The table of that name, as ctypes has it; None if there is none."""
    capsule = getattr(numpys_module(), name, None)
    if capsule is None:
        return None
    return ctypes.cast(pointer_in(capsule, None), ctypes.POINTER(ctypes.c_void_p))


def pointer_in(capsule: Any, name: bytes | None) -> int:
    """What a capsule of that name refers to; raises ValueError if it has another one."""
    ask = ctypes.pythonapi.PyCapsule_GetPointer
    ask.restype, ask.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    pointer: int = ask(capsule, name)
    return pointer
