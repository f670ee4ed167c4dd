"""Comparisons, and the logic of booleans.

In:   two values of one element type, broadcast against each other.
Out:  booleans.
Not:  chooses nothing (select_ops).

Python's operators do what numpy's functions do, and a tenth as slowly on scalars.
"""

from __future__ import annotations

import functools
import operator
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, shape_of
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, QUANTIZED, REALS
from penstock.kernels.c.address import identities
from penstock.kernels.values.arrays import as_array, shape_text

_ORDERINGS: Final[dict[str, Kernel]] = {
    "Less": operator.lt,
    "LessEqual": operator.le,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
}
_EQUALITIES: Final[dict[str, Kernel]] = {"Equal": operator.eq, "NotEqual": operator.ne}
#: From so many texts on it is worth looking for those that are one object.
_MANY: Final = 256
_LOGIC: Final[dict[str, Kernel]] = {"LogicalAnd": operator.and_, "LogicalOr": operator.or_}


@kernel(*_ORDERINGS, types={"T": REALS})
def make_ordering(attrs: Attrs) -> Kernel:
    """Whether x is less (or greater) than y; never, if one of them is NaN."""
    return _ORDERINGS[attrs.op.name]


@kernel(*_EQUALITIES, types={"T": NUMBERS | QUANTIZED | {dtypes.bool_, dtypes.string}})
def make_equality(attrs: Attrs) -> Kernel:
    """Whether x equals y; without the error, shapes that do not match are just not equal."""
    compare = _equality_of(_EQUALITIES[attrs.op.name], attrs.dtype("T"))
    if attrs.bool("incompatible_shape_error"):
        return compare
    verdict = np.bool_(attrs.op.name == "NotEqual")

    def lenient(x: Value, y: Value) -> Value:
        try:
            return compare(x, y)
        except ValueError:
            return verdict

    return lenient


def _equality_of(compare: Kernel, dtype: DType) -> Kernel:
    if dtype is dtypes.string:
        return _equality_of_strings(compare)
    if dtype.is_quantized:
        plain = dtype.numpy[0]
        return lambda x, y: compare(x.view(plain), y.view(plain))
    return compare


def _equality_of_strings(compare: Kernel) -> Kernel:
    of_objects = np.equal if compare is operator.eq else np.not_equal

    def of_strings(x: Value, y: Value) -> Value:
        if isinstance(x, bytes) and isinstance(y, bytes):
            return np.bool_(compare(x, y))
        if isinstance(x, bytes):
            x, y = y, x
        if isinstance(y, bytes) and x.size >= _MANY:
            are_equal = _equal_to(x, y)
            return are_equal if compare is operator.eq else ~are_equal
        return of_objects(as_array(x), as_array(y))

    return of_strings


def _equal_to(texts: Array, text: bytes) -> Array:
    """Which texts are the same as one; of what is padded, most are the same object."""
    known = identities(texts)
    if known is None:
        equal: Array = np.equal(texts, as_array(text))
        return equal
    result: Array = known == id(text)
    others = np.flatnonzero(~result)
    result[others] = np.equal(texts.ravel()[others], as_array(text))
    return result.reshape(texts.shape)


@kernel("ApproximateEqual", types={"T": {dtypes.float32, dtypes.float64}})
def make_approximate_equal(attrs: Attrs) -> Kernel:
    """Whether x and y differ by less than the tolerance."""
    tolerance = attrs.dtype("T").numpy.type(attrs.float("tolerance"))

    def approximate_equal(x: Value, y: Value) -> Value:
        if x.shape != y.shape:
            raise ValueError(
                "x and y must be of the same shape. "
                f"x shape: {shape_text(shape_of(x))}. y shape: {shape_text(shape_of(y))}"
            )
        return abs(x - y) < tolerance

    return approximate_equal


@kernel(*_LOGIC)
def make_logic(attrs: Attrs) -> Kernel:
    """Whether both are true, or one of them."""
    return _LOGIC[attrs.op.name]


@kernel("LogicalNot")
def make_logical_not(_: Attrs) -> Kernel:
    """Whether it is false."""
    # Exclusive or takes 40 ns on a scalar, where logical_not and ~ take 300 and more.
    return functools.partial(operator.xor, np.True_)
