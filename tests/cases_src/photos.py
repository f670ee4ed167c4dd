"""Images in files: decoded, and encoded and decoded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cases_src.casebook import graph, i32, op, s, u8

_ROWS, _COLUMNS = np.mgrid[:20, :30]
_IMAGE = u8(np.stack([_COLUMNS * 8, _ROWS * 12, (_ROWS + _COLUMNS) * 5], -1))


def _file(name: str) -> Any:
    """A small picture, as it lies in a file."""
    return s((Path(__file__).parent / "files" / name).read_bytes())


def decoded(tf: Any, name: str, contents: Any, **args: Any) -> Any:
    """A decoded image, as numbers that may differ a little."""
    image = getattr(tf.raw_ops, name)(contents=contents, **args)
    return [tf.cast(image, tf.float32), tf.shape(image)]


def case(name: str, contents: Any, **args: Any) -> Any:
    """A case of ``decoded``; by default the last bits are open."""

    def decode(tf: Any, _name: str) -> Any:
        return decoded(tf, name, contents, **args)

    is_exact = (args.get("dct_method") == "INTEGER_ACCURATE") == (name == "DecodeJpeg")
    return graph(decode, name, tol=(0, 0) if is_exact else (0, 4.0))


def encoded(tf: Any, name: str, **args: Any) -> Any:
    """An image after it was made a file."""
    contents = getattr(tf.raw_ops, name)(**args)
    image = tf.raw_ops.DecodeJpeg(contents=contents, dct_method="INTEGER_ACCURATE")
    return [tf.cast(image, tf.float32), tf.raw_ops.ExtractJpegShape(contents=contents)]


def coded(name: str, **args: Any) -> Any:
    """A case of ``encoded``; two encoders need not agree to the last bit."""

    def encode(tf: Any, _name: str) -> Any:
        return encoded(tf, name, **args)

    return graph(encode, name, tol=(0, 12.0))


_ACCURATE = {"dct_method": "INTEGER_ACCURATE"}
_JPEG, _GREY, _PNG = map(_file, ("colour.jpg", "grey.jpg", "colour.png"))
_BMP, _GIF, _ANIMATION = map(_file, ("colour.bmp", "still.gif", "moving.gif"))

CASES = [
    case("DecodeJpeg", _JPEG, **_ACCURATE),
    case("DecodeJpeg", _JPEG),
    case("DecodeJpeg", _JPEG, channels=1),
    case("DecodeJpeg", _JPEG, ratio=2),
    case("DecodeJpeg", _GREY, **_ACCURATE),
    case("DecodeJpeg", _GREY, channels=3, **_ACCURATE),
    case("DecodeJpeg", _PNG),
    case("DecodeAndCropJpeg", _JPEG, crop_window=i32([2, 3, 7, 11]), **_ACCURATE),
    case("DecodeBmp", _BMP),
    case("DecodeGif", _ANIMATION),
    case("DecodeGif", _GIF),
    case("DecodeImage", _ANIMATION),
    case("DecodeImage", _ANIMATION, expand_animations=False),
    case("DecodeImage", _PNG),
    case("DecodeImage", _PNG, dtype="float32"),
    case("DecodeImage", _PNG, dtype="uint16"),
    case("DecodeImage", _BMP, dtype="float32"),
    case("DecodeImage", _BMP, dtype="uint16"),
    op("ExtractJpegShape", contents=_JPEG),
    op("ExtractJpegShape", contents=_GREY, output_type="int64"),
    op("DecodeJpeg", contents=s(b"abc"), says="Unknown image file format"),
    op("DecodeJpeg", contents=s(b""), says="Input is empty"),
    op("DecodeJpeg", contents=_JPEG, channels=4, says="JPEG does not support 4 channels"),
    op("DecodeJpeg", contents=s([b"a"]), says="must be scalar"),
    op(
        "DecodeAndCropJpeg",
        contents=_JPEG,
        crop_window=i32([2, 3, 70, 11]),
        says="Invalid JPEG data or crop window",
    ),
    op("DecodeBmp", contents=_JPEG, says="Trying to decode JPEG format using DecodeBmp op"),
    op("DecodeImage", contents=s(b"GIF89a"), says="GIF"),
    coded("EncodeJpeg", image=_IMAGE, quality=90),
    coded("EncodeJpeg", image=_IMAGE, quality=30, chroma_downsampling=False),
    coded("EncodeJpeg", image=_IMAGE[..., :1], progressive=True),
    coded("EncodeJpegVariableQuality", images=_IMAGE, quality=i32(75)),
    op("EncodeJpeg", image=_IMAGE[0], says="must be 3-dimensional"),
]
