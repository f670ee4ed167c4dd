"""Tables that are filled from datasets.

In:   a handle of a table, a dataset of keys and values.
Out:  nothing; the table is filled.
Not:  knows no kind of table and no kind of dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value
from penstock.errors import InvalidArgumentError, OutOfRangeError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Kernel, async_kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.datasets.dataset import Iterator, dataset_in
from penstock.kernels.datasets.pulling import Pull, drive
from penstock.kernels.lookup.lookup_ops import table_of


@async_kernel("InitializeTableFromDataset")
def make_initialize_table_from_dataset(_attrs: Attrs) -> Kernel:
    """Nothing; the table holds the keys and values that the dataset's elements are."""

    def initialize(context: OpKernelContext, done: Done, handle: Value, data: Value) -> None:
        table, dataset = table_of(context, handle), dataset_in(data)
        wanted = table.spec.key_dtype, table.spec.value_dtype
        if dataset.types != wanted:
            raise InvalidArgumentError(
                f"Unexpected dataset types: {', '.join(map(type_text, dataset.types))}, but the "
                f"table has {', '.join(map(type_text, wanted))}"
            )
        container = getattr(as_value(handle), "container", "") or "localhost"

        def fill(keys: list[Any], values: list[Any]) -> None:
            table.fill(container, _column(keys, wanted[0]), _column(values, wanted[1]))

        drive(_filling(dataset.make_iterator(), fill), context, done)

    return initialize


def _filling(upstream: Iterator, fill: Callable[[list[Any], list[Any]], None]) -> Pull:
    """Take all elements, and give them to ``fill``."""
    keys: list[Any] = []
    values: list[Any] = []
    while (element := (yield from upstream.next())) is not None:
        keys.append(as_value(element[0]))
        values.append(as_value(element[1]))
    if not keys:
        raise OutOfRangeError("end of iterator")
    fill(keys, values)
    return ()


def _column(items: list[Any], dtype: DType) -> Value:
    column = np.empty(len(items), dtype.numpy)
    column[:] = items
    return column
