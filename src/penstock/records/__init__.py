"""Files of records (TFRecord), and the examples that they hold, without a graph."""

from __future__ import annotations

from penstock.records.examples import (
    SequenceExample,
    decode_example,
    decode_sequence_example,
    encode_example,
    encode_sequence_example,
)
from penstock.records.files import Writer, read, read_examples, write

__all__ = [
    "SequenceExample",
    "Writer",
    "decode_example",
    "decode_sequence_example",
    "encode_example",
    "encode_sequence_example",
    "read",
    "read_examples",
    "write",
]
