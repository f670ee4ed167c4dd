"""One step of the optimisers used most, written into memory that is given.

In:   the node's attributes and the scalar type of constants.
Out:  a function that fills arrays for the new variable and slots, from the old ones and the
      op's other inputs in their order.
Not:  registers no kernel; knows neither references nor resources, and no rows.

These optimisers wait for memory and not for arithmetic, so every pass over an array counts,
and new arrays hold what is between.  Every operation rounds to the variable's own type, half
precision included.  Variables of rank 0 are numpy scalars, which only ``+=`` and its like can
change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy import add, divide, multiply, sqrt, square, subtract

from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs

#: Arrays for the variable and its slots.
News: TypeAlias = Sequence[Array]
#: Fills its first argument; the others are what a ``Step`` of ``training_formulas`` takes.
Fill: TypeAlias = Callable[..., None]
#: Makes constants of the variable's type.
_Number: TypeAlias = Callable[..., Any]


def _towards(new: Array, old: Value, goal: Value, part: Value) -> None:
    """``old``, moved a part of the way to ``goal``, which may be ``new``."""
    subtract(goal, old, new)
    multiply(new, part, new)
    add(new, old, new)


def _back(new: Array, var: Value, scale: Value) -> None:
    """``var - new / scale``."""
    divide(new, scale, new)
    subtract(var, new, new)


def _gradient_descent(_attrs: Attrs, _number: _Number) -> Fill:
    """Against the gradient."""

    def fill(news: News, var: Value, alpha: Value, delta: Value) -> None:
        (moved,) = news
        multiply(delta, alpha, moved)
        subtract(var, moved, moved)

    return fill


def _momentum(attrs: Attrs, _number: _Number) -> Fill:
    """Sutskever et al., On the importance of initialization and momentum, 2013."""
    is_nesterov = attrs.bool("use_nesterov")

    def fill(news: News, var: Value, accum: Value, lr: Value, grad: Value, momentum: Value) -> None:
        moved, sums = news
        multiply(accum, momentum, sums)
        add(sums, grad, sums)
        if is_nesterov:
            multiply(sums, momentum, moved)
            multiply(moved, lr, moved)
            add(grad * lr, moved, moved)
        else:
            multiply(sums, lr, moved)
        subtract(var, moved, moved)

    return fill


def _keras_momentum(attrs: Attrs, _number: _Number) -> Fill:
    """Momentum whose accumulator has the learning rate, and the sign, in it."""
    is_nesterov = attrs.bool("use_nesterov")

    def fill(news: News, var: Value, accum: Value, lr: Value, grad: Value, momentum: Value) -> None:
        moved, sums = news
        multiply(accum, momentum, sums)
        multiply(grad, lr, moved)
        subtract(sums, moved, sums)
        if is_nesterov:
            subtract(sums * momentum, moved, moved)
            add(var, moved, moved)
        else:
            add(var, sums, moved)

    return fill


def _add_square(new: Array, accum: Value, grad: Value, has_update: Any) -> None:
    """``accum`` with the gradient's square, or as it is."""
    if has_update:
        square(grad, new)
        add(accum, new, new)
    else:
        new[...] = accum


def _adagrad(attrs: Attrs, _number: _Number) -> Fill:
    """Duchi, Hazan and Singer, Adaptive subgradient methods, 2011."""
    has_update = attrs.bool("update_slots")

    def fill(news: News, var: Value, accum: Value, lr: Value, grad: Value) -> None:
        moved, squares = news
        _add_square(squares, accum, grad, has_update)
        multiply(grad, lr, moved)
        _back(moved, var, sqrt(squares))

    return fill


def _adagrad_v2(attrs: Attrs, _number: _Number) -> Fill:
    """Adagrad that never divides by less than epsilon."""
    has_update = attrs.bool("update_slots")

    def fill(news: News, var: Value, accum: Value, lr: Value, epsilon: Value, grad: Value) -> None:
        moved, squares = news
        _add_square(squares, accum, grad, has_update)
        scale = sqrt(squares)
        scale += epsilon
        multiply(grad, lr, moved)
        _back(moved, var, scale)

    return fill


def _adam(attrs: Attrs, number: _Number) -> Fill:
    """Kingma and Ba, Adam: a method for stochastic optimization, 2015."""
    is_nesterov, one = attrs.bool("use_nesterov"), number(1)

    def fill(
        news: News,
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
        _towards(means, m, grad, rest)
        square(grad, squares)
        _towards(squares, v, squares, one - beta2)
        scale = sqrt(squares)
        scale += epsilon
        alpha = lr * sqrt(one - beta2_power) / (one - beta1_power)
        if is_nesterov:
            multiply(means, beta1, moved)
            add(moved, grad * rest, moved)
            multiply(moved, alpha, moved)
        else:
            multiply(means, alpha, moved)
        _back(moved, var, scale)

    return fill


def _adam_with_amsgrad(_attrs: Attrs, number: _Number) -> Fill:
    """Reddi, Kale and Kumar, On the convergence of Adam and beyond, 2018."""
    one = number(1)

    def fill(
        news: News,
        var: Value,
        m: Value,
        v: Value,
        vhat: Value,
        beta1_power: Value,
        beta2_power: Value,
        lr: Value,
        beta1: Value,
        beta2: Value,
        epsilon: Value,
        grad: Value,
    ) -> None:
        moved, means, squares, largest = news
        _towards(means, m, grad, one - beta1)
        square(grad, squares)
        _towards(squares, v, squares, one - beta2)
        np.maximum(vhat, squares, out=largest)
        scale = sqrt(largest)
        scale += epsilon
        multiply(means, lr * sqrt(one - beta2_power) / (one - beta1_power), moved)
        _back(moved, var, scale)

    return fill


def _rms_prop(_attrs: Attrs, number: _Number) -> Fill:
    """Tieleman and Hinton, Lecture 6.5, 2012, with momentum."""
    one = number(1)

    def fill(
        news: News,
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
        square(grad, squares)
        _towards(squares, ms, squares, one - rho)
        _by_momentum(moved, sums, squares + epsilon, mom, momentum, grad, lr)
        subtract(var, sums, moved)

    return fill


def _by_momentum(
    spare: Array,
    new: Array,
    variance: Value,
    mom: Value,
    momentum: Value,
    grad: Value,
    lr: Value,
) -> None:
    """``mom * momentum`` and the gradient by its deviation; ``variance`` is overwritten."""
    multiply(grad, lr, spare)
    divide(spare, sqrt(variance, variance) if variance.ndim else sqrt(variance), spare)
    multiply(mom, momentum, new)
    add(new, spare, new)


def _centered_rms_prop(_attrs: Attrs, number: _Number) -> Fill:
    """RMSProp by the gradients' variance, which is their mean square less their mean's."""
    one = number(1)

    def fill(
        news: News,
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
        square(grad, squares)
        _towards(squares, ms, squares, one - rho)
        _towards(means, mg, grad, one - rho)
        variance = squares - square(means)
        variance += epsilon
        _by_momentum(moved, sums, variance, mom, momentum, grad, lr)
        subtract(var, sums, moved)

    return fill


#: By the op's name without ``Resource``, ``Sparse`` and ``Apply``.
FILLS: Final[dict[str, Callable[[Attrs, _Number], Fill]]] = {
    "Adagrad": _adagrad,
    "AdagradV2": _adagrad_v2,
    "Adam": _adam,
    "AdamWithAmsgrad": _adam_with_amsgrad,
    "CenteredRMSProp": _centered_rms_prop,
    "GradientDescent": _gradient_descent,
    "KerasMomentum": _keras_momentum,
    "Momentum": _momentum,
    "RMSProp": _rms_prop,
}
