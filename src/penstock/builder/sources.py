"""Tensors out of nothing: constants and placeholders.

In:   Python values, types and shapes.
Out:  nodes without inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.builder import constants
from penstock.builder.graph import apply
from penstock.builder.operators import Operators
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.core.given import has_leaf
from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.core.values import Value, as_value, freeze
from penstock.defs.attrs import TensorAttr
from penstock.errors import InvalidArgumentError


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """A tensor that has the same value in every step.

    ``dtype`` is the literal's own type unless given.  With a ``shape``, the elements are
    put into that form, or a single one is repeated.

    Raises:
        TypeError: a tensor cannot hold ``value``.
        InvalidArgumentError: ``value`` cannot become a ``dtype`` without loss, or does not
            fit the shape.

    """
    if dtype is None:
        held, own = constants.natural(value)
    else:
        own = dtypes.as_dtype(dtype)
        held = constants.convert(value, own)
    if shape is not None:
        held = _reshape(held, shape)
    result: Tensor = apply("Const", TensorAttr(value=held), own, name=name)
    return result


def _reshape(value: Value, shape: Any) -> Value:
    wanted = TensorShape.of((shape,) if isinstance(shape, int) else shape).as_tuple()
    array = value if isinstance(value, np.ndarray) else _as_array(value)
    if array.size == 1:
        return freeze(as_value(np.full(wanted, array.reshape(())[()], array.dtype)))
    try:
        return freeze(array.reshape(wanted))
    except ValueError:
        raise InvalidArgumentError(
            f"{array.size} elements do not fill a constant of shape {wanted}"
        ) from None


def _as_array(value: Value) -> np.ndarray[Any, np.dtype[Any]]:
    return np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)


def placeholder(dtype: Any, shape: Any = None, name: str = "Placeholder") -> Tensor:
    """A tensor whose value every step has to be given; see ``feed``."""
    wanted = UNKNOWN if shape is None else shape
    result: Tensor = apply("Placeholder", dtype, shape=wanted, name=name)
    return result


def as_tensor(value: Any, dtype: Any = None, name: str = "Const") -> Tensor:
    """A tensor as it is, what stands for one, or a new constant.

    Raises:
        InvalidArgumentError: a tensor is of another type than ``dtype``, or a literal cannot
            become one without loss.

    """
    if isinstance(value, Operators):
        tensor = value.as_tensor()
        if dtype is not None and tensor.dtype.base is not dtypes.as_dtype(dtype):
            raise InvalidArgumentError(
                f"{tensor.name} is {tensor.dtype}, but must be {dtype}",
                next_step="convert it with ops.cast",
            )
        return tensor
    if isinstance(value, (list, tuple)) and has_leaf(value, Operators):
        packed: Tensor = apply("Pack", list(value), T=dtype, name="packed")
        return packed
    return constant(value, dtype, name=name)
