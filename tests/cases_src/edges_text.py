"""Texts in UTF-16, UTF-32 and older encodings: marks of byte order, and bytes that mean nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import graph, i32, i64, op, s, steps

_TEXT = "aé€😀z"
#: What strings are made of: marks, letters, halves of pairs, single bytes.
_PIECES = {
    2: [b"\xfe\xff", b"\xff\xfe", b"\xd8\x3d", b"\xde\x00", b"\x00a", b"a\x00", b"\xd8\x3d\xde\x00",
        b"\x3d\xd8\x00\xde", b"a", b"\x00\x00", b"\xfe", b"\xff", b"\x00\x1f", b"\x00\x20"],
    4: [b"\x00\x00\xfe\xff", b"\xff\xfe\x00\x00", b"\x00\x00\x00a", b"a\x00\x00\x00",
        b"\x00\x01\xf6\x00", b"\x00\xf6\x01\x00", b"\x00", b"\xfe", b"\xff\xfe",
        b"\x00\x00\xd8\x00", b"\x00\x11\x00\x00", b"\x00\x00\xfe", b"\x00\x00\x00\x1f"],
}  # fmt: skip
_NAMES = {
    2: ["UTF-16", "utf-16", "UTF-16BE", "UTF-16-LE"],
    4: ["UTF-32", "utf_32", "UTF-32BE", "UTF-32LE"],
}


def marked() -> list[Any]:
    """Every encoding with either mark and with none, one string at a time."""
    cases = []
    for width, names in _NAMES.items():
        bits = 8 * width
        plain = [_TEXT.encode(f"utf-{bits}-{order}") for order in ("be", "le")]
        marks = [_PIECES[width][0], _PIECES[width][1]]
        texts = [*plain, *(a + b for a, b in zip(marks, plain, strict=True)), *marks, b"", b"a"]
        texts += [b"\x00\xd8", b"\xd8\x00", b"\xd8\x00a", b"\x00\x00\x00"]
        cases += [
            op("UnicodeDecodeWithOffsets", input=s([text]), input_encoding=name)
            for name in names
            for text in texts
        ]
    return cases


def batches() -> list[Any]:
    """The order of bytes that one string shows is the next one's, but not always."""
    rng = np.random.default_rng(3)
    cases = []
    for number in range(48):
        width = (2, 4)[number % 2]
        pieces = _PIECES[width]
        texts = [
            b"".join(pieces[i] for i in rng.integers(len(pieces), size=rng.integers(5)))
            for _ in range(6)
        ]
        args = {
            "input": s(texts),
            "input_encoding": _NAMES[width][rng.integers(3)],
            "errors": ("replace", "ignore")[rng.integers(2)],
            "replace_control_characters": bool(rng.integers(2)),
        }
        if number % 3:
            cases.append(op("UnicodeDecodeWithOffsets", **args))
        else:
            cases.append(op("UnicodeTranscode", **args, output_encoding="UTF-8"))
    return cases


def refusals() -> list[Any]:
    """What strict readers refuse, and what is no encoding."""
    says = "Invalid formatting on input string"
    controls = {"input": s([b"a\x1f"]), "input_encoding": "UTF-8", "errors": "strict"}
    cases = [
        op("UnicodeDecode", input=s([text]), input_encoding=name, errors="strict", says=says)
        for name, text in [
            ("UTF-16", b"\xd8\x00"),
            ("UTF-16BE", b"\x00a\xdc\x00\x00b"),
            ("UTF-16LE", b"a"),
            ("UTF-32", b"\x00\x11\x00\x00"),
            ("UTF-32LE", b"\x00\xd8\x00\x00"),
        ]
    ]
    cases += [
        op("UnicodeDecode", **controls, replace_control_characters=True),
        op("UnicodeTranscode", **controls, output_encoding="UTF-8"),
        op(
            "UnicodeTranscode",
            **controls,
            output_encoding="UTF-8",
            replace_control_characters=True,
            says=says,
        ),
    ]
    cases += [
        op(
            "UnicodeDecode",
            input=s([b"61"]),
            input_encoding=name,
            says=f"Could not create converter for input encoding: {name}",
        )
        for name in ("hex", "zlib", "idna", "unicode_escape", "rot13", "none", "")
    ]
    return cases


def of_bytes() -> list[Any]:
    """Every byte in the encodings of Windows, and in some others."""
    every = s([bytes([byte]) for byte in range(256)])
    names = [*(f"windows-{number}" for number in range(1250, 1259)), "cp1252", "latin1", "koi8-r"]
    cases = [op("UnicodeDecodeWithOffsets", input=every, input_encoding=name) for name in names]
    cases += [
        op(name, input=s([b"a\0b", b"\0", b"\xc3\xa9\xff\0Z"]), encoding=encoding)
        for name in ("StringLower", "StringUpper")
        for encoding in ("", "utf-8")
    ]
    return cases


def written() -> list[Any]:
    """Code points to bytes: surrogates, what is too large, and the largest."""
    rows = [[0xD800], [97, 0xDFFF], [-1], [0x110000], [0xFFFE, 0xFFFF], [0x10FFFF], [], [0]]
    values, lengths = [code for row in rows for code in row], [len(row) for row in rows]
    splits = i64(np.cumsum([0, *lengths]))
    return [
        op(
            "UnicodeEncode",
            input_values=i32(values),
            input_splits=splits,
            output_encoding=encoding,
            errors=errors,
            replacement_char=0x1F600,
        )
        for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for errors in ("replace", "ignore")
    ] + [
        graph(encode, i32([[97]]), i64([0, 1]), says="should be of rank 1"),
        graph(encode, i32([97]), i64([[0, 1]]), says="should be of rank 1"),
    ]


def encode(tf: Any, values: Any, splits: Any) -> Any:
    """Shapes that TensorFlow knows only when the graph runs."""
    fed_values = tf.placeholder(tf.int32)
    fed_splits = tf.placeholder(tf.int64)
    made = tf.raw_ops.UnicodeEncode(
        input_values=fed_values,
        input_splits=fed_splits,
        errors="replace",
        output_encoding="UTF-8",
    )
    return steps(({fed_values: values, fed_splits: splits}, [made]))


CASES = [*marked(), *batches(), *refusals(), *of_bytes(), *written()]
