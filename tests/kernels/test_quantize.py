"""Quantising and fake quantising, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.errors import OpError
from support.ops import run_op

NUMBERS = np.float32([-10, -1.05, -0.5, 0, 0.25, 0.5, 0.75, 1, 2.3, 5, 20])
NAN = np.float32("nan")


def plain(values: Any) -> Any:
    """Quantised integers as a list of plain ones."""
    array = np.asarray(values)
    return array.view(array.dtype[0]).tolist()


def quantized(integers: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """Plain integers as an array of a quantised type."""
    return np.array(integers, dtype.numpy[0]).view(dtype.numpy)


def quantize(values: Any, low: Any, high: Any, dtype: DType, **attrs: Any) -> Any:
    """QuantizeV2's integers and range, as plain lists."""
    integers, least, most = run_op(
        "QuantizeV2", np.float32(values), np.float32(low), np.float32(high), T=dtype, **attrs
    )
    assert integers.dtype == dtype.numpy
    return plain(integers), np.asarray(least).tolist(), np.asarray(most).tolist()


@pytest.mark.parametrize(
    ("mode", "dtype", "expected"),
    [
        ("MIN_COMBINED", dtypes.quint8, [0, 0, 21, 43, 53, 64, 74, 85, 140, 255, 255]),
        ("MIN_COMBINED", dtypes.qint8, [-128, -128, -107, -86, -75, -64, -54, -43, 12, 127, 127]),
        ("MIN_FIRST", dtypes.quint8, [0, 0, 22, 43, 54, 64, 75, 86, 141, 255, 255]),
        ("MIN_FIRST", dtypes.qint8, [-128, -128, -106, -85, -74, -64, -53, -42, 13, 127, 127]),
        ("SCALED", dtypes.quint8, [0, 0, 0, 0, 13, 26, 38, 51, 117, 255, 255]),
        ("SCALED", dtypes.qint8, [-128, -27, -13, 0, 6, 13, 19, 25, 58, 127, 127]),
        (
            "MIN_COMBINED",
            dtypes.quint16,
            [0, 0, 5461, 10923, 13653, 16384, 19114, 21845, 36044, 65535, 65535],
        ),
        (
            "SCALED",
            dtypes.qint16,
            [-32768, -6881, -3277, 0, 1638, 3277, 4915, 6553, 15073, 32767, 32767],
        ),
    ],
)
def test_quantize_by_mode(mode: str, dtype: DType, expected: list[int]) -> None:
    """The range -1 to 5 in each mode; halves go away from zero."""
    assert quantize(NUMBERS, -1, 5, dtype, mode=mode)[0] == expected


def test_quantize_to_32_bits_overflows_at_the_end() -> None:
    """float32 has no 2**31 - 1: the greatest number wraps around, but not in MIN_FIRST."""
    assert quantize([-1, 5], -1, 5, dtypes.qint32)[0] == [-(2**31), -(2**31)]
    assert quantize([-1, 5], -1, 5, dtypes.qint32, mode="MIN_FIRST")[0] == [-(2**31), 2147483520]


def test_scaled_ranges_are_those_of_all_integers() -> None:
    """The lowest integer stands for less than the least number; not if it is left out."""
    _, low, high = quantize(NUMBERS, -1, 5, dtypes.qint8, mode="SCALED")
    narrow = quantize([-1, 1, -3], -1, 1, dtypes.qint8, mode="SCALED", narrow_range=True)

    assert (low, high) == (pytest.approx(-5.03937), 5)
    assert narrow == ([-127, 127, -127], -1, 1)


@pytest.mark.parametrize(
    ("round_mode", "expected"),
    [("HALF_AWAY_FROM_ZERO", [1, 2, -1, -2]), ("HALF_TO_EVEN", [0, 2, 0, -2])],
)
def test_scaled_rounds_as_told(round_mode: str, expected: list[int]) -> None:
    """The other modes know only one way."""
    halves = np.float32([0.5, 1.5, -0.5, -1.5]) / 127

    got, *_ = quantize(halves, -1, 1, dtypes.qint8, mode="SCALED", round_mode=round_mode)

    assert got == expected
    with pytest.raises(ValueError, match="only supported for mode 'SCALED'"):
        quantize(halves, -1, 1, dtypes.qint8, round_mode="HALF_TO_EVEN")


@pytest.mark.parametrize(
    ("low", "high", "least", "found"),
    [
        (0, 0, 0.01, (0, 0.01)),
        (3, 5, 0.01, (0, 5)),
        (-5, -3, 0.01, (-5, 0)),
        (-1e-4, 1e-4, 0.01, (-1e-4, 0.0099)),
        (-1e-4, 1e-4, 0.0, (-1e-4, 1e-4)),
    ],
)
def test_ranges_are_widened(low: float, high: float, least: float, found: Any) -> None:
    """They hold zero, and are as wide as asked for."""
    _, *got = quantize([0, 1], low, high, dtypes.quint8, ensure_minimum_range=least)

    assert got == pytest.approx(found)


def test_quantize_along_an_axis() -> None:
    """Each slice has its range; a single slice gives it back without a dimension."""
    table = [[-1, 0, 1], [0.5, 0.7, 2]]

    rows = quantize(table, [-1, 0], [1, 3], dtypes.qint8, axis=0)
    columns = quantize(table, [-1, 0, 0], [1, 3, 2], dtypes.qint8, axis=1, mode="SCALED")

    assert rows == ([[-128, -1, 127], [-86, -69, 42]], [-1, 0], [1, 3])
    assert columns[0] == [[-127, 0, 64], [64, 30, 127]]
    assert columns[1] == pytest.approx([-1.0078740, -3.0236220, -2.0157480])
    assert quantize([0.5], [0], [1], dtypes.quint8, axis=0) == ([128], 0, 1)


@pytest.mark.parametrize(
    ("low", "high", "attrs", "message"),
    [
        (1, 0, {}, "input_max_range must be larger than input_min_range"),
        ([0, 1], [1, 2], {}, "must contain a single float element, but it contains 2"),
        ([0, 0], [1, 1], {"axis": 1}, "must be a 1-D tensor whose size matches the axis"),
        ([0, 0], [1, 1], {"axis": 2}, r"must be less than input dimension\(2\), got 2"),
        ([0, 0], [1, 1], {"axis": 0, "mode": "MIN_FIRST"}, "MIN_FIRST mode is not implemented"),
    ],
)
def test_bad_ranges_are_refused(low: Any, high: Any, attrs: dict[str, Any], message: str) -> None:
    """Ranges are in order and fit the array."""
    with pytest.raises((ValueError, OpError), match=message):
        quantize(np.ones((2, 3)), low, high, dtypes.qint8, **attrs)


@pytest.mark.parametrize(
    ("mode", "dtype", "integers", "expected"),
    [
        ("MIN_COMBINED", dtypes.quint8, [0, 1, 127, 255], [-1, -0.976471, 1.988235, 5]),
        ("MIN_COMBINED", dtypes.qint8, [-128, -127, 0, 127], [-1, -0.976471, 2.011765, 5]),
        ("MIN_COMBINED", dtypes.qint16, [-32768, 0, 32767], [-1, 2.0000458, 5]),
        ("MIN_FIRST", dtypes.quint8, [0, 1, 128, 255], [-1.0117648, -0.988235, 2, 4.988235]),
        ("MIN_FIRST", dtypes.qint16, [-32768, 0, 32767], [-1.0000458, 2, 4.9999542]),
        ("SCALED", dtypes.quint8, [0, 1, 255], [0, 0.019608, 5]),
        ("SCALED", dtypes.qint8, [-128, -127, 0, 127], [-5.03937, -5, 0, 5]),
        ("SCALED", dtypes.quint16, [0, 1, 65535], [0, 7.62951e-5, 5]),
    ],
)
def test_dequantize_by_mode(
    mode: str, dtype: DType, integers: list[int], expected: list[float]
) -> None:
    """The range -1 to 5 in each mode."""
    got = run_op("Dequantize", quantized(integers, dtype), np.float32(-1), np.float32(5), mode=mode)

    assert got.dtype == np.float32
    assert got == pytest.approx(np.float32(expected), rel=1e-5, abs=1e-6)


def test_dequantize_along_an_axis_and_to_bfloat16() -> None:
    """A range per row; bfloat16 only in one mode; a scalar stays one."""
    table = quantized([[-128, -127, 0], [1, 2, 127]], dtypes.qint8)
    low, high = np.float32([-1, 0]), np.float32([1, 3])

    got = run_op("Dequantize", table, low, high, axis=0)

    assert got[0] == pytest.approx(np.float32([-1, -0.992157, 0.003922]), abs=1e-6)
    assert got[1] == pytest.approx(np.float32([1.517647, 1.529412, 3]), abs=1e-6)
    one = run_op("Dequantize", quantized(3, dtypes.quint8), np.float32(0), np.float32(1))
    assert isinstance(one, np.float32)
    assert one == pytest.approx(3 / 255)
    with pytest.raises(ValueError, match="must be 'MIN_COMBINED', is 'SCALED'"):
        run_op("Dequantize", table, low, high, axis=0, mode="SCALED", dtype=dtypes.bfloat16)


def there_and_back(values: Any, low: Any, high: Any, **attrs: Any) -> Any:
    """QuantizeAndDequantizeV4 of float32 numbers."""
    arguments = np.float32(values), np.float32(low), np.float32(high)
    return run_op("QuantizeAndDequantizeV4", *arguments, **attrs)


def test_there_and_back_in_a_given_range() -> None:
    """Signed ranges are made symmetric; the integer without a partner may be left out."""
    values = [-3, -1, -0.3, 0, 0.5, 2]

    assert there_and_back(values, -1, 2, range_given=True) == pytest.approx(
        np.float32([-2.015748, -1.007874, -0.299213, 0, 0.503937, 2]), rel=1e-5
    )
    narrow = there_and_back(values, -1, 2, range_given=True, narrow_range=True)
    assert narrow[0] == -2
    unsigned = there_and_back(values, -1, 2, range_given=True, signed_input=False)
    assert unsigned == pytest.approx(np.float32([0, 0, 0, 0, 0.501961, 2]), rel=1e-5)


def test_there_and_back_in_the_own_range() -> None:
    """Without a range it is that of the numbers; nothing at all is no error."""
    got = there_and_back([-3, -1, -0.5, 0.1, 0.77, 2], 0, 0)

    assert got == pytest.approx(
        np.float32([-3, -1.0078125, -0.4921875, 0.09375, 0.7734375, 1.9921875]), rel=1e-6
    )
    assert there_and_back([0, 0], 0, 0).tolist() == [0, 0]
    assert there_and_back([], 0, 0).shape == (0,)


def test_halves_go_to_even_or_up() -> None:
    """By ``round_mode``; version 3, with the bits as an input, knows the first only."""
    halves = [0.5, 1.5, 2.5, -0.5, -1.5]
    attrs = {"range_given": True}

    assert there_and_back(halves, -127, 127, **attrs).tolist() == [0, 2, 2, 0, -2]
    assert there_and_back(halves, -127, 127, round_mode="HALF_UP", **attrs).tolist() == [
        1,
        2,
        3,
        0,
        -1,
    ]
    arguments = np.float32(halves), np.float32(-127), np.float32(127), np.int32(8)
    assert run_op("QuantizeAndDequantizeV3", *arguments).tolist() == [0, 2, 2, 0, -2]


def test_there_and_back_along_an_axis() -> None:
    """Each slice has its own range, given or found."""
    table = np.float32([[1, -2, 3], [4, 5, 6]])

    found = there_and_back(table, 0, 0, axis=0)
    given = run_op(
        "QuantizeAndDequantizeV3",
        table,
        np.float32([-1, 0]),
        np.float32([2, 3]),
        np.int32(5),
        axis=0,
    )

    assert found[0] == pytest.approx(np.float32([0.992126, -2.007874, 3]), rel=1e-5)
    assert found[1] == pytest.approx(np.float32([4.015748, 5.007874, 6]), rel=1e-5)
    assert given[0] == pytest.approx(np.float32([1.0666667, -2, 2]))
    assert given[1].tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("low", "high", "attrs", "message"),
    [
        (2, 1, {}, "Invalid range: input_min 2.0 > input_max 1.0"),
        (NAN, 1, {}, "Invalid range: input_min nan > input_max 1.0"),
        ([0], [1], {}, "input_min must be a scalar"),
        (0, 1, {"num_bits": 0}, "num_bits is out of range: 0"),
        (0, 1, {"num_bits": 63}, "num_bits is out of range: 63"),
        (0, 1, {"axis": 1}, "Shape must be at least rank 2 but is rank 1"),
        (0, 1, {"axis": -2}, "Axis must be at least -1. Found -2"),
    ],
)
def test_there_and_back_refuses(low: Any, high: Any, attrs: dict[str, Any], message: str) -> None:
    """Ranges out of order, absurd numbers of bits, axes that are not there."""
    with pytest.raises(ValueError, match=message):
        there_and_back([1, 2], low, high, range_given=True, **attrs)


def test_gradient_there_and_back_stops_outside_the_range() -> None:
    """The range itself gets no gradient."""
    gradients, values = np.float32([1, 2, 3, 4, 5]), np.float32([-2, -1, 0, 2, 3])

    inside, low, high = run_op(
        "QuantizeAndDequantizeV4Grad", gradients, values, np.float32(-1), np.float32(2)
    )

    assert inside.tolist() == [0, 2, 3, 4, 0]
    assert (low, high) == (0, 0)


FAKE = np.float32([-3, -1, -0.5, -0.3, 0, 0.1, 0.5, 0.77, 1, 2])


@pytest.mark.parametrize(
    ("low", "high", "attrs", "expected"),
    [
        (-1, 1, {}, [-0.996078, -0.996078, -0.501961, -0.298039, 0, 0.101961, 0.501961]),
        (
            -1,
            1,
            {"num_bits": 4, "narrow_range": True},
            [-1, -1, -0.428571, -0.285714, 0, 0.142857, 0.571429],
        ),
        (0.1, 2, {}, [0, 0, 0, 0, 0, 0.0968627, 0.499216]),
        (-2, -1, {}, [-1, -1, -0.498039, -0.298039, 0, 0, 0]),
    ],
)
def test_fake_quantising_keeps_zero(
    low: float, high: float, attrs: dict[str, Any], expected: list[float]
) -> None:
    """The range is shifted so that zero is possible, even if it was outside."""
    got = run_op("FakeQuantWithMinMaxArgs", FAKE, min=low, max=high, **attrs)

    assert got[:7] == pytest.approx(np.float32(expected), abs=2e-6)


def test_ties_depend_on_where_the_range_comes_from() -> None:
    """A variable range divides by the distance, others multiply: other roundings, as recorded."""
    half = np.float32([-0.95])
    low, high = np.float32(-2), np.float32(1)
    attrs = {"num_bits": 5, "narrow_range": True}

    variable = run_op("FakeQuantWithMinMaxVars", half, low, high, **attrs)
    constant = run_op("FakeQuantWithMinMaxArgs", half, min=-2.0, max=1.0, **attrs)
    per_channel = run_op("FakeQuantWithMinMaxVarsPerChannel", half, low[None], high[None], **attrs)

    assert variable == pytest.approx(np.float32([-1]))
    assert constant == pytest.approx(np.float32([-0.9]))
    assert np.array_equal(constant, per_channel)


def test_a_range_of_zero_alone_makes_zeros() -> None:
    """For one range and per channel, and its gradient passes unchanged."""
    zero, low, high = np.float32(0), np.float32([-1, 0, 0]), np.float32([1, 2, 0])
    table = np.float32([[1, -2, 3], [4, 5, 6]])

    assert run_op("FakeQuantWithMinMaxVars", FAKE, zero, zero).tolist() == [0] * 10
    per_channel = run_op("FakeQuantWithMinMaxVarsPerChannel", table, low, high)
    assert per_channel == pytest.approx(np.float32([[1.0039216, 0, 0], [1.0039216, 2, 0]]))
    inside, below, above = run_op("FakeQuantWithMinMaxVarsGradient", FAKE, FAKE, zero, zero)
    assert np.array_equal(inside, FAKE)
    assert (below, above) == (0, 0)


def test_fake_gradients_go_inside_below_or_above() -> None:
    """NaN is nowhere; per channel, sums run over all other dimensions."""
    gradients = np.arange(1, 12, dtype=np.float32)
    values = np.float32([*FAKE, NAN])

    alone = run_op("FakeQuantWithMinMaxArgsGradient", gradients, values, min=-1.0, max=1.0)
    inside, below, above = run_op(
        "FakeQuantWithMinMaxVarsGradient", gradients, values, np.float32(-1), np.float32(1)
    )
    cube = run_op(
        "FakeQuantWithMinMaxVarsPerChannelGradient",
        np.float32([[[1, 2], [3, 4]]]),
        np.float32([[[-2, 0], [1, 5]]]),
        np.float32([-1, 0]),
        np.float32([1, 3]),
    )

    assert alone.tolist() == [0, 0, 3, 4, 5, 6, 7, 8, 9, 0, 0]
    assert inside.tolist() == alone.tolist()
    assert (below, above) == (3, 10)
    assert [part.tolist() for part in cube] == [[[[0, 2], [3, 0]]], [1, 0], [0, 4]]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("FakeQuantWithMinMaxArgs", (), {"min": 1.0, "max": 1.0}, "min has to be smaller than max"),
        ("FakeQuantWithMinMaxArgs", (), {"num_bits": 17}, "num_bits must be between 2 and 16"),
        ("FakeQuantWithMinMaxVars", ([0], [1]), {}, "`min` must be rank 0 but is rank 1"),
        ("FakeQuantWithMinMaxVarsPerChannel", (0, 1), {}, "`min` must be rank 1 but is rank 0"),
        ("FakeQuantWithMinMaxVarsPerChannel", ([0], [1]), {}, "incorrect size, expected 10 was 1"),
    ],
)
def test_fake_quantising_refuses(op: str, inputs: Any, attrs: Any, message: str) -> None:
    """Empty ranges, absurd numbers of bits, ranges for other channels."""
    with pytest.raises(ValueError, match=message):
        run_op(op, FAKE, *map(np.float32, inputs), **attrs)
