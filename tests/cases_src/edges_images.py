"""Files of images at their edges: each format in each op, faults, and how large files are."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cases_src.casebook import graph, i32, op, s, u8, u16
from support.gif_files import faulty, files

_FILES = Path(__file__).parent / "files"


def _read(name: str) -> bytes:
    return (_FILES / name).read_bytes()


_JPEG, _GREY, _PNG, _BMP = map(_read, ("colour.jpg", "grey.jpg", "colour.png", "colour.bmp"))
_GIF, _ANIMATION = _read("still.gif"), _read("moving.gif")
_WEBP, _CLEAR_WEBP, _MOVING_WEBP = map(_read, ("colour.webp", "still.webp", "moving.webp"))
_ACCURATE: Mapping[str, Any] = {"dct_method": "INTEGER_ACCURATE"}
_WINDOW = i32([1, 2, 3, 4])


def _recovered(tf: Any, contents: Any) -> Any:
    """The lines of an image that are there, and how large it is."""
    image = tf.raw_ops.DecodeJpeg(contents=contents, try_recover_truncated=True, **_ACCURATE)
    return [image[:15], tf.shape(image)]


def every_format() -> list[Any]:
    """The file says what it is, whatever the op is called."""
    cases = []
    for data in (_PNG, _GIF, _WEBP, _CLEAR_WEBP, _MOVING_WEBP):
        cases += [
            op("DecodePng", contents=s(data)),
            op("DecodeJpeg", contents=s(data), ratio=2),
            op("DecodeImage", contents=s(data)),
            op("DecodeImage", contents=s(data), expand_animations=False),
        ]
    cases += [op("DecodeGif", contents=s(data)) for data in (_PNG, _GIF, _WEBP)]
    cases += [op("DecodeWebP", contents=s(data)) for data in (_PNG, _WEBP, _MOVING_WEBP)]
    cases += [
        op("DecodeBmp", contents=s(_WEBP), channels=3),
        op("DecodeAndCropJpeg", contents=s(_WEBP), crop_window=_WINDOW),
        op("DecodePng", contents=s(_GIF), dtype="uint16"),
        op("DecodeImage", contents=s(_GIF), dtype="float32"),
        op("DecodeJpeg", contents=s(_GREY), channels=3, **_ACCURATE),
        *(op("DecodeJpeg", contents=s(_JPEG), ratio=ratio, **_ACCURATE) for ratio in (2, 4, 8)),
        graph(_recovered, s(_JPEG[:-60]), tol=(0, 0)),
    ]
    return cases


def wrong_formats() -> list[Any]:
    """An op may refuse a format, or how it is wanted."""
    wrong_op = "Trying to decode BMP format using a wrong op"
    several = "animated gifs can only be decoded by tf.io.decode_gif or tf.io.decode_image"
    only_jpeg = "operation can run on JPEG only, but detected"
    return [
        op("DecodeBmp", contents=s(_GIF), says="Trying to decode GIF format using DecodeBmp op"),
        op("DecodePng", contents=s(_BMP), says=wrong_op),
        op("DecodeGif", contents=s(_BMP), says=wrong_op),
        op("DecodeJpeg", contents=s(_BMP), channels=1, says="`channels` must be 0, 3 or 4 for BMP"),
        op("DecodePng", contents=s(_ANIMATION), says=several),
        op("DecodeJpeg", contents=s(_ANIMATION), says=several),
        op("DecodePng", contents=s(_GIF), channels=4, says="channels must be 0 or 3 for GIF"),
        op("DecodeWebP", contents=s(_GIF), says="Bad op type DecodeWebP"),
        op("DecodePng", contents=s(_JPEG), channels=4, says="JPEG does not support 4 channels"),
        *(
            op("DecodeAndCropJpeg", contents=s(data), crop_window=_WINDOW, says=only_jpeg)
            for data in (_PNG, _GIF, _BMP)
        ),
        op("DecodePng", contents=s(_WEBP), channels=1, says="WebP only supports 3 or 4 channels"),
        op("DecodePng", contents=s(_WEBP), dtype="uint16", says="WebP only supports uint8"),
        op("DecodePng", contents=s(_WEBP), channels=4, says="requested does not match input"),
        op("DecodeGif", contents=s(_CLEAR_WEBP), says="requested does not match input"),
    ]


def faults() -> list[Any]:
    """Files that end too early, and attributes that cannot be."""
    return [
        op("DecodePng", contents=s(_PNG[:12]), says="Failed to initialize decoder"),
        op("DecodePng", contents=s(_PNG[:60]), says="Invalid PNG data, size 60"),
        op("DecodeJpeg", contents=s(_JPEG[:-60]), says="jpeg::Uncompress failed"),
        op("ExtractJpegShape", contents=s(_JPEG[:99]), says="Invalid JPEG data, size 99"),
        op("ExtractJpegShape", contents=s(_PNG), says="Invalid JPEG data, size 98"),
        op("DecodeWebP", contents=s(_WEBP[:12]), says="Unknown image file format"),
        op("DecodeWebP", contents=s(_WEBP[:20]), says="Failed to decode WebP header"),
        op("DecodeWebP", contents=s(_WEBP[:60]), says="Failed to decode WebP image"),
        op("DecodeJpeg", contents=s(_JPEG), ratio=3, says="ratio must be 1, 2, 4, or 8, got 3"),
        op("DecodeJpeg", contents=s(_JPEG), dct_method="X", says="dct_method must be one of"),
        op(
            "DecodeAndCropJpeg",
            contents=s(_JPEG),
            crop_window=i32([[1, 2, 3, 4]]),
            says="crop_window must be 1-D",
        ),
        op(
            "DecodeAndCropJpeg",
            contents=s(_JPEG),
            crop_window=i32([1, 2, 3]),
            says="crop_size must have four elements",
        ),
    ]


def gif_frames() -> list[Any]:
    """What a frame leaves open, and what a file leaves out."""
    return [
        *(op("DecodeGif", contents=s(data)) for data in files().values()),
        *(
            op("DecodeImage", contents=s(data), expand_animations=False)
            for name, data in files().items()
            if name.startswith(("frames of", "few", "the first"))
        ),
        *(op("DecodeGif", contents=s(data), says=why) for data, why in faulty().values()),
    ]


def _bmp(width: int, height: int, depth: int, start: int = 54) -> bytes:
    """A BMP file; lines from top to bottom if the height is negative."""
    line = (depth * width + 31) // 32 * 4
    size = line * abs(height)
    header = b"BM" + struct.pack(
        "<IIIIiihhI", start + size, 0, start, 40, width, height, 1, depth, 0
    )
    return header.ljust(start, b"\1") + bytes((7 * at + 3) % 256 for at in range(size))


def bmp_files() -> list[Any]:
    """Lines from below or from above, with and without opacity; no palettes."""
    good = [_bmp(5, height, depth) for height in (3, -3) for depth in (8, 24, 32)]
    return [
        *(
            op("DecodeBmp", contents=s(data), channels=count)
            for data in good
            for count in (0, 3, 4)
        ),
        op("DecodeBmp", contents=s(_bmp(5, 3, 24, start=100))),
        op("DecodeImage", contents=s(_bmp(5, 3, 32)), dtype="float32"),
        op("DecodeBmp", contents=s(_bmp(5, 3, 16)), says="inherent in the image must be 1, 3 or 4"),
        op("DecodeBmp", contents=s(_bmp(5, 3, 1)), says="inherent in the image must be 1, 3 or 4"),
        op("DecodeBmp", contents=s(_bmp(5, 3, 24)[:-1]), says="but they differ by -1"),
        op("DecodeBmp", contents=s(_bmp(5, 3, 24) + b"ab"), says="but they differ by 2"),
        op("DecodeBmp", contents=s(_bmp(5, 0, 24)), says="Height must be nonzero"),
        op("DecodeBmp", contents=s(_bmp(0, 3, 24)), says="Width must be positive"),
        op("DecodeBmp", contents=s(b"BM"), says="requires at least 32 bytes"),
    ]


# -- how large files are ---------------------------------------------------------------


def _size(tf: Any, name: str, args: Mapping[str, Any]) -> Any:
    """How many bytes files have."""
    return [tf.strings.length(getattr(tf.raw_ops, name)(**args))]


def _start(tf: Any, args: Mapping[str, Any]) -> Any:
    """What a JPEG file says before its tables."""
    return [tf.strings.substr(tf.raw_ops.EncodeJpeg(**args), 0, 100)]


def pictures() -> list[Any]:
    """Images that differ in what compresses them best."""
    rows, columns = np.mgrid[:24, :30]
    noise = np.random.default_rng(0).integers(0, 256, (24, 30, 3))
    smooth = np.stack([2 * (rows + columns), 2 * (23 - rows) + columns, rows + 29 - columns], -1)
    steps = (rows // 10 * 60 + columns // 10 * 7)[:, :, np.newaxis] + np.zeros(3, np.int64)
    return [smooth, noise, steps, (smooth + noise // 16) % 256]


def sizes() -> list[Any]:
    """Files are as large as TensorFlow's, but for what versions of libraries do."""
    cases = []
    for picture in pictures():
        bytes_, words = u8(picture % 256), u16(picture * 150 % 65536)
        wanted: list[Mapping[str, Any]] = [
            {"image": bytes_},
            {"image": bytes_[..., :1].copy()},
            {"image": bytes_, "compression": 0},
            {"image": bytes_, "compression": 1},
            {"image": bytes_, "compression": 9},
            {"image": words},
        ]
        cases += [graph(_size, "EncodePng", args, tol=(0.02, 0)) for args in wanted]
    image = u8(pictures()[0])
    wanted = [
        {"image": image},
        {"image": image, "quality": 30, "chroma_downsampling": False},
        {"image": image[..., :1].copy()},
        {"image": image, "progressive": True},
        {"image": image, "optimize_size": True},
        {"image": image, "xmp_metadata": "<x/>"},
    ]
    cases += [graph(_size, "EncodeJpeg", args, tol=(0.01, 0)) for args in wanted]
    starts = [
        {"image": image, "x_density": 72, "y_density": 96, "density_unit": "cm"},
        {"image": image, "xmp_metadata": "<x/>"},
    ]
    return [*cases, *(graph(_start, args) for args in starts)]


def unwritten() -> list[Any]:
    """Images that no file can hold."""
    image = u8(np.zeros((4, 4, 3)))
    grey = u8(np.zeros((4, 4, 1)))
    failed = "PNG encoding failed at the following flattened batch indices: 0"
    return [
        op("EncodePng", image=u8(np.zeros((0, 4, 3))), says=failed),
        op("EncodePng", image=u8(np.zeros((2, 0, 4, 3))), says=f"{failed}, 1"),
        op("EncodePng", image=u8(np.zeros((0, 4, 4, 3)))),
        op("EncodeJpeg", image=u8(np.zeros((0, 4, 3))), says="JPEG encoding failed"),
        op("EncodeJpeg", image=u8(np.zeros((4, 4, 2))), says="image must have 1 or 3 channels"),
        op("EncodeJpeg", image=image, format="grayscale", says="expects 1 channels, got [4,4,3]"),
        op("EncodeJpeg", image=grey, format="rgb", says="expects 3 channels, got [4,4,1]"),
        op("EncodeJpegVariableQuality", images=image, quality=i32([5]), says="must be scalar"),
        op("EncodeJpegVariableQuality", images=image, quality=i32(101), says="got 101"),
    ]


CASES = [
    *every_format(),
    *wrong_formats(),
    *faults(),
    *gif_frames(),
    *bmp_files(),
    *sizes(),
    *unwritten(),
]
