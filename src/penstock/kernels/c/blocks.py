"""Memory of large arrays, kept for the next ones.

In:   a thread that is about to run kernels.
Out:  what numpy allocates there from now on comes from ``blocks.c``, if it is large.
Not:  changes nothing about small arrays, and nothing where somebody else sees to numpy's memory.

Numpy lets each context (``contextvars``) have allocating functions of its own (NEP 49), and an
array knows by which it was made, so whoever has the last reference to it may be on any thread.
The interface is one of C; its functions stand in the table that ``import_array`` reads.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from penstock.core.memory import available_memory, gives_back
from penstock.kernels.c.library import is_loaded, loaded
from penstock.kernels.c.numpy_tables import numpys_module, pointer_in, table_of

#: Places in numpy's table.
_SET_HANDLER, _GET_HANDLER = 304, 305
#: What capsules of such functions are called; they refer to these bytes.
_CAPSULE: Final = ctypes.create_string_buffer(b"mem_handler")
#: Numpy's own functions.
_DEFAULT: Final = "default_allocator"

#: So many bytes are kept at most, and no more than such a part of what is left when this begins.
MOST_KEPT: Final = 512 << 20
_PART_KEPT: Final = 4

#: Whether nothing is left to do in a context.
_is_settled: Final[ContextVar[bool]] = ContextVar("is_settled", default=False)


class BlockBytes(NamedTuple):
    """Bytes of large arrays: of those there are, of those kept, and of the most at one time."""

    used: int
    idle: int
    most_used: int


def keep_large_memory() -> None:
    """Have numpy keep the memory of large arrays of this context, once the library is in use."""
    if is_loaded() and not _is_settled.get():
        _is_settled.set(True)
        if handler_name() == _DEFAULT:
            _install()


def handler_name() -> str:
    """What the functions call themselves by which numpy allocates in this context."""
    name: str = getattr(numpys_module(), "get_handler_name", str)()
    return name


def block_bytes() -> BlockBytes | None:
    """What there is at present; None if there is no library."""
    functions = loaded()
    if functions is None:
        return None
    numbers = (ctypes.c_int64 * 3)()
    functions.penstock_array_bytes(numbers)
    return BlockBytes(*numbers)


def _install() -> None:
    """Have numpy use the library's functions in this context."""
    set_handler, capsule = _made()
    set_handler(capsule)


@functools.cache
def _made() -> tuple[Callable[[Any], Any], Any]:
    """What sets functions, and the library's; made where numpy's own are in use."""
    functions, table = loaded(), table_of("_ARRAY_API")
    get = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER])
    functions.penstock_array_memory.restype = ctypes.c_void_p
    functions.penstock_array_memory.argtypes = ctypes.c_void_p, ctypes.c_int64
    most = min(MOST_KEPT, available_memory() // _PART_KEPT)
    handler = functions.penstock_array_memory(pointer_in(get(), _CAPSULE.value), most)
    functions.penstock_give_array_memory_back.restype = None
    gives_back(functions.penstock_give_array_memory_back)
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p,) * 3
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    return set_handler, new_capsule(handler, ctypes.addressof(_CAPSULE), None)
