"""Optimisers' steps in C are those of numpy, bit for bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.c.library import library, loaded
from penstock.kernels.c.optimisers import OPTIMISERS, optimiser
from penstock.kernels.training.training_in_c import fill_in_c
from penstock.kernels.training.training_in_place import FILLS
from support.ops import node_of

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(31)
#: By the op: slots besides the variable, and scalars and the gradient in their order.
KINDS: dict[str, tuple[int, list[Any]]] = {
    "GradientDescent": (0, [0.1, "grad"]),
    "Momentum": (1, [0.1, "grad", 0.9]),
    "Adam": (2, [0.5, 0.7, 0.01, 0.9, 0.999, 1e-7, "grad"]),
    "KerasMomentum": (1, [0.1, "grad", 0.9]),
    "Adagrad": (1, [0.1, "grad"]),
    "AdagradV2": (1, [0.1, 1e-3, "grad"]),
    "RMSProp": (2, [0.1, 0.9, 0.8, 1e-7, "grad"]),
    "CenteredRMSProp": (3, [0.1, 0.9, 0.8, 1e-7, "grad"]),
    "AdamWithAmsgrad": (3, [0.5, 0.7, 0.01, 0.9, 0.999, 1e-7, "grad"]),
}
#: Those that there are for resources only.
OF_RESOURCES = {"KerasMomentum", "AdamWithAmsgrad"}


def facts_of(name: str, *, accelerate: bool = True, **attrs: Any) -> Attrs:
    """The attributes of a node that updates a resource."""
    slots, rest = KINDS[name]
    values = [np.float32(0) for _ in rest]
    handles = [np.float32(0)] * (1 + slots)
    prefix = "Resource" if name in OF_RESOURCES else ""
    facts, _ = node_of(f"{prefix}Apply{name}", [*handles, *values], attrs)
    return dataclasses.replace(facts, accelerate=accelerate)


@pytest.mark.parametrize("shape", [(), (1,), (7, 5), (900, 79), (0, 3)])
@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("GradientDescent", {}),
        *((f"{keras}Momentum", {"use_nesterov": way}) for keras in ("", "Keras") for way in (0, 1)),
        *((f"Adagrad{v}", {"update_slots": way}) for v in ("", "V2") for way in (False, True)),
        ("RMSProp", {}),
        ("CenteredRMSProp", {}),
        ("Adam", {"use_nesterov": False}),
        ("Adam", {"use_nesterov": True}),
    ],
)
@np.errstate(all="ignore")  # as in steps: what makes the last vector whole may be 0 / 0
def test_the_bits_are_numpys(name: str, attrs: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Of variables of any rank."""
    count, rest = KINDS[name]
    facts = facts_of(name, **attrs)
    fill = fill_in_c(name, facts)
    assert fill is not None

    def floats() -> Any:
        made = RNG.uniform(0.1, 2, shape).astype(np.float32)
        return made if shape else made[()]

    olds = [floats() for _ in range(1 + count)]
    given = [floats() if each == "grad" else np.float32(each) for each in rest]
    results = []
    for way in (fill, FILLS[name](facts, np.float32)):
        news = [np.empty(shape, np.float32) for _ in olds]
        way(news, *olds, *given)
        results.append([new.tobytes() for new in news])
    assert results[0] == results[1]


@pytest.mark.parametrize("name", OPTIMISERS)
@np.errstate(all="ignore")
def test_all_kinds_of_vectors_and_layouts_give_the_same_bits(name: str) -> None:
    """Arrays with gaps, and rates for each element, which no op has."""
    arrays, rates = OPTIMISERS[name]
    step = optimiser(name)
    assert step is not None
    wide = RNG.uniform(0.1, 2, (arrays + 1, 21, 6)).astype(np.float32)
    numbers = [np.float32(rate) for rate in RNG.uniform(0.1, 0.9, rates)]
    expected = np.array(step(*wide[:, :, ::2].copy(), *numbers))
    for kind in range(loaded().penstock_kinds()):
        of_kind = optimiser(name, kind)
        assert of_kind is not None
        np.testing.assert_array_equal(of_kind(*wide[:, :, ::2], *numbers), expected)
        each = [np.full((21, 3), number) for number in numbers]
        np.testing.assert_array_equal(of_kind(*wide[:, :, ::2].copy(), *each), expected)


@np.errstate(all="ignore")
def test_new_arrays_may_be_the_old_ones() -> None:
    """As for all functions of numpy that work element by element."""
    step = optimiser("adam")
    assert step is not None
    olds = [RNG.uniform(0.1, 2, 1003).astype(np.float32) for _ in range(3)]
    grad, rates = olds[0] * olds[1], [np.float32(0.1)] * 4
    expected = step(*olds, grad, *rates)
    found = step(*olds, grad, *rates, *olds)
    for one, other, old in zip(expected, found, olds, strict=True):
        assert other is old
        np.testing.assert_array_equal(one, other)


def test_others_are_for_numpy() -> None:
    """Other optimisers, other types, and whoever wants no kernels in C."""
    facts = facts_of("Adam")
    assert fill_in_c("Adam", facts) is not None
    assert fill_in_c("AdamWithAmsgrad", facts_of("AdamWithAmsgrad")) is None
    assert fill_in_c("Adam", facts_of("Adam", accelerate=False)) is None
    wide = dataclasses.replace(facts, values={**facts.values, "T": dtypes.float64})
    assert fill_in_c("Adam", wide) is None
