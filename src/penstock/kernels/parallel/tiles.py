"""Large arrays, a portion at a time, on several cores.

In:   a function of arrays, and arrays that have much to do for it.
Out:  what it gives for all of them; each portion is computed on its own.
Not:  computes nothing; small arrays go to the function as they are.

A function that takes several steps reads and writes what it has just written, which is faster
while that is in a cache.  But every step waits for Python's lock, so portions are no smaller
than they must be.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.parallel.intra_op import HELPERS, parallel_for

_Compute: TypeAlias = Callable[..., Value]


class TileSizes(NamedTuple):
    """What is worth cutting, and into what."""

    #: With fewer elements than this it is not worthwhile.
    many: int = 1 << 19
    #: The same for what comes after products of matrices: BLAS's threads still wait for more then,
    #: and they do so by spinning.
    many_updated: int = 1 << 21
    #: Elements of a portion.  Of smaller ones threads wait for Python's lock most of the time.
    portion: int = 1 << 17
    #: Bytes of a portion of a batch: measured.  What a core's own cache holds is less, but small
    #: portions wait for Python's lock more than for memory.
    batch_bytes: int = 1 << 22


_USUAL: Final = TileSizes()
#: A batch falls into so many portions at least.
_LEAST: Final = min(HELPERS + 1, 8)


def by_images(
    compute: _Compute,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    *batches: Array,
    at_once: int | None = None,
    sizes: TileSizes = _USUAL,
) -> Array:
    """``compute(*batches)``, some images at a time; the result has this shape and type.

    What takes many steps is the faster if fewer bytes than usual are worked on at once.
    """
    largest = max(x.size for x in batches)
    count = shape[0]
    if largest < sizes.many or count < 2:
        return np.asarray(compute(*batches))
    result = np.empty(shape, dtype)
    at_once = sizes.batch_bytes if at_once is None else at_once
    fitting = max(at_once * count // (largest * dtype.itemsize), 1)
    step = min(fitting, -(-count // _LEAST))

    def some(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        result[part] = compute(*(x[part] for x in batches))

    parallel_for(-(-count // step), some)
    return result


def sum_by_images(compute: _Compute, *batches: Array, sizes: TileSizes = _USUAL) -> Value:
    """The sum of ``compute(*batches)`` over portions of some images each, in their order."""
    largest = max(x.size for x in batches)
    count = len(batches[0])
    if largest < sizes.many or count < 2:
        return compute(*batches)
    fitting = max(sizes.batch_bytes * count // (largest * batches[0].itemsize), 1)
    step = min(fitting, -(-count // _LEAST))
    found: list[Any] = [None] * -(-count // step)

    def some(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        found[number] = compute(*(x[part] for x in batches))

    parallel_for(len(found), some)
    return functools.reduce(operator.add, found)


def updated(
    fill: Callable[..., None],
    olds: tuple[Value, ...],
    rest: Sequence[Value],
    sizes: TileSizes = _USUAL,
) -> tuple[Value, ...]:
    """What ``fill(news, *olds, *rest)`` writes into new arrays, element by element.

    There is a new array for each old one.  All that is not a scalar has the shape of the first.
    """
    first = olds[0]
    if first.size * len(olds) < sizes.many_updated or not all(map(_is_flat, (*olds, *rest))):
        return updated_at_once(fill, olds, rest)
    news = tuple([np.empty(first.shape, old.dtype) for old in olds])
    flat = [x.reshape(-1) if x.ndim else x for x in (*olds, *rest)]
    targets = [new.reshape(-1) for new in news]
    portion = sizes.portion
    step = min(max(-(-first.size // (HELPERS + 1)), portion // 2), portion)

    def some(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        fill([x[part] for x in targets], *[x[part] if x.ndim else x for x in flat])

    parallel_for(-(-first.size // step), some)
    return news


def updated_at_once(
    fill: Callable[..., None], olds: tuple[Value, ...], rest: Sequence[Value]
) -> tuple[Value, ...]:
    """The same in one call."""
    news = tuple([np.empty(old.shape, old.dtype) for old in olds])
    fill(news, *olds, *rest)
    return news if olds[0].ndim else tuple([new[()] for new in news])


def by_elements(compute: _Compute, sizes: TileSizes = _USUAL) -> _Compute:
    """The function, which works on each element on its own, for large arrays in portions.

    All its inputs have one shape, and the result has the type of the first.
    """
    many, portion = sizes.many, sizes.portion

    def in_portions(*inputs: Value) -> Value:
        first = inputs[0]
        if first.size < many or not all(map(_is_flat, inputs)):
            return compute(*inputs)
        if any(x.shape != first.shape for x in inputs):
            return compute(*inputs)
        result, flat = np.empty(first.shape, first.dtype), [x.reshape(-1) for x in inputs]
        whole = result.reshape(-1)

        def some(number: int) -> None:
            part = slice(number * portion, (number + 1) * portion)
            whole[part] = compute(*(x[part] for x in flat))

        parallel_for(-(-first.size // portion), some)
        return result

    return in_portions


def _is_flat(x: Array) -> bool:
    return x.flags.c_contiguous
