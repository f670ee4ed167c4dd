"""Strings joined and cut where there is nothing to join or cut, and numbers hard to read."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import EXACT, f32, f64, i32, i64, op, s

#: Texts around the middle between two numbers of float32, where the nearest number of float64 is
#: not enough to know; and everything else that C takes for a number, or nearly.
_NUMBERS = [
    b"1.0000000596046447753906250000000000001",
    b"1.000000059604644775390625",
    b"1.00000005960464477539062499999999999",
    b"-1.0000001788139343261718749999999999999",
    b"3.4028235677973366163e38",
    b"3.40282356779733661637539395458142568448e38",
    b"7.0064923216240853546186479164495806e-46",
    b"0x1.0000010000000000000001p0",
    b" 0x.8P+1\t",
    b"nan(abc_1)",
    b"NaN()",
    b"-nan(1)",
    b"-Infinity",
]
_NO_NUMBERS = [
    b"nan(-)",
    b"nan(1)x",
    b"nan( 1)",
    b"inf(1)",
    b"1_000",
    b"",
    b"0x",
    b"1e",
    b"\xd9\xa1",
]


def segments() -> list[Any]:
    """Segments of no strings at all, of no columns, and ids that do not fit."""
    pair = s([b"a", b"b"])
    cases = [
        op(
            "UnsortedSegmentJoin",
            inputs=s(np.zeros(shape, object)),
            segment_ids=i32(ids),
            num_segments=i32(count),
        )
        for shape, ids, count in [
            ((0,), [], 0),
            ((0,), [], 3),
            ((0, 3), [], 2),
            ((0, 3), [], 0),
            ((2, 0), [0, 1], 2),
            ((2, 0), np.zeros((2, 0)), 1),
            ((0, 0), np.zeros((0, 0)), 1),
        ]
    ]
    refused = "segment_ids are not allowed to exceed num_segments or to have negative values"
    cases += [
        op(
            "UnsortedSegmentJoin",
            inputs=pair,
            segment_ids=i64(ids),
            num_segments=i32(count),
            says=says,
        )
        for ids, count, says in [
            ([0, 2], 2, refused),
            ([-1, 0], 2, refused),
            ([0, 1], 0, refused),
            ([0, 0], -1, "Number of segments must be"),
            ([0, 0], [1], "Number of segments must be a scalar"),
            ([0], 2, "Segment dimension is"),
            (0, 2, "Segment_id cannot have rank 0"),
            ([[0, 1]], 2, "Invalid segment_id rank 2 for input with 1 dimension(s)"),
        ]
    ]
    says = "Duplicate reduction dimension -1"
    cases.append(op("ReduceJoin", inputs=pair, reduction_indices=i32([0, -1]), says=says))
    return cases


def splits() -> list[Any]:
    """No cut at all leaves even the white space; after the last cut there may be nothing."""
    texts = s([b"a b  c", b"", b" d ", b"e "])
    return [
        op("StringSplitV2", input=texts, sep=s(sep), maxsplit=limit)
        for sep in (b"", b" ")
        for limit in (-1, 0, 1, 2, 3)
    ]


def numbers() -> list[Any]:
    """The nearest number of the type that is wanted, and no other."""
    cases = []
    for dtype, make in (("float32", f32), ("float64", f64)):
        cases += [
            op("StringToNumber", string_tensor=s(text), out_type=dtype, **EXACT)
            for text in _NUMBERS
        ]
        cases += [
            op("DecodeCSV", records=s(text), record_defaults=[make([])], **EXACT)
            for text in _NUMBERS
        ]
        cases += [
            op(
                "StringToNumber",
                string_tensor=s(text),
                out_type=dtype,
                says="StringToNumberOp could not correctly convert string",
            )
            for text in _NO_NUMBERS
        ]
    return cases


#: Half way between two numbers of 32 bits.
_HALF_WAY = b"1.000000059604644775390625"
_ZEROS = b"0" * 5000


def long_numbers() -> list[Any]:
    """More digits than Python would make an integer of, and exponents that no number has."""
    texts = [_HALF_WAY + _ZEROS, _HALF_WAY + _ZEROS + b"1", b"9" * 5000, _ZEROS + b"1"]
    exponents = [
        b"0x1p99999",
        b"-0x1p99999",
        b"0x1p-99999",
        b"1e" + b"9" * 5000,
        b"1e-" + b"9" * 5000,
    ]
    return [
        *(
            op("StringToNumber", string_tensor=s(text), out_type=dtype, **EXACT)
            for text in (*texts, *exponents)
            for dtype in ("float32", "float64")
        ),
        op("StringToNumber", string_tensor=s(_ZEROS + b"1"), out_type="int32"),
        op("StringToNumber", string_tensor=s(b"-" + _ZEROS + b"12"), out_type="int64"),
        *(
            op("StringToNumber", string_tensor=s(text), out_type=dtype, says="could not correctly")
            for text in (b"9" * 5000, b"-" + b"1" * 21)
            for dtype in ("int32", "int64", "uint64")
        ),
    ]


CASES = [*segments(), *splits(), *numbers(), *long_numbers()]
