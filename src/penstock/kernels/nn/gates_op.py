"""The gates of a recurrent cell.

In:   a matrix of inputs, perhaps one of states, one to multiply them by, and a bias.
Out:  the parts, side by side, of product plus bias, each with its function applied.
Not:  no state of the cell, and no gradient.

Small products are made as a stack, part by part: then the parts are contiguous, those with the
same function are neighbours, and nothing is copied.  Large ones are made as they are: they
need as few calls of BLAS as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import prod
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, freeze
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.array.concat_ops import join_two
from penstock.kernels.c.functions import FUNCTIONS
from penstock.kernels.c.programs import function_named
from penstock.kernels.math.matmul_ops import checked_product
from penstock.kernels.parallel.blas import ALONE, ALONE_BY_VECTOR
from penstock.kernels.parallel.joining import join

#: Functions, as they are applied in place; the array is contiguous.
_InPlace = Callable[[Array], Any]


def _sigmoid_of_negative(kind: type[Any]) -> _InPlace:
    one = freeze(np.ones((), kind))
    exp, add, divide = np.exp, np.add, np.divide

    def sigmoid(x: Array) -> None:
        exp(x, x)
        add(x, one, x)
        divide(one, x, x)  # a sixth faster than the reciprocal

    return sigmoid


def _tanh(_kind: type[Any]) -> _InPlace:
    tanh = np.tanh
    return lambda x: tanh(x, x)


def _relu(kind: type[Any]) -> _InPlace:
    zero, maximum = freeze(np.zeros((), kind)), np.maximum
    return lambda x: maximum(x, zero, out=x)


def _in_c(name: str) -> _InPlace | None:
    """A function in C; None if there is none."""
    function = function_named(name) if name in FUNCTIONS else None
    return None if function is None else lambda x: function(x, x)


_COLUMNS: Final = np.int32(1)
#: What is applied for each function where C has none; for a sigmoid, to the negative of what was
#: asked for, which the product gives as readily.
_FUNCTIONS: Final = {"Sigmoid": _sigmoid_of_negative, "Tanh": _tanh, "Relu": _relu}


class _Parts:
    """Which part gets which function, and in which order the parts are stacked."""

    def __init__(self, functions: Sequence[str], kind: type[Any], *, accelerate: bool) -> None:
        self.count = len(functions)
        use_c = accelerate and kind is np.float32
        in_c = {name: _in_c(name) for name in {*functions} if use_c}
        self.functions = [
            in_c.get(name) or _FUNCTIONS[name](kind) if name else None for name in functions
        ]
        #: The parts in the order of the stack: those with the same function are neighbours.
        self.order = sorted(range(self.count), key=functions.__getitem__)
        #: Where each part is in the stack.
        self.places = [self.order.index(part) for part in range(self.count)]
        #: What each layer is multiplied by.
        is_negative = [functions[p] == "Sigmoid" and not in_c.get("Sigmoid") for p in self.order]
        self.signs = np.where(is_negative, kind(-1), kind(1)).reshape(-1, 1, 1)
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


class _GatesPlan(NamedTuple):
    """What was made of the constants of the last call, for inputs of some shapes."""

    shapes: tuple[tuple[int, ...], ...]
    #: The constants, which must live on so that no other objects are taken for them.
    matrix: Array | None
    bias: Array | None
    #: The matrix as a stack.
    layers: Any
    #: What becomes of the bias.
    rest: Any


@kernel("_FusedGates", types={"T": {dtypes.float32, dtypes.float64}})
def make_fused_gates(attrs: Attrs) -> Kernel:
    """Functions of the parts of [x₁ x₂] w + b, split along the columns."""
    dtype = attrs.dtype("T")
    functions = [name.decode() for name in attrs.list("functions")]
    parts = _Parts(functions, dtype.numpy.type, accelerate=attrs.accelerate)
    by_parts = _by_parts(parts, checked_product(dtype))
    return (_of_two if attrs.int("N") == 2 else _of_one)(parts, by_parts)


def _of_one(parts: _Parts, by_parts: Kernel) -> Kernel:
    """Gates of one input; the bias is added in the form of the result, which is fastest."""
    functions, in_order = parts.layers, itemgetter(*parts.places)
    matmul, add, last = np.matmul, np.add, _GatesPlan(((),), None, None, None, None)

    def gates(x: Array, w: Array, bias: Array) -> Any:
        nonlocal last
        (shape,), matrix, known, layers, spread = last
        if x.shape != shape or w is not matrix or bias is not known:
            if not _is_small(x.shape, w, bias):
                return by_parts(x, w, bias)
            spread = np.repeat(parts.stack(bias.reshape(1, -1)), len(x), 1)
            last = _GatesPlan((x.shape,), w, bias, parts.stack(w), spread)
            layers = last.layers
        total = matmul(x, layers)
        add(total, spread, total)
        for function, which in functions:
            function(total[which])
        return in_order(total)

    return gates


def _of_two(parts: _Parts, by_parts: Kernel) -> Kernel:
    """Gates of input and state; they need to be joined anyway, so the bias is one row more."""
    functions, in_order = parts.layers, itemgetter(*parts.places)
    matmul, last = np.matmul, _GatesPlan(((), ()), None, None, None, None)

    def gates(x: Array, h: Array, w: Array, bias: Array) -> Any:
        nonlocal last
        (x_shape, h_shape), matrix, known, layers, ones = last
        if x.shape != x_shape or h.shape != h_shape or w is not matrix or bias is not known:
            both = join_two(x, h, _COLUMNS)
            if not _is_small(both.shape, w, bias):
                return by_parts(both, w, bias)
            layers = parts.stack(np.concatenate([w, bias.reshape(1, -1)]))
            ones = np.ones((len(x), 1), w.dtype)
            last = _GatesPlan((x.shape, h.shape), w, bias, layers, ones)
        total = matmul(join((x, h, ones), 1), layers)
        for function, which in functions:
            function(total[which])
        return in_order(total)

    return gates


def _is_small(shape: tuple[int, ...], w: Array, bias: Array) -> bool:
    """Whether a product is best made as a stack; False also if there is none."""
    return (
        len(shape) == 2
        and is_constant(w)
        and is_constant(bias)
        and shape[1] == w.shape[0]
        and 0 < prod(shape) * w.shape[1] <= (ALONE if shape[0] > 1 else ALONE_BY_VECTOR)
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
