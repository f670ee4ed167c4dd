"""The gates of a recurrent cell.

In:   a matrix of inputs, one to multiply it by, and a bias.
Out:  the parts, side by side, of product plus bias, each with its function applied.
Not:  no state of the cell, and no gradient.

Small products are made as a stack, part by part: then the parts are contiguous, those with the
same function are neighbours, and nothing is copied.  Large ones are made as they are: they
need as few calls of BLAS as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, freeze
from penstock.kernels.attrs import Attrs
from penstock.kernels.constants import is_constant
from penstock.kernels.matmul_ops import checked_product
from penstock.kernels.products import ALONE
from penstock.kernels.registry import Kernel, kernel

#: Functions, as they are applied in place; the array is contiguous.
_InPlace = Callable[[Array], Any]


def _sigmoid_of_negative(kind: type[Any]) -> _InPlace:
    one = freeze(np.ones((), kind))
    exp, add, reciprocal = np.exp, np.add, np.reciprocal

    def sigmoid(x: Array) -> None:
        exp(x, x)
        add(x, one, x)
        reciprocal(x, x)

    return sigmoid


def _tanh(_kind: type[Any]) -> _InPlace:
    tanh = np.tanh
    return lambda x: tanh(x, x)


def _relu(kind: type[Any]) -> _InPlace:
    zero, maximum = freeze(np.zeros((), kind)), np.maximum
    return lambda x: maximum(x, zero, out=x)


#: What is applied for each function; for a sigmoid, to the negative of what was asked for,
#: which the product gives as readily.
_FUNCTIONS: Final = {"Sigmoid": _sigmoid_of_negative, "Tanh": _tanh, "Relu": _relu}


class _Parts:
    """Which part gets which function, and in which order the parts are stacked."""

    def __init__(self, functions: Sequence[str], kind: type[Any]) -> None:
        self.count = len(functions)
        self.functions = [_FUNCTIONS[name](kind) if name else None for name in functions]
        #: The parts in the order of the stack: those with the same function are neighbours.
        self.order = sorted(range(self.count), key=functions.__getitem__)
        #: Where each part is in the stack.
        self.places = [self.order.index(part) for part in range(self.count)]
        #: What each layer is multiplied by.
        self.signs = np.array(
            [-1 if functions[part] == "Sigmoid" else 1 for part in self.order], kind
        ).reshape(-1, 1, 1)
        #: Functions with the layers of the stack that they are applied to.
        self.layers: list[tuple[_InPlace, slice]] = []
        for _, group in groupby(range(self.count), lambda at: functions[self.order[at]]):
            first, *others = group
            function = self.functions[self.order[first]]
            if function is not None:
                self.layers.append((function, slice(first, first + 1 + len(others))))

    def stack(self, matrix: Array) -> Array:
        """A matrix with the columns of each part as a layer, negated for a sigmoid."""
        rows, columns = matrix.shape
        layers = matrix.reshape(rows, self.count, columns // self.count).transpose(1, 0, 2)
        stacked: Array = np.ascontiguousarray(layers[self.order]) * self.signs
        return stacked

    def spread(self, matrix: Array, bias: Array, rows: int) -> tuple[Array, Array]:
        """The stack of a matrix, and the bias for so many rows of each of its layers."""
        return self.stack(matrix), np.repeat(self.stack(bias.reshape(1, -1)), rows, 1)


class _Plan(NamedTuple):
    """What was made of the constants of the last call, for its number of rows."""

    shape: tuple[int, ...] | None
    #: The constants, which must live on so that no other objects are taken for them.
    matrix: Array | None
    bias: Array | None
    #: The matrix as a stack, and the bias for each element of the result: numpy adds arrays of
    #: one shape much faster.
    layers: Any
    spread: Any


_NO_PLAN: Final = _Plan(None, None, None, None, None)


@kernel("_FusedGates", types={"T": {dtypes.float32, dtypes.float64}})
def make_fused_gates(attrs: Attrs) -> Kernel:
    """Functions of the parts of x w + b, split along the columns."""
    dtype = attrs.dtype("T")
    parts = _Parts([name.decode() for name in attrs.list("functions")], dtype.numpy.type)
    functions, places, matmul = parts.layers, parts.places, np.matmul
    large = _by_parts(parts, checked_product(dtype))
    last = _NO_PLAN

    def gates(x: Array, w: Array, bias: Array) -> tuple[Value, ...]:
        nonlocal last
        shape, matrix, known, layers, spread = last
        if x.shape != shape or w is not matrix or bias is not known:
            if not _is_small(x, w, bias):
                made: tuple[Value, ...] = large(x, w, bias)
                return made
            last = _Plan(x.shape, w, bias, *parts.spread(w, bias, len(x)))
            *_, layers, spread = last
        total = matmul(x, layers)
        add(total, spread, total)
        for function, which in functions:
            function(total[which])
        return tuple([total[place] for place in places])

    add = np.add
    return gates


def _is_small(x: Array, w: Array, bias: Array) -> bool:
    """Whether a product is best made as a stack; False also if there is none."""
    return (
        x.ndim == 2
        and is_constant(w)
        and is_constant(bias)
        and x.shape[1] == w.shape[0]
        and 0 < x.size * w.shape[1] <= ALONE
    )


def _by_parts(parts: _Parts, product: Kernel) -> Kernel:
    """One product, and then each part by itself."""

    def large(x: Array, w: Array, bias: Array) -> tuple[Value, ...]:
        columns = np.split(product(x, w), parts.count, 1)
        made = [part + b for part, b in zip(columns, np.split(bias, parts.count), strict=True)]
        for part, place, function in zip(made, parts.places, parts.functions, strict=True):
            if parts.signs[place] < 0:
                np.negative(part, part)
            if function is not None:
                function(part)
        return tuple(made)

    return large
