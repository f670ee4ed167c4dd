"""Fourier transforms, against their definition and answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core.dtypes import as_dtype
from penstock.errors import InvalidArgumentError
from support.ops import run_op


def transform(x: Any, axis: int, sign: int) -> Any:
    """The transform by its definition, as a product with a matrix."""
    n = x.shape[axis]
    matrix = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    return np.moveaxis(np.moveaxis(x, axis, -1) @ matrix, -1, axis)


@pytest.mark.parametrize(("suffix", "rank"), [("", 1), ("2D", 2), ("3D", 3)])
@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_transforms_of_the_last_axes(suffix: str, rank: int, kind: Any) -> None:
    """Only the last axes are transformed, and the inverse undoes it."""
    rng = np.random.default_rng(0)
    x = (rng.random((2, 3, 4, 5)) + 1j * rng.random((2, 3, 4, 5))).astype(kind)
    expected = x.astype(np.complex128)
    for axis in range(-rank, 0):
        expected = transform(expected, axis, -1)
    result = run_op(f"FFT{suffix}", x, Tcomplex=as_dtype(kind))
    assert result.dtype == kind
    np.testing.assert_allclose(result, expected, rtol=1e-4)
    back = run_op(f"IFFT{suffix}", result, Tcomplex=as_dtype(kind))
    np.testing.assert_allclose(back, x, rtol=1e-4)


@pytest.mark.parametrize(("suffix", "shape"), [("", (7,)), ("2D", (4, 6)), ("3D", (3, 2, 5))])
def test_real_transforms(suffix: str, shape: Any) -> None:
    """The first half of the transform of real numbers gives them back."""
    x = np.random.default_rng(0).random((2, *shape)).astype(np.float32)
    length = np.array(shape, np.int32)
    half = run_op(f"RFFT{suffix}", x, length)
    full = run_op(f"FFT{suffix}", x.astype(np.complex64))
    assert half.dtype == np.complex64
    np.testing.assert_allclose(half, full[..., : shape[-1] // 2 + 1], rtol=1e-4, atol=1e-5)
    back = run_op(f"IRFFT{suffix}", half, length)
    assert back.dtype == np.float32
    np.testing.assert_allclose(back, x, rtol=1e-4, atol=1e-6)


def test_lengths_cut_off() -> None:
    """A length smaller than the input takes the first elements only."""
    x = np.arange(1, 6, dtype=np.float32)
    np.testing.assert_allclose(
        run_op("RFFT", x, np.array([3], np.int32)), [6, -1.5 + 0.8660254j], rtol=1e-6
    )
    half = x.astype(np.complex64)
    result = run_op("IRFFT", half, np.array([3], np.int32))
    np.testing.assert_allclose(result, [1.6666667, -0.33333334, -0.33333334], rtol=1e-6)


def test_imaginary_parts_that_cannot_be() -> None:
    """The first and the middle number of a real transform are taken as real."""
    half = np.array([1 + 5j, 2 + 1j, 3 + 2j], np.complex64)
    np.testing.assert_allclose(
        run_op("IRFFT", half, np.array([4], np.int32)), [2, -1, 0, 0], atol=1e-7
    )


def test_transforms_of_nothing() -> None:
    """Without elements there are no numbers, or zeros."""
    assert run_op("FFT", np.zeros((2, 0), np.complex64)).shape == (2, 0)
    result = run_op("RFFT", np.zeros((2, 0), np.float32), np.array([4], np.int32))
    assert result.tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize(
    ("shape", "length", "complaint"),
    [
        ((5,), [8], "Input dimension 0 must have length of at least 8 but got: 5"),
        ((5,), [5, 5], r"fft_length must have shape \[1\]"),
        ((5,), 5, r"fft_length must have shape \[1\]"),
        ((5,), [-1], r"fft_length\[0\] must >= 0, but got: -1"),
        ((), [1], "must have rank of at least 1"),
    ],
)
def test_wrong_lengths(shape: Any, length: Any, complaint: str) -> None:
    """Nothing is filled up with zeros."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("RFFT", np.zeros(shape, np.float32), np.array(length, np.int32))
