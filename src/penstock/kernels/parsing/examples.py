"""Features of serialized examples, gathered over a batch.

In:   parsed messages ``Example`` or ``SequenceExample``; what a feature is to look like.
Out:  its values in all examples: padded, sparse or with row splits.
Not:  registers no kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import as_array, shape_text, zeros

_KINDS: Final = {
    "bytes_list": dtypes.string,
    "float_list": dtypes.float32,
    "int64_list": dtypes.int64,
}
_LISTS: Final = {dtype: kind for kind, dtype in _KINDS.items()}


#: The types of features, by the attribute that says how many such features there are.
_TYPES: Final = {
    "Nsparse": "sparse_types",
    "num_sparse": "sparse_types",
    "Ncontext_sparse": "context_sparse_types",
    "Nfeature_list_sparse": "feature_list_sparse_types",
    "Nfeature_list_dense": "feature_list_dense_types",
}


def check_counts(attrs: Attrs) -> None:
    """Refuse a node with other numbers of outputs than of features."""
    for name in dict.fromkeys(output.number_attr for output in attrs.op.outputs):
        if name:
            count, types = attrs.int(name), len(attrs.list(_TYPES[name]))
            if count != types:
                raise InvalidArgumentError(
                    f"{name} ({count}) must match the size of {_TYPES[name]} ({types})"
                )


@dataclass(frozen=True, slots=True)
class Row:
    """One example's features, and what errors call the example."""

    features: Mapping[str, Any]
    title: str = ""
    #: Its number in the batch; None if it is the only one.
    index: int | None = None
    #: Keys that are looked for, but not found.
    unseen: frozenset[str] = frozenset()

    def values(self, key: str, dtype: DType, *, is_dense: bool = False) -> Array | None:
        """The feature's values; None if it is not there."""
        if key not in self.features or key in self.unseen:
            return None
        return feature_values(self.features[key], dtype, self.place(key), is_dense=is_dense)

    def place(self, key: str) -> str:
        """What errors call a feature of this example."""
        number = "" if self.index is None else f", Index: {self.index}"
        return f"{self.title}Key: {key}{number}."


def feature_values(
    feature: Any, dtype: DType, place: str, *, is_dense: bool = False
) -> Array | None:
    """A feature's values; None if it holds no list of values."""
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None
    if _KINDS[kind] is not dtype:
        found, wanted = type_text(_KINDS[kind]), type_text(dtype)
        detail = (
            f"Data type: {found} but expected type: {wanted}"
            if is_dense
            else f"Expected type: {wanted}, Actual type: {found}"
        )
        raise InvalidArgumentError(f"{place}  Data types don't match. {detail}")
    values = getattr(feature, kind).value
    array = np.empty(len(values), dtype.numpy)
    array[:] = values
    return array


def parse(message: Any, text: bytes) -> Any:
    """Read a serialized message into ``message``; returns it."""
    try:
        message.ParseFromString(text)
    except DecodeError as cause:
        shown = text.decode("utf-8", "replace")
        raise InvalidArgumentError(f"Could not parse example input, value: '{shown}'") from cause
    return message


@dataclass(frozen=True, slots=True)
class Dense:
    """How a dense feature is to look: its type, shape and default."""

    key: str
    dtype: DType
    shape: TensorShape
    default: Array

    @property
    def is_padded(self) -> bool:
        """Whether examples may have any number of rows."""
        return bool(self.shape.dims) and self.shape.dims[0] is None  # type: ignore[index]

    def check(self, at: int) -> None:
        """Raise unless the default fits."""
        size = self.default.size
        if self.is_padded:
            if size > 1:
                raise InvalidArgumentError(
                    f"dense_shape[{at}] is a variable length shape: {self.shape}, therefore "
                    f"def_value[{at}] must contain a single element ( the padding element). "
                    f"But its shape is: {shape_text(self.default.shape)}"
                )
        elif size and not self.shape.accepts(self.default.shape):
            raise InvalidArgumentError(
                f"def_value[{at}].shape() == {shape_text(self.default.shape)} is not compatible "
                f"with dense_shapes_[{at}] == {self.shape}"
            )

    def batch(self, rows: Sequence[Row]) -> Array:
        """All examples' values, one after the other along a new first axis."""
        return self._padded(rows) if self.is_padded else self._fixed(rows)

    def _fixed(self, rows: Sequence[Row]) -> Array:
        sizes = self.shape.as_tuple()
        count = math.prod(sizes)
        output = zeros((len(rows), count), self.dtype)
        for place, row in zip(output, rows, strict=True):
            values = row.values(self.key, self.dtype, is_dense=True)
            if values is None:
                if not self.default.size and count:
                    raise InvalidArgumentError(
                        f"{row.title}Feature: {self.key} (data type: "
                        f"{type_text(self.dtype)}) is required but could not be found."
                    )
                values = self.default.ravel()
            if len(values) != count:
                raise InvalidArgumentError(f"{row.place(self.key)}  {self._misfit(row, values)}")
            place[:] = values
        return output.reshape(len(rows), *sizes)

    def _misfit(self, row: Row, values: Array) -> str:
        """Why values of another number than wanted are refused: TensorFlow reads them in two ways.

        Those of a single example are read into the place where they are to be.
        """
        if row.index is not None:
            return (
                f"Number of {type_text(self.dtype)} values != expected.  "
                f"Values size: {len(values)} but output shape: {self.shape}"
            )
        kind = _LISTS[self.dtype]
        has_no_room = self.dtype is dtypes.string and len(values) > math.prod(self.shape.as_tuple())
        why = f"Parsing {kind} failed." if has_no_room else f"Some {kind} slice was not parsed."
        return f"Can't parse serialized Example: {why}"

    def _padded(self, rows: Sequence[Row]) -> Array:
        inner = tuple(size or 0 for size in (self.shape.dims or ())[1:])
        stride = math.prod(inner)
        columns = []
        for row in rows:
            values = row.values(self.key, self.dtype, is_dense=True)
            if values is not None and (stride == 0 or len(values) % stride):
                raise InvalidArgumentError(
                    f"{row.place(self.key)}  Number of {type_text(self.dtype)} values "
                    f"is not a multiple of stride length. Saw {len(values)} values but output "
                    f"shape is: {self.shape}"
                )
            columns.append(zeros((0,), self.dtype) if values is None else values)
        longest = max((len(values) // max(stride, 1) for values in columns), default=0)
        output = zeros((len(rows), longest * stride), self.dtype)
        if self.default.size:
            output.fill(self.default.ravel()[0])
        for place, values in zip(output, columns, strict=True):
            place[: len(values)] = values
        return output.reshape(len(rows), longest, *inner)


def sparse_batch(key: str, dtype: DType, rows: Sequence[Row]) -> tuple[Array, Array, Array]:
    """All examples' values as a sparse matrix with a row for each."""
    columns = _columns(key, dtype, rows)
    lengths = [len(values) for values in columns]
    indices = np.empty((sum(lengths), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), lengths)
    indices[:, 1] = [at for length in lengths for at in range(length)]
    shape = np.array((len(rows), max(lengths, default=0)), np.int64)
    return indices, joined(columns, dtype), shape


def ragged_batch(
    key: str, dtype: DType, split_dtype: DType, rows: Sequence[Row]
) -> tuple[Array, Array]:
    """All examples' values one after the other, and where each example's begin."""
    columns = _columns(key, dtype, rows)
    return joined(columns, dtype), row_splits(map(len, columns), split_dtype)


def row_splits(lengths: Any, dtype: DType) -> Array:
    """Where rows of these lengths begin, and the last one ends."""
    return np.array([0, *np.cumsum([*lengths])], dtype.numpy)


def joined(columns: Sequence[Array], dtype: DType) -> Array:
    """Arrays one after the other."""
    return np.concatenate([zeros((0,), dtype), *columns])


def _columns(key: str, dtype: DType, rows: Sequence[Row]) -> list[Array]:
    found = (row.values(key, dtype) for row in rows)
    return [zeros((0,), dtype) if values is None else values for values in found]


def checked_titles(names: Any, serialized: Any) -> list[str]:
    """What errors call each example; names may be missing."""
    wanted, found = as_array(serialized).shape, as_array(names).shape
    if 0 not in found and found != wanted:
        raise InvalidArgumentError(
            "Expected names have the same shape as serialized: "
            f"name.shape={shape_text(found)}, serialized.shape={shape_text(wanted)}"
        )
    return titles(names, math.prod(wanted))


def titles(names: Any, count: int) -> list[str]:
    """The same for sequence examples."""
    given = [name.decode("utf-8", "replace") for name in as_array(names).ravel().tolist()]
    if given and len(given) != count:
        raise InvalidArgumentError(
            f"Expected len(names) == len(serialized), but got: {len(given)} vs. {count}"
        )
    return [f"Name: {name}, " for name in given or ["<unknown>"] * count]
