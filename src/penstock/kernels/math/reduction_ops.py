"""Reductions: sums, products, means, extrema and truth along some axes.

In:   an array, and the axes to reduce as numbers in any shape; none, or all of them.
Out:  an array without those axes, or with sizes 1 in their place if ``keep_dims``.
Not:  no position of an extremum (argmax_ops), no running sums (scan_ops), no segments.

Integers wrap around in their own type.  float16 and bfloat16 are summed in float32 and
rounded once, also where TensorFlow loses digits or overflows on the way.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, REALS, UNSIGNED
from penstock.kernels.c.pooling import mean_of_places
from penstock.kernels.math.row_products import product
from penstock.kernels.math.sums import ReductionInC, in_c, sum_of_few
from penstock.kernels.narrow.precision import NARROW

#: numpy's ``ufunc.reduce``: array, axes, type of the result, no output, keep_dims.
_Reduce = Callable[..., Any]

#: Arrays of so many elements are worth a look at the order of their axes.
_LARGE: Final = 1 << 14
#: Up to so many elements, numpy joins them first to last.
_FEW: Final = 7
_EXTREMA: Final[dict[str, _Reduce]] = {"Max": np.maximum.reduce, "Min": np.minimum.reduce}
_TRUTHS: Final[dict[str, _Reduce]] = {"All": np.logical_and.reduce, "Any": np.logical_or.reduce}


def axes_in(indices: Value, rank: int) -> tuple[int, ...]:
    """The axes that a tensor of numbers means; numpy checks them unless there are none."""
    axes: Any = indices.tolist()
    if type(axes) is int:
        axes = (axes,)
    elif axes and type(axes[0]) is list:
        axes = indices.ravel().tolist()
    if rank == 0 and axes:
        raise _bad_axis(axes[0], 0)
    return tuple(axes)


def _bad_axis(axis: int, rank: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Invalid reduction dimension ({axis} for input with {rank} dimension(s)"
    )


def _complaint(axes: tuple[int, ...], rank: int) -> InvalidArgumentError | None:
    """What is wrong with the axes, if anything is."""
    seen: set[int] = set()
    for axis in axes:
        if not -rank <= axis < rank:
            return _bad_axis(axis, rank)
        if axis % rank in seen:
            return InvalidArgumentError(
                f"Invalid reduction arguments: Axes contains duplicate dimension: {axis % rank}"
            )
        seen.add(axis % rank)
    return None


def _by_axis(
    reduce: _Reduce, x: Value, axes: tuple[int, ...], dtype: np.dtype[Any], *, keep: bool
) -> Value:
    """The reduction of a large array, axis by axis if the last one stays.

    So rows of all that is behind an axis are combined at once; numpy itself would take as few
    elements at a time as the last axis has.
    """
    rank = x.ndim
    ordered = sorted({axis % rank for axis in axes})
    is_plain = len(ordered) == len(axes) and all(-rank <= axis < rank for axis in axes)
    if not is_plain or ordered[-1] == rank - 1:
        return reduce(x, axes, dtype, None, keep)
    for done, axis in enumerate(ordered):
        x = reduce(x, axis if keep else axis - done, dtype, None, keep)
    return x


def _by_columns(reduce: _Reduce, x: Value, axes: tuple[int, ...], *, keep: bool) -> Value | None:
    """The reduction of a large array along its last axis, which is short: all rows at once.

    None if it is not such a one.  numpy joins so few elements in the same order, but begins anew
    with each row.
    """
    join, count = getattr(reduce, "__self__", None), x.shape[-1]
    is_last = len(axes) == 1 and axes[0] in (-1, x.ndim - 1)
    if not is_last or not 1 < count <= _FEW or not isinstance(join, np.ufunc):
        return None
    total = join(x[..., 0], x[..., 1])
    for column in range(2, count):
        join(total, x[..., column], out=total)
    return total[..., np.newaxis] if keep else total


def _reducer(reduce: _Reduce, dtype: np.dtype[Any], *, keep: bool) -> Kernel:
    """The reduction as a kernel, with sums kept in ``dtype``."""
    last: tuple[Value, tuple[int, ...]] = (_reducer, ())

    def compute(x: Value, indices: Value) -> Value:
        nonlocal last
        known, axes = last
        if indices is not known or not x.ndim:
            axes = axes_in(indices, x.ndim)
            if is_constant(indices):
                last = indices, axes
        try:
            if x.size > _LARGE and len(axes) > 1:
                return _by_axis(reduce, x, axes, dtype, keep=keep)
            if x.size > _LARGE and x.ndim > 1 and x.dtype == dtype:
                total = _by_columns(reduce, x, axes, keep=keep)
                if total is not None:
                    return total
            return reduce(x, axes, dtype, None, keep)
        except ValueError as cause:
            raise _complaint(axes, x.ndim) or cause from None

    return compute


#: The shortest way for arrays of a shape, along some axes; None if there is none.
_ShortWay = Callable[[tuple[int, ...], tuple[int, ...]], Any]


def _by_shape(of_any: Kernel, find: _ShortWay) -> Kernel:
    """A reduction that is done by the shortest way for a shape, if there is one."""
    #: Axes and shape of the last call, and how such an array is reduced.
    last: tuple[Value, tuple[int, ...], Any] = (_by_shape, (), None)

    def compute(x: Value, indices: Value) -> Value:
        nonlocal last
        known, shape, short = last
        if indices is not known or x.shape != shape:
            # Constants or not: the same sum must not depend on what else has been folded.
            short = find(x.shape, axes_in(indices, x.ndim))
            if is_constant(indices):
                last = indices, x.shape, short
        total = None if short is None else short(x)
        return of_any(x, indices) if total is None else total

    return compute


def _in_c(of_any: Kernel, attrs: Attrs, way: str) -> Kernel:
    """A reduction of float32 by the library where that has a way, and otherwise as ``of_any``."""
    if not attrs.accelerate or attrs.dtype("T") is not dtypes.float32:
        return of_any
    keep = attrs.bool("keep_dims")
    return _by_shape(of_any, lambda shape, axes: in_c(shape, axes, way, keep=keep))


def _summer(attrs: Attrs, wide: np.dtype[Any]) -> Kernel:
    """The sum as a kernel, kept in ``wide``; of few floats, and of many, by the shortest way."""
    dtype, keep = attrs.dtype("T").numpy, attrs.bool("keep_dims")
    of_any = _reducer(np.add.reduce, wide, keep=keep)
    if wide != dtype or dtype.char not in "fd":
        return of_any
    is_in_c = attrs.accelerate and dtype.char == "f"

    def find(shape: tuple[int, ...], axes: tuple[int, ...]) -> ReductionInC | None:
        found = in_c(shape, axes, "sum", keep=keep) if is_in_c else None
        return found or sum_of_few(shape, axes, dtype, keep=keep)

    return _by_shape(of_any, find)


def accumulator(dtype: DType) -> np.dtype[Any]:
    """The type in which numbers of ``dtype`` are added up."""
    return np.dtype(np.float32) if dtype in NARROW else dtype.numpy


@kernel("Sum", "Prod", types={"T": NUMBERS})
def make_sum(attrs: Attrs) -> Kernel:
    """The sum or the product of the elements; 0 or 1 of none."""
    dtype = attrs.dtype("T")
    wide, keep = accumulator(dtype), attrs.bool("keep_dims")
    if attrs.op.name == "Sum":
        total = _summer(attrs, wide)
    else:
        total = _in_c(_reducer(product, wide, keep=keep), attrs, "product")
    if dtype not in NARROW:
        return total
    narrow = dtype.numpy
    return lambda x, indices: total(x, indices).astype(narrow)


@kernel(*_TRUTHS)
def make_truth(attrs: Attrs) -> Kernel:
    """Whether all, or any, of the elements are true; of none, all are."""
    dtype = dtypes.bool_.numpy
    return _reducer(_TRUTHS[attrs.op.name], dtype, keep=attrs.bool("keep_dims"))


@kernel(*_EXTREMA, types={"T": REALS})
def make_extremum(attrs: Attrs) -> Kernel:
    """The largest or smallest element, NaN if there is one; of none, the worst there is."""
    dtype, keep = attrs.dtype("T"), attrs.bool("keep_dims")
    reduce = _EXTREMA[attrs.op.name]
    of_some = _reducer(reduce, dtype.numpy, keep=keep)
    nothing = worst(dtype, largest=attrs.op.name == "Max")
    of_none = _reducer(functools.partial(reduce, initial=nothing), dtype.numpy, keep=keep)
    of_some = _in_c(of_some, attrs, "greatest" if attrs.op.name == "Max" else "least")
    return lambda x, indices: (of_some if x.size else of_none)(x, indices)


def worst(dtype: DType, *, largest: bool) -> Any:
    """What every element is at least as large, or as small, as."""
    if dtype.is_floating:
        return dtype.numpy.type(-math.inf if largest else math.inf)
    limits = np.iinfo(dtype.numpy)
    return dtype.numpy.type(limits.min if largest else limits.max)


@kernel("Mean", types={"T": NUMBERS})
def make_mean(attrs: Attrs) -> Kernel:
    """The sum by the count; of integers towards zero; of none NaN, or 0 if not real."""
    dtype = attrs.dtype("T")
    wide = _wide(dtype)
    keep = attrs.bool("keep_dims")
    total_of = _summer(attrs, wide)
    divide = operator.truediv if dtype.is_floating else _complex_quotient
    divide = _quotient_towards_zero if dtype.is_integer else divide
    # Cached, since to make a scalar takes 240 ns.
    as_number = functools.lru_cache(maxsize=64)(wide.type)
    narrow = None if wide == dtype.numpy else dtype.numpy

    in_c = attrs.accelerate and dtype is dtypes.float32

    def compute(x: Value, indices: Value) -> Value:
        if in_c and x.ndim == 4 and x.size >= _LARGE and _are_spatial(indices):
            means = mean_of_places(x)
            if means is not None:
                return means.reshape(len(x), 1, 1, -1) if keep else means
        total = total_of(x, indices)
        mean = divide(total, as_number(x.size // total.size if total.size else 1))
        return mean if narrow is None else mean.astype(narrow)

    return compute


def _are_spatial(indices: Value) -> bool:
    """Whether axes are those of rows and columns, in images with the depth last."""
    return np.ndim(indices) == 1 and np.asarray(indices).tolist() in ([1, 2], [2, 1])


def _wide(dtype: DType) -> np.dtype[Any]:
    """The type in which a mean is computed."""
    if dtype.is_integer:
        return np.dtype(np.uint64 if dtype in UNSIGNED else np.int64)
    return accumulator(dtype)


def _quotient_towards_zero(total: Value, count: Value) -> Value:
    # numpy's integers by zero are zero, as TensorFlow's mean of none is.
    return (total - np.fmod(total, count)) // count


def _complex_quotient(total: Value, count: Value) -> Value:
    return total / count if count else total


@kernel("EuclideanNorm", types={"T": NUMBERS})
def make_euclidean_norm(attrs: Attrs) -> Kernel:
    """The root of the sum of squared magnitudes; of integers the root's whole part."""
    dtype = attrs.dtype("T")
    wide = accumulator(dtype)
    sum_of = _reducer(np.add.reduce, wide, keep=attrs.bool("keep_dims"))
    narrow = dtype.numpy

    def compute(x: Value, indices: Value) -> Value:
        x = x.astype(wide, copy=False)
        return np.sqrt(sum_of(x * np.conj(x), indices)).astype(narrow)

    def of_integers(x: Value, indices: Value) -> Value:
        return np.sqrt(sum_of(x * x, indices).astype(np.float64)).astype(narrow)

    return of_integers if dtype.is_integer else compute
