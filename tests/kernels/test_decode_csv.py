"""Comma-separated values; expected values were recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.recorded import args, call, plain

#: Three elements of a 3x2 matrix, out of order, and two in order.
ANSWERS = [
    (
        "DecodeCSV",
        args(records=['1,2.5,"a ""q"" b",x', " 3 ,,,"], record_defaults=[[1], [9.0], ["d"], ["e"]]),
        [[1, 3], [2.5, 9.0], [b'a "q" b', b"d"], [b"x", b"e"]],
    ),
    ("DecodeCSV", args(records=["1.5e400"], record_defaults=[[1.0]]), [[np.inf]]),
    (
        "DecodeCSV",
        args(records=['"a"b,c'], record_defaults=[[""], [""]], use_quote_delim=False),
        [[b'"a"b'], [b"c"]],
    ),
    (
        "DecodeCSV",
        args(records=["1,2,3,4"], record_defaults=[[1], [2]], select_cols=[1, 3]),
        [[2], [4]],
    ),
    ("DecodeCSV", args(records="1,2", record_defaults=[[1], 2]), [1, 2]),
    ("DecodeCompressed", args(bytes=[b"abc"], compression_type=""), [b"abc"]),
]
REFUSALS = [
    (
        "DecodeCSV",
        args(
            records=["1,NA"],
            record_defaults=[np.zeros(0, np.int32), np.zeros(0, np.int32)],
            na_value="NA",
        ),
        errors.InvalidArgumentError,
        "Field 1 is required but missing in record 0!",
    ),
    (
        "DecodeCSV",
        args(records=["1,2"], record_defaults=[[1]]),
        errors.InvalidArgumentError,
        "Expect 1 fields but have 2 in record 0",
    ),
    (
        "DecodeCSV",
        args(records=["1"], record_defaults=[[1], [2]]),
        errors.InvalidArgumentError,
        "Expect 2 fields but have 1 in record 0",
    ),
    (
        "DecodeCSV",
        args(records=["a"], record_defaults=[[1]]),
        errors.InvalidArgumentError,
        "Field 0 in record 0 is not a valid int32: a",
    ),
    (
        "DecodeCSV",
        args(records=['"a'], record_defaults=[[""]]),
        errors.InvalidArgumentError,
        "Quoted field has to end with quote followed by delim or end",
    ),
    (
        "DecodeCSV",
        args(records=['a"b"'], record_defaults=[[""]]),
        errors.InvalidArgumentError,
        "Unquoted fields cannot have quotes/CRLFs inside",
    ),
    (
        "DecodeCSV",
        args(records=['"a"b,c'], record_defaults=[[""], [""]]),
        errors.InvalidArgumentError,
        "Quote inside a string has to be escaped by another quote",
    ),
    (
        "DecodeCSV",
        args(records=["1,2"], record_defaults=[[1], [2]], select_cols=[1, 3]),
        errors.InvalidArgumentError,
        "Expect 2 fields but have 1 in record 0",
    ),
    (
        "DecodeCSV",
        args(records=["1,2"], record_defaults=[[1], [2]], select_cols=[3, 1]),
        errors.InvalidArgumentError,
        "select_cols should be strictly increasing indices",
    ),
    (
        "DecodeCSV",
        args(records=["1,2"], record_defaults=[[1], [2]], select_cols=[3]),
        errors.InvalidArgumentError,
        "select_cols should match output size",
    ),
    (
        "DecodeCSV",
        args(records=[["1,2"]], record_defaults=[[1], 2], field_delim="ab"),
        errors.InvalidArgumentError,
        "field_delim should be only 1 char",
    ),
    (
        "DecodeCSV",
        args(records=["1,2"], record_defaults=[[1, 2], 2]),
        errors.InvalidArgumentError,
        "There should only be 1 default per field but field 0 has 2",
    ),
    (
        "DecodeCSV",
        args(records=["", ""], record_defaults=[["a"]]),
        errors.InvalidArgumentError,
        "Expect 1 fields but have 0 in record 0",
    ),
    (
        "DecodeCSV",
        args(records=["a\n,b", "a\r\n,b\n"], record_defaults=[["a"], ["b"]]),
        errors.InvalidArgumentError,
        "Unquoted fields cannot have quotes/CRLFs inside",
    ),
    (
        "DecodeCSV",
        args(records=['"a\nb",b\r\n', "c,d\n"], record_defaults=[["a"], ["b"]]),
        errors.InvalidArgumentError,
        "Unquoted fields cannot have quotes/CRLFs inside",
    ),
    (
        "DecodeCSV",
        args(records=["1,"], record_defaults=[["a"], np.zeros(0, object)]),
        errors.InvalidArgumentError,
        "Field 1 is required but missing in record 0!",
    ),
    (
        "DecodeCSV",
        args(records=["99999999999"], record_defaults=[[1]]),
        errors.InvalidArgumentError,
        "Field 0 in record 0 is not a valid int32: 99999999999",
    ),
    (
        "DecodeCompressed",
        args(bytes=b"abc", compression_type="X"),
        errors.InvalidArgumentError,
        "Only ZLIB, ZSTD, GZIP or NONE are supported compressions",
    ),
]


@pytest.mark.parametrize(("op", "given", "answer"), ANSWERS)
def test_decode(op: str, given: dict[str, Any], answer: Any) -> None:
    """Each op gives what TensorFlow gives."""
    assert plain(call(op, **given)) == plain(answer)


@pytest.mark.parametrize(("op", "given", "error", "message"), REFUSALS)
def test_decode_refused(
    op: str, given: dict[str, Any], error: type[errors.OpError], message: str
) -> None:
    """What TensorFlow refuses is refused, in its words."""
    with pytest.raises((error, ValueError)) as raised:
        call(op, **given)
    assert message in str(raised.value)
