"""Choice between two values, element by element, and limits.

In:   a condition and two values of one type; or a value and its limits.
Out:  an array of the values' type.
Not:  chooses no control path (control_flow_ops).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value, as_value, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS, NUMBERS, SIGNED
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.select_clip import at_least, at_most, between, choose

_ELEMENTS: Final = NUMBERS | {dtypes.bool_, dtypes.string, dtypes.resource, dtypes.variant}


@kernel("SelectV2", types={"T": _ELEMENTS})
def make_select_v2(attrs: Attrs) -> Kernel:
    """The value t where the condition holds, e elsewhere, all three broadcast."""
    is_object = attrs.dtype("T").is_object

    def select(condition: Value, t: Value, e: Value) -> Value:
        # Three times as fast for scalars as a comparison of shapes.
        if type(condition) is np.bool_ and type(t) is type(e) is not np.ndarray:
            return t if condition else e
        if shape_of(condition) == () and shape_of(t) == shape_of(e):
            return t if condition else e
        if is_object:
            t, e = as_array(t), as_array(e)
        try:
            return as_value(choose(condition, t, e))
        except ValueError:
            shapes = [shape_text(shape_of(value)) for value in (condition, t, e)]
            raise ValueError(
                "condition {}, then {}, and else {} must be broadcastable".format(*shapes)
            ) from None

    return select


@kernel("Select", types={"T": _ELEMENTS})
def make_select(_: Attrs) -> Kernel:
    """The value t where the condition holds, e elsewhere; a vector of conditions chooses rows."""
    return _select


def _select(condition: Value, t: Value, e: Value) -> Value:
    rows, shape = shape_of(condition), shape_of(t)
    if shape != shape_of(e):
        raise ValueError(
            "'then' and 'else' must have the same size.  "
            f"but received: {shape_text(shape)} vs. {shape_text(shape_of(e))}"
        )
    if rows == ():
        return t if condition else e
    if rows != shape:
        _check_rows(rows, shape)
        condition = condition.reshape(rows + (1,) * (len(shape) - 1))
    return choose(condition, t, e)


def _check_rows(rows: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuse a condition that is not one row per row of the values."""
    if len(rows) != 1 or len(shape) == 1:
        raise ValueError(
            "Inputs to operation Select must have the same size and shape.  "
            f"Input 0: {shape_text(rows)} != input 1: {shape_text(shape)}"
        )
    if shape == ():
        raise ValueError("'then' must be at least a vector, but saw shape: []")
    if rows[0] != shape[0]:
        raise ValueError(
            "Number of batches of 'then' must match size of 'cond', "
            f"but saw: {shape[0]} vs. {rows[0]}"
        )


@kernel(
    "ClipByValue",
    types={"T": FLOATS | SIGNED | COMPLEX | {dtypes.uint8, dtypes.uint16}},
)
def make_clip_by_value(attrs: Attrs) -> Kernel:
    """The value within its limits, the lower of which wins; a limit that is NaN is none."""
    return _clip_complex if attrs.dtype("T").is_complex else _clip


def _clip(t: Value, low: Value, high: Value) -> Value:
    if low.shape == high.shape == ():
        # A comparison with itself finds NaN at a tenth of the cost of isnan.
        if low == low and high == high:
            return between(t, low, high)
        upper = at_most(t, high) if high == high else t
        return at_least(upper, low) if low == low else upper
    _check_limits(t, low, high)
    upper = np.where(t > high, high, t)
    return np.where(upper < low, low, upper)


def _clip_complex(t: Value, low: Value, high: Value) -> Value:
    """The real part within those of the limits, and no imaginary part."""
    return _clip(t.real, low.real, high.real).astype(t.dtype)


def _check_limits(t: Value, low: Value, high: Value) -> None:
    shapes: tuple[Any, ...] = (t.shape, ())
    if low.shape not in shapes or high.shape not in shapes:
        raise ValueError(
            "clip_value_min and clip_value_max must be either of the same shape as input, "
            f"or a scalar. input shape: {shape_text(t.shape)} clip_value_min shape: "
            f"{shape_text(low.shape)} clip_value_max shape: {shape_text(high.shape)}"
        )
