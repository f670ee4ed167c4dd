"""Crosses of features: all combinations of one value of each column, row by row.

In:   columns, sparse or dense.
Out:  a sparse matrix with the combinations of each row.
Not:  joins no columns of more than two dimensions.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.sparse.sparse_tensor import sparse
from penstock.kernels.values.arrays import as_array
from penstock.kernels.values.fingerprints import farmhash64, siphash

_MASK: Final = (1 << 64) - 1
_MUL: Final = 0xC6A4A7935BD1E995


def _columns(inputs: Sequence[Value], count: int) -> list[list[list[Any]]]:
    """Per column and row the values that are there."""
    groups = (inputs[at * count : (at + 1) * count] for at in range(3))
    tensors = [sparse(*parts) for parts in zip(*groups, strict=True)]
    for tensor in tensors:
        if tensor.rank != 2:
            raise InvalidArgumentError(f"Expected D2 of index to be 2 got {tensor.rank}")
    dense = [as_array(value) for value in inputs[3 * count :]]
    for array in dense:
        if array.ndim != 2:
            raise InvalidArgumentError(f"Dense inputs should be a matrix, got rank {array.ndim}")
    sizes = {tensor.shape[0] for tensor in tensors} | {len(array) for array in dense}
    if len(sizes) > 1:
        raise InvalidArgumentError(f"Expected batch size to be the same, got {sorted(sizes)}")
    size = max(sizes, default=0)
    columns: list[list[list[Any]]] = []
    for tensor in tensors:
        rows: list[list[Any]] = [[] for _ in range(size)]
        for at, value in zip(tensor.indices[:, 0].tolist(), tensor.values.tolist(), strict=True):
            if not 0 <= at < size:
                raise InvalidArgumentError(f"index {at} is out of bounds for batch size {size}")
            rows[at].append(value)
        columns.append(rows)
    return columns + [array.tolist() for array in dense]


def _cross(
    columns: list[list[list[Any]]],
    join: Callable[[tuple[Any, ...]], Any],
    dtype: np.dtype[Any],
) -> tuple[Array, Array, Array]:
    rows = [
        [join(parts) for parts in itertools.product(*cells)] for cells in zip(*columns, strict=True)
    ]
    places = [(at, number) for at, row in enumerate(rows) for number in range(len(row))]
    values = np.empty(len(places), dtype)
    values[:] = [value for row in rows for value in row]
    indices = np.array(places, np.int64).reshape(len(places), 2)
    return indices, values, np.array((len(rows), max(map(len, rows), default=0)), np.int64)


def _text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _number(value: Any) -> int:
    return farmhash64(value) if isinstance(value, bytes) else value & _MASK


@kernel("SparseCrossV2")
def make_sparse_cross_v2(attrs: Attrs) -> Kernel:
    """Combinations as strings with a separator between the parts."""
    count = attrs.int("N")

    def cross(*inputs: Value) -> tuple[Array, Array, Array]:
        between: bytes = as_array(inputs[-1]).item()
        columns = _columns(inputs[:-1], count)
        return _cross(columns, lambda parts: between.join(map(_text, parts)), dtypes.string.numpy)

    return cross


@kernel("SparseCross")
def make_sparse_cross(attrs: Attrs) -> Kernel:
    """Combinations as strings, or as the buckets of their hashes."""
    count, buckets, key = attrs.int("N"), attrs.int("num_buckets"), attrs.int("hash_key")
    modulus = buckets or 2**63 - 1
    is_hashed, dtype = attrs.bool("hashed_output"), attrs.dtype("out_type").numpy

    def joined(parts: tuple[Any, ...]) -> bytes:
        return b"_X_".join(map(_text, parts))

    def hashed(parts: tuple[Any, ...]) -> int:
        digest = key & _MASK
        for part in parts:
            digest = _combined(digest, _number(part))
        return digest % modulus

    def cross(*inputs: Value) -> tuple[Array, Array, Array]:
        columns = _columns(inputs, count)
        return _cross(columns, hashed if is_hashed else joined, dtype)

    return cross


@kernel("SparseCrossHashed")
def make_sparse_cross_hashed(attrs: Attrs) -> Kernel:
    """Combinations as the buckets of their hashes; strong ones have the salt as their key."""
    count = attrs.int("N")

    def cross(*inputs: Value) -> tuple[Array, Array, Array]:
        buckets, is_strong, salt = inputs[-3:]
        modulus = int(buckets) or 2**63 - 1
        first, second = (int(part) & _MASK for part in salt)
        digest = functools.partial(siphash, (first, second)) if is_strong else farmhash64

        def hashed(parts: tuple[Any, ...]) -> int:
            return functools.reduce(_combined, (digest(_bytes(p)) for p in parts)) % modulus

        return _cross(_columns(inputs[:-3], count), hashed, dtypes.int64.numpy)

    return cross


def _bytes(value: Any) -> bytes:
    """What is hashed: text, or the lower half of a number."""
    if isinstance(value, bytes):
        return value
    return int(value & 0xFFFFFFFF).to_bytes(4, "little")


def _combined(a: int, b: int) -> int:
    """Two fingerprints as one, in the way of MurmurHash."""
    b = b * _MUL & _MASK
    digest = a ^ _MUL ^ (b ^ b >> 47) * _MUL & _MASK
    digest = digest * _MUL & _MASK
    digest = (digest ^ digest >> 47) * _MUL & _MASK
    return digest ^ digest >> 47
