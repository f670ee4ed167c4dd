"""The softmax of rows, by the library in C.

In:   an array of float32.
Out:  the softmax along the last axis, its logarithm, or what the loss of a prediction takes
      besides; None where there is no library, or nothing to compute.
Not:  no other axis.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Rows, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer elements no other thread is asked to help.
_SHARED: Final = 1 << 16


def softmax(logits: Array, factor: float = 1.0) -> Array | None:
    """exp(x) / sum(exp(x)), x = factor * logits; None if that is for others to do.

    Args:
        logits: [..., length].
        factor: greater than 0.

    """
    with_c = library()
    if with_c is None or logits.dtype is not FLOAT or not logits.ndim or not logits.size:
        return None
    logits, result = np.ascontiguousarray(logits), np.empty(logits.shape, FLOAT)
    rows = _rows(logits, result)
    rows.factor = factor
    with_c.softmax(rows, _helpers(logits))
    return result


def log_softmax(logits: Array) -> Array | None:
    """The logarithm of that, with a factor of 1; None if that is for others to do.

    Args:
        logits: [..., length].

    """
    with_c = library()
    if with_c is None or logits.dtype is not FLOAT or not logits.ndim or not logits.size:
        return None
    logits, result = np.ascontiguousarray(logits), np.empty(logits.shape, FLOAT)
    with_c.log_softmax(_rows(logits, result), _helpers(logits))
    return result


def prediction(logits: Array) -> tuple[Array, Array, Array] | None:
    """The softmax of rows, exp(x - m) / t, then t and m; None if that is for others to do.

    The sums t are added up in TensorFlow's order: eight side by side, and what is left apart.

    Args:
        logits: [count, length].

    """
    with_c = library()
    if with_c is None or logits.dtype is not FLOAT or not logits.size:
        return None
    logits, result = np.ascontiguousarray(logits), np.empty(logits.shape, FLOAT)
    numbers = np.empty((len(logits), 2), FLOAT)
    rows = _rows(logits, result)
    rows.also_to = address(numbers)
    with_c.prediction(rows, _helpers(logits))
    return result, numbers[:, 0], numbers[:, 1]


def _rows(logits: Array, result: Array) -> Rows:
    length = logits.shape[-1]
    return Rows(
        from_=address(logits), to=address(result), count=logits.size // length, length=length
    )


def _helpers(logits: Array) -> int:
    return contention.helpers(HELPERS) if logits.size >= _SHARED else 0
