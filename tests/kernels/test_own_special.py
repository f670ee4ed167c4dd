"""Special functions without SciPy: TensorFlow's answers, identities, and SciPy's numbers."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.kernels.math.own_special import FUNCTIONS
from support.corpus import run_steps
from support.op_cases import all_op_cases
from support.ops import run_op

OPS = {"Digamma", "Erfinv", "Ndtri", "Igamma", "Igammac", "Zeta", "Polygamma", "Lgamma"}
DRAW = np.random.default_rng(6)


@pytest.fixture
def without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain install."""
    for module in ("scipy", "scipy.special"):
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.usefixtures("without_scipy")
def test_answers_are_tensorflows() -> None:
    """All recorded cases of these ops, odd values and mistakes included."""
    cases = [case for case in all_op_cases() if OPS & set(case.ops)]
    assert len(cases) > 25
    for case in cases:
        with ps.Session(case.graph_bytes) as session:
            run_steps(session, case)

    assert {op for case in cases for op in case.ops} >= OPS


def ulps(found: Any, wanted: Any) -> float:
    """The largest error in units of the last digit."""
    error = np.abs(found - wanted) / np.spacing(np.abs(wanted))
    return float(np.max(np.where(found == wanted, 0, error)))


def spread(low: float, high: float) -> Any:
    """Numbers of all sizes between two powers of ten."""
    return 10 ** DRAW.uniform(low, high, 3_000)


#: A function, where it is asked, and how many units of the last digit it may be from SciPy's.
PLACES = [
    ("psi", (spread(-8, 8),), 40), ("psi", (DRAW.uniform(1.3, 1.6, 3_000),), 8),
    ("erfinv", (DRAW.uniform(-1, 1, 3_000),), 10), ("erfinv", (spread(-20, -1),), 10),
    ("erfinv", (1 - spread(-15, -1),), 10), ("ndtri", (DRAW.uniform(0, 1, 3_000),), 10),
    ("ndtri", (spread(-300, -1),), 10), ("zeta", (1 + spread(-3, 1.5), spread(-3, 4)), 60),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "most"), PLACES)
def test_scipy_says_the_same(name: str, given: Any, most: float) -> None:
    """To a few units of the last digit."""
    special = pytest.importorskip("scipy.special")
    assert ulps(FUNCTIONS[name](*given), getattr(special, name)(*given)) <= most


@pytest.mark.parametrize("shape", [0.5, 3.0, 40.0, 1e3, 1e5])
def test_incomplete_gamma_functions(shape: float) -> None:
    """SciPy's numbers around the middle, where both are good; and both sides add up to one."""
    special = pytest.importorskip("scipy.special")
    x = shape * np.exp(DRAW.uniform(-2, 2, 500) / math.sqrt(shape))
    lower, upper = FUNCTIONS["gammainc"](shape, x), FUNCTIONS["gammaincc"](shape, x)

    np.testing.assert_allclose(lower, special.gammainc(shape, x), rtol=3e-13)
    np.testing.assert_allclose(upper, special.gammaincc(shape, x), rtol=3e-13)
    np.testing.assert_allclose(lower + upper, 1, rtol=1e-15)


def test_whole_shapes_have_a_closed_form() -> None:
    """Q(n, x) is exp(-x) times the beginning of the series of exp(x), added up exactly."""
    for n, x in ((1, 0.25), (5, 3.0), (12, 20.0), (30, 24.5)):
        total = sum(Fraction(x) ** k / math.factorial(k) for k in range(n))
        wanted = float(total) * math.exp(-x)
        assert float(FUNCTIONS["gammaincc"](float(n), x)) == pytest.approx(wanted, rel=1e-14)


def test_where_scipy_errs() -> None:
    """P(a, x) of a large shape below the middle, added up with 60 digits."""
    found = float(FUNCTIONS["gammainc"](689722.5638445896, 685978.0507851763))
    assert found == pytest.approx(3.142700123492923e-06, rel=2e-14)


def test_known_values() -> None:
    """Digamma of 1 is Euler's constant; zeta of 2 is pi squared by 6; quantiles are symmetric."""
    assert float(FUNCTIONS["psi"](1.0)) == pytest.approx(-0.5772156649015329, rel=1e-15)
    assert float(FUNCTIONS["zeta"](2.0, 1.0)) == pytest.approx(math.pi**2 / 6, rel=1e-15)
    assert float(FUNCTIONS["ndtri"](0.975)) == pytest.approx(1.959963984540054, rel=1e-15)
    p = spread(-3, -0.31)
    assert ulps(FUNCTIONS["ndtri"](1 - p), -FUNCTIONS["ndtri"](1 - (1 - p))) <= 8


@pytest.mark.usefixtures("without_scipy")
def test_what_still_needs_scipy_says_so() -> None:
    """Shapes for which a series would take too long, and functions that are not here."""
    with pytest.raises(errors.UnimplementedError, match=r"(?s)above 1e\+06 need scipy.*special"):
        run_op("Igamma", np.float64(1e7), np.float64(1e7))
    with pytest.raises(errors.UnimplementedError, match=r"penstock\[special\]"):
        run_op("BesselI0", np.float64(1))
