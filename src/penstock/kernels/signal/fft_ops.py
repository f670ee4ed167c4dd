"""Fourier transforms of the last one, two or three axes.

In:   an array; for transforms from or to real numbers the lengths of the real axes.
Out:  the transform along the last axes, batches in front of them kept.
Not:  windows and spectrograms of sound are a family of their own.

Lengths that are smaller than the input cut it off; larger ones are refused.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import check_new
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel

#: The axes of each kind of transform.
_AXES: Final[dict[str, tuple[int, ...]]] = {
    "FFT": (-1,),
    "FFT2D": (-2, -1),
    "FFT3D": (-3, -2, -1),
}
_OLD: Final = tuple(f"Batch{inverse}{kind}" for kind in _AXES for inverse in ("", "I"))
_NEW: Final = tuple(f"{inverse}{kind}" for kind in _AXES for inverse in ("", "I"))
_PAIRS: Final = ((dtypes.float32, dtypes.complex64), (dtypes.float64, dtypes.complex128))


@kernel(*_NEW, *_OLD)
def make_complex_fft(attrs: Attrs) -> Kernel:
    """The transform of complex numbers, or its inverse."""
    name = attrs.op.name.removeprefix("Batch")
    transform = np.fft.ifftn if name.startswith("I") else np.fft.fftn
    axes = _AXES[name.removeprefix("I")]
    dtype = attrs.output_types[0].numpy

    def compute(x: Value) -> Array:
        _check_rank(x, axes)
        if x.size == 0:
            return np.zeros(x.shape, dtype)
        return transform(x, axes=axes).astype(dtype, copy=False)

    return compute


def make_real_fft(attrs: Attrs) -> Kernel:
    """The first half of the transform of real numbers; the other half mirrors it."""
    axes, dtype = _AXES[attrs.op.name.removeprefix("R")], attrs.output_types[0].numpy

    def compute(x: Value, fft_length: Value) -> Array:
        lengths = _lengths_in(x, fft_length, axes)
        _check_long_enough(x, lengths)
        shape = (*x.shape[: -len(axes)], *lengths[:-1], lengths[-1] // 2 + 1)
        if x.size == 0 or 0 in lengths:
            return np.zeros(shape, dtype)
        return np.fft.rfftn(x, lengths, axes).astype(dtype, copy=False)

    return compute


def make_inverse_real_fft(attrs: Attrs) -> Kernel:
    """The real numbers whose transform begins with the input."""
    axes, dtype = _AXES[attrs.op.name.removeprefix("IR")], attrs.output_types[0].numpy

    def compute(x: Value, fft_length: Value) -> Array:
        lengths = _lengths_in(x, fft_length, axes)
        needed = (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)
        _check_long_enough(x, needed)
        shape = (*x.shape[: -len(axes)], *lengths)
        check_new(shape, dtype)
        if x.size == 0 or 0 in lengths:
            return np.zeros(shape, dtype)
        return np.fft.irfftn(x, lengths, axes).astype(dtype, copy=False)

    return compute


for _kind in _AXES:
    for _real, _complex in _PAIRS:
        _types = {"Treal": {_real}, "Tcomplex": {_complex}}
        kernel(f"R{_kind}", types=_types)(make_real_fft)
        kernel(f"IR{_kind}", types=_types)(make_inverse_real_fft)


def _check_rank(x: Value, axes: tuple[int, ...]) -> None:
    if x.ndim < len(axes):
        raise InvalidArgumentError(
            f"Input must have rank of at least {len(axes)} but got: {list(x.shape)}"
        )


def _lengths_in(x: Value, fft_length: Value, axes: tuple[int, ...]) -> tuple[int, ...]:
    _check_rank(x, axes)
    if fft_length.shape != (len(axes),):
        raise InvalidArgumentError(f"fft_length must have shape [{len(axes)}]")
    lengths = tuple(fft_length.tolist())
    for place, length in enumerate(lengths):
        if length < 0:
            raise InvalidArgumentError(f"fft_length[{place}] must >= 0, but got: {length}")
    return lengths


def _check_long_enough(x: Value, lengths: tuple[int, ...]) -> None:
    if x.size == 0:
        return
    for axis, length in enumerate(lengths, x.ndim - len(lengths)):
        if x.shape[axis] < length:
            raise InvalidArgumentError(
                f"Input dimension {axis} must have length of at least {length} but got: "
                f"{x.shape[axis]}"
            )
