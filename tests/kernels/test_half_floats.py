"""Rounding to float16 is numpy's, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core.dtypes import as_dtype
from penstock.kernels.narrow.half_floats import from_half, to_half
from support.ops import run_op

HALVES: Any = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
BETWEEN: Any = (HALVES[1:] + HALVES[:-1]) / 2
RANDOM: Any = np.random.default_rng(1).integers(0, 1 << 32, 50_000).astype(np.uint32)
NUMBERS: Any = RANDOM.view(np.float32)[~np.isnan(RANDOM.view(np.float32))]
LIMITS: Any = np.float32(
    [0, 65504, 65519.99, 65520, 65536, 1e30, np.inf, 1e-45, 2.9802322e-8, 2.9802326e-8, 6.1e-5]
)


@pytest.mark.parametrize(
    "x",
    [
        HALVES,
        BETWEEN,
        np.nextafter(BETWEEN, np.float32(np.inf)),
        np.nextafter(BETWEEN, np.float32(0)),
        NUMBERS,
        np.resize(LIMITS, 20_000),
        np.resize(np.append(LIMITS, np.float32(np.nan)), 300_001),
    ],
    ids=["halves", "ties", "above", "below", "random", "limits", "nan"],
)
def test_all_are_rounded_as_numpy_does(x: Any) -> None:
    """Ties go to even; what is too large is infinite; the smallest numbers have fewer bits."""
    for signed in (x, -x):
        with np.errstate(over="ignore"):
            expected, found = signed.astype(np.float16), to_half(signed)
        np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("first", [0, 0x0400, 0x7C00])
def test_all_are_widened_as_numpy_does(first: int) -> None:
    """Every float16 there is: with and without infinities, and those that have fewer bits."""
    sizes = np.arange(first, min(first + 0x7C00, 0x8000), dtype=np.uint16)
    bits = np.resize(np.concatenate([sizes, sizes | np.uint16(0x8000)]), 70_000)
    expected = bits.view(np.float16).astype(np.float32)
    found = from_half(bits.view(np.float16))
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (200, 300), (600, 700)])
def test_cast_keeps_the_shape(shape: tuple[int, ...]) -> None:
    """A number stays a number; an array is as long and as wide as it was."""
    x = np.random.default_rng(2).normal(size=shape).astype(np.float32)[()]
    found = run_op("Cast", x, DstT=as_dtype("float16"))
    assert (found.dtype, found.shape, type(found)) == (np.float16, shape, type(np.float16(x)))
    np.testing.assert_array_equal(found, np.float16(x))
    back = run_op("Cast", found, DstT=as_dtype("float32"))
    assert (back.dtype, back.shape, type(back)) == (np.float32, shape, type(np.float32(x)))
    np.testing.assert_array_equal(back, np.float32(found))


def test_columns_of_an_array() -> None:
    """What is not in one row is converted, too."""
    x = np.random.default_rng(3).normal(size=(200, 300)).astype(np.float32)
    np.testing.assert_array_equal(to_half(x.T), x.T.astype(np.float16))
