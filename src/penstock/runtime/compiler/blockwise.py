"""Run a chain of kernels for one piece of long arrays after the other.

In:   a chain, and its arguments.
Out:  what the chain would give for all of them at once; the pieces are shared out among cores.
Not:  chooses no chains; what has not one shape, or is short, the chain gets as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.parallel.intra_op import parallel_for

#: Calls a chain, which is its first argument, with the others.
InBlocks: TypeAlias = Callable[..., Value]


@functools.cache
def blockwise(piece: int, long_array: int) -> InBlocks:
    """What makes ``chain(*args)`` piece by piece if the arguments allow it.

    Args:
        piece: elements of each piece.
        long_array: arrays of fewer elements are not worth the trouble.

    """

    def in_blocks(chain: Callable[..., Value], *args: Value) -> Value:
        size, shape = 1, ()
        for arg in args:
            if isinstance(arg, np.ndarray) and arg.size > size:
                size, shape = arg.size, arg.shape
        if size < long_array or not all(_fits(arg, shape) for arg in args):
            return chain(*args)
        made = _made_in_blocks(chain, args, size, piece)
        return chain(*args) if made is None else made.reshape(shape)

    return in_blocks


def _made_in_blocks(
    chain: Callable[..., Value], args: Sequence[Value], size: int, piece: int
) -> Array | None:
    """All elements in a row; None if the chain does not make one for each of its arguments'."""
    flat = [arg.reshape(-1) if _is_long(arg) else arg for arg in args]
    first = chain(*[_part(arg, 0, piece) for arg in flat])
    if np.shape(first) != (piece,):
        return None
    result = np.empty(size, first.dtype)
    result[:piece] = first

    def work(number: int) -> None:
        start = (number + 1) * piece
        stop = start + piece
        result[start:stop] = chain(*[_part(arg, start, stop) for arg in flat])

    parallel_for(-(-size // piece) - 1, work)
    return result


def _is_long(arg: Value) -> bool:
    return isinstance(arg, np.ndarray) and arg.size > 1


def _fits(arg: Value, shape: tuple[int, ...]) -> bool:
    """Whether an argument is the same for all elements, or one for one."""
    if not _is_long(arg):
        # Without elements it would make the result one without elements, or an error.
        return np.size(arg) == 1 and np.ndim(arg) <= len(shape)
    return arg.shape == shape and bool(arg.flags.c_contiguous)


def _part(arg: Value, start: int, stop: int) -> Array | Value:
    if not _is_long(arg):
        return arg.reshape(()) if isinstance(arg, np.ndarray) else arg
    return arg[start:stop]
