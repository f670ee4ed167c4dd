"""Serialized sequence examples as tensors.

In:   strings that hold ``SequenceExample``; the keys of features and what they are to look like.
Out:  per feature of the context, and per list of features, a dense, sparse or ragged tensor.
Not:  reads no files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import starmap
from typing import Any

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.defs.schema import SequenceExample
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.parsing.examples import (
    Dense,
    Row,
    check_counts,
    feature_values,
    joined,
    parse,
    ragged_batch,
    row_splits,
    sparse_batch,
    titles,
)
from penstock.kernels.values.arrays import as_array, shape_text, zeros
from penstock.kernels.values.strings import items_of


def _texts(value: Value) -> list[str]:
    return [key.decode("utf-8", "replace") for key in as_array(value).ravel().tolist()]


def _steps(row: Row, key: str, dtype: DType) -> list[Array] | None:
    """The values of a list of features, step by step; None if the list is not there."""
    if key not in row.features:
        return None
    features = row.features[key].feature
    found = (feature_values(feature, dtype, row.place(key)) for feature in features)
    return [zeros((0,), dtype) if values is None else values for values in found]


def _sparse_lists(key: str, dtype: DType, rows: Sequence[Row]) -> tuple[Array, Array, Array]:
    """Places (example, step, number), values and sizes."""
    lists = [_steps(row, key, dtype) or [] for row in rows]
    places = [
        (at, step, number)
        for at, steps in enumerate(lists)
        for step, values in enumerate(steps)
        for number in range(len(values))
    ]
    columns = [values for steps in lists for values in steps]
    longest = max((len(steps) for steps in lists), default=0)
    widest = max(map(len, columns), default=0)
    indices = np.array(places, np.int64).reshape(len(places), 3)
    return indices, joined(columns, dtype), np.array((len(rows), longest, widest), np.int64)


def _dense_lists(
    fact: tuple[str, DType, TensorShape, bool], rows: Sequence[Row]
) -> tuple[Array, Array]:
    """Values by example and step, filled up with zeros; and the number of steps of each."""
    key, dtype, shape, may_miss = fact
    sizes = shape.as_tuple()
    lists: list[list[Array]] = []
    for row in rows:
        steps = _steps(row, key, dtype)
        if steps is None and not may_miss:
            raise InvalidArgumentError(
                f"{row.title}Feature list '{key}' is required but could not be found.  "
                "Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?"
            )
        for values in steps or []:
            if len(values) != math.prod(sizes):
                raise InvalidArgumentError(
                    f"{row.place(key)}  Number of {type_text(dtype)} values != expected.  "
                    f"Values size: {len(values)} but output shape: {shape}"
                )
        lists.append(steps or [])
    lengths = np.array([len(steps) for steps in lists], np.int64)
    longest = int(lengths.max()) if len(lengths) else 0
    output = zeros((len(rows), longest, math.prod(sizes)), dtype)
    for at, steps in enumerate(lists):
        for step, values in enumerate(steps):
            output[at, step] = values
    return output.reshape(len(rows), longest, *sizes), lengths


def _ragged_lists(
    key: str, dtype: DType, split_dtype: DType, rows: Sequence[Row]
) -> tuple[Array, Array, Array]:
    """Values, splits of examples, splits of steps."""
    lists = [_steps(row, key, dtype) or [] for row in rows]
    columns = [values for steps in lists for values in steps]
    outer = row_splits(map(len, lists), split_dtype)
    return joined(columns, dtype), outer, row_splits(map(len, columns), split_dtype)


def _by_column(rows: Sequence[Sequence[Value]], width: int) -> list[Value]:
    return [row[at] for at in range(width) for row in rows]


@kernel("ParseSequenceExampleV2")
def make_parse_sequence_example_v2(attrs: Attrs) -> Kernel:
    """Features of a batch of sequence examples, or of a single one."""
    check_counts(attrs)

    def parse_sequences(*inputs: Value) -> tuple[Value, ...]:
        serialized, names = inputs[:2]
        if len(shape_of(serialized)) > 1:
            raise InvalidArgumentError(
                "Expected serialized to be a scalar or vector, got shape: "
                f"{shape_text(shape_of(serialized))}"
            )
        texts = items_of(serialized)
        messages = [parse(SequenceExample(), text) for text in texts]
        labels = titles(names, len(texts))
        context = rows_of([message.context.feature for message in messages], labels)
        lists = rows_of([message.feature_lists.feature_list for message in messages], labels)
        keys = [_texts(value) for value in inputs[2:8]]
        may_miss = as_array(inputs[8]).ravel().tolist()
        is_single = shape_of(serialized) == ()
        return (
            *in_context(attrs, context, keys[:3], inputs[9:], is_single=is_single),
            *in_lists(attrs, lists, keys[3:], may_miss, is_single=is_single),
        )

    return parse_sequences


def rows_of(features: Sequence[Any], labels: Sequence[str]) -> list[Row]:
    """Features by key, with what errors call each example."""
    return [
        Row(found, label, at)
        for at, (found, label) in enumerate(zip(features, labels, strict=True))
    ]


def in_context(
    attrs: Attrs,
    rows: Sequence[Row],
    keys: Sequence[Sequence[str]],
    defaults: Sequence[Value],
    *,
    is_single: bool,
) -> list[Value]:
    """Outputs for the context, which are those of plain examples."""
    sparse_keys, dense_keys, ragged_keys = keys
    types, shapes = attrs.list("Tcontext_dense"), attrs.list("context_dense_shapes")
    facts = zip(dense_keys, types, shapes, map(as_array, defaults), strict=True)
    dense = [feature.batch(rows) for feature in starmap(Dense, facts)]
    pairs = zip(sparse_keys, attrs.list("context_sparse_types"), strict=True)
    sparse = [sparse_batch(key, dtype, rows) for key, dtype in pairs]
    value_types = attrs.list("context_ragged_value_types")
    split_types = attrs.list("context_ragged_split_types")
    triples = zip(ragged_keys, value_types, split_types, strict=True)
    ragged = [ragged_batch(*triple, rows) for triple in triples]
    if is_single:
        dense = [batch[0] for batch in dense]
        sparse = [(places[:, 1:], values, shape[1:]) for places, values, shape in sparse]
        ragged = [(values, splits[:0]) for values, splits in ragged]
    return [*_by_column(sparse, 3), *map(as_value, dense), *_by_column(ragged, 2)]


def in_lists(
    attrs: Attrs,
    rows: Sequence[Row],
    keys: Sequence[Sequence[str]],
    may_miss: Sequence[bool],
    *,
    is_single: bool,
) -> list[Value]:
    """Outputs for the lists of features."""
    sparse_keys, dense_keys, ragged_keys = keys
    types, shapes = attrs.list("feature_list_dense_types"), attrs.list("feature_list_dense_shapes")
    facts = zip(dense_keys, types, shapes, may_miss, strict=True)
    dense = [_dense_lists(fact, rows) for fact in facts]
    pairs = zip(sparse_keys, attrs.list("feature_list_sparse_types"), strict=True)
    sparse = [_sparse_lists(key, dtype, rows) for key, dtype in pairs]
    value_types = attrs.list("feature_list_ragged_value_types")
    split_types = attrs.list("feature_list_ragged_split_types")
    triples = zip(ragged_keys, value_types, split_types, strict=True)
    ragged = [_ragged_lists(*triple, rows) for triple in triples]
    if is_single:
        dense = [(batch[0], lengths[0]) for batch, lengths in dense]
        sparse = [(places[:, 1:], values, shape[1:]) for places, values, shape in sparse]
        ragged = [(values, outer[:0], inner) for values, outer, inner in ragged]
    return [*_by_column(sparse, 3), *_by_column(dense, 2), *_by_column(ragged, 3)]
