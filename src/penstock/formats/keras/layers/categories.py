"""Categories: their numbers, and rows that say which of them are there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array
from penstock.formats.keras.config import Config, is_whole
from penstock.formats.keras.layer import Layer, Weight, layer
from penstock.formats.keras.rows import Rows
from penstock.formats.keras.symbol import Symbol, constant_like

#: Types in which ops count.
_COUNTED: Final = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
#: The key that TensorFlow mixes into hashes of crossings unless it is told another.
_CROSSING_KEY: Final = 0xDECAFCAFFE
#: Other names of forms, in old files.
_OLD_MODES: Final = {"binary": "multi_hot", "tf-idf": "tf_idf"}
ENCODED: Final = ("one_hot", "multi_hot", "count")


def mode_of(config: Config, modes: Sequence[str], default: str) -> str:
    """The form in which a layer gives categories."""
    value = config.get("output_mode", default)
    if isinstance(value, str) and value in _OLD_MODES:
        return _OLD_MODES[value]
    return config.choice("output_mode", modes, default)


def encoded(config: Config, x: Symbol, mode: str, depth: int, dtype: DType) -> Symbol:
    """Numbers of categories in one of the forms; numbers from ``depth`` on are in no category.

    ``one_hot`` has a row for each number, ``multi_hot`` and ``count`` one for each row of numbers;
    a vector of numbers is one row.
    """
    if mode == "int":
        return x.made(ops.cast(x.tensor, dtype))
    if mode == "one_hot":
        return _one_hot(x, depth, dtype)
    if x.rank <= 2:
        shape = (*x.shape[:-1], depth)
        return x.made(_counted(_whole(x.tensor), depth, dtype, is_binary=mode != "count"), shape)
    if not config.is_keras_3:
        raise config.error(f"it counts rows of numbers, and gets an input of rank {x.rank}")
    # Keras 3 counts along the second dimension, however many there are.
    rows = _one_hot(x.made(ops.expand_dims(x.tensor, -1), (*x.shape, 1)), depth, dtype)
    reduced = ops.sum if mode == "count" else ops.max
    return x.made(reduced(rows.tensor, [1]), (x.shape[0], *x.shape[2:], depth))


def encoded_rows(rows: Rows, mode: str, depth: int, dtype: DType) -> Tensor:
    """``multi_hot`` or ``count`` of rows of different lengths, which hold numbers."""
    counts = dtype if dtype in _COUNTED else dtypes.float32
    none, size = np.zeros(0, counts.numpy), np.array(depth, rows.values.dtype.numpy)
    made = ops.ragged_bincount(rows.splits, rows.values, size, none, binary_output=mode != "count")
    return ops.cast(made, dtype)


def _one_hot(x: Symbol, depth: int, dtype: DType) -> Symbol:
    """A row for each number; a last dimension of size 1 becomes that of the row."""
    one, zero = np.ones((), dtype.numpy), np.zeros((), dtype.numpy)
    numbers, shape = _whole(x.tensor), x.shape
    if x.rank > 1 and shape[-1] == 1:
        numbers, shape = ops.squeeze(numbers, squeeze_dims=[x.rank - 1]), shape[:-1]
    return x.made(ops.one_hot(numbers, np.int32(depth), one, zero), (*shape, depth))


def _counted(numbers: Tensor, depth: int, dtype: DType, *, is_binary: bool) -> Tensor:
    counts = dtype if dtype in _COUNTED else dtypes.float32
    none, size = np.zeros(0, counts.numpy), np.array(depth, numbers.dtype.numpy)
    made = ops.dense_bincount(numbers, size, none, binary_output=is_binary)
    return made if counts is dtype else ops.cast(made, dtype)


def _whole(x: Tensor) -> Tensor:
    """Numbers of categories as int32 or int64."""
    return x if x.dtype in (dtypes.int32, dtypes.int64) else ops.cast(x, dtypes.int32)


@layer("CategoryEncoding", converts=False)
def category_encoding(self: Layer, x: Symbol, count_weights: Any = None) -> Symbol:
    """Which of so many categories there are, or how often each is there."""
    count = self.config.integer("num_tokens", at_least=1)
    mode = mode_of(self.config, ENCODED, "multi_hot")
    if count_weights is not None:
        return _weighted(self, x, count_weights, count)
    return encoded(self.config, x, mode, count, self.config.dtype)


def _weighted(self: Layer, x: Symbol, weights: Any, count: int) -> Symbol:
    """The sum of the weights of each category, row by row."""
    if not isinstance(weights, Symbol) or x.rank > 2:
        raise self.config.unsupported(f"weights of counts in {x.rank} dimensions")
    numbers, dtype = _whole(x.tensor), self.config.dtype
    if dtype not in _COUNTED:
        raise self.config.unsupported(f"weights of counts of type {dtype}")
    size = np.array(count, numbers.dtype.numpy)
    made = ops.dense_bincount(numbers, size, ops.cast(weights.tensor, dtype))
    return x.made(made, (*x.shape[:-1], count))


# -- intervals ------------------------------------------------------------------------------------


def _summary(config: Config) -> list[Weight]:
    """What Keras 2 has learned of the numbers, of which Keras 3 keeps the intervals."""
    has_bounds = config.settings.get("bin_boundaries") is not None
    return [] if has_bounds or config.is_keras_3 else [Weight("summary", is_trained=False)]


@layer("Discretization", weights=_summary, converts=False)
def discretization(self: Layer, x: Symbol) -> Symbol:
    """The number of the interval that each number is in."""
    config = self.config
    mode = mode_of(config, ("int", *ENCODED), "int")
    bounds = _learned_bounds(self) if self.arrays else _given_bounds(config)
    # Bucketize takes few types, and Keras' numbers are real ones.
    x = x if x.tensor.dtype in _COUNTED else x.made(ops.cast(x.tensor, dtypes.float32))
    place = x.made(ops.bucketize(x.tensor, boundaries=bounds))
    own = config.dtype
    if mode == "int" and config.is_keras_3:
        return place
    if mode == "int":
        own = own if own.is_integer else dtypes.int64
    return encoded(config, place, mode, len(bounds) + 1, own)


def _given_bounds(config: Config) -> list[float]:
    bounds = config.items("bin_boundaries")
    is_number = all(isinstance(b, (int, float)) and not isinstance(b, bool) for b in bounds)
    if not is_number or not all(math.isfinite(b) for b in bounds):
        raise config.error("'bin_boundaries' must be numbers")
    return sorted(float(bound) for bound in bounds)


def _learned_bounds(self: Layer) -> list[float]:
    """Between as many intervals as there are to be, of about equally many numbers each."""
    summary = self.array("summary", (2, None))
    wanted = self.config.integer("num_bins", at_least=1)
    found = _quantiles(summary, 1.0 / wanted) if summary.shape[1] >= wanted else summary[0, :-1]
    return [float(bound) for bound in found]


def _quantiles(summary: Array, share: float) -> Array:
    """Values below which each further ``share`` of all weights is, without the last.

    ``summary`` has values in its first row, and how many numbers each stands for in the second.
    """
    weights = summary[1].cumsum()
    shares = share + np.arange(0.0, 1.0, share)
    bounds: Array = np.interp(shares, weights / weights[-1], summary[0]).astype(np.float32)
    return bounds[:-1]


# -- hashes ---------------------------------------------------------------------------------------


def hashed(x: Tensor, count: int, salt: tuple[int, int] | None) -> Tensor:
    """The bucket of each word, of which there are ``count``, as int64."""
    if salt is None:
        return ops.string_to_hash_bucket_fast(x, num_buckets=count)
    return ops.string_to_hash_bucket_strong(x, num_buckets=count, key=list(salt))


def salt_of(config: Config) -> tuple[int, int] | None:
    """The key of a layer's hashes, which may be one number for both halves."""
    value = config.get("salt", None)
    if value is None:
        return None
    items = value if isinstance(value, (list, tuple)) else [value, value]
    if len(items) != 2 or not all(is_whole(i) and -(2**63) <= i < 2**63 for i in items):
        raise config.error("'salt' must be one or two whole numbers")
    return int(items[0]), int(items[1])


@layer("Hashing", converts=False)
def hashing(self: Layer, x: Symbol) -> Symbol:
    """Words, or whole numbers as words, by their hash; the first bucket may be for a mark."""
    config = self.config
    count = config.integer("num_bins", at_least=1)
    mode = mode_of(config, ("int", *ENCODED), "int")
    mark = config.get("mask_value", None)
    has_mark = mark is not None and count > 1
    bucket = hashed(_text(x.tensor), count - has_mark, salt_of(config))
    if has_mark:
        is_mark = ops.equal(x.tensor, _mark_like(config, mark, x.tensor))
        bucket = ops.select_v2(is_mark, np.int64(0), bucket + np.int64(1))
    own = config.dtype
    if mode == "int" and not own.is_integer:
        own = dtypes.int64
    if mode == "one_hot" and config.is_keras_3 and x.rank > 1 and x.shape[-1] == 1:
        bucket, shape = ops.squeeze(bucket, squeeze_dims=[x.rank - 1]), x.shape[:-1]
        return encoded(config, x.made(bucket, shape), mode, count, own)
    return encoded(config, x.made(bucket), mode, count, own)


def _text(x: Tensor) -> Tensor:
    """Numbers in decimal digits."""
    if x.dtype is dtypes.string:
        return x
    return ops.as_string(ops.cast(x, dtypes.int64) if x.dtype.is_floating else x)


def _mark_like(config: Config, mark: Any, x: Tensor) -> Any:
    if x.dtype is dtypes.string:
        if not isinstance(mark, str):
            raise config.error("'mask_value' must be text, as its input is")
        return ops.constant(mark.encode("utf-8", "replace"))
    return constant_like(config.number("mask_value"), x)


@layer("HashedCrossing", converts=False)
def hashed_crossing(self: Layer, inputs: Sequence[Symbol]) -> Symbol:
    """The bucket of each pair (or triple …) of words or whole numbers."""
    config = self.config
    if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
        raise config.error("it crosses two or more inputs")
    first = inputs[0]
    if first.rank > 2 or (first.rank == 2 and first.shape[-1] != 1):
        raise config.error(f"it crosses columns, and gets an input of the shape {first.shape}")
    count = config.integer("num_bins", at_least=1)
    columns = [_column(x.tensor) for x in inputs]
    are_all_text = all(column.dtype is dtypes.string for column in columns)
    crossed = ops.sparse_cross(
        [],
        [],
        [],
        columns,
        hashed_output=True,
        num_buckets=count,
        hash_key=_CROSSING_KEY,
        out_type=dtypes.int64,
        internal_type=dtypes.string if are_all_text else dtypes.int64,
    )
    buckets = first.made(ops.reshape(crossed[1], ops.shape(first.tensor)))
    mode = mode_of(config, ("int", "one_hot"), "int")
    own = config.dtype
    if mode == "int" and not own.is_integer:
        own = dtypes.int64
    return encoded(config, buckets, mode, count, own)


def _column(x: Tensor) -> Tensor:
    column = ops.reshape(x, np.array([-1, 1], np.int32))
    return column if x.dtype is dtypes.string else ops.cast(column, dtypes.int64)
