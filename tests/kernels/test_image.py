"""PNG images; colours and greys as TensorFlow has them."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from penstock import errors
from penstock.core import dtypes
from support.ops import run_op

PNG = run_op("EncodePng", np.arange(600, dtype=np.uint16).astype(np.uint8).reshape(10, 20, 3))


def picture(channels: int, dtype: Any) -> Any:
    """An image of random numbers."""
    high = np.iinfo(dtype).max + 1
    return np.random.default_rng(channels).integers(0, high, (7, 5, channels)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_round_trip(channels: int, dtype: Any) -> None:
    """Every kind of image comes back as it was, 16 bits included."""
    image = picture(channels, dtype)

    out = run_op("DecodePng", run_op("EncodePng", image), dtype=dtypes.as_dtype(dtype))

    assert out.dtype == dtype
    assert out.tolist() == image.tolist()


def test_pillow_reads_what_we_write() -> None:
    """The files are files to others too."""
    image = picture(4, np.uint8)

    assert np.asarray(Image.open(io.BytesIO(run_op("EncodePng", image)))).tolist() == image.tolist()


@pytest.mark.parametrize(
    ("pixel", "channels", "seen"),
    [
        ([217], 3, [217, 217, 217]), ([217], 4, [217, 217, 217, 255]),
        ([128, 155], 1, [128]), ([128, 155], 4, [128, 128, 128, 155]),
        ([20, 76, 123], 1, [64]), ([108, 124, 184, 227], 1, [126]),
        ([20, 76, 123], 4, [20, 76, 123, 255]), ([108, 124, 184, 227], 3, [108, 124, 184]),
    ],
)  # fmt: skip
def test_channels(pixel: list[int], channels: int, seen: list[int]) -> None:
    """Grey, colours and opacity as asked for; numbers recorded from TensorFlow."""
    file = run_op("EncodePng", np.uint8([[pixel]]))

    assert run_op("DecodePng", file, channels=channels).tolist() == [[seen]]


@pytest.mark.parametrize(
    ("pixel", "dtype", "channels", "seen"),
    [
        ([52755, 64280, 24872], dtypes.uint16, 1, [56340]),
        ([52755, 64280, 24872], dtypes.uint8, 1, [220]),
        ([3181, 5506, 24716, 54568], dtypes.uint16, 1, [7002]),
        ([3181, 5506, 24716, 54568], dtypes.uint8, 0, [12, 21, 96, 213]),
        ([4930], dtypes.uint16, 4, [4930, 4930, 4930, 65535]),
    ],
)
def test_deep_channels(pixel: list[int], dtype: Any, channels: int, seen: list[int]) -> None:
    """Of 16 bits, half are dropped if 8 are wanted; numbers recorded from TensorFlow."""
    file = run_op("EncodePng", np.uint16([[pixel]]))

    assert run_op("DecodePng", file, channels=channels, dtype=dtype).tolist() == [[seen]]


def test_eight_bits_are_stretched_to_sixteen() -> None:
    """The brightest stays the brightest."""
    file = run_op("EncodePng", np.uint8([[[0], [217], [255]]]))

    out = run_op("DecodePng", file, dtype=dtypes.uint16)

    assert out.tolist() == [[[0], [55769], [65535]]]


def test_palettes_become_colours() -> None:
    """Colours of a palette have opacity if some are transparent."""
    image = Image.fromarray(np.uint8([[0, 1, 1, 0]]), "P")
    image.putpalette([1, 2, 3, 40, 50, 60])
    plain, transparent = io.BytesIO(), io.BytesIO()
    image.save(plain, "PNG")
    image.save(transparent, "PNG", transparency=bytes([255, 0]))

    assert run_op("DecodePng", plain.getvalue())[0, :2].tolist() == [[1, 2, 3], [40, 50, 60]]
    assert run_op("DecodePng", transparent.getvalue())[0, :2].tolist() == [
        [1, 2, 3, 255],
        [40, 50, 60, 0],
    ]


def test_every_filter_of_deep_images_is_undone() -> None:
    """Rows of 16 bits may say in five ways what they differ from."""
    image = np.random.default_rng(0).integers(0, 65536, (5, 6, 4)).astype(np.uint16)
    raw = image.astype(">u2").view(np.uint8).reshape(5, 6, 8).astype(int)
    lines = b""
    for y, x, byte in np.ndindex(raw.shape):
        left = raw[y, x - 1, byte] if x else 0
        up = raw[y - 1, x, byte] if y else 0
        corner = raw[y - 1, x - 1, byte] if x and y else 0
        paeth = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
        guess = [0, left, up, (left + up) // 2, paeth][y]
        lines += bytes([y] if x == byte == 0 else []) + bytes([(raw[y, x, byte] - guess) % 256])

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + checksum

    header = struct.pack(">IIBBBBB", 6, 5, 16, 6, 0, 0, 0)
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    file += chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")

    assert run_op("DecodePng", file, dtype=dtypes.uint16).tolist() == image.tolist()


@pytest.mark.parametrize(
    "data",
    [b"", b"garbage", PNG[:60], PNG[:33], PNG.replace(b"IDAT", b"IDAX"),
     PNG[:50] + b"\xff\xff" + PNG[52:], PNG[:16] + b"\x7f" + PNG[17:]],
    ids=["empty", "other", "cut", "header", "no data", "flipped", "huge"],
)  # fmt: skip
def test_malformed_files_are_refused(data: bytes) -> None:
    """Nothing that is no whole PNG file brings us down."""
    with pytest.raises((errors.InvalidArgumentError, errors.ResourceExhaustedError)):
        run_op("DecodePng", data)


@pytest.mark.parametrize(
    ("shape", "attrs", "text"),
    [
        ((2, 3), {}, "must be at least rank 3"),
        ((2, 3, 5), {}, "must have 1, 2, 3, or 4 channels, got 5"),
        ((2, 3, 3), {"compression": 10}, "compression should be in"),
    ],
)
def test_bad_images_are_refused(shape: tuple[int, ...], attrs: Any, text: str) -> None:
    """Images have a height, a width and up to four channels."""
    with pytest.raises(errors.InvalidArgumentError, match=text):
        run_op("EncodePng", np.zeros(shape, np.uint8), **attrs)


def test_batches_are_encoded_one_by_one() -> None:
    """Dimensions in front of the image's make as many files."""
    files = run_op("EncodePng", np.zeros((2, 3, 4, 5, 1), np.uint8))

    assert files.shape == (2, 3)
    assert run_op("DecodePng", files[1, 2]).shape == (4, 5, 1)
