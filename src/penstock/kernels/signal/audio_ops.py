"""Sound: WAV files, spectrograms and what speech recognisers make of them.

In:   files as strings; samples from -1 to 1, [samples, channels]; spectra.
Out:  samples with their rate, files, spectra, cepstral coefficients.
Not:  knows no format but WAV with 16 bits.

Davis and Mermelstein, Comparison of parametric representations for monosyllabic word
recognition, 1980.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from penstock.core.values import Array, Value, shape_of
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.products import batch_product
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.strings import items_of

_PCM: Final = 1
_HEADER: Final = struct.Struct("<4sI4s4sIHHIIHH4sI")
_FORMAT: Final = struct.Struct("<HHIIHH")
_SCALE: Final = np.float32(1 / 32768)
#: Energies are taken for at least that, before their logarithm.
_FLOOR: Final = 1e-12


@kernel("DecodeWav")
def make_decode_wav(attrs: Attrs) -> Kernel:
    """Samples and their rate; channels and length as asked for, or as they are."""
    channels, length = attrs.int("desired_channels"), attrs.int("desired_samples")

    def decode(contents: Value) -> tuple[Array, Value]:
        if shape_of(contents) != ():
            raise ValueError(f"contents must be scalar but got shape{shape_text(contents.shape)}")
        samples, rate = _parse(items_of(contents)[0])
        audio = samples.astype(np.float32) * _SCALE
        if channels > 0:  # there are too few: the last one again
            audio = audio.take(np.arange(channels), 1, mode="clip")
        if length >= 0 and length != len(audio):
            padded = np.zeros((length, audio.shape[1]), np.float32)
            padded[: len(audio)] = audio[:length]
            audio = padded
        return audio, np.int32(rate)

    return decode


def _parse(data: bytes) -> tuple[Array, int]:
    """Samples, [samples, channels] of int16, and their rate."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ValueError("Header mismatch: Expected RIFF and WAVE at the start of a WAV file")
    place, format_of = 12, None
    while place + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, place)
        start, place = place + 8, place + 8 + size + size % 2
        if start + size > len(data):
            raise ValueError(f"Data too short when trying to read the chunk {name!r}")
        if name == b"fmt " and size >= _FORMAT.size:
            format_of = _checked_format(*_FORMAT.unpack_from(data, start))
        if name == b"data" and format_of is not None:
            channels, rate = format_of
            count = size // (2 * channels)
            values = np.frombuffer(data, "<i2", count * channels, start)
            return values.reshape(count, channels), rate
    raise ValueError("No data chunk found in wav file, or none behind a format")


def _checked_format(
    kind: int, channels: int, rate: int, rate_in_bytes: int, block: int, bits: int
) -> tuple[int, int]:
    if kind != _PCM:
        raise ValueError(f"Bad audio format for WAV: Expected 1 (PCM), but got {kind}")
    if bits != 16:
        raise ValueError(f"Can only read 16-bit WAV files, but received {bits}")
    if channels == 0 or block != 2 * channels or rate_in_bytes != rate * block:
        raise ValueError(
            f"Bad format of a WAV file: {channels} channels, {block} bytes per sample and "
            f"{rate_in_bytes} per second at a rate of {rate}"
        )
    return channels, rate


@kernel("EncodeWav")
def make_encode_wav(_attrs: Attrs) -> Kernel:
    """A file of 16 bits per sample; samples beyond -1 and 1 are cut."""

    def encode(audio: Value, rate: Value) -> bytes:
        if audio.ndim != 2:
            raise ValueError(f"audio must be 2-dimensional but got shape{shape_text(audio.shape)}")
        if np.ndim(rate) or rate <= 0:
            raise ValueError(f"sample_rate must be a positive scalar: {rate}")
        channels = audio.shape[1]
        if channels == 0:
            raise ValueError("audio must have at least one channel")
        scaled = np.clip(audio * np.float32(32768), -32768, 32767)
        body: bytes = np.round(scaled).astype("<i2").tobytes()
        block = 2 * channels
        header = _HEADER.pack(
            b"RIFF", 36 + len(body), b"WAVE", b"fmt ", 16, _PCM, channels, int(rate),
            int(rate) * block, block, 16, b"data", len(body),
        )  # fmt: skip
        return header + body

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
