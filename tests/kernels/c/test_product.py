"""Products in C, with constants and others."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c.library import library
from penstock.kernels.c.product import Multiplier, batch_product
from support.convolutions import Watched, use
from support.shared_library import KINDS

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(5)


def matrix(rows: int, columns: int, *, is_constant: bool = False) -> Array:
    """Numbers of either sign."""
    made = RNG.uniform(-1, 1, (rows, columns)).astype(np.float32)
    made.flags.writeable = not is_constant
    return made


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(("rows", "depth", "count"), [(128, 96, 100), (9, 700, 333), (500, 40, 64)])
def test_products_are_those_of_float64(rows: int, depth: int, count: int, is_turned: bool) -> None:
    """But for rounding; with a bias, and between limits."""
    x, bias = matrix(rows, depth), matrix(1, count)[0]
    y = (
        matrix(count, depth, is_constant=True)
        if is_turned
        else matrix(depth, count, is_constant=True)
    )
    wanted = x.astype(np.float64) @ (y.T if is_turned else y)
    got = Multiplier(is_turned=is_turned)(x, y)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4)
    limited = Multiplier((-1.0, 2.0), is_turned=is_turned)(x, y, bias)
    np.testing.assert_allclose(limited, np.clip(wanted + bias, -1, 2), rtol=0, atol=1e-4)


def test_rows_may_lie_apart() -> None:
    """As in a slice, or backwards; those that are no rows are copied."""
    x, y = matrix(256, 128), matrix(64, 200, is_constant=True)
    for view in (x[::2, 64:], x[::-1, :64], np.asfortranarray(x[:, :64])):
        np.testing.assert_allclose(Multiplier()(view, y), view.astype(np.float64) @ y, atol=1e-4)


def test_others_are_for_others() -> None:
    """What may change, is small, has few rows, does not fit, or is of another type."""
    x, y = matrix(128, 128), matrix(128, 128, is_constant=True)
    multiply = Multiplier()
    assert multiply(x, y) is not None
    assert multiply(x, y.copy()) is None
    assert multiply(x[:4], y) is None
    assert multiply(x[:, :64], y) is None
    assert multiply(x[:16], y[:, :16]) is None
    assert multiply(x.astype(np.float64), y) is None
    assert multiply(x, y, np.ones(7, np.float32)) is None


@pytest.mark.parametrize(
    ("x_shape", "y_shape"),
    [
        ((64, 300), (300, 70)),
        ((12, 100, 64), (12, 64, 33)),
        ((2, 3, 40, 96), (2, 3, 96, 128)),
        ((2, 50, 300), (300, 90)),
        ((3, 33, 500), (3, 500, 31)),
    ],
)
@pytest.mark.parametrize("view", ["as they are", "turned", "backwards"])
def test_batches_of_products(x_shape: tuple[int, ...], y_shape: tuple[int, ...], view: str) -> None:
    """Each pair by itself, whatever the strides."""

    def made(shape: tuple[int, ...]) -> Array:
        if view == "turned":
            return numbers(*shape[:-2], shape[-1], shape[-2]).swapaxes(-1, -2)
        return numbers(*shape)[..., ::-1, ::-1] if view == "backwards" else numbers(*shape)

    x, y = made(x_shape), made(y_shape)
    got = batch_product(x, y)
    np.testing.assert_allclose(got, x.astype(np.float64) @ y, rtol=0, atol=1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("helpers", [0, 1, 2])
@pytest.mark.parametrize(
    "shape", [(64, 256, 256), (40, 600, 100), (33, 900, 608), (500, 70, 64), (32, 70, 2112)]
)
def test_what_may_change_is_packed_along_with_the_product(
    shape: tuple[int, int, int], helpers: int, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, by whoever needs it, or not at all: the same bits as what was packed once."""
    rows, depth, count = shape
    x, y = matrix(rows, depth), matrix(depth, count)
    again = y.copy()
    again.flags.writeable = False
    use(Watched(kind, helpers), monkeypatch)
    got, wanted = batch_product(x, y), batch_product(x, again)
    assert got is not None
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_allclose(got, x.astype(np.float64) @ y, rtol=0, atol=1e-4)
    for some in (np.stack([y.T, 2 * y.T]).swapaxes(1, 2), np.stack([y, 2 * y])):
        np.testing.assert_array_equal(batch_product(np.stack([x, x]), some), [got, 2 * got])


def numbers(*shape: int) -> Array:
    """Numbers of either sign."""
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def test_axes_of_batches_may_be_turned() -> None:
    """As heads are beside the elements of a sequence."""
    x, y = (numbers(1, 128, 12, 64).transpose(0, 2, 1, 3) for _ in range(2))
    got = batch_product(x, y.swapaxes(-1, -2))
    np.testing.assert_allclose(got, x.astype(np.float64) @ y.swapaxes(-1, -2), atol=1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("places", "depth", "count"), [(64, 300, 70), (300, 33, 120), (40, 500, 64)]
)
def test_a_turned_matrix_is_read_where_it_is(places: int, depth: int, count: int) -> None:
    """As the gradient by weights has it; a part of a matrix, and one whose factor is none, too."""
    x, y = numbers(places, depth + 5), numbers(places, count)
    for turned, factor in ((x[:, :depth].T, y), (x[:, 5:].T, np.asfortranarray(y)), (x[::-1].T, y)):
        got = batch_product(turned, factor)
        np.testing.assert_allclose(got, turned.astype(np.float64) @ factor, rtol=0, atol=1e-4)  # type: ignore[arg-type]


def test_other_batches_are_for_others() -> None:
    """What is small, has few rows, is to be broadcast, does not fit, or is of another type."""
    x, y = numbers(4, 64, 128), numbers(4, 128, 64)
    assert batch_product(x, y) is not None
    assert batch_product(x[:, :8], y) is None
    assert batch_product(x[:1, :33, :33], y[:1, :33]) is None
    assert batch_product(x[:1], y) is None
    assert batch_product(x, y[:2]) is None
    assert batch_product(x, y[:, :64]) is None
    assert batch_product(x, y[0, 0]) is None
    assert batch_product(x, y.astype(np.float64)) is None
    assert batch_product(x[:0], y[:0]) is None
