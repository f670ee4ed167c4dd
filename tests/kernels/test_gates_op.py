"""Gates: product, bias, parts and functions in one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core.values import freeze
from penstock.kernels.nn import gates_op
from support.ops import make_op, run_op

RNG = np.random.default_rng(11)
FUNCTIONS: dict[bytes, Any] = {
    b"": lambda x: x,
    b"Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    b"Tanh": np.tanh,
    b"Relu": lambda x: np.maximum(x, 0),
}
NAMES = (b"Tanh", b"Sigmoid", b"", b"Sigmoid", b"Relu")


def make(rows: int, dtype: type = np.float32) -> tuple[Any, ...]:
    """Inputs, matrix and bias of five gates of three units; the last two are constants."""
    shapes = [(rows, 4), (4, 15), (15,)]
    x, w, b = (RNG.standard_normal(shape).astype(dtype) for shape in shapes)
    return x, freeze(w), freeze(b)


def expected(x: Any, w: Any, b: Any) -> list[Any]:
    """By definition, in double precision."""
    parts = np.split(x.astype(np.float64) @ w.astype(np.float64) + b, len(NAMES), 1)
    return [FUNCTIONS[name](part) for name, part in zip(NAMES, parts, strict=True)]


def gates(x: Any, w: Any, b: Any) -> Any:
    """The kernel's outputs."""
    return run_op("_FusedGates", [x], w, b, num_split=len(NAMES), functions=NAMES)


def gates_of_two(x: Any, w: Any, b: Any) -> Any:
    """The same for inputs that come as two."""
    xs = [x[..., :1], x[..., 1:]]
    return run_op("_FusedGates", xs, w, b, num_split=len(NAMES), functions=NAMES)


either = pytest.mark.parametrize("gates", [gates, gates_of_two], ids=["one", "two"])


@either
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("alone", [gates_op.ALONE, 0], ids=["stacked", "by parts"])
def test_each_part_gets_its_function(
    gates: Any, dtype: type, rows: int, alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the product is made as a stack or as it is, the gates are the same."""
    monkeypatch.setattr(gates_op, "ALONE", alone)
    inputs = make(rows, dtype)
    tolerance = 3e-6 if dtype is np.float32 else 1e-14
    for got, want in zip(gates(*inputs), expected(*inputs), strict=True):
        assert (got.dtype, got.shape, got.flags.c_contiguous) == (dtype, (rows, 3), True)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_remembered_is_not_mixed_up(count: int) -> None:
    """Other rows, other constants, and arrays that may change are seen in every call."""
    first, second = make(2), make(3)
    attrs = {"num_split": len(NAMES), "functions": NAMES}
    kernel, _ = make_op("_FusedGates", [first[0]] * count, *first[1:], **attrs)

    def compute(x: Any, w: Any, b: Any) -> Any:
        return kernel(x, w, b) if count == 1 else kernel(x[:, :3], x[:, 3:], w, b)

    changing = first[1].copy()
    calls = [first, second, (second[0], *first[1:]), (*first[:2], second[2])]
    calls += [first, (first[0], changing, first[2])]
    for inputs in calls:
        for got, want in zip(compute(*inputs), expected(*inputs), strict=True):
            np.testing.assert_allclose(got, want, rtol=3e-6, atol=3e-6)
    changing[:] = 0
    for got, want in zip(compute(*calls[-1]), expected(*calls[-1]), strict=True):
        np.testing.assert_allclose(got, want, rtol=3e-6, atol=3e-6)


@either
def test_inputs_are_not_written_to(gates: Any) -> None:
    """All functions work in place, but not there."""
    inputs = make(3)
    before = [array.copy() for array in inputs]
    gates(*inputs)
    for array, copy in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("gates", "shape", "message"),
    [
        (gates, (2, 5), r"Matrix size-incompatible: In\[0\]: \[2,5\]"),
        (gates_of_two, (2, 5), r"Matrix size-incompatible: In\[0\]: \[2,5\]"),
        (gates, (4,), "different ndims"),
        (gates_of_two, (4,), "Expected concatenating dimensions in the range"),
        (gates_of_two, (2, 2, 4), "Dimension 2 in both shapes must be equal"),
    ],
    ids=["sizes", "sizes of two", "rank", "rank of two", "two that do not fit"],
)
def test_errors_are_those_of_the_single_ops(
    gates: Any, shape: tuple[int, ...], message: str
) -> None:
    """What cannot be joined or multiplied is refused as ConcatV2 and MatMul refuse it."""
    _, w, b = make(1)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        gates(np.zeros(shape, np.float32), w, b)


def test_the_ends_of_a_sigmoid() -> None:
    """It is exact where it saturates, and NaN stays NaN."""
    x = np.array([[-200.0], [200.0], [np.nan], [np.inf], [-np.inf]], np.float32)
    w, b = freeze(np.ones((1, 2), np.float32)), freeze(np.zeros(2, np.float32))
    with np.errstate(all="ignore"):
        got = run_op("_FusedGates", [x], w, b, num_split=2, functions=(b"Sigmoid", b"Sigmoid"))
    np.testing.assert_array_equal(got[0][:, 0], np.float32([0, 1, np.nan, 1, 0]))
