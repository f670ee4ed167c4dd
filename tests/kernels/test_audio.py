"""WAV files, spectra and cepstral coefficients, against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.ops import run_op

RNG = np.random.default_rng(9)


def test_wav_there_and_back() -> None:
    """A file holds 16 bits of each sample, and the rate."""
    audio = RNG.uniform(-1, 1, (50, 2)).astype(np.float32)
    data = run_op("EncodeWav", audio, np.int32(8000))
    assert data[:4] == b"RIFF"
    assert len(data) == 44 + 50 * 4
    samples, rate = run_op("DecodeWav", data)
    np.testing.assert_allclose(samples, audio, atol=2e-5)
    assert rate == 8000


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({"desired_channels": 1}, [[0.5], [0.25]]),
        ({"desired_channels": 3}, [[0.5, -0.5, -0.5], [0.25, -1, -1]]),
        ({"desired_samples": 1}, [[0.5, -0.5]]),
        ({"desired_samples": 3}, [[0.5, -0.5], [0.25, -1], [0, 0]]),
    ],
)
def test_wav_of_a_wanted_shape(attrs: dict[str, int], expected: Any) -> None:
    """Samples are cut or filled up with silence, the last channel comes again."""
    data = run_op("EncodeWav", np.float32([[0.5, -0.5], [0.25, -1]]), np.int32(100))
    assert run_op("DecodeWav", data, **attrs)[0].tolist() == expected


@pytest.mark.parametrize("length", [0, 4, 20, 40])
def test_broken_wav_is_refused(length: int) -> None:
    """A file that ends early, or is something else."""
    data = run_op("EncodeWav", np.zeros((5, 1), np.float32), np.int32(100))
    with pytest.raises(
        errors.InvalidArgumentError, match=r"Header mismatch|No data chunk|too short"
    ):
        run_op("DecodeWav", data[:length])


def test_spectrum_of_a_tone_has_one_peak() -> None:
    """A sine of 8 turns per window is strongest in bin 8."""
    tone = np.sin(2 * np.pi * 8 * np.arange(256) / 128).astype(np.float32)[:, None]
    spectra = run_op("AudioSpectrogram", tone, window_size=128, stride=64)
    assert spectra.shape == (1, 3, 65)
    assert spectra.argmax(-1).tolist() == [[8, 8, 8]]
    np.testing.assert_allclose(spectra[0, 0, 8], 32, rtol=1e-4)  # half the window's sum
    squared = run_op("AudioSpectrogram", tone, window_size=128, stride=64, magnitude_squared=True)
    np.testing.assert_allclose(squared, spectra**2, rtol=1e-3, atol=1e-4)


def test_mfcc_of_silence_is_the_floor() -> None:
    """The logarithm of the least energy, in the first coefficient only."""
    silence = np.zeros((1, 2, 129), np.float32)
    got = run_op("Mfcc", silence, np.int32(16000))
    assert got.shape == (1, 2, 13)
    np.testing.assert_allclose(got[0, 0, 0], np.log(1e-12) * np.sqrt(2 * 40), rtol=1e-5)
    np.testing.assert_allclose(got[0, :, 1:], 0, atol=1e-3)
