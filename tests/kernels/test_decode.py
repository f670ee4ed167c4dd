"""Binary data in strings; expected values were recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from support.ops import run_op


@pytest.mark.parametrize(
    ("plain", "encoded", "padded"),
    [
        (b"", b"", b""),
        (b"a", b"YQ", b"YQ=="),
        (b"ab", b"YWI", b"YWI="),
        (b"\xff\xfe\xfb\xef", b"__777w", b"__777w=="),
    ],
)
def test_base64(plain: bytes, encoded: bytes, padded: bytes) -> None:
    """Web-safe base64 with and without padding, both of which are read."""
    assert run_op("EncodeBase64", plain) == encoded
    assert run_op("EncodeBase64", plain, pad=True) == padded
    assert run_op("DecodeBase64", encoded) == plain
    assert run_op("DecodeBase64", padded) == plain


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"Y", "length cannot be 1 modulo 4"), (b"YWJj=", "length cannot be 1 modulo 4"),
        (b"YQ=", "Invalid character"), (b"//77", "Invalid character"),
        (b"Y Q", "Invalid character"), (b"====", "Invalid character"),
        (b"YQ==YQ", "Invalid character"),
    ],
)  # fmt: skip
def test_no_base64(text: bytes, reason: str) -> None:
    """Wrong lengths, padding and characters are refused."""
    with pytest.raises(errors.InvalidArgumentError, match=reason):
        run_op("DecodeBase64", text)


@pytest.mark.parametrize(
    ("data", "attrs", "numbers"),
    [
        ([b"\1\0\2\0", b"\3\0\4\0"], {}, [[1, 2], [3, 4]]),
        ([b"\1\0\2\0"], {"little_endian": False}, [[256, 512]]),
        ([], {}, []),
        ([b"", b""], {}, [[], []]),
        ([b"\0\1\2"], {"out_type": dtypes.bool_}, [[False, True, True]]),
        (
            [np.array([1 + 2j], ">c8").tobytes()],
            {"out_type": dtypes.complex64, "little_endian": False},
            [[1 + 2j]],
        ),
    ],
)
def test_decode_raw(data: list[bytes], attrs: Any, numbers: Any) -> None:
    """Each string is a row of numbers, in either order of bytes."""
    out = run_op("DecodeRaw", np.array(data, object), **{"out_type": dtypes.int16, **attrs})

    assert out.tolist() == numbers
    assert out.ndim == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([b"\1\0\2"], "length 3 that is not a multiple of 2, the size of int16"),
        ([b"\1\0", b"\1\0\2\0"], "element 1 has size 2 != 4"),
    ],
)
def test_decode_raw_needs_whole_numbers(data: list[bytes], reason: str) -> None:
    """Strings must be of one length, a multiple of a number's."""
    with pytest.raises(errors.InvalidArgumentError, match=reason):
        run_op("DecodeRaw", np.array(data, object), out_type=dtypes.int16)


def test_decode_padded_raw() -> None:
    """Strings are cut or filled up with zeros before they are read."""
    data = np.array([b"\1\0\2\0", b"\3"], object)

    def decode(length: int, **attrs: Any) -> Any:
        attrs = {"out_type": dtypes.int16, **attrs}
        return run_op("DecodePaddedRaw", data, np.int32(length), **attrs).tolist()

    assert decode(6) == [[1, 2, 0], [3, 0, 0]]
    assert decode(2) == [[1], [3]]
    assert decode(4, little_endian=False) == [[256, 512], [768, 0]]
    with pytest.raises(errors.InvalidArgumentError, match="must be a multiple of the size"):
        decode(3)
    with pytest.raises(errors.InvalidArgumentError, match="must be greater than zero"):
        decode(0)
