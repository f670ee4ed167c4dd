"""Strings split, joined by segment and cut into n-grams; expected values were recorded from TensorFlow."""

# ruff: noqa: E501 (messages are kept on one line)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.ops import run_op
from support.recorded import args, call, plain

#: Three elements of a 3x2 matrix, out of order, and two in order.
ANSWERS = [
    (
        "StringSplit",
        args(input=["a b  c", " d "], delimiter=" "),
        [[[0, 0], [0, 1], [0, 2], [1, 0]], [b"a", b"b", b"c", b"d"], [2, 3]],
    ),
    (
        "StringSplit",
        args(input=["a b  c", " d ", ""], delimiter=" ", skip_empty=False),
        [
            [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1], [1, 2]],
            [b"a", b"b", b"", b"c", b"", b"d", b""],
            [3, 4],
        ],
    ),
    (
        "StringSplit",
        args(input=["a b,c", "dé"], delimiter=""),
        [
            [[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [1, 0], [1, 1], [1, 2]],
            [b"a", b" ", b"b", b",", b"c", b"d", b"\xc3", b"\xa9"],
            [2, 5],
        ],
    ),
    (
        "StringSplit",
        args(input=["a b,c", "d,"], delimiter=" ,", skip_empty=False),
        [[[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], [b"a", b"b", b"c", b"d", b""], [2, 3]],
    ),
    ("StringSplit", args(input=[], delimiter=" "), [[], [], [0, 0]]),
    (
        "StringSplitV2",
        args(input=["a b  c", " d ", "", "  "], sep=""),
        [[[0, 0], [0, 1], [0, 2], [1, 0]], [b"a", b"b", b"c", b"d"], [4, 3]],
    ),
    (
        "StringSplitV2",
        args(input=["a b  c d", " d "], sep="", maxsplit=1),
        [[[0, 0], [0, 1], [1, 0], [1, 1]], [b"a", b"b  c d", b"d", b""], [2, 2]],
    ),
    (
        "StringSplitV2",
        args(input=["a,,b,c", ",d,", ""], sep=",", maxsplit=2),
        [
            [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [2, 0]],
            [b"a", b"", b"b,c", b"", b"d", b"", b""],
            [3, 3],
        ],
    ),
    (
        "StringSplitV2",
        args(input=["a,,b,,c", ",d,", ""], sep=",,"),
        [[[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]], [b"a", b"b", b"c", b",d,", b""], [3, 3]],
    ),
    (
        "StringSplitV2",
        args(input=["a,,b,,c"], sep=",,", maxsplit=0),
        [[[0, 0]], [b"a,,b,,c"], [1, 1]],
    ),
    (
        "StringSplitV2",
        args(input=["a\x0bb\x1cc d e"], sep=""),
        [[[0, 0], [0, 1], [0, 2], [0, 3]], [b"a", b"b\x1cc", b"d", b"e"], [1, 4]],
    ),
    (
        "UnsortedSegmentJoin",
        args(
            inputs=[["a", "b"], ["c", "d"]],
            segment_ids=[[1, 0], [1, 0]],
            num_segments=3,
            separator="-",
        ),
        [b"b-d", b"a-c", b""],
    ),
    (
        "UnsortedSegmentJoin",
        args(inputs=[["a", "b"], ["c", "d"]], segment_ids=[1, 1], num_segments=3, separator="-"),
        [[b"", b""], [b"a-c", b"b-d"], [b"", b""]],
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b", "c", "d"],
            data_splits=[0, 3, 4, 4],
            separator="|",
            ngram_widths=[2, 3],
            left_pad="L",
            right_pad="R",
            pad_width=-1,
            preserve_short_sequences=False,
        ),
        [
            [
                b"L|a",
                b"a|b",
                b"b|c",
                b"c|R",
                b"L|L|a",
                b"L|a|b",
                b"a|b|c",
                b"b|c|R",
                b"c|R|R",
                b"L|d",
                b"d|R",
                b"L|L|d",
                b"L|d|R",
                b"d|R|R",
                b"L|R",
                b"L|L|R",
                b"L|R|R",
            ],
            [0, 9, 14, 17],
        ],
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b", "c", "d"],
            data_splits=[0, 3, 4, 4],
            separator="|",
            ngram_widths=[2, 3],
            left_pad="",
            right_pad="",
            pad_width=0,
            preserve_short_sequences=True,
        ),
        [[b"a|b", b"b|c", b"a|b|c", b"d"], [0, 3, 4, 4]],
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b", "c", "d"],
            data_splits=[0, 3, 4, 4],
            separator="|",
            ngram_widths=[2, 3],
            left_pad="L",
            right_pad="R",
            pad_width=1,
            preserve_short_sequences=False,
        ),
        [
            [
                b"L|a",
                b"a|b",
                b"b|c",
                b"c|R",
                b"L|a|b",
                b"a|b|c",
                b"b|c|R",
                b"L|d",
                b"d|R",
                b"L|d|R",
                b"L|R",
            ],
            [0, 7, 10, 11],
        ],
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b", "c", "d"],
            data_splits=[0, 3, 4, 4],
            separator="|",
            ngram_widths=[5, 3],
            left_pad="L",
            right_pad="R",
            pad_width=1,
            preserve_short_sequences=True,
        ),
        [[b"L|a|b|c|R", b"L|a|b", b"a|b|c", b"b|c|R", b"L|d|R"], [0, 4, 5, 5]],
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b", "c", "d"],
            data_splits=[0, 3, 4, 4],
            separator="|",
            ngram_widths=[2],
            left_pad="L",
            right_pad="",
            pad_width=-1,
            preserve_short_sequences=True,
        ),
        [[b"L|a", b"a|b", b"b|c", b"c|", b"L|d", b"d|", b"L|"], [0, 4, 6, 7]],
    ),
    (
        "StringNGrams",
        args(
            data=[],
            data_splits=[],
            separator="|",
            ngram_widths=[1],
            left_pad="L",
            right_pad="R",
            pad_width=-1,
            preserve_short_sequences=True,
        ),
        [[], []],
    ),
]
REFUSALS = [
    (
        "StringSplit",
        args(input="a b", delimiter=" "),
        errors.InvalidArgumentError,
        "input must be a vector, got shape: []",
    ),
    (
        "StringSplit",
        args(input=["a b"], delimiter=[" ", ","]),
        errors.InvalidArgumentError,
        "delimiter must be a scalar, got shape: [2]",
    ),
    (
        "StringSplitV2",
        args(input=["a"], sep=["a"]),
        errors.InvalidArgumentError,
        "sep must be a scalar, got shape: [1]",
    ),
    (
        "StringSplitV2",
        args(input="a", sep="a"),
        errors.InvalidArgumentError,
        "input must be a vector, got shape: []",
    ),
    (
        "UnsortedSegmentJoin",
        args(inputs=["a", "b", "c", "d"], segment_ids=[1, 0, 1, -1], num_segments=3, separator="-"),
        errors.InvalidArgumentError,
        "segment_ids are not allowed to exceed num_segments or to have negative values.",
    ),
    (
        "UnsortedSegmentJoin",
        args(inputs=["a", "b"], segment_ids=[1, 5], num_segments=3, separator="-"),
        errors.InvalidArgumentError,
        "segment_ids are not allowed to exceed num_segments or to have negative values.",
    ),
    (
        "UnsortedSegmentJoin",
        args(inputs=["a", "b"], segment_ids=[1, 0], num_segments=-3, separator="-"),
        errors.InvalidArgumentError,
        "Number of segments must be non-negative but got -3",
    ),
    (
        "UnsortedSegmentJoin",
        args(inputs="a", segment_ids=1, num_segments=3, separator="-"),
        errors.InvalidArgumentError,
        "Segment_id cannot have rank 0",
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b"],
            data_splits=[0, 3],
            separator="|",
            ngram_widths=[2],
            left_pad="L",
            right_pad="R",
            pad_width=-1,
            preserve_short_sequences=True,
        ),
        errors.InvalidArgumentError,
        "Invalid split value 3, must be in [0, 2]",
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b"],
            data_splits=[1, 2],
            separator="|",
            ngram_widths=[2],
            left_pad="L",
            right_pad="R",
            pad_width=-1,
            preserve_short_sequences=True,
        ),
        errors.InvalidArgumentError,
        "First split value must be 0, got 1",
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b"],
            data_splits=[0, 2, 1],
            separator="|",
            ngram_widths=[2],
            left_pad="L",
            right_pad="R",
            pad_width=-1,
            preserve_short_sequences=True,
        ),
        errors.InvalidArgumentError,
        "Invalid split value 1, must be in [2, 2]",
    ),
    (
        "StringNGrams",
        args(
            data=["a", "b"],
            data_splits=[0, 2],
            separator="|",
            ngram_widths=[0],
            left_pad="L",
            right_pad="R",
            pad_width=-1,
            preserve_short_sequences=True,
        ),
        errors.InvalidArgumentError,
        "ngram_widths must contain positive values",
    ),
]


@pytest.mark.parametrize(("op", "given", "answer"), ANSWERS)
def test_split(op: str, given: dict[str, Any], answer: Any) -> None:
    """Each op gives what TensorFlow gives."""
    assert plain(call(op, **given)) == plain(answer)


@pytest.mark.parametrize(("op", "given", "error", "message"), REFUSALS)
def test_split_refused(
    op: str, given: dict[str, Any], error: type[errors.OpError], message: str
) -> None:
    """What TensorFlow refuses is refused, in its words."""
    with pytest.raises((error, ValueError)) as raised:
        call(op, **given)
    assert message in str(raised.value)


@pytest.mark.parametrize("width", [4, 2**31 - 1])
def test_grams_that_no_row_is_long_enough_for(width: int) -> None:
    """There are none, however wide, and that takes neither time nor memory."""
    found = run_op(
        "StringNGrams", np.array([b"a", b"b", b"c"], object), np.array([0, 2, 3]),
        separator=b"", ngram_widths=(width,), left_pad=b"", right_pad=b"", pad_width=0,
        preserve_short_sequences=False,
    )  # fmt: skip
    assert [part.tolist() for part in found] == [[], [0, 0, 0]]


def test_all_bytes() -> None:
    """Without a delimiter, each byte is a part."""
    text = bytes(range(256))
    indices, values, shape = run_op(
        "StringSplit", np.array([text, b"", b"ab"], object), b"", skip_empty=True
    )
    assert values.tolist() == [bytes([value]) for value in (*range(256), 97, 98)]
    assert indices.tolist() == [*([0, at] for at in range(256)), [2, 0], [2, 1]]
    assert shape.tolist() == [3, 256]
