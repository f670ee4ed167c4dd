"""XLA's ops that take a function of single numbers: reductions, windows, scatters, sorts.

In:   arrays, and a function of the graph's library in an attribute.
Out:  arrays.
Not:  runs no function itself; compiles nothing.

A function is first tried on whole arrays, since nearly all of them work element by element;
one element of the result is compared with what the function gives for single numbers, and if
shape or number differ, it is called number by number.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Array, Value, as_value
from penstock.defs.attrs import FuncAttr
from penstock.errors import InvalidArgumentError, OpError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Kernel, async_kernel
from penstock.kernels.datasets.pulling import drive, run_function
from penstock.kernels.values.arrays import as_array, check_new, shape_text
from penstock.kernels.xla.xla_checks import dimensions, margins, positive
from penstock.kernels.xla.xla_ops import padded
from penstock.kernels.xla.xla_products import fields_of

Arrays: TypeAlias = tuple[Array, ...]
_Run: TypeAlias = Generator[Any, Any, Arrays]

#: Pairs of elements that are compared at once.
_PAIRS: Final = 1 << 22


class _Lanes:
    """A function of single numbers, over arrays of one shape."""

    def __init__(self, func: FuncAttr) -> None:
        self._func: Final = func
        #: Whether the function works on arrays; None as long as it was not tried.
        self._is_elementwise: bool | None = None

    def __call__(self, *arrays: Array) -> _Run:
        """The function's results for each place."""
        size = arrays[0].size
        if size == 0 or self._is_elementwise is False:
            return (yield from self._one_by_one(arrays))
        if self._is_elementwise is None and size > 1:
            self._is_elementwise = yield from self._try(arrays)
            return (yield from self(*arrays))
        if size == 1:
            return (yield from self._one_by_one(arrays))
        results = yield from run_function(self._func, arrays)
        return tuple(map(as_array, results))

    def _try(self, arrays: Arrays) -> Generator[Any, Any, bool]:
        try:
            results = yield from run_function(self._func, arrays)
        except OpError:
            return False
        last = tuple(array.reshape(-1)[-1] for array in arrays)
        expected = yield from run_function(self._func, last)
        return all(
            np.shape(result) == arrays[0].shape
            and np.array_equal(result.reshape(-1)[-1], single, equal_nan=_may_be_nan(result))
            for result, single in zip(results, expected, strict=True)
        )

    def _one_by_one(self, arrays: Arrays) -> _Run:
        rows = []
        for row in zip(*(array.reshape(-1) for array in arrays), strict=True):
            results = yield from run_function(self._func, row)
            rows.append(results)
        columns = list(zip(*rows, strict=True)) or [()] * len(arrays)
        for number in itertools.chain.from_iterable(rows):
            if np.ndim(number):
                raise InvalidArgumentError(
                    f"Function {self._func.name} must give single numbers, not arrays of shape "
                    f"{shape_text(np.shape(number))}"
                )
        shape = arrays[0].shape
        return tuple(
            np.array(column, np.asarray(column[0] if column else array).dtype).reshape(shape)
            for column, array in zip(columns, arrays, strict=False)
        )


def _may_be_nan(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fc"


def _folded(lanes: _Lanes, rows: Arrays, starts: Sequence[Value]) -> _Run:
    """Rows along the first axis, combined by halves into one; the start comes first."""
    shape = rows[0].shape[1:]
    begin = tuple(np.full(shape, start, row.dtype) for start, row in zip(starts, rows, strict=True))
    if rows[0].size == 0:
        return begin
    while len(rows[0]) > 1:
        half = len(rows[0]) // 2
        combined = yield from lanes(
            *(row[:half] for row in rows), *(row[half : 2 * half] for row in rows)
        )
        rest = [row[2 * half :] for row in rows]
        rows = tuple(map(np.concatenate, zip(combined, rest, strict=True)))
    return (yield from lanes(*begin, *(row[0] for row in rows)))


def _driven(run: Callable[..., _Run], *, is_bare: bool) -> Kernel:
    """The kernel whose outputs a coroutine makes."""

    def kernel(context: OpKernelContext, done: Done, *inputs: Value) -> None:
        def receive(result: object) -> None:
            if isinstance(result, tuple):
                values = tuple(map(as_value, result))
                result = values[0] if is_bare else values
            done(result)

        drive(run(*inputs), context, receive)

    return kernel


@async_kernel("XlaReduce", "XlaVariadicReduce", "XlaVariadicReduceV2")
def make_reduce(attrs: Attrs) -> Kernel:
    """Elements along some dimensions, combined by a function of two of them."""
    func, dims = attrs.func("reducer"), attrs.list("dimensions_to_reduce")
    is_single = attrs.op.name == "XlaReduce"

    def reduce(*inputs: Value) -> _Run:
        count = len(inputs) // 2
        arrays, starts = list(map(as_array, inputs[:count])), inputs[count:]
        rows = tuple(_first(array, dims) for array in arrays)
        return (yield from _folded(_Lanes(func), rows, starts))

    return _driven(reduce, is_bare=is_single)


def _first(array: Array, dims: Sequence[int]) -> Array:
    """The given dimensions as one, which comes first."""
    moved = np.moveaxis(array, dimensions(dims, array.ndim), range(len(dims)))
    shape = moved.shape
    return moved.reshape(prod(shape[: len(dims)]), *shape[len(dims) :])


@async_kernel("XlaReduceWindow")
def make_reduce_window(attrs: Attrs) -> Kernel:
    """The elements in each window, combined by a function of two of them."""
    func = attrs.func("computation")

    def reduce_window(x: Value, start: Value, *numbers: Value) -> _Run:
        rows = _windows(as_array(x), start, *numbers)
        return (yield from _folded(_Lanes(func), (rows,), (start,)))

    return _driven(reduce_window, is_bare=True)


def _windows(
    x: Array, fill: Value, window: Value, stride: Value, base: Value, gap: Value, padding: Value
) -> Array:
    """The elements of all windows: places in a window first, then the windows."""
    sizes, strides = positive("dimension", window, x.ndim), positive("stride", stride, x.ndim)
    spread = positive("base area dilation factor", base, x.ndim)
    gaps = positive("window dilation factor", gap, x.ndim)
    whole = padded(x, fill, *margins(padding, x.ndim), [n - 1 for n in spread])
    reach = [(n - 1) * apart + 1 for n, apart in zip(sizes, gaps, strict=True)]
    counts = [
        max(0, -(-(n - want + 1) // step))
        for n, want, step in zip(whole.shape, reach, strides, strict=True)
    ]
    check_new([*sizes, *counts], x.dtype)
    if 0 in counts:
        return np.zeros((prod(sizes), *counts), x.dtype)
    windows = np.lib.stride_tricks.sliding_window_view(whole, reach)
    steps = [slice(None, None, step) for step in (*strides, *gaps)]
    chosen = windows[tuple(steps)]
    rank = x.ndim
    return _first(chosen, range(rank, 2 * rank))


@async_kernel("XlaSelectAndScatter")
def make_select_and_scatter(attrs: Attrs) -> Kernel:
    """Each number goes to the place in its window that a function selects; others add up."""
    select, scatter = attrs.func("select"), attrs.func("scatter")

    def select_and_scatter(
        x: Value, sizes: Value, strides: Value, padding: Value, source: Value, start: Value
    ) -> _Run:
        array, ones = as_array(x), np.ones_like(as_array(sizes))
        places = np.arange(array.size).reshape(array.shape)
        geometry = sizes, strides, ones, ones, padding
        values = _windows(array, array.dtype.type(0), *geometry)
        wheres = _windows(places, np.int64(-1), *geometry)
        chosen, at = values[0], wheres[0]
        if np.shape(source) != chosen.shape:
            raise InvalidArgumentError(
                f"Source shape {shape_text(np.shape(source))} does not match the shape of "
                f"window-reduced operand {shape_text(chosen.shape)}"
            )
        if not chosen.size:
            return (np.full(array.shape, start, array.dtype),)
        lanes = _Lanes(select)
        for value, where in zip(values[1:], wheres[1:], strict=True):
            (keeps,) = yield from lanes(chosen, value)
            moves = (where >= 0) & ((at < 0) | ~keeps.astype(bool))
            chosen, at = np.where(moves, value, chosen), np.where(moves, where, at)
        result = np.full(array.size, start, array.dtype)
        inside = at.reshape(-1) >= 0
        updates = as_array(source).reshape(-1)[inside]
        yield from _put(_Lanes(scatter), result, at.reshape(-1)[inside], updates)
        return (result.reshape(array.shape),)

    return _driven(select_and_scatter, is_bare=True)


def _put(lanes: _Lanes, result: Array, places: Array, updates: Array) -> Generator[Any, Any, None]:
    """Combine updates with what is in their places; several for one place one after the other."""
    while len(places):
        _, first = np.unique(places, return_index=True)
        combined = yield from lanes(result[places[first]], updates[first])
        result[places[first]] = combined[0]
        rest = np.ones(len(places), bool)
        rest[first] = False
        places, updates = places[rest], updates[rest]


@async_kernel("XlaScatter")
def make_scatter(attrs: Attrs) -> Kernel:
    """The operand with updates combined into it, part by part; what lies outside is dropped."""
    func, fields = attrs.func("update_computation"), fields_of(attrs.bytes("dimension_numbers"))
    window_dims, inserted = fields.get(1, []), fields.get(2, [])
    targets = fields.get(3, [])
    vector = fields[4][-1] if fields.get(4) else 0
    if fields.get(5):
        raise InvalidArgumentError("XlaScatter with input_batching_dims is not supported")

    def scatter(operand: Value, indices: Value, updates: Value) -> _Run:
        array, places, news = as_array(operand), as_array(indices), as_array(updates)
        vectors = places[..., None] if vector == places.ndim else np.moveaxis(places, vector, -1)
        kept = [axis for axis in range(array.ndim) if axis not in inserted]
        batch = [axis for axis in range(news.ndim) if axis not in window_dims]
        parts = news.transpose(*batch, *window_dims)
        parts = parts.reshape(prod(vectors.shape[:-1]), *parts.shape[len(batch) :])
        starts = np.zeros((len(parts), array.ndim), np.int64)
        starts[:, targets] = vectors.reshape(len(parts), -1)
        window = np.ones(array.ndim, np.int64)
        window[kept] = parts.shape[1:]
        fits = ((starts >= 0) & (starts + window <= np.array(array.shape))).all(axis=1)
        strides = np.array([prod(array.shape[n + 1 :]) for n in range(array.ndim)], np.int64)
        offsets = np.indices(tuple(window)).reshape(array.ndim, -1)
        flat = (starts[fits] @ strides)[:, None] + strides @ offsets
        result = array.reshape(-1).copy()
        yield from _put(_Lanes(func), result, flat.reshape(-1), parts[fits].reshape(-1))
        return (result.reshape(array.shape),)

    return _driven(scatter, is_bare=True)


@async_kernel("XlaVariadicSort")
def make_variadic_sort(attrs: Attrs) -> Kernel:
    """Several arrays in one order along a dimension, by a function that says what comes first."""
    func = attrs.func("comparator")

    def variadic_sort(*inputs: Value) -> _Run:
        *arrays, axis = map(as_array, inputs)
        dimension, rank = int(axis[()]), arrays[0].ndim
        if not -rank <= dimension < rank:
            raise InvalidArgumentError(
                f"Sort dimension {dimension} is out of bounds for rank {rank}"
            )
        moved = [np.moveaxis(array, dimension, -1) for array in arrays]
        orders = yield from _orders(_Lanes(func), moved)
        order = np.moveaxis(orders, -1, dimension)
        return tuple(np.take_along_axis(array, order, dimension) for array in arrays)

    return _driven(variadic_sort, is_bare=False)


def _orders(lanes: _Lanes, arrays: Sequence[Array]) -> Generator[Any, Any, Array]:
    """For each row the order of its elements: by how many of the others come before."""
    shape = arrays[0].shape
    count = shape[-1] if shape else 1
    if count * count > _PAIRS:
        raise InvalidArgumentError(f"XlaVariadicSort of {count} elements is too long to sort here")
    rows = [array.reshape(-1, count) for array in arrays]
    orders = np.empty(rows[0].shape, np.int64)
    for number in range(len(orders)):
        pairs: list[Array] = []
        for row in rows:
            one = np.broadcast_to(row[number][:, None], (count, count))
            other = np.broadcast_to(row[number][None, :], (count, count))
            pairs += [one, other]
        (before,) = yield from lanes(*pairs)
        is_before = before.astype(bool)
        ties = ~is_before & ~is_before.T
        earlier = np.tri(count, count, -1, dtype=bool).T
        ranks = (is_before | (ties & earlier)).sum(axis=0)
        orders[number, ranks] = np.arange(count)
    return orders.reshape(shape)
