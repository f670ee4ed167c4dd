"""PyTorch: whether it is there, the module itself, and arrays as its tensors.

In:   numpy arrays.
Out:  the module, imported when it is first asked for; tensors that share an array's memory.
Not:  computes nothing, registers nothing.

PyTorch's own threads wait for each other by spinning, which on a busy machine takes many
times as long as the work.  So whoever imports it first decides: if that is Penstock, every
call stays on its thread, and heavy work is cut into pieces for ``intra_op``'s threads.  How it
is cut depends on the work and on how many cores there are; who else uses them only decides
whether other threads are asked to help.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.denormals import in_own_setting
from penstock.core.forks import held_at_forks
from penstock.core.values import Array, GivenMemory
from penstock.kernels.parallel.intra_op import HELPERS, parallel_equal

#: The module ``torch`` and its tensors.  No checker knows it where it is not installed.
Torch: TypeAlias = Any
Tensor: TypeAlias = Any

#: Guards ``_loaded``.  Taken before Python's import lock.
_lock: Final = held_at_forks(Lock(), order=3)
#: The module once it was imported, or None if that failed; grows once.
_loaded: Final[list[Torch | None]] = []
#: The same module if Penstock was the first to import it, and may say how it works.
_own: Final[list[Torch]] = []


@functools.cache
def is_installed() -> bool:
    """Whether PyTorch can be found; imports nothing."""
    return importlib.util.find_spec("torch") is not None


def load() -> Torch | None:
    """PyTorch; None if it is installed but cannot be imported."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(in_own_setting(_import))
    return _loaded[0]


def _import() -> Torch | None:
    is_first = "torch" not in sys.modules
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError):  # a library that does not fit this machine
        return None
    if is_first:
        _own.append(torch)
    return torch


class _TorchThread(threading.local):
    """What is known of each thread."""

    #: Whether it has been told to do its work alone.
    is_alone: bool = False


_thread: Final = _TorchThread()


def stay_alone() -> None:
    """See to it that what this thread asks of PyTorch is done by this thread.

    A number of threads that is set in one thread counts for that thread only, at least where
    PyTorch calls oneDNN: any other thread would wake a team of its own.
    """
    if not _thread.is_alone:
        _thread.is_alone = True
        for torch in _own:
            torch.set_num_threads(1)


def threads(torch: Torch) -> int:
    """Into how many pieces to cut heavy work; 1 if PyTorch has threads of its own."""
    return 1 if torch.get_num_threads() > 1 else HELPERS + 1


def in_pieces(count: int, body: Callable[[int], None]) -> None:
    """Call ``body`` with each number below ``count``, on all cores; the pieces are equal."""
    if count < 2:
        body(0)
        return

    def of_one_thread(number: int) -> None:
        stay_alone()
        body(number)

    parallel_equal(count, of_one_thread)


class _Opened:
    """Says of a read-only array that it may be written to."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array: Array) -> None:
        interface = array.__array_interface__
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
        #: Keeps the memory alive.
        self.array = array


def tensor(torch: Torch, array: Array) -> Tensor:
    """A tensor over the array's memory, which nobody must write to.

    PyTorch has no read-only tensors, and warns of arrays that are.  Nor has it any that run
    backwards in memory: only those are copied.
    """
    if not array.flags.writeable:
        array = np.asarray(_Opened(array))
    try:
        return torch.from_numpy(array)
    except ValueError:
        return torch.from_numpy(array.copy())


def given(result: Tensor) -> Array:
    """The array of a tensor that nobody else has, nor any other with the same memory."""
    return np.asarray(GivenMemory(result.numpy(), result))
