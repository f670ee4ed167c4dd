"""WAV files of 16 bits a sample, as TensorFlow reads and writes them.

In:   a file's bytes, or samples from -1 to 1, [samples, channels].
Out:  the other.
Not:  registers no kernel; knows no other format.

Chunks follow each other without padding, whatever the format says of odd sizes.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np

from penstock.core.values import Array
from penstock.errors import InvalidArgumentError

_PCM: Final = 1
_BITS: Final = 16
_HEADER: Final = struct.Struct("<4sI4s4sIHHIIHH4sI")
_FORMAT: Final = struct.Struct("<HHIIHH")
#: Sizes of the chunk that says the format, without and with a field that nobody reads.
_FORMAT_SIZES: Final = (16, 18)
#: Bytes of a chunk, and of a file behind its first eight bytes.
_MOST_IN_CHUNK: Final = 2**31 - 1
_MOST: Final = 2**32 - 1


class _Format(NamedTuple):
    """What a file says of its samples."""

    kind: int
    channels: int
    rate: int
    rate_in_bytes: int
    block: int
    bits: int


def samples_of(data: bytes) -> tuple[Array, int]:
    """The samples in a file, [samples, channels] of int16, and how many there are per second."""
    _expect(data, 0, b"RIFF")
    _part(data, 4, 4)
    _expect(data, 8, b"WAVE")
    _expect(data, 12, b"fmt ")
    size = _number(data, 16)
    if size not in _FORMAT_SIZES:
        raise InvalidArgumentError(
            f"Bad format chunk size for WAV: Expected 16 or 18, but got{size}"
        )
    form = _Format(*_FORMAT.unpack(_part(data, 20, _FORMAT.size)))
    _check(form)
    samples = _samples(data, 20 + size, form)
    if samples is None:
        raise InvalidArgumentError("No data chunk found in WAV")
    return samples, form.rate


def _check(form: _Format) -> None:
    """Raise unless these are samples of 16 bits, and the numbers fit each other."""
    if form.kind != _PCM:
        raise InvalidArgumentError(
            f"Bad audio format for WAV: Expected 1 (PCM), but got{form.kind}"
        )
    if form.channels < 1:
        raise InvalidArgumentError(
            f"Bad number of channels for WAV: Expected at least 1, but got {form.channels}"
        )
    if form.bits != _BITS:
        raise InvalidArgumentError(f"Can only read 16-bit WAV files, but received {form.bits}")
    block = form.channels * _BITS // 8
    if form.block != block:
        raise InvalidArgumentError(
            f"Bad bytes per sample in WAV header: Expected {block} but got {form.block}"
        )
    if form.rate_in_bytes != form.rate * block:
        raise InvalidArgumentError(
            f"Bad bytes per second in WAV header: Expected {form.rate * block} but got "
            f"{form.rate_in_bytes} (sample_rate={form.rate}, bytes_per_sample={block})"
        )


def _samples(data: bytes, at: int, form: _Format) -> Array | None:
    """The samples of the one chunk that has some; None if there is no such chunk."""
    found = None
    while at < len(data):
        name, size = _part(data, at, 4), _number(data, at + 4)
        if size > _MOST_IN_CHUNK:
            shown = name.decode("utf-8", "replace")
            raise InvalidArgumentError(
                f"WAV data chunk '{shown}' is too large: {size} bytes, but the limit is "
                f"{_MOST_IN_CHUNK}"
            )
        at += 8
        if name == b"data":
            if found is not None:
                raise InvalidArgumentError("More than one data chunk found in WAV")
            size -= size % form.block
            found = np.frombuffer(_part(data, at, size), "<i2").reshape(-1, form.channels)
        at += size
    return found


def _expect(data: bytes, at: int, text: bytes) -> None:
    found = _part(data, at, len(text))
    if found != text:
        shown = found.decode("utf-8", "replace")
        raise InvalidArgumentError(f"Header mismatch: Expected {text.decode()} but found {shown}")


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(_part(data, at, 4), "little")


def _part(data: bytes, at: int, size: int) -> bytes:
    part = data[at : at + size]
    if len(part) < size:
        raise InvalidArgumentError("Data too short when trying to read string")
    return part


def wav_file(audio: Array, rate: int) -> bytes:
    """A file of samples; what is beyond -1 and 1 is cut.

    Args:
        audio: the samples, float32 [samples, channels].
        rate: how many there are per second.

    """
    length, channels = audio.shape
    block = 2 * channels
    if not 0 < rate <= _MOST:
        raise InvalidArgumentError(f"sample_rate must be in (0, 2^32), got: {rate % 2**64}")
    if not 0 < channels < 1 << 16:
        raise InvalidArgumentError(f"num_channels must be in (0, 2^16), got: {channels}")
    if _HEADER.size + length * block > _MOST:
        raise InvalidArgumentError("Provided channels and frames cannot be encoded as a WAV.")
    scaled = np.clip(audio * np.float32(32768), -32768, 32767).astype(np.float64)
    away = np.trunc(scaled + np.copysign(0.5, scaled))  # halves are rounded away from zero
    body: bytes = away.astype("<i2").tobytes()
    # Numbers that have no room in the header are cut.
    header = _HEADER.pack(
        b"RIFF", _HEADER.size - 8 + len(body), b"WAVE", b"fmt ", _FORMAT_SIZES[0], _PCM, channels,
        rate, rate * block % 2**32, block % 2**16, _BITS, b"data", len(body),
    )  # fmt: skip
    return header + body
