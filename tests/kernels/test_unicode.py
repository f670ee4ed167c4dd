"""Unicode; expected values were recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import errors
from support.recorded import args, call, plain

#: Three elements of a 3x2 matrix, out of order, and two in order.
ANSWERS = [
    (
        "UnicodeDecodeWithOffsets",
        args(
            input=["aé\x01", b"\xffx\xe2\x82", "", b"\xf0\x9f\x98\x80"],
            input_encoding="UTF-8",
            errors="replace",
        ),
        [[0, 3, 6, 6, 7], [97, 233, 1, 65533, 120, 65533, 128512], [0, 1, 3, 0, 1, 2, 0]],
    ),
    (
        "UnicodeDecodeWithOffsets",
        args(
            input=["aé\x01", b"\xffx\xe2\x82y\xe2\xff"],
            input_encoding="UTF-8",
            errors="ignore",
            replace_control_characters=True,
        ),
        [[0, 2, 4], [97, 233, 120, 121], [0, 1, 1, 4]],
    ),
    (
        "UnicodeDecodeWithOffsets",
        args(
            input=["aé\x01\n"],
            input_encoding="UTF-8",
            errors="replace",
            replace_control_characters=True,
        ),
        [[0, 4], [97, 233, 65533, 65533], [0, 1, 3, 4]],
    ),
    (
        "UnicodeDecode",
        args(input=[["a"], ["b"]], input_encoding="UTF-8", errors="strict"),
        [[0, 1, 2], [97, 98]],
    ),
    (
        "UnicodeDecode",
        args(input="ab", input_encoding="UTF-8", errors="strict"),
        [[0, 2], [97, 98]],
    ),
    (
        "UnicodeDecode",
        args(input=[b"a\xe9"], input_encoding="latin1", errors="strict"),
        [[0, 2], [97, 233]],
    ),
    (
        "UnicodeDecode",
        args(input=[b"\x00a\x00b\x00"], input_encoding="UTF-16-BE", errors="replace"),
        [[0, 3], [97, 98, 65533]],
    ),
    (
        "UnicodeDecodeWithOffsets",
        args(
            input=[b"\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80"],
            input_encoding="UTF-8",
            errors="replace",
        ),
        [
            [0, 9],
            [65533, 65533, 65533, 65533, 65533, 65533, 65533, 65533, 65533],
            [0, 1, 2, 3, 4, 5, 6, 7, 8],
        ],
    ),
    (
        "UnicodeDecodeWithOffsets",
        args(input=[b"\xfe\xff\x00a"], input_encoding="UTF-16", errors="replace"),
        [[0, 1], [97], [0]],
    ),
    (
        "UnicodeDecodeWithOffsets",
        args(input=[b"\xef\xbb\xbfa"], input_encoding="UTF-8", errors="replace"),
        [[0, 2], [65279, 97], [0, 3]],
    ),
    (
        "UnicodeEncode",
        args(
            input_values=[97, 233, 0xD800, 0x110000, 0x1F600],
            input_splits=[0, 2, 2, 5],
            errors="replace",
            output_encoding="UTF-8",
        ),
        [b"a\xc3\xa9", b"", b"\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80"],
    ),
    (
        "UnicodeEncode",
        args(
            input_values=[97, 233, 0xD800, 0x110000, 0x1F600],
            input_splits=[0, 2, 2, 5],
            errors="ignore",
            output_encoding="UTF-16-BE",
        ),
        [b"\x00a\x00\xe9", b"", b"\xd8=\xde\x00"],
    ),
    (
        "UnicodeEncode",
        args(
            input_values=[97, 0xFFFF],
            input_splits=[0, 2],
            errors="replace",
            output_encoding="UTF-32-BE",
            replacement_char=63,
        ),
        [b"\x00\x00\x00a\x00\x00\xff\xff"],
    ),
    (
        "UnicodeTranscode",
        args(input=["aé\x01", b"\xffx"], input_encoding="UTF-8", output_encoding="UTF-16-BE"),
        [b"\x00a\x00\xe9\x00\x01", b"\xff\xfd\x00x"],
    ),
    (
        "UnicodeScript",
        args(input=[97, 0x3B1, 0x4E00, -1, 0x110000, 0xFFFF, 0x41F]),
        [25, 14, 17, -1, -1, 103, 8],
    ),
]
REFUSALS = [
    (
        "UnicodeDecodeWithOffsets",
        args(input=[b"\xff"], input_encoding="UTF-8", errors="strict"),
        errors.InvalidArgumentError,
        "Invalid formatting on input string",
    ),
    (
        "UnicodeDecode",
        args(input=[b"a\xe9"], input_encoding="nonsense", errors="strict"),
        errors.InvalidArgumentError,
        "Could not create converter for input encoding: nonsense",
    ),
    (
        "UnicodeEncode",
        args(
            input_values=[97, 233, 0xD800],
            input_splits=[0, 2, 3],
            errors="strict",
            output_encoding="UTF-8",
        ),
        errors.InvalidArgumentError,
        "Code point is out of range for Unicode, or is a surrogate.",
    ),
    (
        "UnicodeEncode",
        args(input_values=[97], input_splits=[0, 2, 3], errors="strict", output_encoding="UTF-8"),
        errors.InvalidArgumentError,
        "Last value in input_splits must be equal to length of input_tensor.",
    ),
    (
        "UnicodeEncode",
        args(input_values=[97], input_splits=[1, 1], errors="strict", output_encoding="UTF-8"),
        errors.InvalidArgumentError,
        "First value in input_splits must be zero.",
    ),
    (
        "UnicodeEncode",
        args(input_values=[97], input_splits=[], errors="strict", output_encoding="UTF-8"),
        errors.InvalidArgumentError,
        "Input_splits should contain elements, but given input_values has 0 elements",
    ),
    (
        "UnicodeEncode",
        args(
            input_values=[97, 98], input_splits=[0, 2, 1], errors="strict", output_encoding="UTF-8"
        ),
        errors.InvalidArgumentError,
        "Last value in input_splits must be equal to length of input_tensor.",
    ),
    (
        "UnicodeTranscode",
        args(input=[b"\xffx"], input_encoding="UTF-8", output_encoding="UTF-8", errors="strict"),
        errors.InvalidArgumentError,
        "Invalid formatting on input string",
    ),
]


@pytest.mark.parametrize(("op", "given", "answer"), ANSWERS)
def test_unicode(op: str, given: dict[str, Any], answer: Any) -> None:
    """Each op gives what TensorFlow gives."""
    assert plain(call(op, **given)) == plain(answer)


@pytest.mark.parametrize(("op", "given", "error", "message"), REFUSALS)
def test_unicode_refused(
    op: str, given: dict[str, Any], error: type[errors.OpError], message: str
) -> None:
    """What TensorFlow refuses is refused, in its words."""
    with pytest.raises((error, ValueError)) as raised:
        call(op, **given)
    assert message in str(raised.value)
