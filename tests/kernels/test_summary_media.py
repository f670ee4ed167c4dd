"""Summaries of images and sound: TensorFlow's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.defs.schema import Summary
from penstock.kernels.image.png import decode_png
from support.ops import run_op

nan, inf = float("nan"), float("inf")


def images(values: Any, **attrs: Any) -> list[tuple[str, Any]]:
    """Tags and pixels of a summary of images."""
    summary = Summary()
    summary.ParseFromString(run_op("ImageSummary", b"t", values, **attrs))
    found = []
    for value in summary.value:
        pixels = decode_png(value.image.encoded_image_string, 0)
        assert pixels.shape == (value.image.height, value.image.width, value.image.colorspace)
        found.append((value.tag, pixels.tolist()))
    return found


@pytest.mark.parametrize(
    ("picture", "pixels"),
    [
        ([[[1.0], [2.0]], [[3], [0.5]]], [[[85], [170]], [[255], [42]]]),
        ([[[-1.0], [2.0]], [[3], [0.5]]], [[[85], [212]], [[255], [149]]]),
        ([[[-1.0], [nan]], [[3], [inf]]], [[[85], [255]], [[255], [255]]]),
        ([[[nan], [nan]]], [[[255], [255]]]),
        ([[[1e-7], [2e-7]]], [[[0], [0]]]),
        ([[[1, 2, nan], [3, 4, 5]]], [[[255, 0, 0], [153, 204, 255]]]),
    ],
    ids=["positive", "negative", "not finite", "nothing finite", "dark", "colours"],
)
def test_numbers_become_bytes(picture: Any, pixels: Any) -> None:
    """Positive numbers reach 255; with negative ones, zero is in the middle."""
    assert images(np.float32([picture]), max_images=1) == [("t/image", pixels)]


def test_bad_pixels_have_the_color_that_was_asked_for() -> None:
    """As many numbers of the colour as the image has channels."""
    picture = np.float32([[[[-1, 2, nan, 1], [3, 4, 5, 6]]]])
    color = np.uint8([1, 2, 3, 4])
    got = images(picture, max_images=1, bad_color=color)
    assert got == [("t/image", [[[1, 2, 3, 4], [127, 170, 212, 255]]])]


def test_some_of_a_batch() -> None:
    """Bytes are as they are; several images are numbered."""
    pixels = [[[1, 2, 3], [4, 5, 6]]]
    got = images(np.uint8([pixels] * 5))
    assert got == [(f"t/image/{number}", pixels) for number in range(3)]


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(dtype: Any) -> None:
    """They are float32 first."""
    assert images(np.array([[[[1], [2.5]]]], dtype)) == [("t/image/0", [[[102], [255]]])]


@pytest.mark.parametrize("shape", [(2, 2), (1, 2, 2, 2)])
def test_what_is_no_image(shape: tuple[int, ...]) -> None:
    """Images have four dimensions, and 1, 3 or 4 channels."""
    with pytest.raises(errors.InvalidArgumentError, match="4-D with last dim 1, 3, or 4"):
        images(np.zeros(shape, np.float32))


SOUND = np.linspace(-1.2, 1.2, 8).astype(np.float32)
STEREO = (
    b"RIFF4\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0@\x1f\0\0\0}\0\0\4\0\x10\0data\x10\0\0\0"
    b"\0\200I\222,\276\017\352\361\025\324A\267m\377\177"
)


def test_sound() -> None:
    """Each of a batch is a file of 16 bits per sample."""
    summary = Summary()
    sound = SOUND.reshape(1, 4, 2)
    text = run_op("AudioSummaryV2", b"a", sound, np.float32(8000), max_outputs=1)
    summary.ParseFromString(text)
    (value,) = summary.value
    audio = value.audio

    assert value.tag == "a/audio"
    assert (audio.sample_rate, audio.num_channels, audio.length_frames) == (8000, 2, 4)
    assert (audio.content_type, audio.encoded_audio_string) == ("audio/wav", STEREO)


def test_old_sounds_have_a_fixed_rate() -> None:
    """The older op's rate is an attribute; sounds without channels have one."""
    summary = Summary()
    summary.ParseFromString(run_op("AudioSummary", b"a", SOUND.reshape(2, 4), sample_rate=8000.0))

    assert [value.tag for value in summary.value] == ["a/audio/0", "a/audio/1"]
    assert [value.audio.num_channels for value in summary.value] == [1, 1]
    assert summary.value[1].audio.encoded_audio_string == (
        b"RIFF,\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\200>\0\0\2\0\x10\0data\x08\0\0\0"
        b"\361\025\324A\267m\377\177"
    )


@pytest.mark.parametrize(
    ("sound", "rate", "says"),
    [(SOUND, 8000, "Tensor must be 3-D or 2-D"), (SOUND[None], 0, "sample_rate must be > 0")],
)
def test_what_is_no_sound(sound: Any, rate: float, says: str) -> None:
    """Two or three dimensions, and a rate."""
    with pytest.raises(errors.InvalidArgumentError, match=says):
        run_op("AudioSummaryV2", b"a", sound, np.float32(rate))
