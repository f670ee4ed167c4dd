"""Reductions, positions of extrema and softmax, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core.dtypes import as_dtype
from penstock.core.values import freeze
from penstock.errors import InvalidArgumentError
from support.ops import make_op, run_op

NAN, INF = np.nan, np.inf
SQUARE = np.array([[1, 2], [3, 4]], np.float32)


def axes(*numbers: int, kind: Any = np.int32) -> Any:
    """The axes as a vector of numbers."""
    return np.array(numbers, kind)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Sum", [3, 7]),
        ("Mean", [1.5, 3.5]),
        ("Prod", [2, 12]),
        ("Max", [2, 4]),
        ("Min", [1, 3]),
        ("EuclideanNorm", [2.236068, 5]),
    ],
)
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_reduction_along_an_axis(op: str, expected: list[float], kind: Any) -> None:
    """Every axis may be counted from the end, be a scalar, and be kept with size 1."""
    x = SQUARE.astype(kind)
    for given in (axes(1), axes(-1, kind=np.int64), np.int32(1)):
        result = run_op(op, x, given)
        assert result.dtype == kind
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=1e-2)
    assert run_op(op, x, axes(1), keep_dims=True).shape == (2, 1)


def test_reduction_of_all_no_or_nested_axes() -> None:
    """All axes give a scalar, no axes the input, and the axes may come in any shape."""
    assert run_op("Sum", SQUARE, axes(0, 1)) == 10
    assert type(run_op("Sum", SQUARE, axes(0, 1))) is np.float32
    assert run_op("Sum", SQUARE, axes(0, 1).reshape(2, 1)) == 10
    np.testing.assert_array_equal(run_op("Max", SQUARE, axes()), SQUARE)
    assert run_op("Mean", np.float32(3), axes()) == 3


@pytest.mark.parametrize(
    ("shape", "given", "complaint"),
    [
        ((2, 2), (2,), r"Invalid reduction dimension \(2 for input with 2 dimension"),
        ((2, 2), (-3,), r"Invalid reduction dimension \(-3 for input with 2 dimension"),
        ((), (0,), r"Invalid reduction dimension \(0 for input with 0 dimension"),
        ((2, 2), (0, -2), "Axes contains duplicate dimension: 0"),
        ((0, 2), (1, 1), "Axes contains duplicate dimension: 1"),
    ],
)
@pytest.mark.parametrize("op", ["Sum", "Max", "Mean"])
def test_wrong_axes(op: str, shape: Any, given: Any, complaint: str) -> None:
    """Axes that do not exist, or come twice, are refused; a scalar has none."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op(op, np.zeros(shape, np.float32), axes(*given))


@pytest.mark.parametrize(
    ("op", "of_floats", "of_integers"),
    [
        ("Sum", 0, 0),
        ("Prod", 1, 1),
        ("Mean", NAN, 0),
        ("Max", -INF, -(2**31)),
        ("Min", INF, 2**31 - 1),
        ("EuclideanNorm", 0, 0),
    ],
)
def test_reduction_of_nothing(op: str, of_floats: float, of_integers: int) -> None:
    """Of no elements there is the neutral element; the mean of no integers is 0."""
    floats = run_op(op, np.zeros((0, 2), np.float32), axes(0))
    integers = run_op(op, np.zeros((0, 2), np.int32), axes(0))
    np.testing.assert_array_equal(floats, np.full(2, of_floats, np.float32))
    np.testing.assert_array_equal(integers, np.full(2, of_integers, np.int32))
    assert run_op(op, np.zeros((0, 2), np.float32), axes(1)).shape == (0,)


def test_mean_of_no_complex_numbers_is_zero() -> None:
    """Complex numbers are an exception: no NaN."""
    assert run_op("Mean", np.zeros((0,), np.complex64), axes(0)) == 0


@pytest.mark.parametrize(
    ("op", "kind", "values", "expected"),
    [
        ("Sum", np.int8, [100, 100, 101], 45),
        ("Prod", np.uint8, [100, 100, 101], 80),
        ("Mean", np.int8, [100, 100, 101], 100),
        ("Mean", np.int32, [2**31 - 1, 2**31 - 1, 3], 1431655765),
        ("Mean", np.int64, [2**63 - 1, 2**63 - 1, 3], 0),
        ("Mean", np.int16, [-3, -4, -12], -6),
        ("Mean", np.uint64, [100, 100, 101], 100),
        ("EuclideanNorm", np.uint8, [100, 100, 101], 15),
        ("EuclideanNorm", np.int32, [3, 4], 5),
    ],
)
def test_integers_wrap_around(op: str, kind: Any, values: list[int], expected: int) -> None:
    """Sums and squares wrap in their own type; a mean does not, and goes towards zero."""
    result = run_op(op, np.array(values, kind), axes(0))
    assert result == expected
    assert result.dtype == kind


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((7,), [0]),
        ((3, 5), [0]),
        ((3, 5), [-1]),
        ((3, 5), [1, 0]),
        ((2, 3, 4), [0]),
        ((2, 3, 4), [1, 0]),
        ((2, 3, 4), [1]),
        ((2, 3, 4), [-1, 1]),
        ((2, 3, 4), [0, 2]),
        ((2, 3, 4), []),
        ((2, 3, 0), [0]),
        ((0, 3), [0]),
        ((70000, 2), [0]),
        ((2, 20000), [1]),
    ],
)
def test_sums_are_those_of_the_elements(shape: Any, axes: list[int], kind: Any) -> None:
    """Any axes of any shape, few elements or many, contiguous or not, NaN among them or not."""
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((*shape[:-1], 2 * shape[-1])).astype(kind)
    x = wide[..., ::2]
    exact = x.astype(np.longdouble)

    total = run_op("Sum", x, freeze(np.array(axes, np.int32)))

    expected, loss = exact.sum(tuple(axes)), 1e-4 if kind is np.float32 else 1e-11
    assert total.shape == expected.shape
    assert total.dtype == kind
    np.testing.assert_allclose(total, expected, rtol=loss, atol=loss)
    kept = run_op("Sum", x, freeze(np.array(axes, np.int32)), keep_dims=True)
    assert kept.shape == exact.sum(tuple(axes), keepdims=True).shape
    np.testing.assert_array_equal(kept.reshape(total.shape), total)
    if x.size:
        x[(0,) * x.ndim] = np.nan
        assert np.isnan(run_op("Mean", x, freeze(np.array(axes, np.int32)))).sum() == 1


@pytest.mark.parametrize("shape", [(7,), (6, 5), (3, 4, 5)])
@pytest.mark.parametrize("keep", [False, True])
def test_axes_that_were_computed_give_the_same_bits(shape: tuple[int, ...], keep: bool) -> None:
    """The order of additions does not depend on whether the axes are a constant."""
    x = np.random.default_rng(1).normal(size=(100, *shape)).astype(np.float32)
    axes = np.arange(len(shape), dtype=np.int32)
    compute, _ = make_op("Sum", x[0], freeze(axes.copy()), keep_dims=keep)
    constant = freeze(axes.copy())
    for given in x:
        assert compute(given, constant).tobytes() == compute(given, axes).tobytes()


def test_half_precision_is_summed_in_single() -> None:
    """Five thousand ones are five thousand, though float16 counts to 2048 only."""
    ones = np.ones((5000, 2), np.float16)
    assert run_op("Sum", ones, axes(0)).tolist() == [5000, 5000]
    assert run_op("Mean", ones * 100, axes(0)).tolist() == [100, 100]


def test_extrema_keep_nan_and_truth_needs_no_elements() -> None:
    """A NaN is the maximum and the minimum; all of nothing is true, any of it is not."""
    x = np.array([[1, NAN, 2], [-INF, -INF, -INF]], np.float32)
    np.testing.assert_array_equal(run_op("Max", x, axes(1)), [NAN, -INF])
    np.testing.assert_array_equal(run_op("Min", x, axes(1)), [NAN, -INF])
    assert run_op("All", np.zeros((0,), bool), axes(0)) == np.True_
    assert run_op("Any", np.zeros((0,), bool), axes(0)) == np.False_
    assert run_op("Any", np.array([[True, False]]), axes(0)).tolist() == [True, False]


def test_norm_of_complex_numbers() -> None:
    """The norm is real, in the type of the input."""
    result = run_op("EuclideanNorm", np.array([3 + 4j, 1j], np.complex64), axes(0))
    assert result.dtype == np.complex64
    np.testing.assert_allclose(result, 5.0990195, rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "largest", "smallest"),
    [
        ([1, 3, 3, 1], 1, 0),
        ([NAN, 1], 1, 1),
        ([1, NAN, 2], 2, 0),
        ([3, NAN, 2], 0, 2),
        ([NAN, NAN], 0, 0),
        ([NAN, -INF], 0, 1),
    ],
)
def test_positions_of_extrema(values: list[float], largest: int, smallest: int) -> None:
    """Of equal elements the first counts, and NaN never unless there is nothing else."""
    x = np.array(values, np.float32)
    assert run_op("ArgMax", x, np.int32(0)) == largest
    assert run_op("ArgMin", x, np.int32(0)) == smallest


def test_types_of_positions() -> None:
    """Positions have the type that the node asks for."""
    x = np.arange(6, dtype=ml_dtypes.bfloat16).reshape(2, 3)
    for name in ("int16", "uint16", "int32", "int64"):
        result = run_op("ArgMax", x, np.int64(-1), output_type=as_dtype(name))
        assert result.tolist() == [2, 2]
        assert result.dtype == name


@pytest.mark.parametrize(
    ("shape", "axis", "complaint"),
    [
        ((2, 2), np.int32(2), r"Expected dimension in the range \[-2, 2\), but got 2"),
        ((), np.int32(0), r"Expected dimension in the range \[0, 0\), but got 0"),
        ((2, 0, 3), np.int32(1), r"Reduction axis 1 is empty in shape \[2,0,3\]"),
        ((2, 2), np.array([1], np.int32), r"dim must be a scalar"),
    ],
)
def test_no_position(shape: Any, axis: Any, complaint: str) -> None:
    """An axis that does not exist, or has no elements, has no extremum."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("ArgMax", np.zeros(shape, np.float32), axis)


def test_softmax() -> None:
    """Rows sum to 1; what lies far below the largest is 0, and infinity minus itself NaN."""
    rows = np.array([[1, 2, 3], [1000, 0, -INF], [INF, 1, 0], [NAN, 1, 2]], np.float32)
    expected = [[0.09003057, 0.24472848, 0.66524094], [1, 0, 0], [NAN] * 3, [NAN] * 3]
    np.testing.assert_allclose(run_op("Softmax", rows), expected, rtol=1e-6)
    logs = run_op("LogSoftmax", np.array([1, -INF, 1000], np.float32))
    np.testing.assert_array_equal(logs, [-999, -INF, 0])
    assert run_op("Softmax", rows.astype(np.float16)).dtype == np.float16
    assert run_op("Softmax", np.zeros((2, 0), np.float32)).shape == (2, 0)
    with pytest.raises(InvalidArgumentError, match=r"must have >= 1 dimension, got \[\]"):
        run_op("Softmax", np.float32(1))


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (-2, 0), (2, 3), (1,), (0, 1, 2, 3)])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("op", ["Sum", "Prod", "Max", "Min", "Mean", "All", "Any"])
def test_large_arrays(op: str, keep: bool, axes: tuple[int, ...]) -> None:
    """Whichever axes stay, all elements of the others are combined."""
    x = np.random.default_rng(5).integers(-1, 2, (5, 40, 9, 11)).astype(np.float32)
    if op in ("All", "Any"):
        x = x >= (1 if op == "Any" else 0)
    name = {"Max": "amax", "Min": "amin"}.get(op, op.lower())
    expected = getattr(np, name)(x, axis=axes, keepdims=keep)
    result = run_op(op, x, np.int32(axes), keep_dims=keep)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert np.shape(result) == np.shape(expected)


def test_large_arrays_refuse_the_same_axis_twice() -> None:
    """Also where axes would be taken one by one."""
    with pytest.raises(InvalidArgumentError, match="duplicate dimension: 1"):
        run_op("Max", np.ones((5, 40, 99), np.float32), np.int32([1, -2]))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("shape", "along"),
    [((20, 700), [1]), ((3, 5, 60, 21), [3, -2]), ((1, 40_000), [0, 1]), ((2, 600, 900), [1, 2])],
)
def test_long_products_are_those_of_logarithms(shape: Any, along: Any, keep: bool) -> None:
    """A product is the exponential of the sum of logarithms, whichever way it is computed."""
    logarithms = np.random.default_rng(1).normal(0, 0.01, shape)
    x = np.exp(logarithms).astype(np.float32)
    x[0] *= -1
    product = run_op("Prod", x, np.array(along), keep_dims=keep)
    expected = np.exp(logarithms.sum(tuple(along), keepdims=keep))
    expected = expected * np.prod(np.sign(x), tuple(along), keepdims=keep)
    np.testing.assert_allclose(product, expected, rtol=1e-3)
    assert (product.dtype, np.shape(product)) == (np.float32, expected.shape)


def test_long_products_know_zero_and_nan() -> None:
    """One zero makes a product zero, and one NaN makes it NaN."""
    x = np.ones((16, 1000), np.float32)
    x[1, 999], x[2, 0] = 0, NAN
    np.testing.assert_array_equal(run_op("Prod", x, axes(1)), [1, 0, NAN, *[1] * 13])


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int32, np.uint8, np.complex64])
@pytest.mark.parametrize("op", ["Sum", "Prod", "Max", "Min", "Mean"])
def test_many_short_rows(op: str, kind: Any, count: int, keep: bool) -> None:
    """Are joined as numpy joins each of them."""
    if kind is np.complex64 and op in {"Max", "Min"}:
        return
    join = {"Prod": np.multiply, "Max": np.maximum, "Min": np.minimum}.get(op, np.add)
    x = np.random.default_rng(count).normal(size=(90, 100, count)) * 3 + 9
    x = x.astype(kind)
    for axis in (-1, 2):
        found = run_op(op, x, np.int32([axis]), keep_dims=keep)
        wanted = join.reduce(x, -1, x.dtype, keepdims=keep)
        if op == "Mean":
            wide = x.astype(np.int64) if x.dtype.kind in "iu" else x
            wanted = wide.sum(-1, keepdims=keep) / count
            wanted = np.floor(wanted) if x.dtype.kind in "iu" else wanted
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        assert found.dtype == x.dtype


@pytest.mark.parametrize("op", ["All", "Any"])
def test_truth_of_many_short_rows(op: str) -> None:
    """The same of truth values."""
    x = np.random.default_rng(7).random((9000, 5)) < (0.1 if op == "Any" else 0.9)
    wanted = x.any(-1) if op == "Any" else x.all(-1)
    found = run_op(op, x, np.int32([1]))
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == np.bool_
