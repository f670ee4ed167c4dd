"""Fourier transforms of the last one, two or three axes.

In:   an array; for transforms from or to real numbers the lengths of the real axes.
Out:  the transform along the last axes, batches in front of them kept.
Not:  windows and spectrograms of sound are a family of their own.

Lengths that are smaller than the input cut it off; larger ones are refused, unless there is no
input at all.  Of a length of zero there is nothing, and of no input there are zeros: there
TensorFlow's answer is whatever its memory held, or the end of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX
from penstock.kernels.values.arrays import check_new, shape_text

#: The axes of each kind of transform.
_AXES: Final[dict[str, tuple[int, ...]]] = {
    "FFT": (-1,),
    "FFT2D": (-2, -1),
    "FFT3D": (-3, -2, -1),
}
_OLD: Final = tuple(f"Batch{inverse}{kind}" for kind in _AXES for inverse in ("", "I"))
_NEW: Final = tuple(f"{inverse}{kind}" for kind in _AXES for inverse in ("", "I"))
_REAL: Final = frozenset({dtypes.float32, dtypes.float64})
_PAIRS: Final = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
_TYPES: Final = {"Treal": _REAL, "Tcomplex": COMPLEX}


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


@kernel(*(f"R{kind}" for kind in _AXES), types=_TYPES)
def make_real_fft(attrs: Attrs) -> Kernel:
    """The first half of the transform of real numbers; the other half mirrors it."""
    axes, dtype = _AXES[attrs.op.name.removeprefix("R")], attrs.output_types[0].numpy
    check_types = _type_checker(attrs, "forward")

    def compute(x: Value, fft_length: Value) -> Array:
        check_types()
        lengths = _lengths_in(x, fft_length, axes)
        _check_long_enough(x, lengths)
        shape = (*x.shape[: -len(axes)], *_half(lengths))
        check_new(shape, dtype)
        if x.size == 0 or 0 in lengths:
            return np.zeros(shape, dtype)
        return np.fft.rfftn(x, lengths, axes).astype(dtype, copy=False)

    return compute


@kernel(*(f"IR{kind}" for kind in _AXES), types=_TYPES)
def make_inverse_real_fft(attrs: Attrs) -> Kernel:
    """The real numbers whose transform begins with the input."""
    axes, dtype = _AXES[attrs.op.name.removeprefix("IR")], attrs.output_types[0].numpy
    check_types = _type_checker(attrs, "backward")

    def compute(x: Value, fft_length: Value) -> Array:
        check_types()
        lengths = _lengths_in(x, fft_length, axes)
        _check_long_enough(x, _half(lengths))
        shape = (*x.shape[: -len(axes)], *lengths)
        check_new(shape, dtype)
        if x.size == 0 or 0 in lengths:
            return np.zeros(shape, dtype)
        return np.fft.irfftn(x, lengths, axes).astype(dtype, copy=False)

    return compute


def _half(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of the first half of a transform of so many real numbers."""
    return (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)


def _type_checker(attrs: Attrs, direction: str) -> Callable[[], None]:
    """What raises when it is called, if the two types are not of one precision."""
    given, made = attrs.input_types[0], attrs.output_types[0]
    real, complex_ = attrs.dtype("Treal"), attrs.dtype("Tcomplex")

    def check() -> None:
        if _PAIRS[real] is not complex_:
            raise InvalidArgumentError(
                f"Wrong types for {direction} real FFT: in={given.number} out={made.number}, "
                f"which are {given} and {made}",
                next_step=f"{real} goes with {_PAIRS[real]}",
            )

    return check


def _check_rank(x: Value, axes: tuple[int, ...]) -> None:
    if x.ndim < len(axes):
        raise InvalidArgumentError(
            f"Input must have rank of at least {len(axes)} but got: {shape_text(x.shape)}"
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
