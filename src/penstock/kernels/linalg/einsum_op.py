"""Sums of products by an equation such as ``ij,jk->ik`` (Einstein's convention).

In:   one or two arrays, and the equation: a label for each of their axes, and the labels
      of the result.  ``...`` stands for axes that are broadcast.
Out:  the sum of products over all labels that the result does not have.
Not:  never sums element by element what a product of matrices can do.

A label twice in one array means its diagonal; twice in the result, a diagonal matrix.
Every character is a label, a blank too.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import COMPLEX, FLOATS
from penstock.kernels.math.matmul_ops import product_of
from penstock.kernels.narrow.precision import NARROW, in_float32
from penstock.kernels.values.arrays import shape_text

_ELLIPSIS: Final = "..."
#: Labels of one array's axes.  Letters are kept; axes under an ellipsis are numbered
#: from the last one backwards, so that the same number means the same axis everywhere.
_Labels: TypeAlias = tuple[Any, ...]
_Sizes: TypeAlias = tuple[int, ...]


@kernel("Einsum", types={"T": FLOATS | COMPLEX | {dtypes.int32, dtypes.int64}})
def make_einsum(attrs: Attrs) -> Kernel:
    """The sum of products that the equation means."""
    inputs, output = _parse(attrs.str("equation"), attrs.int("N"))
    dtype = attrs.dtype("T")
    wide = dtypes.float32 if dtype in NARROW else dtype
    multiply = product_of(wide, accelerate=attrs.accelerate)

    # Shapes are few, and what is to be done follows from them alone.
    @functools.lru_cache(maxsize=64)
    def plan(*shapes: _Sizes) -> Kernel:
        given = [_labels_of(text, len(x), i) for i, (text, x) in enumerate(_pairs(inputs, shapes))]
        wanted = _labels_of_output(output, given)
        _check_sizes(given, shapes)
        once = tuple(dict.fromkeys(wanted))
        if len(given) == 1:
            compute: Kernel = functools.partial(_reduce, labels=given[0], wanted=once)
        else:
            compute = _contraction(shapes, given, once, multiply)
        return compute if once == wanted else _spreading(compute, once, wanted)

    def of_two(x: Value, y: Value) -> Value:
        return as_value(plan(x.shape, y.shape)(x, y))

    def of_one(x: Value) -> Value:
        return as_value(plan(x.shape)(x))

    einsum = of_two if len(inputs) == 2 else of_one
    return in_float32(einsum, dtype) if dtype in NARROW else einsum


def _parse(equation: str, count: int) -> tuple[list[str], str]:
    """The labels of each input, and those of the output."""
    sides = equation.split("->")
    if len(sides) != 2:
        raise InvalidArgumentError(f"Expecting exactly one '->' in einsum equation: {equation}")
    inputs = sides[0].split(",")
    if len(inputs) > 2:
        raise InvalidArgumentError(
            f"Expecting 1 or 2 input subscripts in equation '{equation}' but got: {len(inputs)}"
        )
    if len(inputs) != count:
        raise InvalidArgumentError(f"Expected {len(inputs)} inputs but got: {count}")
    for text in (*inputs, sides[1]):
        if text.count(_ELLIPSIS) > 1:
            raise InvalidArgumentError(f"More than one ellipsis (...) in '{text}' of {equation}")
    return inputs, sides[1]


def _labels_of(text: str, rank: int, place: int) -> _Labels:
    """The label of each axis of an input of this rank."""
    before, dots, after = text.partition(_ELLIPSIS)
    covered = rank - len(before) - len(after)
    if covered < 0 or (covered and not dots):
        least = "at least " if dots else ""
        raise InvalidArgumentError(
            f"Expected input {place} to have rank {least}{rank - covered} but got: {rank}"
        )
    return (*before, *range(-covered, 0), *after)


def _labels_of_output(text: str, given: Sequence[_Labels]) -> _Labels:
    """The label of each axis of the result."""
    covered = max(sum(type(label) is int for label in labels) for labels in given)
    before, dots, after = text.partition(_ELLIPSIS)
    if covered and not dots:
        raise InvalidArgumentError(
            f"Output contains {covered} broadcasting dimension(s) but no ellipsis (...) was "
            "found in the output subscripts."
        )
    for label in before + after:
        if not any(label in labels for labels in given):
            raise InvalidArgumentError(f"Label '{label}' of the output '{text}' is in no input")
    return (*before, *range(-covered, 0), *after)


def _check_sizes(given: Sequence[_Labels], shapes: Sequence[_Sizes]) -> None:
    """Raise unless all axes of a label have one size; under an ellipsis 1 is any size."""
    sizes: dict[Any, int] = {}
    for labels, shape in _pairs(given, shapes):
        for axis, (label, size) in enumerate(_pairs(labels, shape)):
            known = sizes.setdefault(label, size)
            if size == known:
                continue
            if type(label) is not int or 1 not in (size, known):
                raise InvalidArgumentError(
                    f"Expected dimension {known} at axis {axis} of the input shaped "
                    f"{shape_text(shape)} but got dimension {size}"
                )
            sizes[label] = max(size, known)


def _reduce(x: Array, labels: _Labels, wanted: _Labels) -> Array:
    """The array with the wanted axes, in this order, summed over all others."""
    if len(set(labels)) < len(labels):
        once = tuple(dict.fromkeys(labels))
        x = np.einsum(x, _numbers(labels, labels), _numbers(once, labels))
        labels = once
    others = tuple(axis for axis, label in enumerate(labels) if label not in wanted)
    if others:
        x = np.add.reduce(x, others, x.dtype)
        labels = tuple(label for label in labels if label in wanted)
    ordered: Array = np.transpose(x, [labels.index(label) for label in wanted])
    return ordered


def _contraction(
    shapes: Sequence[_Sizes], given: Sequence[_Labels], wanted: _Labels, multiply: Kernel
) -> Kernel:
    """What sums the products of two arrays of these shapes, as a product of matrices."""
    left, right = (tuple(dict.fromkeys(labels)) for labels in given)
    if wanted and wanted[-1] in left and wanted[-1] not in right:
        # The other way round the result comes out in order.
        turned = _contraction(shapes[::-1], given[::-1], wanted, multiply)
        return lambda x, y: turned(y, x)
    both = [label for label in left if label in right]
    batch = tuple(label for label in wanted if label in both)
    inner = tuple(label for label in both if label not in wanted)
    rows = tuple(label for label in wanted if label not in right)
    columns = tuple(label for label in wanted if label not in left)
    turn_x = _laid_out(shapes[0], given[0], (batch, rows, inner))
    turn_y = _laid_out(shapes[1], given[1], (batch, inner, columns))
    sizes = _sizes_of(given, shapes)
    once = batch + rows + columns
    shape = tuple(sizes[label] for label in once)
    finish = _transposition([once.index(label) for label in wanted])
    join = multiply if inner else operator.mul
    if batch and math.prod(sizes[label] for label in rows + columns) == 1 and inner:
        # A batch of products of two vectors: numpy would call BLAS for each of them.
        join = functools.partial(np.einsum, "...ik,...kj->...ij")

    def contract(x: Array, y: Array) -> Array:
        product: Array = join(turn_x(x), turn_y(y)).reshape(shape)
        return product if finish is None else product.transpose(finish)

    return contract


def _laid_out(shape: _Sizes, labels: _Labels, groups: tuple[_Labels, ...]) -> Kernel:
    """What makes matrices of an array, with one axis for all labels of a later group."""
    batch, *others = groups
    wanted = (*batch, *others[0], *others[1])
    if len(set(labels)) < len(labels) or set(labels) != set(wanted):
        prepare: Kernel | None = functools.partial(_reduce, labels=labels, wanted=wanted)
        order = None
    else:
        prepare = None
        order = _transposition([labels.index(label) for label in wanted])
    size = dict(zip(labels, shape, strict=True))
    matrices = (
        *(size[label] for label in batch),
        *(math.prod(size[label] for label in group) for group in others),
    )

    def lay_out(x: Array) -> Array:
        if prepare is not None:
            x = prepare(x)
        elif order is not None:
            x = x.transpose(order)
        return x if x.shape == matrices else x.reshape(matrices)

    return lay_out


def _transposition(order: list[int]) -> list[int] | None:
    """The order of axes, or None if it is the one they have."""
    return None if order == sorted(order) else order


def _sizes_of(given: Sequence[_Labels], shapes: Sequence[_Sizes]) -> dict[Any, int]:
    """The size of each label; broadcast, so that a size other than 1 counts."""
    sizes: dict[Any, int] = {}
    for labels, shape in _pairs(given, shapes):
        for label, size in _pairs(labels, shape):
            if sizes.get(label, 1) == 1:
                sizes[label] = size
    return sizes


def _spreading(compute: Kernel, labels: _Labels, wanted: _Labels) -> Kernel:
    """What comes out, where all axes of each label have the same index; zeros elsewhere."""

    def spread(*arrays: Array) -> Array:
        x = compute(*arrays)
        result = np.zeros([x.shape[labels.index(label)] for label in wanted], x.dtype)
        np.einsum(result, _numbers(wanted, labels), _numbers(labels, labels))[...] = x
        return result

    return spread


def _numbers(labels: _Labels, known: _Labels) -> list[int]:
    """The labels as numpy's einsum takes them."""
    return [known.index(label) for label in labels]


def _pairs(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(left, right, strict=True)
