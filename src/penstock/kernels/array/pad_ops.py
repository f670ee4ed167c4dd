"""Ops that put a margin around an array.

In:   an array, and how many elements each dimension gets in front and at the end.
Out:  a larger array, filled with one value or with the array's own mirror image; for the
      gradient, the smaller array with its mirror images folded onto it.
Not:  pads for no convolution (windows does).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, PLAIN
from penstock.kernels.parallel.strided_copies import put
from penstock.kernels.values.arrays import as_array, boxing, check_new, shape_text, zeros

_QUANTIZED: Final = frozenset({dtypes.qint8, dtypes.quint8, dtypes.qint32})
_INDEX: Final = frozenset({dtypes.int32, dtypes.int64})
_PADDABLE: Final = {"T": PLAIN | _QUANTIZED | {dtypes.string}, "Tpaddings": _INDEX}


@kernel("Pad", types=_PADDABLE)
def make_pad(attrs: Attrs) -> Kernel:
    """The input with zeros (or empty strings) around it."""
    fill = zeros((), attrs.dtype("T"))[()]
    pad = _padding()
    return boxing(attrs, "T", lambda values, paddings: pad(values, paddings, fill))


@kernel("PadV2", types=_PADDABLE)
def make_pad_v2(attrs: Attrs) -> Kernel:
    """The input with a given value around it."""
    pad = _padding()

    def pad_v2(values: Array, paddings: Value, fill: Value) -> Value:
        if isinstance(fill, np.ndarray) and fill.ndim:
            raise InvalidArgumentError(
                f"constant_values must be a scalar. Found: {shape_text(fill.shape)}"
            )
        return pad(values, paddings, fill)

    return boxing(attrs, "T", pad_v2)


def _padding() -> Kernel:
    """Pads; remembers the last paddings, with the shape of what they were put around."""
    last: tuple[Value, tuple[int, ...], list[int], Any] = (_padding, (), [], ())

    def pad(values: Array, paddings: Value, fill: Value) -> Value:
        nonlocal last
        known, shape, sizes, inside = last
        if paddings is not known or values.shape != shape:
            margins = _margins(values, paddings)
            sizes = _padded_shape(values.shape, margins)
            check_new(sizes, values.dtype)
            inside = _inside(values.shape, margins)
            if is_constant(paddings):
                last = paddings, values.shape, sizes, inside
        padded = np.empty(sizes, values.dtype)
        padded.fill(fill)
        padded[inside] = values
        return padded if sizes else as_value(padded)

    return pad


def _padded_shape(shape: tuple[int, ...], margins: list[tuple[int, int]]) -> list[int]:
    return [before + n + after for n, (before, after) in zip(shape, margins, strict=True)]


def _inside(shape: tuple[int, ...], margins: list[tuple[int, int]]) -> tuple[slice, ...]:
    """Where the input is in the padded array."""
    pairs = zip(shape, margins, strict=True)
    return tuple([slice(before, before + n) for n, (before, _) in pairs])


def _margins(values: Array, paddings: Value) -> list[tuple[int, int]]:
    """How much each dimension gets before and after."""
    rank = len(values.shape)
    if paddings.shape != (rank, 2):
        raise _wrong_paddings(values, paddings)
    margins: list[tuple[int, int]] = paddings.tolist()
    for before, after in margins:
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {before} {after}")
    return margins


def _wrong_paddings(values: Array, paddings: Value) -> InvalidArgumentError:
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        return InvalidArgumentError(
            f"paddings must be a matrix with 2 columns: {shape_text(paddings.shape)}"
        )
    return InvalidArgumentError(
        "The first dimension of paddings must be the rank of inputs"
        f"{shape_text(paddings.shape)} {shape_text(values.shape)}"
    )


#: Whether the element at the edge is left out of the mirror image, by mode.
_SKIPPED: Final = {"REFLECT": 1, "SYMMETRIC": 0}


@kernel("MirrorPad", types=_PADDABLE)
def make_mirror_pad(attrs: Attrs) -> Kernel:
    """The input with its mirror image around it."""
    skipped = _SKIPPED[attrs.str("mode")]

    def mirror_pad(values: Array, paddings: Value) -> Value:
        margins = _margins(values, paddings)
        for length, (before, after) in zip(values.shape, margins, strict=True):
            _check_mirror(length, before, after, skipped, "")
        sizes = _padded_shape(values.shape, margins)
        if tuple(sizes) == values.shape:
            return as_value(values)
        check_new(sizes, values.dtype)
        padded = np.empty(sizes, values.dtype)
        inside = _inside(values.shape, margins)
        padded[inside] = values
        # What is beside an end along later dimensions is there when earlier ones are reflected.
        for axis in reversed(range(len(sizes))):
            _reflect(padded[inside[:axis]], axis, *margins[axis], skipped)
        return as_value(padded)

    return boxing(attrs, "T", mirror_pad)


def _check_mirror(length: int, before: int, after: int, skipped: int, kind: str) -> None:
    """Raise unless a dimension's mirror images are no longer than the dimension."""
    if max(before, after) > length - skipped:
        rule, why = ("less than", "not less") if skipped else ("no greater than", "greater")
        raise InvalidArgumentError(
            f"paddings must be {rule} the {kind}dimension size: "
            f"{before}, {after} {why} than {length}"
        )


def _reflect(padded: Array, axis: int, before: int, after: int, skipped: int) -> None:
    """Put the mirror images of what is inside at both ends of a dimension."""
    along, end = _along(axis), padded.shape[axis] - after
    copy = put if axis < padded.ndim - 1 else np.copyto
    for size, to, from_ in ((before, 0, before + skipped), (after, end, end - skipped - after)):
        copy(padded[along(to, to + size)], np.flip(padded[along(from_, from_ + size)], axis))


@kernel("MirrorPadGrad", types={"T": NUMBERS, "Tpaddings": _INDEX})
def make_mirror_pad_grad(attrs: Attrs) -> Kernel:
    """For each inner element, the sum of itself and its mirror images."""
    skipped = _SKIPPED[attrs.str("mode")]

    def mirror_pad_grad(values: Value, paddings: Value) -> Value:
        folded = as_array(values)
        for axis, (before, after) in enumerate(_margins(values, paddings)):
            length = values.shape[axis] - before - after
            if length <= 0:
                raise InvalidArgumentError(
                    "Total paddings must be less than the input dimension size: "
                    f"{before + after} was not less than {values.shape[axis]}"
                )
            _check_mirror(length, before, after, skipped, "output ")
            folded = _fold(folded, axis, before, after, skipped)
        return as_value(folded)

    return mirror_pad_grad


def _fold(values: Array, axis: int, before: int, after: int, skipped: int) -> Array:
    """Add the mirror images at both ends of a dimension to what they show."""
    if before == after == 0:
        return values
    along = _along(axis)
    end = values.shape[axis] - after
    inner = np.array(values[along(before, end)])
    inner[along(skipped, skipped + before)] += np.flip(values[along(0, before)], axis)
    length = end - before
    target = along(length - skipped - after, length - skipped)
    inner[target] += np.flip(values[along(end, end + after)], axis)
    return inner


def _along(axis: int) -> Callable[[int, int], tuple[slice, ...]]:
    """Makes the index of a part of one dimension."""
    rest = (slice(None),) * axis
    return lambda start, stop: (*rest, slice(start, stop))
