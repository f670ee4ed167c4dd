"""One step of the optimisers that are used little, as formulas.

In:   the node's attributes and the scalar type of constants.
Out:  a function from the variable, its slots, and the op's other inputs in their order, to
      the new variable and slots.
Not:  registers no kernel; knows neither references nor resources, and no rows.

Everything is element by element, so the same formula serves whole variables and rows of
them.  Every operation rounds to the variable's own type, half precision included.  New
arrays are built up in place, since optimisers wait for memory and not for arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs

#: What is updated: the variable first, then its slots.
Slots: TypeAlias = tuple[Value, ...]
Update: TypeAlias = Callable[..., Slots]
#: Makes constants of the variable's type.
_Number: TypeAlias = Callable[..., Any]


def _towards(old: Value, goal: Value, part: Value) -> Value:
    """``old``, moved a part of the way to ``goal``."""
    moved = goal - old
    moved *= part
    moved += old
    return moved


def _shrink(values: Value, l1: Value) -> Value:
    """Towards zero by ``l1``, and no further."""
    return np.sign(values) * np.maximum(np.abs(values) - l1, l1.dtype.type(0))


def _proximal(var: Value, rate: Value, gradient: Value, l1: Value, l2: Value) -> Value:
    """A step of descent, and then the proximal operator of the penalties l1 and l2."""
    moved, one = var - rate * gradient, l2.dtype.type(1)
    if l1 > 0:
        moved = _shrink(moved, rate * l1)
    return moved / (one + rate * l2)


def _proximal_gradient_descent(_attrs: Attrs, _number: _Number) -> Update:
    """Duchi and Singer, Efficient learning using forward-backward splitting, 2009."""

    def step(var: Value, alpha: Value, l1: Value, l2: Value, delta: Value) -> Slots:
        return (_proximal(var, alpha, delta, l1, l2),)

    return step


def _proximal_adagrad(_attrs: Attrs, _number: _Number) -> Update:
    """Adagrad's step, then the proximal operator of the penalties."""

    def step(var: Value, accum: Value, lr: Value, l1: Value, l2: Value, grad: Value) -> Slots:
        accum = accum + grad * grad
        return _proximal(var, lr / np.sqrt(accum), grad, l1, l2), accum

    return step


def _adagrad_da(_attrs: Attrs, number: _Number) -> Update:
    """Adagrad by dual averaging: the variable follows from the sums of all gradients."""

    def step(
        _var: Value,
        total: Value,
        squares: Value,
        grad: Value,
        lr: Value,
        l1: Value,
        l2: Value,
        global_step: Value,
    ) -> Slots:
        steps = number(global_step)
        total, squares = total + grad, squares + grad * grad
        shrunk = _shrink(total, l1 * steps) if l1 > 0 else total
        return -lr * shrunk / (l2 * steps * lr + np.sqrt(squares)), total, squares

    return step


def _adadelta(_attrs: Attrs, number: _Number) -> Update:
    """Zeiler, Adadelta: an adaptive learning rate method, 2012."""
    one = number(1)

    def step(
        var: Value, accum: Value, updates: Value, lr: Value, rho: Value, eps: Value, grad: Value
    ) -> Slots:
        accum = accum * rho + grad * grad * (one - rho)
        update = np.sqrt(updates + eps) / np.sqrt(accum + eps) * grad
        return var - update * lr, accum, updates * rho + update * update * (one - rho)

    return step


def _ftrl(attrs: Attrs, number: _Number) -> Update:
    """McMahan et al., Ad click prediction: a view from the trenches, 2013."""
    step, nothing = _ftrl_step(attrs, number), number(0)

    def ftrl(
        var: Value,
        accum: Value,
        linear: Value,
        grad: Value,
        lr: Value,
        l1: Value,
        l2: Value,
        power: Value,
    ) -> Slots:
        return step((var, accum, linear), grad, lr, (l1, l2, nothing), power)

    return ftrl


def _ftrl_v2(attrs: Attrs, number: _Number) -> Update:
    """Ftrl whose gradient also has that of a penalty on large values."""
    step = _ftrl_step(attrs, number)

    def ftrl(
        var: Value,
        accum: Value,
        linear: Value,
        grad: Value,
        lr: Value,
        l1: Value,
        l2: Value,
        shrinkage: Value,
        power: Value,
    ) -> Slots:
        return step((var, accum, linear), grad, lr, (l1, l2, shrinkage), power)

    return ftrl


def _ftrl_step(attrs: Attrs, number: _Number) -> Update:
    """The step, with the penalties l1, l2 and shrinkage as one argument."""
    is_scaled, two, one, zero = attrs.bool("multiply_linear_by_lr"), number(2), number(1), number(0)

    def step(slots: Slots, grad: Value, lr: Value, penalties: Slots, power: Value) -> Slots:
        var, accum, linear = slots
        l1, l2, shrinkage = penalties
        shrunk = grad + two * shrinkage * var if shrinkage > 0 else grad
        squares = accum + grad * grad
        new, old = (np.sqrt(s) if power == -0.5 else s**-power for s in (squares, accum))
        inner, outer = (lr, one) if is_scaled else (one, lr)
        linear = linear + inner * shrunk - (new - old) / outer * var
        bound = l1 * inner
        curvature = new / outer + two * l2 * inner
        away = np.maximum(np.minimum(linear, bound), -bound) - linear
        changed = np.where(np.abs(linear) > bound, away / curvature, zero)
        return changed.astype(linear.dtype, copy=False)[()], squares, linear

    return step


def _ada_max(_attrs: Attrs, number: _Number) -> Update:
    """Adam with the largest gradient instead of their squares' mean; the same paper."""
    one = number(1)

    def step(
        var: Value,
        m: Value,
        v: Value,
        beta1_power: Value,
        lr: Value,
        beta1: Value,
        beta2: Value,
        epsilon: Value,
        grad: Value,
    ) -> Slots:
        m, v = _towards(m, grad, one - beta1), np.maximum(v * beta2, np.abs(grad))
        return var - lr / (one - beta1_power) * (m / (v + epsilon)), m, v

    return step


def _add_sign(_attrs: Attrs, number: _Number) -> Update:
    """Bello et al., Neural optimizer search with reinforcement learning, 2017."""
    one = number(1)

    def step(
        var: Value, m: Value, lr: Value, alpha: Value, decay: Value, beta: Value, grad: Value
    ) -> Slots:
        m = m * beta + grad * (one - beta)
        agreement = np.sign(grad) * np.sign(m)
        return var - lr * (alpha + decay * agreement) * grad, m

    return step


def _power_sign(_attrs: Attrs, number: _Number) -> Update:
    """The same paper: steps grow and shrink by a power of the agreement."""
    one = number(1)

    def step(
        var: Value, m: Value, lr: Value, logbase: Value, decay: Value, beta: Value, grad: Value
    ) -> Slots:
        m = m * beta + grad * (one - beta)
        agreement = np.sign(grad) * np.sign(m)
        return var - lr * np.exp(logbase * decay * agreement) * grad, m

    return step


#: By the op's name without ``Resource``, ``Sparse`` and ``Apply``.
FORMULAS: Final[dict[str, Callable[[Attrs, _Number], Update]]] = {
    "AdaMax": _ada_max,
    "Adadelta": _adadelta,
    "AdagradDA": _adagrad_da,
    "AddSign": _add_sign,
    "Ftrl": _ftrl,
    "FtrlV2": _ftrl_v2,
    "PowerSign": _power_sign,
    "ProximalAdagrad": _proximal_adagrad,
    "ProximalGradientDescent": _proximal_gradient_descent,
}
