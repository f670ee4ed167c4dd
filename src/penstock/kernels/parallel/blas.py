"""numpy's BLAS, kept to the thread that asks.

In:   a function that calls numpy's BLAS or LAPACK, and its arguments.
Out:  what it returns; meanwhile OpenBLAS gives no work to threads of its own.
Not:  computes nothing; does nothing where numpy was built with another library than OpenBLAS.

OpenBLAS shares a large product among threads that wait for each other by spinning.  If another
process holds a core, they wait for its whole time slice, and a product takes up to a hundred
times as long.  How it adds up depends on how many they are, too.  So each call of a kernel that
might wake them is made here, and what is large enough is shared among ``intra_op``'s threads.

OpenBLAS has one number of threads for the whole process.  It is 1 as long as anybody is in
here, and what it was before when the last has left.  So nothing in Penstock may depend on it; and
numpy's products in other threads of the program have one thread, too, for as long as that takes.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from penstock.core.forks import in_children

_Result = TypeVar("_Result")
_Facts = TypeVar("_Facts")

#: Up to so many multiplications OpenBLAS wakes no thread for two real matrices, unless the one is
#: the other's transpose: measured, and as its default thresholds say.
ALONE: Final = (1 << 19) - 1
#: The same whatever the numbers, complex ones and vectors included.
ALWAYS_ALONE: Final = 1 << 12
#: The same for the product of two vectors.
ALONE_BY_DOT: Final = 10_000
#: The same for a real matrix and a vector, before and from the version that was measured.
_VECTORS: Final = 9000, 1 << 18
_MEASURED: Final = 0, 3, 31

#: OpenBLAS's own variable.  Its function that sets the number would also take away memory from
#: threads that are at work for somebody else, and takes twenty times as long.
_VARIABLE: Final = "blas_cpu_number"
#: How its functions are called: in numpy's own wheels, in distributions, and as such.
_NAMES: Final = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


def _libraries() -> Iterator[str]:
    """Where OpenBLAS may be: what numpy's core needs, or what numpy brought along."""
    root = Path(np.__file__).parent
    for core in ("_core", "core"):
        yield from map(str, root.glob(f"{core}/_multiarray_umath*"))
    for folder in (root.parent / "numpy.libs", root / ".dylibs"):
        yield from map(str, folder.glob("*openblas*"))


class _OpenBLAS(NamedTuple):
    """The library as numpy has loaded it."""

    number: ctypes.c_int
    version: tuple[int, ...]


def _find() -> _OpenBLAS | None:
    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
            number = ctypes.c_int.in_dll(library, _VARIABLE)
        except (OSError, ValueError):
            continue
        for name in _NAMES:
            try:
                ask = library[name.format("get_num_threads")]
                tell = library[name.format("get_config")]
            except AttributeError:
                continue
            tell.restype = ctypes.c_char_p
            if ask() == number.value:
                return _OpenBLAS(number, _version(tell().decode("ascii", "replace")))
    return None


def _version(config: str) -> tuple[int, ...]:
    """The version of ``OpenBLAS 0.3.31.188.0 USE64BITINT ...``; empty if it is not there."""
    found = re.match(r"OpenBLAS (\d+)\.(\d+)\.(\d+)", config)
    return tuple(map(int, found.groups())) if found else ()


class _Alone:
    """Who is at it, so that OpenBLAS is to stay on the threads that call it."""

    __slots__ = ("_before", "_count", "_lock", "_number")

    def __init__(self, number: ctypes.c_int) -> None:
        #: OpenBLAS's number of threads.  Others may change it, too; the last one counts.
        self._number = number
        #: Guards what follows, and the number as far as we change it.  Innermost.
        self._lock = Lock()
        #: How many have entered and not left.
        self._count = 0
        #: How many threads there were when the first one entered.
        self._before = 1

    def enter(self) -> None:
        """See to it that OpenBLAS wakes nobody."""
        with self._lock:
            if not self._count:
                self._before = self._number.value
                self._number.value = 1
            self._count += 1

    def leave(self) -> None:
        """Give the threads back if nobody else is here."""
        with self._lock:
            self._count -= 1
            if not self._count:
                self._number.value = self._before

    def forget(self) -> None:
        """Have nobody in here, as in the child of a fork."""
        self._lock = Lock()
        if self._count:
            self._count = 0
            self._number.value = self._before


_library: Final = _find()
#: None if OpenBLAS is not there.
_everybody: Final = None if _library is None else _Alone(_library.number)
#: Up to so many multiplications OpenBLAS wakes no thread for a real matrix and a vector.
ALONE_BY_VECTOR: Final = _VECTORS[_library is None or _library.version >= _MEASURED]

if _everybody is not None:
    in_children(_everybody.forget)


def alone(work: Callable[..., _Result], *args: Any) -> _Result:
    """``work(*args)``, for which OpenBLAS uses no thread but those that call it."""
    if _everybody is None:
        return work(*args)
    _everybody.enter()
    try:
        return work(*args)
    finally:
        _everybody.leave()


def keeps_alone(
    make: Callable[[_Facts], Callable[..., Any]],
) -> Callable[[_Facts], Callable[..., Any]]:
    """A maker of functions, each of which is always called like that."""

    @functools.wraps(make)
    def make_alone(attrs: _Facts) -> Callable[..., Any]:
        return functools.partial(alone, make(attrs))

    return make_alone
