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
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.matmul_ops import product_of
from penstock.kernels.precision import NARROW, in_float32
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.types import COMPLEX, FLOATS

_ELLIPSIS: Final = "..."
#: Labels of one array's axes.  Letters are kept; axes under an ellipsis are numbered
#: from the last one backwards, so that the same number means the same axis everywhere.
_Labels: TypeAlias = tuple[Any, ...]


@kernel("Einsum", types={"T": FLOATS | COMPLEX | {dtypes.int32, dtypes.int64}})
def make_einsum(attrs: Attrs) -> Kernel:
    """The sum of products that the equation means."""
    inputs, output = _parse(attrs.str("equation"), attrs.int("N"))
    dtype = attrs.dtype("T")
    multiply = product_of(dtypes.float32 if dtype in NARROW else dtype)

    def compute(*arrays: Value) -> Value:
        given = [_labels_of(text, x.ndim, i) for i, (text, x) in enumerate(_pairs(inputs, arrays))]
        wanted = _labels_of_output(output, given)
        _check_sizes(given, arrays)
        once = tuple(dict.fromkeys(wanted))
        if len(arrays) == 1:
            result = _reduce(arrays[0], given[0], once)
        else:
            result = _contract(arrays, given, once, multiply)
        return as_value(result if once == wanted else _spread(result, once, wanted))

    return in_float32(compute, dtype) if dtype in NARROW else compute


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


def _check_sizes(given: Sequence[_Labels], arrays: Sequence[Array]) -> None:
    """Raise unless all axes of a label have one size; under an ellipsis 1 is any size."""
    sizes: dict[Any, int] = {}
    for labels, x in _pairs(given, arrays):
        for axis, (label, size) in enumerate(_pairs(labels, x.shape)):
            known = sizes.setdefault(label, size)
            if size == known:
                continue
            if type(label) is not int or 1 not in (size, known):
                raise InvalidArgumentError(
                    f"Expected dimension {known} at axis {axis} of the input shaped "
                    f"{shape_text(x.shape)} but got dimension {size}"
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


def _contract(
    arrays: Sequence[Array], given: Sequence[_Labels], wanted: _Labels, multiply: Kernel
) -> Array:
    """The sum of products of two arrays, as a product of matrices."""
    left, right = (dict.fromkeys(labels) for labels in given)
    both = [label for label in left if label in right]
    batch = tuple(label for label in both if label in wanted)
    inner = tuple(label for label in both if label not in wanted)
    rows = tuple(label for label in left if label in wanted and label not in right)
    columns = tuple(label for label in right if label in wanted and label not in left)
    x = _reduce(arrays[0], given[0], batch + rows + inner)
    y = _reduce(arrays[1], given[1], batch + inner + columns)
    depth, height = len(batch), len(rows)
    top, bottom = x.shape[depth : depth + height], y.shape[depth + len(inner) :]
    size = math.prod(y.shape[depth : depth + len(inner)])
    product = _multiply(
        x.reshape((*x.shape[:depth], math.prod(top), size)),
        y.reshape((*y.shape[:depth], size, math.prod(bottom))),
        multiply if inner else operator.mul,
    )
    labels = batch + rows + columns
    result: Array = product.reshape(product.shape[:depth] + top + bottom)
    return result.transpose([labels.index(label) for label in wanted])


def _multiply(x: Array, y: Array, multiply: Kernel) -> Array:
    if x.shape[-2] == 1 and y.shape[-1] == 1 and x.ndim > 2:
        # A batch of products of two vectors: numpy would call BLAS for each of them.
        multiply = functools.partial(np.einsum, "...ik,...kj->...ij")
    product: Array = multiply(x, y)
    return product


def _spread(x: Array, labels: _Labels, wanted: _Labels) -> Array:
    """Zeros, but the array where all axes of each label have the same index."""
    result = np.zeros([x.shape[labels.index(label)] for label in wanted], x.dtype)
    np.einsum(result, _numbers(wanted, labels), _numbers(labels, labels))[...] = x
    return result


def _numbers(labels: _Labels, known: _Labels) -> list[int]:
    """The labels as numpy's einsum takes them."""
    return [known.index(label) for label in labels]


def _pairs(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return zip(left, right, strict=True)
