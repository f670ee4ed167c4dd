"""One node computed twice: by numpy's kernel, and by the faster way that is offered."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from penstock.kernels.accelerated import library
from penstock.kernels.accelerated.choice import Offer, plain_kernel
from penstock.kernels.api.registry import get_kernel
from support.ops import node_of


def offer_for(op_name: str, *inputs: Any, **attrs: Any) -> Offer | None:
    """What is offered for a node with such inputs and attributes."""
    facts, _ = node_of(op_name, inputs, attrs)
    make: Any = get_kernel(op_name, "CPU", facts.values).make
    offer: Offer | None = make.__wrapped__(facts)
    return offer


def faster(op_name: str, *inputs: Any, **attrs: Any) -> Any:
    """The faster way's own result, however small the inputs; it may be NotImplemented."""
    _, flat = node_of(op_name, inputs, attrs)
    offer = offer_for(op_name, *inputs, **attrs)
    assert offer is not None, f"nothing is offered for {op_name}"
    with np.errstate(all="ignore"):
        return offer.build(library.load())(*flat)


def plain(op_name: str, *inputs: Any, **attrs: Any) -> Any:
    """Numpy's result, which other tests compare with TensorFlow's."""
    facts, flat = node_of(op_name, inputs, attrs)
    with np.errstate(all="ignore"):
        return plain_kernel(dataclasses.replace(facts, accelerate=False))(*flat)


def assert_equal(op_name: str, *inputs: Any, **attrs: Any) -> None:
    """Both give the same shapes, types and, to float32's precision, numbers."""
    fast, slow = (way(op_name, *inputs, **attrs) for way in (faster, plain))
    assert fast is not NotImplemented
    pairs = zip(fast, slow, strict=True) if isinstance(slow, tuple) else [(fast, slow)]
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        scale = float(np.abs(other[np.isfinite(other)]).max(initial=1)) if other.ndim else 1.0
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5 * scale)


def frozen(array: Any) -> Any:
    """The array, read-only, as constants are."""
    array.setflags(write=False)
    return array
