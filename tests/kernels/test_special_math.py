"""Special functions, against answers recorded from TensorFlow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.errors import UnimplementedError
from penstock.kernels.api.extras import require
from penstock.kernels.math.special_math_ops import _lgamma, one_by_one
from support.ops import run_op

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("Lgamma", (0.5,), 0.5723649429247001),
        ("Lgamma", (-1.0,), INF),
        ("Digamma", (1.0,), -0.5772156649015329),
        ("Digamma", (0.0,), NAN),
        ("Erf", (0.5,), 0.5204998778130465),
        ("Erfc", (0.5,), 0.4795001221869535),
        ("Erfinv", (0.5,), 0.4769362762044699),
        ("Erfinv", (1.5,), NAN),
        ("Ndtri", (0.975,), 1.959963984540054),
        ("Ndtri", (0.0,), -INF),
        ("Dawsn", (1.0,), 0.5380795069127684),
        ("Expint", (1.0,), 1.8951178163559368),
        ("Expint", (-1.0,), NAN),
        ("Spence", (2.0,), -0.8224670334241132),
        ("FresnelSin", (1.0,), 0.4382591473903548),
        ("FresnelCos", (1.0,), 0.7798934003768228),
        ("BesselI1e", (1.0,), 0.2079104153497085),
        ("BesselJ0", (1.0,), 0.7651976865579666),
        ("BesselK0", (-1.0,), INF),
        ("BesselY1", (-1.0,), -INF),
        ("BesselK1e", (1.0,), 1.636153486263258),
        ("Igamma", (1.0, 1.0), 0.6321205588285577),
        ("Igamma", (0.0, 1.0), NAN),
        ("Igammac", (1.0, 1.0), 0.3678794411714423),
        ("Zeta", (2.0, 1.0), 1.6449340668482264),
        ("Zeta", (1.0, 1.0), INF),
        ("Polygamma", (1.0, 1.0), 1.6449340668482264),
        ("Polygamma", (0.0, 1.0), -0.5772156649015329),
        ("Polygamma", (0.5, 1.0), NAN),
        ("Betainc", (2.0, 3.0, 0.5), 0.6875),
        ("Betainc", (0.0, 3.0, 0.5), NAN),
        ("IgammaGradA", (1.0, 1.0), -0.43172971063489896),
        ("RandomGammaGrad", (1.0, 1.0), 1.1735630272247275),
    ],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_special_functions(op: str, inputs: tuple[float, ...], expected: float, kind: Any) -> None:
    """Known values, poles and numbers outside the domain; as scalars and as arrays."""
    alone = run_op(op, *map(kind, inputs))
    assert type(alone) is kind
    np.testing.assert_allclose(alone, expected, rtol=1e-5)

    row = run_op(op, *[np.full(2, x, kind) for x in inputs])
    assert row.dtype == kind
    np.testing.assert_allclose(row, [expected] * 2, rtol=1e-5)


@pytest.mark.parametrize("op", ["Erf", "Lgamma", "Digamma", "BesselI0e"])
def test_half_precision_is_computed_in_single(op: str) -> None:
    """float16 is rounded once, at the end."""
    x = np.float16([0.5, 1.5, 2.5])

    wide = run_op(op, x.astype(np.float32))
    np.testing.assert_array_equal(run_op(op, x), wide.astype(np.float16))
    assert type(run_op(op, x[0])) is np.float16


def test_betainc_broadcasts_only_scalars() -> None:
    """Vectors must have one shape, scalars go with any."""
    pair = np.float32([2, 3])

    assert run_op("Betainc", pair, np.float32(3), np.float32(0.5)).shape == (2,)
    with pytest.raises(ValueError, match=r"Shapes of a and x are inconsistent: \[2\] vs. \[1\]"):
        run_op("Betainc", pair, np.float32(3), np.float32([0.5]))


def test_error_function_without_scipy() -> None:
    """Python's own functions give the same, number by number."""
    x = np.float32([[-2, 0], [0.5, NAN]])
    erf = one_by_one(math.erf, dtypes.float32)

    np.testing.assert_allclose(erf(x), run_op("Erf", x), rtol=1e-6)
    assert type(erf(np.float32(0.5))) is np.float32
    assert one_by_one(_lgamma, dtypes.float64)(np.float64([0, -1])).tolist() == [INF, INF]


def test_missing_library_says_what_to_install() -> None:
    """The error names the library, and its next step the extra."""
    with pytest.raises(UnimplementedError, match="no_such_library") as caught:
        require("no_such_library.part", "special")

    assert caught.value.next_step == "pip install 'penstock[special]'"


def test_error_function_of_many() -> None:
    """Right to four units of the last digit, from the smallest numbers on."""
    x = np.concatenate([np.linspace(-5, 5, 30_001), np.logspace(-37, 0, 3_000), [np.inf, -np.inf]])
    x = x.astype(np.float32)
    expected = np.array([math.erf(number) for number in x.tolist()])

    np.testing.assert_allclose(run_op("Erf", x), expected, rtol=3e-7)
    assert run_op("Erf", x).dtype == np.float32
    assert np.isnan(run_op("Erf", np.array([np.nan], np.float32)))
    assert type(run_op("Erf", np.float32(0.5))) is np.float32


def test_complement_of_the_error_function_of_many() -> None:
    """Right to seven units of the last digit however small it is, and to two in the middle of 2."""
    x = np.concatenate([np.linspace(-5, 9.19, 60_001), np.logspace(-37, 0, 3_000)])
    x = np.concatenate([x, -x]).astype(np.float32)
    expected = np.array([math.erfc(number) for number in x.tolist()])
    found = run_op("Erfc", x)

    error = np.abs(found - expected) / np.spacing(expected.astype(np.float32))
    normal = expected > np.finfo(np.float32).tiny
    assert found.dtype == np.float32
    assert error[normal].max() <= 7
    np.testing.assert_allclose(found[~normal], expected[~normal], rtol=0, atol=1e-44)


def test_ends_of_the_error_functions_complement() -> None:
    """Of infinities, NaN, what is far outside, zeros, and one number alone."""
    x = np.float32([np.inf, -np.inf, np.nan, 1e30, -1e30, 11, 0, -0.0, 1e-40])

    np.testing.assert_array_equal(run_op("Erfc", x), [0, 2, np.nan, 0, 2, 0, 1, 1, 1])
    assert type(run_op("Erfc", np.float32(0.5))) is np.float32
