"""Rows of different lengths, which are between words and what is made of them.

In:   a column of texts.
Out:  ``Rows``: all their words, or characters, and where each row ends; as a matrix at last.
Not:  knows no layers; no model gives such rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Rows:
    """The elements of all rows, one behind the other."""

    #: Of rank 1.
    values: Tensor
    #: Where each row begins, and the last one ends: int64.
    splits: Tensor

    def with_values(self, values: Tensor) -> Rows:
        """Rows of the same lengths."""
        return replace(self, values=values)

    def filled(self, length: int | None) -> Tensor:
        """A matrix with 0 behind each row; as wide as the longest, unless a length is given."""
        shape = np.array([-1, -1 if length is None else length], np.int64)
        zero = np.zeros((), self.values.dtype.numpy)
        return ops.ragged_tensor_to_tensor(
            shape, self.values, zero, [self.splits], row_partition_types=["ROW_SPLITS"]
        )


def split_at_spaces(texts: Tensor) -> Rows:
    """The words of each text."""
    indices, words, shape = ops.string_split_v2(texts, ops.constant(b""))
    row_of = ops.expand_dims(indices[:, 0], 0)
    ends = ops.range(np.int64(0), shape[0] + np.int64(1), np.int64(1))
    splits = ops.lower_bound(row_of, ops.expand_dims(ends, 0), out_type=dtypes.int64)
    return Rows(words, ops.squeeze(splits, squeeze_dims=[0]))


def split_characters(texts: Tensor) -> Rows:
    """The characters of each text; what is no UTF-8 is U+FFFD."""
    splits, numbers = ops.unicode_decode(texts, "UTF-8", errors="replace", Tsplits=dtypes.int64)
    each = ops.range(
        np.int64(0), ops.size(numbers, out_type=dtypes.int64) + np.int64(1), np.int64(1)
    )
    return Rows(ops.unicode_encode(numbers, each, "UTF-8"), splits)


def joined(rows: Rows, widths: Sequence[int]) -> Rows:
    """So many words behind each other as one, for each of several widths."""
    made = ops.string_n_grams(
        rows.values,
        rows.splits,
        separator=" ",
        ngram_widths=list(widths),
        left_pad="",
        right_pad="",
        pad_width=0,
        preserve_short_sequences=False,
    )
    return Rows(made[0], made[1])
