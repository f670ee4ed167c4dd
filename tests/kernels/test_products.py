"""Products of large matrices, whole and in pieces, against sums in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels import products
from penstock.kernels.products import ALONE, batch_product, in_pieces, matrix_product

SIZES = [
    *((128, 256, 64), (100, 777, 33), (33, 20_000, 3), (1, 1280, 1000), (1000, 1280, 1)),
    *((1, 30_000, 1), (3, 5, 7), (2, 2, 200_000), (1, 1, 1)),
]


def factors(rows: int, depth: int, columns: int, kind: Any = np.float32) -> tuple[Any, Any]:
    """Two random matrices of small integers, so that their product is exact."""
    rng = np.random.default_rng(rows + depth + columns)
    x, y = rng.integers(-4, 5, (rows, depth)), rng.integers(-4, 5, (depth, columns))
    return x.astype(kind), y.astype(kind)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turned", [False, True])
def test_pieces_add_up(size: tuple[int, int, int], turned: bool) -> None:
    """In pieces, a product is what it is as a whole, whatever is left over at the ends."""
    x, y = factors(*size)
    if turned:
        x, y = np.asfortranarray(x), np.asfortranarray(y)

    result = in_pieces(x, y)

    np.testing.assert_array_equal(result, x.astype(np.float64) @ y.astype(np.float64))
    assert result.dtype == np.float32


@pytest.mark.parametrize("kind", [np.float64, np.complex64, np.complex128])
def test_pieces_keep_the_type(kind: Any) -> None:
    """Other floating types go the same way."""
    x, y = factors(70, 300, 50, kind)
    result = in_pieces(x, y)
    np.testing.assert_array_equal(result, x.astype(np.complex128) @ y.astype(np.complex128))
    assert result.dtype == kind


def test_matrices_that_do_not_fit_are_refused() -> None:
    """A wrong depth is a ValueError in pieces, too."""
    with pytest.raises(ValueError, match="do not fit"):
        in_pieces(np.ones((100, 100), np.float32), np.ones((99, 100), np.float32))


def test_a_product_that_took_too_long_is_followed_by_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a stall, products go in pieces for a while, which grows as long as they stall."""
    weather, done = products._Weather(), list[str]()
    monkeypatch.setattr(products, "_weather", weather)
    monkeypatch.setattr(products, "HELPERS", 1)
    monkeypatch.setattr(products, "in_pieces", lambda x, y: done.append("pieces") or x @ y)
    x, y = factors(128, 128, 128)

    matrix_product(x, y)
    assert done == []
    weather.note(x.size * 128, start=0.0, end=1e6)
    matrix_product(x, y)
    assert done == ["pieces"]

    pauses = []
    for _ in range(10):
        weather.note(1, start=0.0, end=1.0)
        pauses.append(weather.pause)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pauses[-2]
    weather.note(10**9, start=0.0, end=0.01)
    assert weather.pause < pauses[0]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((64, 40, 64), (64, 64, 64)),
        ((3, 100, 100), (3, 100, 100)),
        ((2, 3, 100, 100), (2, 3, 100, 100)),
        ((8, 64, 100), (100, 200)),
        ((4, 1, 100, 100), (5, 100, 100)),
        ((0, 5, 6), (0, 6, 7)),
        ((5, 6), (3, 6, 7)),
    ],
)
def test_batches(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """Batches are broadcast, and large and small matrices in them multiplied, as by numpy."""
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, left).astype(np.float32)
    y = rng.integers(-4, 5, right).astype(np.float32)
    expected = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_array_equal(batch_product(x, y), expected)
    assert batch_product(x, y).shape == expected.shape


def test_what_is_large() -> None:
    """The batches above have matrices on both sides of the limit."""
    assert 40 * 64 * 64 < ALONE < 100 * 100 * 100
