"""Sound: WAV files, spectrograms and what speech recognisers make of them.

In:   files as strings; samples from -1 to 1, [samples, channels]; spectra.
Out:  samples with their rate, files, spectra, cepstral coefficients.
Not:  knows no format of files; ``wav`` does.

Davis and Mermelstein, Comparison of parametric representations for monosyllabic word
recognition, 1980.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.parallel.products import batch_product
from penstock.kernels.signal.wav import samples_of, wav_file
from penstock.kernels.values.arrays import check_new, shape_text
from penstock.kernels.values.strings import items_of

_SCALE: Final = np.float32(1 / 32768)
#: Energies are taken for at least that, before their logarithm.
_FLOOR: Final = 1e-12


@kernel("DecodeWav")
def make_decode_wav(attrs: Attrs) -> Kernel:
    """Samples and their rate; channels and length as asked for, or as they are."""
    channels, length = attrs.int("desired_channels"), attrs.int("desired_samples")
    _check_count("channels", channels)
    _check_count("samples", length)

    def decode(contents: Value) -> tuple[Array, Value]:
        if shape_of(contents) != ():
            raise InvalidArgumentError(
                f"contents must be scalar, got shape {shape_text(contents.shape)}"
            )
        samples, rate = samples_of(items_of(contents)[0])
        given, there = samples.shape
        wanted = given if length < 0 else length, there if channels < 0 else channels
        check_new(wanted, np.dtype(np.float32))
        audio = np.zeros(wanted, np.float32)
        some = min(given, wanted[0])
        # Where there are too few channels, the last one comes again.
        audio[:some] = samples[:some, np.minimum(np.arange(wanted[1]), there - 1)] * _SCALE
        return audio, np.uint32(rate).astype(np.int32)

    return decode


def _check_count(what: str, count: int) -> None:
    if count < -1:
        raise InvalidArgumentError(f"{what} must be non-negative, got {count}")


@kernel("EncodeWav")
def make_encode_wav(_attrs: Attrs) -> Kernel:
    """A file of 16 bits per sample; samples beyond -1 and 1 are cut."""

    def encode(audio: Value, rate: Value) -> bytes:
        if audio.ndim != 2:
            raise InvalidArgumentError(f"audio must be 2-dimensional{shape_text(audio.shape)}")
        if shape_of(rate) != ():
            shape = shape_text(rate.shape)
            raise InvalidArgumentError(
                f"Input sample_rate should be a scalar tensor, got {shape} instead."
            )
        return wav_file(audio, int(rate))

    return encode


@kernel("AudioSpectrogram")
def make_audio_spectrogram(attrs: Attrs) -> Kernel:
    """How strong each frequency is in each piece of the sound, by channel.

    Pieces are faded in and out by Hann's window, and filled up to a power of two.
    """
    size, stride = attrs.int("window_size"), attrs.int("stride")
    is_squared = attrs.bool("magnitude_squared")
    if size < 2 or stride < 1:
        raise ValueError(f"window_size must be > 1 and stride > 0: {size} and {stride}")
    fft_size = 1 << (size - 1).bit_length()
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)

    def spectrogram(audio: Value) -> Array:
        if audio.ndim != 2:
            raise ValueError(f"input must be 2-dimensional{shape_text(audio.shape)}")
        pieces = max((len(audio) - size) // stride + 1, 0)
        starts = np.arange(pieces)[:, None] * stride
        seen = audio.T.astype(np.float64)[:, starts + np.arange(size)] * window
        spectrum = np.fft.rfft(seen, fft_size)
        power = spectrum.real**2 + spectrum.imag**2
        return np.asarray(power if is_squared else np.sqrt(power), np.float32)

    return spectrogram


@kernel("Mfcc")
def make_mfcc(attrs: Attrs) -> Kernel:
    """The spectrum as heard, in bands of equal pitch; its logarithm; the cosines of that."""
    bands, count = attrs.int("filterbank_channel_count"), attrs.int("dct_coefficient_count")
    limits = attrs.float("lower_frequency_limit"), attrs.float("upper_frequency_limit")
    if not 0 < count <= bands or not 0 <= limits[0] < limits[1]:
        raise ValueError(
            f"0 < dct_coefficient_count = {count} <= filterbank_channel_count = {bands} and "
            f"0 <= lower_frequency_limit = {limits[0]} < upper_frequency_limit = {limits[1]} "
            "must hold"
        )
    angles = np.arange(count)[:, None] * np.pi / bands * (np.arange(bands) + 0.5)
    cosines = np.sqrt(2 / bands) * np.cos(angles)

    def mfcc(spectra: Value, rate: Value) -> Array:
        if spectra.ndim != 3:
            raise ValueError(f"spectrogram must be 3-dimensional{shape_text(spectra.shape)}")
        if np.ndim(rate) or rate <= 0:
            raise ValueError(f"Input sample_rate should be a positive scalar: {rate}")
        filters = _filters(spectra.shape[2], float(rate), limits, bands)
        energy = batch_product(np.sqrt(spectra.astype(np.float64)), filters)
        return batch_product(np.log(np.maximum(energy, _FLOOR)), cosines.T).astype(np.float32)

    return mfcc


def _pitch(frequency: Array) -> Array:
    """The mel scale."""
    return np.asarray(1127.0 * np.log1p(frequency / 700.0))


def _filters(size: int, rate: float, limits: tuple[float, float], bands: int) -> Array:
    """How much each frequency, [frequencies, bands], belongs to each band: triangles."""
    if size < 2:
        raise ValueError(f"spectrogram must have at least 2 frequencies, got {size}")
    width = 0.5 * rate / (size - 1)
    pitch = _pitch(np.arange(size) * width)
    lowest, highest = _pitch(np.array(limits)).tolist()
    corners = np.linspace(lowest, highest, bands + 2)
    rising = (pitch[:, None] - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - pitch[:, None]) / (corners[2:] - corners[1:-1])
    filters = np.clip(np.minimum(rising, falling), 0, None)
    numbers = np.arange(size)
    first, last = int(1.5 + limits[0] / width), int(limits[1] / width)
    filters[(numbers < first) | (numbers > last)] = 0
    return np.asarray(filters)
