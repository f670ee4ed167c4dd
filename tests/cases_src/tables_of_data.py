"""Tables filled from datasets."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import graph, i64, s, steps


def table(tf: Any, keys: Any, values: Any) -> Any:
    """A table that is filled from a dataset, and read."""
    raw = tf.raw_ops
    made = raw.HashTableV2(
        key_dtype=keys.dtype.name.replace("object", "string"), value_dtype="int64"
    )
    dataset = tf.data.Dataset.from_tensor_slices((keys, values))
    fill = raw.InitializeTableFromDataset(table_handle=made, dataset=dataset._variant_tensor)
    look = raw.LookupTableFindV2(table_handle=made, keys=keys[::-1], default_value=np.int64(-1))
    size = raw.LookupTableSizeV2(table_handle=made)
    return steps([fill], [look, size])


def refused(tf: Any, keys: Any, values: Any) -> Any:
    """A dataset that a table does not take."""
    raw = tf.raw_ops
    made = raw.HashTableV2(key_dtype="int64", value_dtype="int64")
    dataset = tf.data.Dataset.from_tensor_slices((keys, values))
    return raw.InitializeTableFromDataset(table_handle=made, dataset=dataset._variant_tensor)


CASES = [
    graph(table, s([b"a", b"b", b"cc"]), i64([5, 6, 7])),
    graph(table, i64([4, 3]), i64([5, 6])),
    graph(table, i64([4, 4]), i64([5, 5])),
    graph(refused, i64([]), i64([]), says="end of iterator"),
    graph(refused, i64([1, 1]), i64([5, 6]), says="different value for same key"),
]
