"""Softmax and cross entropy in one.

In:   logits, one row each, and labels: probabilities of all classes, or numbers of classes.
Out:  the loss of each row, and its gradient for the logits.
Not:  no mean over the rows.

The largest logit is subtracted first, so that nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.c.softmax import prediction
from penstock.kernels.narrow.precision import NARROW
from penstock.kernels.parallel.image_tiles import PIECES, in_bands
from penstock.kernels.values.arrays import as_array, shape_text

#: How many numbers TensorFlow's processor instructions add at once.
_LANES: Final = 8
#: Elements that are worked on at a time.
_AT_ONCE: Final = 1 << 18
#: With fewer elements it is not worthwhile to wake other threads.
_SHARED: Final = 1 << 17


@kernel("SoftmaxCrossEntropyWithLogits", types={"T": FLOATS})
def make_softmax_cross_entropy(attrs: Attrs) -> Kernel:
    """-sum(labels * log(softmax(logits))) of each row, and softmax(logits) - labels."""
    narrow, wide = _precision(attrs)

    def of_rows(features: Array, labels: Array, loss: Array, grads: Array) -> None:
        logits, targets = (x.astype(wide, copy=False) for x in (features, labels))
        shifted, powers, totals = _powers(logits, grads)
        losses = np.subtract(np.log(totals), shifted, out=shifted)
        losses *= targets
        loss[...] = np.add.reduce(losses, 1)
        powers /= totals
        np.subtract(powers, targets, out=grads, casting="same_kind")

    def softmax_cross_entropy(features: Value, labels: Value) -> tuple[Array, Array]:
        logits, targets = _same_shape(as_array(features), as_array(labels))
        return _by_rows(of_rows, logits, targets, narrow)

    return softmax_cross_entropy


def _by_rows(
    compute: Callable[..., None], logits: Array, labels: Array, dtype: np.dtype[Any]
) -> tuple[Array, Array]:
    """What ``compute(logits, labels, loss, grads)`` writes, some rows at a time."""
    count, width = logits.shape
    loss, grads = np.zeros(count, dtype), np.empty(logits.shape, dtype)
    if not logits.size:
        return loss, grads

    def some(_: slice, rows: slice) -> None:
        compute(logits[rows], labels[rows], loss[rows], grads[rows])

    pieces = PIECES if logits.size >= _SHARED else 1
    in_bands(1, count, _AT_ONCE // width, pieces, some)
    return loss, grads


def _precision(attrs: Attrs) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The type of results, and the type to compute in."""
    dtype = attrs.dtype("T")
    return dtype.numpy, np.dtype(np.float32) if dtype in NARROW else dtype.numpy


def _same_shape(logits: Array, labels: Array) -> tuple[Array, Array]:
    """Both, broadcast to the same two dimensions."""
    try:
        shape = np.broadcast_shapes(logits.shape, labels.shape)
    except ValueError:
        raise ValueError(
            "logits and labels must be broadcastable: logits_size="
            f"{shape_text(logits.shape)} labels_size={shape_text(labels.shape)}"
        ) from None
    if len(shape) != 2:
        raise ValueError(
            "logits and labels must be either 2-dimensional, or broadcasted to be "
            f"2-dimensional, got {shape_text(logits.shape)} and {shape_text(labels.shape)}"
        )
    return np.broadcast_to(logits, shape), np.broadcast_to(labels, shape)


def _powers(logits: Array, grads: Array) -> tuple[Array, Array, Array]:
    """How far logits are below their row's largest, e to the power of that, and its sums.

    The powers are where the gradients will be, if those are of the same type.
    """
    shifted: Array = logits - np.maximum.reduce(logits, 1, keepdims=True)
    powers = np.exp(shifted, out=grads if grads.dtype == shifted.dtype else None)
    return shifted, powers, _totals(powers)


def _totals(rows: Array) -> Array:
    """Sums of rows, added in TensorFlow's order: eight side by side, and what is left apart.

    The loss of a sure prediction is the rounding of this sum: at 1e-4, another order is another
    loss in the fourth digit.
    """
    width = rows.shape[1]
    if width < _LANES or rows.dtype != np.float32:
        return np.add.reduce(rows, 1, keepdims=True)
    whole = width - width % _LANES
    lanes = rows[:, :whole] if whole == _LANES else _in_lanes(rows[:, :whole])
    fours = lanes[:, :4] + lanes[:, 4:]
    twos = fours[:, :2] + fours[:, 2:]
    totals: Array = twos[:, :1] + twos[:, 1:]
    if whole < width:
        totals += np.add.reduce(rows[:, whole:], 1, keepdims=True)
    return totals


def _in_lanes(rows: Array) -> Array:
    """Eight sums of each row: of each four groups of eight one, which are then put together."""
    groups = rows.reshape(len(rows), -1, _LANES)
    even = groups.shape[1] - groups.shape[1] % 4
    if even:
        four = np.add.reduce(groups[:, :even].reshape(len(rows), -1, 4, _LANES), 1)
        groups = np.concatenate([four, groups[:, even:]], 1)
    sums: Array = np.add.reduce(groups, 1)
    return sums


@kernel(
    "SparseSoftmaxCrossEntropyWithLogits",
    types={"T": FLOATS, "Tlabels": {dtypes.int32, dtypes.int64}},
)
def make_sparse_softmax_cross_entropy(attrs: Attrs) -> Kernel:
    """-log(softmax(logits)) at each row's label, and softmax(logits), less 1 at the label."""
    narrow, wide = _precision(attrs)

    def of_rows(features: Array, labels: Array, loss: Array, grads: Array) -> None:
        shifted, powers, totals = _powers(features.astype(wide, copy=False), grads)
        rows = np.arange(len(labels))
        loss[...] = np.log(totals[:, 0]) - shifted[rows, labels]
        powers /= totals
        powers[rows, labels] -= wide.type(1)
        if powers is not grads:
            grads[...] = powers

    def sparse_softmax_cross_entropy(logits: Value, labels: Value) -> tuple[Array, Array]:
        _check_sparse(logits, labels)
        with_c = _sparse_in_c(logits, labels) if attrs.accelerate else None
        return _by_rows(of_rows, logits, labels, narrow) if with_c is None else with_c

    return sparse_softmax_cross_entropy


def _sparse_in_c(logits: Array, labels: Array) -> tuple[Array, Array] | None:
    """The same, by the library in C; None if it has no way."""
    found = prediction(logits)
    if found is None:
        return None
    grads, totals, largest = found
    count, width = logits.shape
    places = np.arange(0, count * width, width) + labels
    loss = np.log(totals)
    loss -= logits.ravel().take(places) - largest
    grads.ravel()[places] -= np.float32(1)
    return loss, grads


def _check_sparse(logits: Value, labels: Value) -> None:
    """Raise unless there is one label for each row, and a class for each label."""
    if logits.ndim != 2:
        raise ValueError(f"logits must be 2-D, but got shape {shape_text(logits.shape)}")
    if labels.ndim != 1:
        raise ValueError(f"labels must be 1-D, but got shape {shape_text(labels.shape)}")
    if len(logits) != len(labels):
        raise ValueError(
            "logits and labels must have the same first dimension, got logits shape "
            f"{shape_text(logits.shape)} and labels shape {shape_text(labels.shape)}"
        )
    classes = logits.shape[1]
    if classes == 0:
        raise ValueError(
            f"Must have at least one class, but got logits shape {shape_text(logits.shape)}"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        bad = labels[(labels < 0) | (labels >= classes)][0]
        raise ValueError(
            f"Received a label value of {bad} which is outside the valid range of [0, {classes})"
        )
