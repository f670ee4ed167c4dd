"""One step of the optimisers used most, as programs in C.

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


def _momentum(attrs: Attrs) -> _Fill | None:
    if attrs.bool("use_nesterov"):
        return None
    plus, less = _program("plus"), _program("less")

    def fill(
        news: _News, var: Value, accum: Value, lr: Value, grad: Value, momentum: Value
    ) -> None:
        plus(accum, momentum, grad, news[1])
        less(var, lr, news[1], news[0])

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


_FILLS: Final[dict[str, Callable[[Attrs], _Fill | None]]] = {
    "Adam": _adam,
    "GradientDescent": _gradient_descent,
    "Momentum": _momentum,
}
