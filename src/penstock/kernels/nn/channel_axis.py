"""Arithmetic with images and one number for each of their channels.

In:   images with the channels last or second, and numbers for each channel, all of float32.
Out:  images; or numbers for each channel.
Not:  knows no op.

Images are looked at as matrices: rows of channels, which the library in C works on if there is
one, or in the layouts with the channels second rows of pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final, TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.c import channels as in_c
from penstock.kernels.parallel.products import sum_of_rows
from penstock.kernels.parallel.tiles import by_images, sum_by_images
from penstock.kernels.values.arrays import shape_text

#: The mean of each channel, and its variance.
Statistics: TypeAlias = tuple[Array, Array]
#: By channel: the mean, and what goes through mean and variance of each image.
Shares: TypeAlias = tuple[Array, Array, Array]
#: With fewer channels, numbers per channel are repeated, so that numpy sees longer rows.
_FEW: Final = 256
_LONG_ROW: Final = 512


class ChannelAxis:
    """Where the channels of images are, and arithmetic with one number for each of them."""

    def __init__(self, attrs: Attrs) -> None:
        layout = attrs.str("data_format") if "data_format" in attrs.values else "NHWC"
        self._is_second: Final = layout[1] == "C"
        self._layout: Final = layout
        #: Whether the library in C is asked first.
        self._asks_c: Final = attrs.accelerate and not self._is_second

    def check(self, x: Value, **values: Value) -> int:
        """The number of channels; raises ValueError unless each value has as many."""
        if x.ndim != len(self._layout):
            raise ValueError(
                f"input must be 4 or 5-dimensional, as {self._layout} is: {shape_text(x.shape)}"
            )
        count: int = x.shape[1 if self._is_second else -1]
        for name, value in values.items():
            if value.ndim != 1:
                raise ValueError(f"{name} must be 1-dimensional: {shape_text(value.shape)}")
            if len(value) != count:
                raise ValueError(
                    f"{name} must have the same number of elements as the channels of x, "
                    f"got {len(value)} and {count}"
                )
        return count

    def combined(self, ufunc: np.ufunc, x: Array, numbers: Array, *, reuse: bool = False) -> Array:
        """A function of each element and its channel's number; into ``x`` on demand."""
        row = self._repeated(numbers, x.shape)
        rows = x if self._is_second else x.reshape(-1, len(row))
        done = ufunc(rows, row, out=rows if reuse else None)
        return np.asarray(done).reshape(x.shape)

    def sums(self, x: Array) -> Array:
        """The sum of each channel."""
        if self._is_second:
            total: Array = x.reshape(*x.shape[:2], -1).sum(-1).sum(0)
            return total
        return sum_of_rows(x.reshape(-1, x.shape[-1]))

    def gradient_sums(self, grads: Array, images: Array, mean: Array) -> Array:
        """Each channel's sum of gradients, and of gradients times how far images are off."""
        if self._asks_c:
            made = in_c.gradient_sums(_matrix(grads), _matrix(images), mean)
            if made is not None:
                return made

        def of_some(grads: Array, images: Array) -> Array:
            off = self.combined(np.subtract, images, mean)
            np.multiply(off, grads, out=off)
            return np.stack([self.sums(grads), self.sums(off)])

        return np.asarray(sum_by_images(of_some, grads, images))

    def sent_back(self, grads: Array, images: Array, shares: Shares, scale: Array) -> Array:
        """Gradients of images, less what goes through their mean and their variance."""
        mean, through_mean, through_variance = shares
        if self._asks_c:
            through = through_mean, through_variance
            made = in_c.sent_back(_matrix(grads), _matrix(images), mean, through, scale)
            if made is not None:
                return made.reshape(images.shape)

        def of_some(grads: Array, images: Array) -> Array:
            off = self.combined(np.subtract, images, mean)
            off = self.combined(np.multiply, off, through_variance, reuse=True)
            sent = self.combined(np.subtract, grads, through_mean)
            sent -= off
            return self.combined(np.multiply, sent, scale, reuse=True)

        return by_images(of_some, images.shape, images.dtype, grads, images)

    def statistics(self, x: Array) -> Statistics:
        """Mean and variance of each channel."""
        size = np.float32(x.size // x.shape[1 if self._is_second else -1])
        mean = self._total(x) / size
        return mean, self._total(x, mean) / size

    def _total(self, x: Array, mean: Array | None = None) -> Array:
        """The sum of each channel; with means, that of the squares of distances from them."""
        made = in_c.column_sums(_matrix(x), mean) if self._asks_c else None
        if made is not None:
            return made
        if mean is None:
            return np.asarray(sum_by_images(self.sums, x))

        def squares(x: Array) -> Array:
            off = self.combined(np.subtract, x, mean)
            np.multiply(off, off, out=off)
            return self.sums(off)

        return np.asarray(sum_by_images(squares, x))

    def normaliser(
        self,
        shape: tuple[int, ...],
        by: Statistics,
        affine: Statistics,
        epsilon: np.float32,
    ) -> Callable[[Array], Array]:
        """(x - mean) / sqrt(variance + epsilon) * scale + offset, of images of this shape."""
        (mean, var), (scale, offset) = by, affine
        factor = scale / np.sqrt(var + epsilon)
        by_numpy = self._normaliser_of_some(shape, mean, factor, offset)

        def normalise(x: Array) -> Array:
            made = in_c.scaled(_matrix(x), mean, factor, offset) if self._asks_c else None
            return by_images(by_numpy, shape, x.dtype, x) if made is None else made.reshape(shape)

        return normalise

    def _normaliser_of_some(
        self, shape: tuple[int, ...], mean: Array, factor: Array, offset: Array
    ) -> Callable[[Array], Array]:
        """The same for some of the images."""
        mean, factor, offset = (self._repeated(row, shape) for row in (mean, factor, offset))
        width = -1 if self._is_second else len(mean)

        def normalise(x: Array) -> Array:
            rows = x if width < 0 else x.reshape(-1, width)
            y = rows - mean
            y *= factor
            y += offset
            return y.reshape(x.shape)

        return normalise

    def _repeated(self, numbers: Array, shape: tuple[int, ...]) -> Array:
        """Numbers by channel in a form that fits the images, or long rows of them."""
        if self._is_second:
            return numbers.reshape(-1, *(1,) * (len(shape) - 2))
        if len(numbers) >= _FEW or not prod(shape):
            return numbers
        return np.tile(numbers, _divisor(prod(shape[1:-1]), _LONG_ROW // len(numbers)))


def _matrix(x: Array) -> Array:
    """Rows of channels."""
    return x.reshape(-1, x.shape[-1])


def _divisor(size: int, limit: int) -> int:
    """The greatest divisor of ``size`` up to ``limit``."""
    return next((d for d in range(min(size, limit), 1, -1) if size % d == 0), 1)
