"""Work in portions gives what it gives at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.kernels.parallel.tiles import (
    TileSizes,
    by_elements,
    by_images,
    sum_by_images,
    updated,
)

#: Portions that are small enough for these arrays.
SMALL = TileSizes(many=50, many_updated=50, portion=16, batch_bytes=100)


@pytest.mark.parametrize("shape", [(3,), (50,), (7, 11), (65, 3), ()])
def test_elements(shape: tuple[int, ...]) -> None:
    """Each element once, whatever is left over at the end."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    result = by_elements(lambda x, y: x * 2 + y, SMALL)(x, x + 1)
    np.testing.assert_array_equal(result, 3 * x + 1)
    assert result.dtype == np.float32


def test_elements_of_views_and_of_several_shapes() -> None:
    """What is not laid out in a row, or is broadcast, is computed at once."""
    calls: list[Any] = []

    def add(x: Any, y: Any) -> Any:
        calls.append(x.shape)
        return x + y

    x = np.arange(100, dtype=np.float32).reshape(10, 10)
    np.testing.assert_array_equal(by_elements(add, SMALL)(x.T, x), x.T + x)
    np.testing.assert_array_equal(by_elements(add, SMALL)(x, x[0].copy()), x + x[0])
    assert calls == [(10, 10), (10, 10)]


@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_images(count: int) -> None:
    """Each image once, in order."""
    x = np.arange(count * 20, dtype=np.float32).reshape(count, 4, 5)
    result = by_images(lambda x: x.sum(1), (count, 5), x.dtype, x, sizes=SMALL)
    np.testing.assert_array_equal(result, x.sum(1))


@pytest.mark.parametrize("count", [1, 2, 9])
def test_sums(count: int) -> None:
    """Each image is added once."""
    x = np.arange(count * 20, dtype=np.float32).reshape(count, 4, 5)
    result = sum_by_images(lambda x, y: (x + y).sum((0, 1)), x, x, sizes=SMALL)
    np.testing.assert_array_equal(result, 2 * x.sum((0, 1)))


@pytest.mark.parametrize("shape", [(), (5,), (65, 3)])
def test_several_new_values(shape: tuple[int, ...]) -> None:
    """New values for several old ones, by arrays and numbers."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)[()]

    def fill(news: Any, x: Any, y: Any, by: Any, z: Any) -> None:
        np.add(x, by, news[0])
        np.multiply(y, z, news[1])

    found = updated(fill, (x, x + 1), [np.float32(3), x], SMALL)
    np.testing.assert_array_equal(found[0], x + 3)
    np.testing.assert_array_equal(found[1], (x + 1) * x)
