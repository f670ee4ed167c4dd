"""Functions in C are what they are called, and programs of them change no bit."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from penstock.core.denormals import flushing
from penstock.core.values import Array
from penstock.kernels.c.library import library, loaded
from penstock.kernels.c.programs import (
    OF_ONE,
    OF_TWO,
    REGISTERS,
    Step,
    compile_steps,
    function_named,
)
from penstock.kernels.parallel.contention import contention

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

KINDS = range(loaded().penstock_kinds()) if loaded() is not None else range(0)
RNG = np.random.default_rng(3)
SPECIAL = np.float32([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, -3e38, 200, -200, 1])
_erf, _erfc = np.vectorize(math.erf), np.vectorize(math.erfc)


def _near(x: Any) -> Any:
    """Rounded once: what comes after it may be no better."""
    return x.astype(np.float32).astype(float)


def _softplus(x: Any) -> Any:
    """With TensorFlow's limits, beyond which it is taken for simpler functions."""
    power = np.exp(np.minimum(x, 80))
    return np.where(x > 13.942385, x, np.where(x < -13.942385, power, np.log1p(power)))


#: Of the self-normalising ELU (Klambauer et al., 2017), as float32 has them.
SCALE, SCALE_ALPHA = map(float, np.float32([1.0507009873554804935, 1.7580993408473768599]))
#: Functions that take 1 from a power, of which they keep as many digits as that has.
OF_POWERS = {"Elu", "Selu"}
#: What is meant, in float64, and units of the last digit by which it may be missed.
MEANT: dict[str, tuple[Callable[..., Any], float]] = {
    "Neg": (np.negative, 0),
    "Abs": (np.abs, 0),
    "Square": (np.square, 0.5),
    "Sqrt": (np.sqrt, 0.5),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "Reciprocal": (np.reciprocal, 0.5),
    "Relu": (lambda x: np.maximum(x, 0), 0),
    "Relu6": (lambda x: np.clip(x, 0, 6), 0),
    "Exp": (np.exp, 1),
    "Tanh": (np.tanh, 7),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 2.5),
    "Erf": (_erf, 7),
    "Erfc": (_erfc, 7),
    "Log": (np.log, 1),
    "Log1p": (np.log1p, 1.5),
    "Expm1": (np.expm1, 1.5),
    "Softplus": (_softplus, 3),
    "Elu": (lambda x: np.where(x < 0, np.exp(x) - 1, x), 1),
    "Selu": (lambda x: np.where(x < 0, (np.exp(x) - 1) * SCALE_ALPHA, x * SCALE), 1.5),
    "Add": (np.add, 0.5),
    "Sub": (np.subtract, 0.5),
    "Mul": (np.multiply, 0.5),
    "Div": (np.divide, 0.5),
    "Maximum": (np.maximum, 0),
    "Minimum": (np.minimum, 0),
    "SquaredDifference": (lambda x, y: np.square((x - y).astype(np.float32).astype(float)), 0.51),
    "ReluGrad": (lambda x, y: x * (y > 0), 0),
    "Relu6Grad": (lambda x, y: x * ((y > 0) & (y < 6)), 0),
    "TanhGrad": (lambda y, dy: dy * _near(1 - _near(y * y)), 0.51),
    "SigmoidGrad": (lambda y, dy: dy * _near(y * _near(1 - y)), 0.51),
    # A power that is one unit off makes a sum that may be two off, and a quotient that is four.
    "SoftplusGrad": (lambda dy, x: dy / _near(1 + _near(np.exp(-x))), 4.5),
    "EluGrad": (lambda dy, y: dy * _near(np.fmin(y, 0) + 1), 0.51),
    "SeluGrad": (lambda dy, y: dy * np.where(y < 0, _near(y + SCALE_ALPHA), SCALE), 0.51),
}


def made(name: str, kind: int | None = None) -> Callable[..., Any]:
    """One function, for a kind of vectors."""
    inputs = 1 if name in OF_ONE else 2
    compiled = compile_steps(name, inputs, (), [Step(name, inputs, 0, inputs - 1)], kind)
    assert compiled is not None

    def function(*args: Any) -> Any:
        return compiled.function(*args)

    return function


def inputs_of(name: str, size: int = 20_011) -> list[Array]:
    """Numbers of all sizes, or those where the function is no limit; the same ones each time."""
    rng = np.random.default_rng(list(name.encode()))
    spread = np.sign(rng.normal(size=size)) * np.exp2(rng.uniform(-30, 30, size))
    near = rng.uniform(-13, 13, size)
    count = 1 if name in OF_ONE else 2
    return [np.float32(np.where(rng.integers(0, 2, size), spread, near)) for _ in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MEANT)
@np.errstate(all="ignore")
def test_a_function_is_what_it_is_called(name: str, kind: int) -> None:
    """Up to some units of the last digit."""
    function, units = MEANT[name]
    inputs = inputs_of(name)
    got = made(name, kind)(*inputs)
    want = function(*[x.astype(np.float64) for x in inputs])
    assert got.dtype == np.float32
    with np.errstate(all="ignore"):
        nearest = want.astype(np.float32)
    is_number = np.isfinite(nearest)
    np.testing.assert_array_equal(got[~is_number], nearest[~is_number])
    missed = np.abs(got.astype(np.float64) - want)[is_number]
    worth = np.maximum(np.spacing(np.abs(nearest[is_number])), 2.0**-149).astype(np.float64)
    if name in OF_POWERS:
        worth = np.maximum(worth, 2.0**-23)
    is_near = missed <= units * worth
    if name == "Sigmoid":  # nothing where 1 / it is too much
        is_near |= want < 2.0**-126
    assert is_near.all(), (missed / worth).max()


def test_every_function_is_tested() -> None:
    """By the name that steps have for it."""
    assert set(MEANT) == {*OF_ONE, *OF_TWO}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MEANT)
@np.errstate(all="ignore")
def test_numbers_that_are_none_and_limits(name: str, kind: int) -> None:
    """As the definition has them, NaN among them."""
    function, _ = MEANT[name]
    pairs = np.meshgrid(SPECIAL, SPECIAL)[: 1 if name in OF_ONE else 2]
    got = made(name, kind)(*pairs)
    want = function(*[x.astype(np.float64) for x in pairs]).astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-44)


@pytest.mark.parametrize("name", MEANT)
@np.errstate(all="ignore")
def test_the_bits_are_the_same_wherever_an_element_is(name: str) -> None:
    """In whole vectors or what is left of one, in any layout, by itself, and on any thread."""
    function = made(name)
    inputs = inputs_of(name, 1000)
    whole = function(*inputs)
    for size in (1, 2, 7, 15, 16, 17, 33, 255, 256, 257, 600):
        part = function(*[x[3 : 3 + size] for x in inputs])
        assert part.tobytes() == whole[3 : 3 + size].tobytes()
    for layout in (lambda x: x[::-1], lambda x: x[::3], lambda x: x.reshape(8, 125).T[:, ::2]):
        assert function(*map(layout, inputs)).tobytes() == layout(whole).tobytes()
    for at in range(0, 1000, 97):
        single = function(*[x[at] for x in inputs])
        assert type(single) is np.float32
        assert single.tobytes() == whole[at].tobytes()
    in_place = inputs[0].copy()
    assert compiled_into(name, in_place, inputs).tobytes() == whole.tobytes()


def compiled_into(name: str, out: Array, inputs: list[Array]) -> Array:
    """The result written over the first input."""
    function = made(name)
    return np.asarray(function(out, *inputs[1:], out))


@pytest.mark.parametrize("name", ["Exp", "Tanh", "Sigmoid", "Erf", "Erfc", "Div"])
@np.errstate(all="ignore")
def test_kinds_that_multiply_and_add_at_once_agree(name: str) -> None:
    """To the last bit."""
    inputs = inputs_of(name)
    results = {made(name, kind)(*inputs).tobytes() for kind in KINDS if kind}
    assert len(results) <= 1


def test_broadcasting_and_errors_are_numpys() -> None:
    """Types are not cast, and shapes must fit."""
    add = made("Add")
    x, y = np.ones((3, 1), np.float32), np.float32([1, 2])
    np.testing.assert_array_equal(add(x, y), np.float32([[2, 3]] * 3))
    assert add(x[:0], y).shape == (0, 2)
    with pytest.raises(ValueError, match="broadcast"):
        add(np.ones(3, np.float32), y)
    with pytest.raises(TypeError):
        add(x.astype(np.float64), y)


@np.errstate(all="ignore")
def test_a_program_is_its_steps() -> None:
    """Inputs of any layout, constants, and registers that are used again."""
    steps = [
        Step("Mul", 4, 0, 3),  # x * 0.75
        Step("Tanh", 5, 1, 1),
        Step("Add", 4, 4, 5),
        Step("Sub", 5, 4, 2),
        Step("Div", 4, 4, 5),
    ]
    program = compile_steps("some", 3, [0.75], steps)
    assert program is not None
    x, y = RNG.normal(size=(2, 40, 33)).astype(np.float32)
    z = np.float32(RNG.normal(size=33))
    total = x.T * np.float32(0.75) + made("Tanh")(y.T)
    want = total / (total - z[:, None])
    assert program.function(x.T, y.T, z[:, None]).tobytes() == want.tobytes()


def test_too_many_registers_are_refused() -> None:
    """There is no memory for them."""
    with pytest.raises(ValueError, match="registers"):
        compile_steps("large", 1, (), [Step("Neg", REGISTERS, 0, 0)])


@pytest.fixture
def _helped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads of the library help, whatever else goes on."""
    monkeypatch.setattr(type(contention), "helpers", lambda _self, _most: 3)
    contention._tell()
    yield
    monkeypatch.undo()
    contention._tell()


@pytest.mark.usefixtures("_helped")
@np.errstate(all="ignore")
def test_threads_change_no_bit() -> None:
    """Long arrays are shared; many callers at once each get their own."""
    x = np.float32(RNG.normal(size=1_000_003))
    sigmoid = made("Sigmoid")
    want = np.concatenate([sigmoid(x[i : i + 999]) for i in range(0, x.size, 999)])
    wrong: list[int] = []

    def ask(number: int) -> None:
        if any(sigmoid(x).tobytes() != want.tobytes() for _ in range(4)):
            wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("is_on", [False, True])
def test_denormal_numbers_are_what_they_are_for_the_caller(is_on: bool) -> None:
    """Zeros where it flushes them."""
    tiny = np.full(100, 1e-40, np.float32)
    with flushing(is_on):
        got = made("Add")(tiny, tiny)
    assert (got == 0).all() == is_on


def test_a_function_is_made_once() -> None:
    """So that whoever compiles can tell it by what it is."""
    assert function_named("Tanh") is function_named("Tanh")
