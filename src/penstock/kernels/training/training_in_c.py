"""One step of most optimisers in C.

In:   the node's attributes.
Out:  what ``training_in_place`` has for the op, of float32, bit for bit the same; None where there
      is none, or no library.
Not:  registers no kernel; knows neither references nor resources, and no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.c.optimisers import OPTIMISERS, optimiser

#: Fills arrays for the variable and its slots; the others are their values and then the op's other
#: inputs.
Fill: TypeAlias = Callable[..., None]
#: The gradient and the optimiser's rates, of the op's inputs behind its slots.
_Read: TypeAlias = Callable[..., Sequence[Value]]

_ONE: Final = np.float32(1)


class _StepInC(NamedTuple):
    """How an op is done by the library."""

    #: One of ``OPTIMISERS``.
    way: str
    read: _Read


def fill_in_c(name: str, attrs: Attrs) -> Fill | None:
    """What fills arrays for the new variable and slots of an op, by its name without prefixes."""
    if name not in _STEPS or not attrs.accelerate or attrs.dtype("T") is not dtypes.float32:
        return None
    way, read = _STEPS[name](attrs)
    step = optimiser(way)
    if step is None:
        return None
    count, _ = OPTIMISERS[way]

    def fill(news: Sequence[Array], *inputs: Value) -> None:
        step(*inputs[:count], *read(*inputs[count:]), *news)

    return fill


def _gradient_descent(_attrs: Attrs) -> _StepInC:
    return _StepInC("gradient_descent", lambda alpha, delta: (delta, alpha))


def _momentum(attrs: Attrs) -> _StepInC:
    way = "nesterov_momentum" if attrs.bool("use_nesterov") else "momentum"
    return _StepInC(way, lambda lr, grad, momentum: (grad, lr, momentum))


def _keras_momentum(attrs: Attrs) -> _StepInC:
    way = "nesterov_keras_momentum" if attrs.bool("use_nesterov") else "keras_momentum"
    return _StepInC(way, lambda lr, grad, momentum: (grad, lr, momentum))


def _adagrad(attrs: Attrs) -> _StepInC:
    way = "adagrad" if attrs.bool("update_slots") else "still_adagrad"
    return _StepInC(way, lambda lr, grad: (grad, lr))


def _adagrad_v2(attrs: Attrs) -> _StepInC:
    way = "adagrad_v2" if attrs.bool("update_slots") else "still_adagrad_v2"
    return _StepInC(way, lambda lr, epsilon, grad: (grad, lr, epsilon))


def _rms_prop(attrs: Attrs) -> _StepInC:
    is_centered = "Centered" in attrs.op.name

    def read(
        lr: Value, rho: Value, momentum: Value, epsilon: Value, grad: Value
    ) -> Sequence[Value]:
        return grad, lr, momentum, epsilon, _ONE - rho

    return _StepInC("centered_rms_prop" if is_centered else "rms_prop", read)


def _adam(attrs: Attrs) -> _StepInC:
    is_nesterov = attrs.bool("use_nesterov")

    def read(
        beta1_power: Value,
        beta2_power: Value,
        lr: Value,
        beta1: Value,
        beta2: Value,
        epsilon: Value,
        grad: Value,
    ) -> Sequence[Value]:
        alpha = lr * np.sqrt(_ONE - beta2_power) / (_ONE - beta1_power)
        rates = grad, alpha, epsilon, _ONE - beta1, _ONE - beta2
        return (*rates, beta1) if is_nesterov else rates

    return _StepInC("nesterov_adam" if is_nesterov else "adam", read)


_STEPS: Final[dict[str, Callable[[Attrs], _StepInC]]] = {
    "Adagrad": _adagrad,
    "AdagradV2": _adagrad_v2,
    "Adam": _adam,
    "CenteredRMSProp": _rms_prop,
    "GradientDescent": _gradient_descent,
    "KerasMomentum": _keras_momentum,
    "Momentum": _momentum,
    "RMSProp": _rms_prop,
}
