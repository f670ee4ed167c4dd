"""Summaries of images and of sound.

In:   a tag; images [batch, height, width, channels] or sound [batch, samples, channels].
Out:  one serialized ``Summary``, with files in it: PNG or WAV.
Not:  writes no files.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, shape_of
from penstock.defs.schema import Message, Summary
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.image.png import encode_png
from penstock.kernels.signal.wav import wav_file
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import items_of

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
    title, pictures, color = _title(tag, "Tags"), as_array(images), as_array(bad_color)
    if pictures.ndim != 4 or pictures.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError(
            "Tensor must be 4-D with last dim 1, 3, or 4, not " + shape_text(pictures.shape)
        )
    if pictures.size == 0 and len(pictures):
        found = ", ".join(map(str, pictures.shape))
        raise InvalidArgumentError(f"input tensor must have non-zero dims. Found: [{found}].")
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


def _title(tag: Value, name: str) -> str:
    if shape_of(tag) != ():
        raise InvalidArgumentError(f"{name} must be a scalar")
    title: bytes = items_of(tag)[0]
    return title.decode("utf-8", "replace")


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
        text: bytes = audio_values(tag, sound, rate, most).SerializeToString()
        return text

    return audio_summary


def audio_values(tag: Value, sound: Value, per_second: Value, most: int) -> Message:
    """A Summary of the first sounds."""
    title, sounds, rate = _title(tag, "Tag"), as_array(sound), _rate(per_second)
    if sounds.ndim not in (2, 3):
        raise InvalidArgumentError(f"Tensor must be 3-D or 2-D, got: {shape_text(sounds.shape)}")
    if not rate > 0:
        raise InvalidArgumentError("sample_rate must be > 0")
    if sounds.ndim == 2:
        sounds = sounds[:, :, None]
    whole_rate = max(round(rate), 1) if math.isfinite(rate) else 2**63
    summary = Summary()
    for number, one in enumerate(sounds[:most]):
        value = summary.value.add(tag=_numbered(title, "audio", number, most))
        audio = value.audio
        audio.sample_rate, audio.content_type = rate, "audio/wav"
        audio.length_frames, audio.num_channels = one.shape
        if one.size == 0 and len(one):
            raise InvalidArgumentError("audio is null")
        audio.encoded_audio_string = wav_file(one, whole_rate)
    return summary


def _rate(per_second: Value) -> float:
    numbers = as_array(per_second)
    if numbers.size != 1:
        raise InvalidArgumentError("sample_rate must be rank-0 or contain a single value")
    return float(numbers.item())
