"""Products of large matrices, whole and in parts, against sums in double precision."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.kernels.parallel import blas, intra_op, products
from penstock.kernels.parallel.blas import ALONE
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.products import (
    batch_product,
    matrix_product,
    multiply_into,
    sum_of_rows,
)

SIZES = [
    *((128, 256, 64), (100, 777, 33), (33, 20_000, 3), (1, 1280, 1000), (1000, 1280, 1)),
    *((1, 30_000, 1), (3, 5, 7), (2, 2, 200_000), (1, 1, 1), (500, 400, 200), (97, 500, 801)),
]


def factors(rows: int, depth: int, columns: int, kind: Any = np.float32) -> tuple[Any, Any]:
    """Two random matrices of small integers, so that their product is exact."""
    rng = np.random.default_rng(rows + depth + columns)
    x, y = rng.integers(-4, 5, (rows, depth)), rng.integers(-4, 5, (depth, columns))
    return x.astype(kind), y.astype(kind)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turned", [False, True])
def test_parts_make_the_whole(size: tuple[int, int, int], turned: bool) -> None:
    """In parts, a product is what it is as a whole, whatever is left over at the ends."""
    x, y = factors(*size)
    if turned:
        x, y = np.asfortranarray(x), np.asfortranarray(y)

    result = matrix_product(x, y)

    np.testing.assert_array_equal(result, x.astype(np.float64) @ y.astype(np.float64))
    assert result.dtype == np.float32


@pytest.mark.parametrize("kind", [np.float64, np.complex64, np.complex128])
def test_parts_keep_the_type(kind: Any) -> None:
    """Other floating types go the same way."""
    x, y = factors(400, 500, 90, kind)
    result = matrix_product(x, y)
    np.testing.assert_array_equal(result, x.astype(np.complex128) @ y.astype(np.complex128))
    assert result.dtype == kind


def test_large_products_are_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes above are cut by rows and by columns, a part for each core; small ones are not."""
    counts: list[int] = []

    def count(parts: int, _body: Callable[[int], None]) -> None:
        counts.append(parts)

    monkeypatch.setattr(products, "parallel_equal", count)
    for helpers in (0, 1, 3):
        monkeypatch.setattr(products, "HELPERS", helpers)
        for size in (500, 400, 200), (97, 500, 801), (100, 777, 33), (200, 400, 200):
            matrix_product(*factors(*size))
    assert counts == [2, 2, 4, 4]


@pytest.mark.parametrize("size", [(500, 300), (100, 100)])
def test_matrices_that_do_not_fit_are_refused(size: tuple[int, int]) -> None:
    """A wrong depth is a ValueError in parts, too."""
    with pytest.raises(ValueError, match=r"not fit|not aligned"):
        matrix_product(np.ones(size, np.float32), np.ones((size[1] - 1, 400), np.float32))


def uneven(*shape: int) -> Any:
    """Numbers whose sums depend on the order in which they are added up."""
    return np.random.default_rng(0).standard_normal(shape, np.float32)


#: Products that differ in their last bits if OpenBLAS shares them among its threads, or if
#: they are cut in another way.
UNEVEN: dict[str, Callable[[], Any]] = {
    "rows": lambda: matrix_product(uneven(600, 300), uneven(300, 129)),
    "columns": lambda: matrix_product(uneven(130, 511), uneven(511, 900)),
    "a row": lambda: matrix_product(uneven(1, 2048), uneven(2048, 1000)),
    "its own transpose": lambda: gram(uneven(35, 113)),
    "a batch": lambda: batch_product(uneven(3, 257, 300), uneven(3, 300, 129)),
    "pairs": lambda: batch_product(uneven(2, 257, 600), uneven(2, 600, 129)),
    "complex": lambda: matrix_product(uneven(25, 806) + 1j, uneven(806, 4) + 1j),
    "images": lambda: into(uneven(2, 257, 300), uneven(300, 129)),
    "sums": lambda: sum_of_rows(uneven(40_001, 7)),
}


def gram(x: Any) -> Any:
    """The products of all columns with each other."""
    return matrix_product(x.T, x)


def into(x: Any, y: Any) -> Any:
    """What ``multiply_into`` gives."""
    out = np.empty((*x.shape[:-1], y.shape[-1]), x.dtype)
    multiply_into(x, y, out)
    return out


@pytest.fixture
def blas_threads() -> Any:
    """OpenBLAS's number of threads, which is put back."""
    if blas._library is None:
        pytest.skip("numpy was built without OpenBLAS")
    number = blas._library.number
    before = number.value
    yield number
    number.value = before


@pytest.mark.parametrize("name", UNEVEN)
def test_the_bits_follow_from_the_shapes(
    name: str, blas_threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many threads OpenBLAS and Penstock have, and whoever works beside."""
    found = set()
    for of_blas in {1, blas_threads.value}:  # with more than there are, OpenBLAS waits for ever
        for helpers in (0, 1, 3):
            blas_threads.value = of_blas
            monkeypatch.setattr(intra_op, "HELPERS", helpers)
            found.add(UNEVEN[name]().tobytes())
            contention.count(2)
            found.add(UNEVEN[name]().tobytes())
            contention.count(-2)
    assert len(found) == 1


def test_openblas_has_its_threads_again_when_the_last_has_left(blas_threads: Any) -> None:
    """Also if several are there at a time, and if one fails."""
    blas_threads.value = 3
    both, seen = threading.Barrier(2, timeout=60), []

    def beside() -> None:
        both.wait()
        seen.append(blas_threads.value)
        both.wait()

    other = threading.Thread(target=blas.alone, args=(beside,), daemon=True)
    other.start()
    both.wait()
    with pytest.raises(ZeroDivisionError):
        blas.alone(lambda: 1 // 0)
    assert blas_threads.value == 1
    both.wait()
    other.join()
    assert blas_threads.value == 3
    assert seen == [1]


def test_what_is_small_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that OpenBLAS does alone anyhow cost nothing more."""
    monkeypatch.setattr(products, "alone", lambda *_: pytest.fail("asked"))
    np.testing.assert_array_equal(
        matrix_product(*factors(64, 64, 64)), factors(64, 64, 64)[0] @ factors(64, 64, 64)[1]
    )
    assert batch_product(*(np.ones((4, 8, 8), np.float32),) * 2).shape == (4, 8, 8)


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
