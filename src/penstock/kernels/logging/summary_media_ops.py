"""Summaries of images and of sound.

In:   a tag; images [batch, height, width, channels] or sound [batch, samples, channels].
Out:  one serialized ``Summary``, with files in it: PNG or WAV.
Not:  writes no files.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.defs.schema import Message, Summary
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import as_array, shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.image.png import encode_png
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.signal.audio_ops import make_encode_wav
from penstock.kernels.strings import items_of

PICTURES: Final = frozenset({dtypes.uint8, dtypes.float16, dtypes.float32, dtypes.float64})
#: What is darker than this is black, however bright the rest is to be.
_DARK: Final = 1e-6
_COMPRESSION: Final = 6


@kernel("ImageSummary", types={"T": PICTURES})
def make_image_summary(attrs: Attrs) -> Kernel:
    """The first images of a batch, each as a PNG file."""
    most, bad_color = attrs.int("max_images"), as_array(attrs.tensor("bad_color"))

    def image_summary(tag: Value, images: Value) -> bytes:
        text: bytes = image_values(tag, images, most, bad_color).SerializeToString()
        return text

    return image_summary


def image_values(tag: Value, images: Value, most: int, bad_color: Value) -> Message:
    """A Summary of the first images."""
    title, pictures, color = _title(tag), as_array(images), as_array(bad_color)
    if pictures.ndim != 4 or pictures.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError(
            "Tensor must be 4-D with last dim 1, 3, or 4, not " + shape_text(pictures.shape)
        )
    channels = pictures.shape[3]
    if color.dtype != np.uint8 or color.ndim != 1 or len(color) < channels:
        raise InvalidArgumentError(
            f"expected 1-D uint8 bad_color of at least {channels} elements, got {color.dtype} of "
            f"shape {shape_text(color.shape)}"
        )
    summary = Summary()
    for number, picture in enumerate(pictures[:most]):
        value = summary.value.add(tag=_numbered(title, "image", number, most))
        image = value.image
        image.height, image.width, image.colorspace = picture.shape
        shown = picture if picture.dtype == np.uint8 else _visible(picture, color[:channels])
        image.encoded_image_string = encode_png(shown, _COMPRESSION)
    return summary


def _title(tag: Value) -> str:
    items = items_of(tag)
    if len(items) != 1:
        raise InvalidArgumentError("Tag must be a scalar")
    return items[0].decode("utf-8", "replace")


def _numbered(title: str, kind: str, number: int, most: int) -> str:
    return f"{title}/{kind}/{number}" if most > 1 else f"{title}/{kind}"


def _visible(picture: Array, bad_color: Array) -> Array:
    """A picture of bytes: the brightest is 255; if some are below zero, zero is in the middle."""
    numbers = picture.astype(np.float32, copy=False)
    is_good = np.isfinite(numbers).all(axis=2)
    good = numbers[is_good]
    low, high = good.min(initial=np.inf), good.max(initial=-np.inf)
    if low < 0:
        reach, top, middle = max(-low, high), 127, 128
    else:
        reach, top, middle = high, 255, 0
    scale = np.float32(0 if reach < _DARK else top / np.float32(reach))
    shown = np.empty(numbers.shape, np.uint8)
    shown[is_good] = good * scale + np.float32(middle)
    shown[~is_good] = bad_color
    return shown


@kernel("AudioSummary", "AudioSummaryV2")
def make_audio_summary(attrs: Attrs) -> Kernel:
    """The first sounds of a batch, each as a WAV file."""
    most, has_rate = attrs.int("max_outputs"), attrs.op.name == "AudioSummaryV2"
    fixed = 0.0 if has_rate else attrs.float("sample_rate")

    def audio_summary(tag: Value, sound: Value, rate: Value = fixed) -> bytes:
        text: bytes = audio_values(attrs, tag, sound, float(rate), most).SerializeToString()
        return text

    return audio_summary


def audio_values(attrs: Attrs, tag: Value, sound: Value, rate: float, most: int) -> Message:
    """A Summary of the first sounds."""
    title, sounds, encode = _title(tag), as_array(sound), make_encode_wav(attrs)
    if sounds.ndim not in (2, 3):
        raise InvalidArgumentError(f"Tensor must be 3-D or 2-D, got: {shape_text(sounds.shape)}")
    if not rate > 0:
        raise InvalidArgumentError("sample_rate must be > 0")
    if sounds.ndim == 2:
        sounds = sounds[:, :, None]
    summary = Summary()
    for number, one in enumerate(sounds[:most]):
        value = summary.value.add(tag=_numbered(title, "audio", number, most))
        audio = value.audio
        audio.sample_rate, audio.content_type = rate, "audio/wav"
        audio.length_frames, audio.num_channels = one.shape
        audio.encoded_audio_string = encode(one, np.int32(rate))
    return summary
