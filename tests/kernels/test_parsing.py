"""Tensors as messages; expected bytes were recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from penstock.defs.schema import TensorProto
from support.ops import run_op


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int32([1, 2]), b'\x08\x03\x12\x04\x12\x02\x08\x02"\x08\x01\0\0\0\x02\0\0\0'),
        (np.int32(5), b'\x08\x03\x12\x00"\x04\x05\0\0\0'),
        (b"a", b"\x08\x07\x12\x00B\x01a"),
        (np.array([b"a", b"b"], object), b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x01b"),
        (np.zeros(0, np.float32), b"\x08\x01\x12\x02\x12\x00"),
        (np.float16([1]), b'\x08\x13\x12\x04\x12\x02\x08\x01"\x02\x00<'),
    ],
)
def test_round_trip(value: Any, text: bytes) -> None:
    """A tensor's message is TensorFlow's, byte by byte, and is read back."""
    assert run_op("SerializeTensor", value) == text

    out = run_op("ParseTensor", text, out_type=dtypes.of_numpy(np.asarray(value).dtype))

    assert np.array_equal(out, value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"abc",
        b"\xff\xff",
        TensorProto(dtype=3, tensor_content=b"abc").SerializeToString(),
    ],
)
def test_no_message(text: bytes) -> None:
    """What is no whole message of a tensor is refused."""
    with pytest.raises(errors.InvalidArgumentError, match=r"parse"):
        run_op("ParseTensor", text, out_type=dtypes.int32)


def test_type_must_be_the_declared_one() -> None:
    """A message of another type is refused."""
    text = run_op("SerializeTensor", np.int32(1))

    with pytest.raises(errors.InvalidArgumentError, match="Type mismatch between parsed tensor"):
        run_op("ParseTensor", text, out_type=dtypes.float32)
