"""One step of most optimisers, as programs in C.

In:   the node's attributes.
Out:  what ``training_in_place`` has for the op, of float32, bit for bit the same; None where there
      is none, or no library.
Not:  registers no kernel; knows neither references nor resources, and no rows.

Each new array is written in one pass over what it follows from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.c.programs import Step, compile_steps, lasting

#: Arrays for the variable and its slots.
_News = Sequence[Array]
#: Fills its first argument.
_Fill = Callable[..., None]
#: A product less another one, and a gradient by its deviation that is added to what goes on.
_DIFFERENCE: Final = ("Mul x old factor", "Mul y values other")
_BY_DEVIATION: Final = (
    *("Mul x grad lr", "Sqrt y y", "Div x x y", "Mul y mom momentum", "Add x y x"),
)
#: Programs by their names: what they take, and lines of a function, its target and its operands.
_PROGRAMS: Final = {
    "towards": ("old goal part", "Sub x goal old", "Mul x x part", "Add x x old"),
    "towards_square": (
        "old grad part",
        *("Square x grad", "Sub x x old", "Mul x x part", "Add x x old"),
    ),
    "less": ("var factor values", "Mul x values factor", "Sub x var x"),
    "plus": ("values factor other", "Mul x values factor", "Add x x other"),
    "adam": (
        "var means squares alpha epsilon",
        *("Mul x means alpha", "Sqrt y squares", "Add y y epsilon", "Div x x y", "Sub x var x"),
    ),
    "adam_nesterov": (
        "var means squares alpha epsilon grad beta1 rest",
        *("Mul x means beta1", "Mul y grad rest", "Add x x y", "Mul x x alpha"),
        *("Sqrt y squares", "Add y y epsilon", "Div x x y", "Sub x var x"),
    ),
    "sum": ("old more", "Add x old more"),
    "difference": ("old less", "Sub x old less"),
    "plus_square": ("old grad", "Square x grad", "Add x old x"),
    "minus_product": ("old factor values other", *_DIFFERENCE, "Sub x x y"),
    "keras_nesterov": (
        "old factor values other var",
        *(*_DIFFERENCE, "Sub x x y", "Add x var x"),
    ),
    "nesterov": (
        "var sums momentum lr grad",
        *("Mul x sums momentum", "Mul x x lr", "Mul y grad lr", "Add x y x", "Sub x var x"),
    ),
    "adagrad": (
        "var squares grad lr",
        "Mul x grad lr",
        "Sqrt y squares",
        "Div x x y",
        "Sub x var x",
    ),
    "adagrad_v2": (
        "var squares grad lr epsilon",
        *("Mul x grad lr", "Sqrt y squares", "Add y y epsilon", "Div x x y", "Sub x var x"),
    ),
    "rms_prop": (
        "mom momentum grad lr squares epsilon",
        *("Add y squares epsilon", *_BY_DEVIATION),
    ),
    "centered_rms_prop": (
        "mom momentum grad lr squares epsilon means",
        *("Square y means", "Sub y squares y", "Add y y epsilon", *_BY_DEVIATION),
    ),
}


def fill_in_c(name: str, attrs: Attrs) -> _Fill | None:
    """What fills arrays for the new variable and slots of an op, by its name without prefixes."""
    if name not in _FILLS or not attrs.accelerate or attrs.dtype("T") is not dtypes.float32:
        return None
    return None if _program("less") is None else _FILLS[name](attrs)


@functools.cache
def _program(name: str) -> Any:
    """A program as numpy's function; None if there is no library."""
    inputs, *lines = _PROGRAMS[name]
    places = {word: place for place, word in enumerate(inputs.split())}
    steps = []
    for line in lines:
        function, target, first, *second = line.split()
        operands = [places[operand] for operand in (first, *(second or [first]))]
        steps.append(Step(function, places.setdefault(target, len(places)), *operands))
    return lasting(compile_steps(name, len(inputs.split()), (), steps))


def _gradient_descent(_attrs: Attrs) -> _Fill:
    less = _program("less")

    def fill(news: _News, var: Value, alpha: Value, delta: Value) -> None:
        less(var, alpha, delta, news[0])

    return fill


def _momentum(attrs: Attrs) -> _Fill:
    plus, less, nesterov = map(_program, ("plus", "less", "nesterov"))
    is_nesterov = attrs.bool("use_nesterov")

    def fill(
        news: _News, var: Value, accum: Value, lr: Value, grad: Value, momentum: Value
    ) -> None:
        moved, sums = news
        plus(accum, momentum, grad, sums)
        if is_nesterov:
            nesterov(var, sums, momentum, lr, grad, moved)
        else:
            less(var, lr, sums, moved)

    return fill


def _keras_momentum(attrs: Attrs) -> _Fill:
    minus_product, nesterov, add = map(_program, ("minus_product", "keras_nesterov", "sum"))
    is_nesterov = attrs.bool("use_nesterov")

    def fill(
        news: _News, var: Value, accum: Value, lr: Value, grad: Value, momentum: Value
    ) -> None:
        moved, sums = news
        minus_product(accum, momentum, grad, lr, sums)
        if is_nesterov:
            nesterov(sums, momentum, grad, lr, var, moved)
        else:
            add(var, sums, moved)

    return fill


def _adagrad(attrs: Attrs) -> _Fill:
    plus_square, has_update = _program("plus_square"), attrs.bool("update_slots")
    step = _program("adagrad_v2" if attrs.op.name.endswith("V2") else "adagrad")

    def fill(news: _News, var: Value, accum: Value, lr: Value, *rest: Value) -> None:
        moved, squares = news
        *epsilon, grad = rest
        if has_update:
            plus_square(accum, grad, squares)
        else:
            squares[...] = accum
        step(var, squares, grad, lr, *epsilon, moved)

    return fill


def _rms_prop(_attrs: Attrs) -> _Fill:
    towards_square, by_deviation = _program("towards_square"), _program("rms_prop")
    subtract, one = _program("difference"), np.float32(1)

    def fill(
        news: _News,
        var: Value,
        ms: Value,
        mom: Value,
        lr: Value,
        rho: Value,
        momentum: Value,
        epsilon: Value,
        grad: Value,
    ) -> None:
        moved, squares, sums = news
        towards_square(ms, grad, one - rho, squares)
        by_deviation(mom, momentum, grad, lr, squares, epsilon, sums)
        subtract(var, sums, moved)

    return fill


def _centered_rms_prop(_attrs: Attrs) -> _Fill:
    towards, towards_square = _program("towards"), _program("towards_square")
    by_deviation, subtract = _program("centered_rms_prop"), _program("difference")
    one = np.float32(1)

    def fill(
        news: _News,
        var: Value,
        mg: Value,
        ms: Value,
        mom: Value,
        lr: Value,
        rho: Value,
        momentum: Value,
        epsilon: Value,
        grad: Value,
    ) -> None:
        moved, means, squares, sums = news
        towards_square(ms, grad, one - rho, squares)
        towards(mg, grad, one - rho, means)
        by_deviation(mom, momentum, grad, lr, squares, epsilon, means, sums)
        subtract(var, sums, moved)

    return fill


def _adam(attrs: Attrs) -> _Fill:
    towards, towards_square = _program("towards"), _program("towards_square")
    is_nesterov, one = attrs.bool("use_nesterov"), np.float32(1)
    step = _program("adam_nesterov" if is_nesterov else "adam")

    def fill(
        news: _News,
        var: Value,
        m: Value,
        v: Value,
        beta1_power: Value,
        beta2_power: Value,
        lr: Value,
        beta1: Value,
        beta2: Value,
        epsilon: Value,
        grad: Value,
    ) -> None:
        moved, means, squares = news
        rest = one - beta1
        towards(m, grad, rest, means)
        towards_square(v, grad, one - beta2, squares)
        alpha = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
        more = (grad, beta1, rest) if is_nesterov else ()
        step(var, means, squares, alpha, epsilon, *more, moved)

    return fill


_FILLS: Final[dict[str, Callable[[Attrs], _Fill]]] = {
    "Adagrad": _adagrad,
    "AdagradV2": _adagrad,
    "Adam": _adam,
    "CenteredRMSProp": _centered_rms_prop,
    "GradientDescent": _gradient_descent,
    "KerasMomentum": _keras_momentum,
    "Momentum": _momentum,
    "RMSProp": _rms_prop,
}
