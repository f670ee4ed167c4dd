"""Array ops of XLA that graphs from its converters contain, as plain numpy.

In:   arrays; starts, sizes and paddings as arrays of integers.
Out:  arrays; starts that reach too far are moved back, as XLA does.
Not:  compiles nothing; knows one replica and one shard.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.forwarding import forward
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, kernel
from penstock.kernels.api.traits import FORWARDS
from penstock.kernels.api.types import FLOATS
from penstock.kernels.control_flow.functional_ops import make_if, make_while
from penstock.kernels.linalg.einsum_op import make_einsum
from penstock.kernels.linalg.linalg_ops import make_svd
from penstock.kernels.parallel.blas import keeps_alone
from penstock.kernels.values.arrays import as_array, check_new, full, shape_text

async_kernel("XlaIf")(make_if)
async_kernel("XlaWhile")(make_while)


@kernel(
    "XlaSharding",
    "XlaSpmdFullToShardShape",
    "XlaSpmdShardToFullShape",
    cost=Cost.CHEAP,
    traits=FORWARDS,
)
def make_sharding(_: Attrs) -> Kernel:
    """The input: there is one shard."""
    return forward


@kernel("XlaOptimizationBarrier", cost=Cost.CHEAP)
def make_optimization_barrier(_: Attrs) -> Kernel:
    """The inputs."""
    return lambda *inputs: inputs


@kernel("XlaReplicaId", cost=Cost.CHEAP)
def make_replica_id(_: Attrs) -> Kernel:
    """0: there is one replica."""
    return lambda: np.int32(0)


@kernel("XlaPad")
def make_pad(_: Attrs) -> Kernel:
    """The input with padding around and between its elements; less of it if negative."""

    def pad(x: Value, value: Value, low: Value, high: Value, interior: Value) -> Value:
        array = as_array(x)
        gaps = as_array(interior).tolist()
        if min(gaps, default=0) < 0:
            raise InvalidArgumentError(f"padding_interior must be non-negative, got {gaps}")
        return as_value(padded(array, value, low.tolist(), high.tolist(), gaps))

    return pad


def padded(
    array: Array, value: Value, low: Sequence[int], high: Sequence[int], gaps: Sequence[int]
) -> Array:
    """An array with so much before, after and between its elements along each axis."""
    sizes = [
        max(0, (n - 1) * (gap + 1) + 1) if n else 0
        for n, gap in zip(array.shape, gaps, strict=True)
    ]
    shape = [n + before + after for n, before, after in zip(sizes, low, high, strict=True)]
    if min(shape, default=0) < 0:
        raise InvalidArgumentError(f"resulting padded dimension has negative size {min(shape)}")
    check_new(shape, array.dtype)
    result = full(shape, value, array.dtype)
    source, target = [], []
    for size, new, start, gap in zip(array.shape, shape, low, gaps, strict=True):
        step = gap + 1
        first = max(0, -(start // step)) if start < 0 else 0
        last = min(size, max(first, -(-(new - start) // step)))
        source.append(slice(first, last))
        begin = start + first * step
        target.append(slice(begin, begin + (last - first) * step, step))
    if result.size and all(part.stop > part.start for part in source):
        result[tuple(target)] = array[tuple(source)]
    return result


@kernel("XlaDynamicSlice")
def make_dynamic_slice(_: Attrs) -> Kernel:
    """A part of the given size, moved back where it would reach over the end."""

    def dynamic_slice(x: Value, starts: Value, sizes: Value) -> Value:
        array = as_array(x)
        wanted = as_array(sizes).tolist()
        if len(wanted) != array.ndim or len(starts) != array.ndim:
            raise InvalidArgumentError(
                f"Length of start_indices and size_indices must be {array.ndim}"
            )
        if any(not 0 <= want <= n for want, n in zip(wanted, array.shape, strict=True)):
            raise InvalidArgumentError(
                f"Slice size {wanted} is larger than shape {shape_text(array.shape)}"
            )
        return as_value(array[_window(array.shape, starts, wanted)])

    return dynamic_slice


@kernel("XlaDynamicUpdateSlice")
def make_dynamic_update_slice(_: Attrs) -> Kernel:
    """The input with a part replaced, which is moved back where it would reach over the end."""

    def dynamic_update_slice(x: Value, update: Value, starts: Value) -> Value:
        array, part = np.array(x), as_array(update)
        if part.ndim != array.ndim or any(
            a > b for a, b in zip(part.shape, array.shape, strict=True)
        ):
            raise InvalidArgumentError(
                f"Slice size {shape_text(part.shape)} is larger than {shape_text(array.shape)}"
            )
        array[_window(array.shape, starts, part.shape)] = part
        return as_value(array)

    return dynamic_update_slice


def _window(shape: Sequence[int], starts: Value, sizes: Sequence[int]) -> tuple[slice, ...]:
    parts = []
    for size, start, want in zip(shape, as_array(starts).tolist(), sizes, strict=True):
        begin = min(max(start, 0), size - want)
        parts.append(slice(begin, begin + want))
    return tuple(parts)


#: Floats by size in bytes: integers of that size, bits of the mantissa, bias of the exponent.
_LAYOUTS: Final = {4: (np.uint32, 23, 127), 8: (np.uint64, 52, 1023)}

#: Those of float64.
_MOST_EXPONENT_BITS: Final = 11


@kernel("XlaReducePrecision", types={"T": FLOATS})
def make_reduce_precision(attrs: Attrs) -> Kernel:
    """The nearest number that fewer bits can express; infinity or zero if there is none."""
    exponent_bits, kept = attrs.int("exponent_bits"), attrs.int("mantissa_bits")
    narrow = attrs.dtype("T").numpy
    wide = narrow if narrow.itemsize >= 4 else np.dtype(np.float32)
    unsigned, mantissa, _bias = _LAYOUTS[wide.itemsize]
    if exponent_bits < 1 or kept < 0:
        raise InvalidArgumentError("exponent_bits must be positive, mantissa_bits non-negative")
    # No number has more than 11 bits of exponent: to keep more of them is to keep all.
    largest = 2 ** (min(exponent_bits, _MOST_EXPONENT_BITS) - 1) - 1
    dropped, all_bits = max(mantissa - kept, 0), 2 ** (8 * wide.itemsize) - 1

    def reduce_precision(x: Value) -> Value:
        array = np.array(x, wide)
        bits = array.view(unsigned)
        if dropped:
            half = unsigned((1 << (dropped - 1)) - 1)
            odd = bits >> unsigned(dropped) & unsigned(1)
            bits = bits + half + odd & unsigned(all_bits - ((1 << dropped) - 1))
        rounded = bits.view(wide)
        _, exponents = np.frexp(rounded)
        rounded = np.where(exponents - 1 > largest, np.copysign(wide.type(np.inf), array), rounded)
        rounded = np.where(exponents - 1 < 1 - largest, np.copysign(wide.type(0), array), rounded)
        is_number = np.isfinite(array) & (array != 0)
        return as_value(np.where(is_number, rounded, array).astype(narrow))

    return reduce_precision


@kernel("XlaBroadcastHelper")
def make_broadcast_helper(_: Attrs) -> Kernel:
    """The inputs with one rank: the smaller one gets axes of size 1 where it has none."""

    def broadcast_helper(lhs: Value, rhs: Value, dims: Value) -> tuple[Value, Value]:
        left, right, places = as_array(lhs), as_array(rhs), as_array(dims).tolist()
        if left.ndim == right.ndim or not places:
            if places and left.ndim == right.ndim and places != list(range(left.ndim)):
                raise InvalidArgumentError("broadcast_dims must be the identity for equal ranks")
            return lhs, rhs
        small, rank = min(left, right, key=np.ndim), max(left.ndim, right.ndim)
        is_inside = min(places) >= 0 and max(places) < rank
        if len(places) != small.ndim or sorted(set(places)) != places or not is_inside:
            raise InvalidArgumentError(f"broadcast_dims {places} do not fit rank {small.ndim}")
        shape = [1] * rank
        for place, size in zip(places, small.shape, strict=True):
            shape[place] = size
        grown = small.reshape(shape)
        return (grown, rhs) if small is left else (lhs, grown)

    return broadcast_helper


@kernel("XlaSort")
def make_sort(_: Attrs) -> Kernel:
    """The last axis in ascending order, NaN last."""
    return lambda x: np.sort(x, axis=-1, kind="stable")


@kernel("XlaKeyValueSort")
def make_key_value_sort(_: Attrs) -> Kernel:
    """The last axis in ascending order of the keys, and the values in the same order."""

    def key_value_sort(keys: Array, values: Array) -> tuple[Array, Array]:
        order = np.argsort(keys, axis=-1, kind="stable")
        return np.take_along_axis(keys, order, -1), np.take_along_axis(values, order, -1)

    return key_value_sort


@kernel("XlaEinsum", types={"T": {dtypes.complex64, dtypes.bfloat16, dtypes.float32}})
def make_xla_einsum(attrs: Attrs) -> Kernel:
    """Einstein's sum over two inputs."""
    return make_einsum(dataclasses.replace(attrs, values={**attrs.values, "N": 2}))


@kernel("XlaSelfAdjointEig", types={"T": FLOATS - {dtypes.float16, dtypes.bfloat16}})
@keeps_alone
def make_self_adjoint_eig(attrs: Attrs) -> Kernel:
    """Eigenvalues in ascending order, and eigenvectors as columns."""
    half: Literal["L", "U"] = "L" if attrs.bool("lower") else "U"
    return lambda a: tuple(np.linalg.eigh(as_array(a), UPLO=half))


@kernel("XlaSvd", types={"T": FLOATS - {dtypes.float16, dtypes.bfloat16}})
def make_xla_svd(attrs: Attrs) -> Kernel:
    """Singular values, largest first, and all left and right singular vectors as columns."""
    more = {"compute_uv": True, "full_matrices": True}
    return make_svd(dataclasses.replace(attrs, values={**attrs.values, **more}))


@kernel("XlaSetDynamicDimensionSize", cost=Cost.CHEAP)
def make_set_dynamic_dimension_size(_: Attrs) -> Kernel:
    """The first so many slices along an axis."""

    def set_dynamic_dimension_size(x: Value, dim_index: Value, size: Value) -> Value:
        array = as_array(x)
        if dim_index.ndim or size.ndim:
            raise InvalidArgumentError("dim_index and size has to be int32 scalar value")
        axis, count = int(dim_index), int(size)
        if not 0 <= axis < array.ndim:
            raise InvalidArgumentError(f"SetDimensionSize dimension out of bounds: {axis}.")
        if not 0 <= count <= array.shape[axis]:
            raise InvalidArgumentError(
                f"size {count} is not between 0 and the {array.shape[axis]} that there are"
            )
        return array[(slice(None),) * axis + (slice(count),)]

    return set_dynamic_dimension_size


@kernel("XlaSetBound", cost=Cost.CHEAP)
def make_set_bound(_: Attrs) -> Kernel:
    """The number itself: nothing is compiled for a largest size."""
    return lambda x, _bound: x


@kernel("XlaConcatND")
def make_concat_nd(attrs: Attrs) -> Kernel:
    """Blocks laid side by side in a grid, without the padding at its far ends."""
    counts, paddings = attrs.list("num_concats"), attrs.list("paddings")

    def concat_nd(*inputs: Array) -> Array:
        grid = _check_grid(counts, len(inputs), inputs[0].ndim)
        block = inputs[0].shape
        result = np.empty([n * c for n, c in zip(block, grid, strict=True)], inputs[0].dtype)
        for place, part in zip(np.ndindex(*grid), inputs, strict=True):
            result[_block(place, block)] = part
        cuts = paddings or [0] * len(grid)
        return result[tuple(slice(0, n - cut) for n, cut in zip(result.shape, cuts, strict=True))]

    return concat_nd


@kernel("XlaSplitND")
def make_split_nd(attrs: Attrs) -> Kernel:
    """The blocks of a grid, after padding with zeros at its far ends."""
    counts, paddings, parts = attrs.list("num_splits"), attrs.list("paddings"), attrs.int("N")

    def split_nd(x: Array) -> tuple[Array, ...]:
        grid = _check_grid(counts, parts, np.ndim(x))
        more = paddings or [0] * len(grid)
        shape = [n + add for n, add in zip(shape_of(x), more, strict=True)]
        if any(n % count for n, count in zip(shape, grid, strict=True)):
            raise InvalidArgumentError(
                f"'num_splits' must divide the padded shape {shape_text(shape)} evenly, got "
                f"{list(grid)}"
            )
        whole = np.pad(x, [(0, add) for add in more])
        block = [n // count for n, count in zip(shape, grid, strict=True)]
        return tuple(whole[_block(place, block)] for place in np.ndindex(*grid))

    return split_nd


def _check_grid(counts: Sequence[int], parts: int, rank: int) -> tuple[int, ...]:
    if len(counts) != rank or int(np.prod(counts)) != parts:
        raise InvalidArgumentError(
            f"a grid of {list(counts)} blocks does not have {rank} dimensions and {parts} blocks"
        )
    return tuple(counts)


def _block(place: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(at * n, (at + 1) * n) for at, n in zip(place, sizes, strict=True))
