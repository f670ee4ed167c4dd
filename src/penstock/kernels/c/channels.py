"""Sums by channel, and rows that numbers by channel are applied to, by the library in C.

In:   matrices of float32, [rows, channels], and numbers for each channel.
Out:  numbers for each channel, or a matrix; None where there is no library, or no such matrix.
Not:  knows no layouts of images.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Columns, Library, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer channels most of a vector would be of no use.
_FEWEST: Final = 8
#: Numbers of a piece, which add up as exactly as few do; its rows are no fewer than are added up
#: at once.
_PIECE: Final = 1 << 14
_ROWS_AT_ONCE: Final = 8
#: With fewer elements no other thread is asked to help.
_SHARED: Final = 1 << 16


def column_sums(x: Array, mean: Array | None = None) -> Array | None:
    """The sum of each channel; with means, that of the squares of distances from them."""
    return _summed(1, x, mean=mean)


def gradient_sums(grads: Array, x: Array, mean: Array) -> Array | None:
    """The sum of each channel's gradients, and of these times how far ``x`` is off: [2, channels].

    Args:
        grads: [rows, channels].
        x: the same.
        mean: [channels].

    """
    return _summed(2, x, other=grads, mean=mean)


def scaled(x: Array, mean: Array, scale: Array, offset: Array) -> Array | None:
    """(x - mean) scale + offset, by channel, rounded three times as numpy does."""
    with_c = _library_for(x)
    return None if with_c is None else _made(with_c.scale_columns, x, None, mean, scale, offset)


def sent_back(
    grads: Array, x: Array, mean: Array, shares: tuple[Array, Array], factor: Array
) -> Array | None:
    """(grads - through mean - (x - mean) through variance) factor, by channel.

    Args:
        grads: [rows, channels].
        x: the same.
        mean: [channels], like all that follow.
        shares: what goes through the mean, and what goes through the variance.
        factor: what all is multiplied by in the end.

    """
    with_c, (through_mean, through_variance) = _library_for(x, grads), shares
    if with_c is None:
        return None
    return _made(with_c.send_back, x, grads, mean, through_variance, through_mean, factor)


def _summed(each: int, x: Array, **others: Array | None) -> Array | None:
    """The sums of all rows, which are so many of each channel."""
    with_c = _library_for(x, others.get("other"))
    if with_c is None:
        return None
    facts = _facts(x)
    pieces = -(-facts.count // facts.rows_in_piece)
    parts = np.empty((pieces, each, facts.length), FLOAT)
    kept = _give(facts, parts, others)
    with_c.sum_columns(facts, _helpers(x))
    del kept
    total: Array = parts.sum(0, np.float64).astype(FLOAT)
    return total if each > 1 else total.reshape(facts.length)


def _made(
    compute: Any, x: Array, other: Array | None, mean: Array, scale: Array, offset: Array,
    factor: Array | None = None,
) -> Array:  # fmt: skip
    """A matrix like ``x`` that a function of the library fills."""
    result, facts = np.empty(x.shape, FLOAT), _facts(x)
    given = {"other": other, "mean": mean, "scale": scale, "offset": offset, "factor": factor}
    kept = _give(facts, result, given)
    compute(facts, _helpers(x))
    del kept
    return result


def _library_for(x: Array, other: Array | None = None) -> Library | None:
    """The library, if it can work on a matrix, or on two of one shape."""
    if not _is_matrix(x) or (other is not None and not _is_matrix(other)):
        return None
    return library() if other is None or other.shape == x.shape else None


def _is_matrix(x: Array) -> bool:
    is_one = x.dtype is FLOAT and x.ndim == 2 and x.shape[1] >= _FEWEST
    return is_one and len(x) > 0 and bool(x.flags.c_contiguous)


def _facts(x: Array) -> Columns:
    count, length = x.shape
    rows = max(_PIECE // length, _ROWS_AT_ONCE)
    return Columns(from_=address(x), count=count, length=length, rows_in_piece=rows)


def _give(facts: Columns, to: Array, given: dict[str, Array | None]) -> list[Array]:
    """Tell where arrays are; returns those that must live as long as the work."""
    facts.to, kept = address(to), []
    for name, array in given.items():
        if array is not None:
            kept.append(np.ascontiguousarray(array, FLOAT))
            setattr(facts, name, address(kept[-1]))
    return kept


def _helpers(x: Array) -> int:
    return contention.helpers(HELPERS) if x.size >= _SHARED else 0
