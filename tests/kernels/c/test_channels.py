"""What is computed channel by channel in C is what it is defined as, whatever vectors and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import channels as module
from penstock.kernels.c.channels import column_sums, gradient_sums, scaled, sent_back
from penstock.kernels.c.library import library
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(29)
SHAPES = [(1, 8), (3, 9), (7, 16), (8, 17), (2_000, 24), (2_049, 8), (700, 100), (9, 20_000)]


def floats(*shape: int, middle: float = 0) -> Any:
    """Numbers around one."""
    return (RNG.normal(size=shape) * 3 + middle).astype(np.float32)


def wide(*arrays: Array) -> list[Array]:
    """The same in float64."""
    return [array.astype(np.float64) for array in arrays]


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_are_sums(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Far from zero, too; and as exact for many rows as for few."""
    x, mean = floats(*shape, middle=50), floats(shape[1], middle=50)
    exact, middle = wide(x, mean)
    for _ in each_way(monkeypatch, module):
        np.testing.assert_allclose(column_sums(x), exact.sum(0), rtol=5e-7)
        squares = ((exact - middle) ** 2).sum(0)
        np.testing.assert_allclose(column_sums(x, mean), squares, rtol=2e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_gradients(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their own, and those of their products with distances."""
    grads, x, mean = floats(*shape), floats(*shape, middle=5), floats(shape[1], middle=5)
    sent, exact, middle = wide(grads, x, mean)
    size = np.abs(sent).sum(0), np.abs(sent * (exact - middle)).sum(0)
    for _ in each_way(monkeypatch, module):
        made = gradient_sums(grads, x, mean)
        assert made is not None
        assert (np.abs(made[0] - sent.sum(0)) <= 1e-6 * size[0]).all()
        assert (np.abs(made[1] - (sent * (exact - middle)).sum(0)) <= 1e-6 * size[1]).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_scaled_as_numpy_does(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit."""
    x, mean, scale, offset = floats(*shape), *floats(3, shape[1])
    for _ in each_way(monkeypatch, module):
        np.testing.assert_array_equal(scaled(x, mean, scale, offset), (x - mean) * scale + offset)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_sent_back_as_numpy_does(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit."""
    (grads, x), (mean, a, b, factor) = floats(2, *shape), floats(4, shape[1])
    want = (grads - a - (x - mean) * b) * factor
    for _ in each_way(monkeypatch, module):
        np.testing.assert_array_equal(sent_back(grads, x, mean, (a, b), factor), want)


def test_threads_and_pieces_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece has sums of its own, whoever adds it up."""
    x = floats(5_000, 40)
    found: dict[int, set[bytes]] = {}
    for kind in each_way(monkeypatch, module):
        total = column_sums(x)
        assert total is not None
        found.setdefault(kind, set()).add(total.tobytes())
    assert all(len(ways) == 1 for ways in found.values())


@np.errstate(all="ignore")
def test_numbers_that_are_none_spoil_their_channel() -> None:
    """And no other."""
    x = floats(300, 12)
    x[77, 5], x[0, 3] = np.nan, np.inf
    total = column_sums(x)
    assert total is not None
    assert np.flatnonzero(~np.isfinite(total)).tolist() == [3, 5]


def test_others_are_for_others() -> None:
    """Other types, few channels, gaps in memory, nothing at all, and unequal sizes."""
    x = floats(20, 16)
    assert column_sums(x.astype(np.float64)) is None
    assert column_sums(x[:, :7].copy()) is None
    assert column_sums(x[:, ::2]) is None
    assert column_sums(x[:0]) is None
    assert gradient_sums(x[:10], x, x[0]) is None
