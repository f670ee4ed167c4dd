"""Sound as the strength of its pitches over time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.core.values import Array
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Weight, layer
from penstock.formats.keras.symbol import Symbol, constant_like, pack

_MODES: Final = ("log", "magnitude", "psd", "real", "imag", "angle", "stft")
#: Below this, what is divided by or has a logarithm is raised to it: ``backend.epsilon()``.
_LEAST: Final = 1e-7
#: More numbers than these are in no piece of a sound, and in no table of bands.
_LONGEST: Final = 1 << 24
#: Of the scale of HTK: mel(f) = 1127 log(1 + f / 700).
_MEL_FACTOR: Final = 1127.0
_MEL_BREAK: Final = 700.0


# -- by two convolutions, whose kernels are weights -----------------------------------------------


def _kernels(config: Config) -> list[Weight]:
    mode = config.choice("mode", _MODES, "log")
    unwanted = {"imag": "real_kernel", "real": "imag_kernel"}.get(mode)
    return [Weight(name) for name in ("real_kernel", "imag_kernel") if name != unwanted]


@layer("STFTSpectrogram", weights=_kernels)
def stft_spectrogram(self: Layer, x: Symbol) -> Symbol:
    """What each channel has of each pitch in each piece of time."""
    config = self.config
    if x.rank != 3:
        raise config.error(f"it takes sounds in channels, and gets an input of rank {x.rank}")
    # Time last, and each channel as a sound of its own.
    order = (0, 1, 2) if config.is_channels_first else (0, 2, 1)
    batch, channels, _ = (x.size(axis) for axis in order)
    sound = x.tensor if config.is_channels_first else ops.transpose(x.tensor, np.array(order))
    flat = ops.reshape(sound, pack([-1, 1, x.size(order[2]), 1]))
    parts = {name: _convolved(self, flat, name) for name in self.arrays}
    strength = _in_mode(config, parts)
    pitches = next(iter(self.arrays.values())).shape[2]
    pitches *= 2 if config.choice("mode", _MODES, "log") == "stft" else 1
    frames = ops.shape(strength)[1]
    apart = ops.reshape(strength, pack([batch, channels, frames, pitches]))
    known = (x.shape[0], x.shape[order[1]], None, pitches)
    return _arranged(config, x, Symbol(apart, known))


def _convolved(self: Layer, flat: Tensor, name: str) -> Tensor:
    kernel = self.array(name)
    length = self.config.integer("frame_length", at_least=1)
    step = self.config.integer("frame_step", length // 2, at_least=1)
    padding = self.config.choice("padding", ("valid", "same"), "valid").upper()
    wide = self.kept(name, lambda: kernel[None])
    made = ops.conv2d(flat, wide, strides=[1, 1, step, 1], padding=padding)
    return ops.squeeze(made, squeeze_dims=[1])


def _in_mode(config: Config, parts: dict[str, Tensor]) -> Tensor:
    """One number, or two, of each pitch, of its real and its imaginary part."""
    mode = config.choice("mode", _MODES, "log")
    real, imaginary = parts.get("real_kernel"), parts.get("imag_kernel")
    if real is None or imaginary is None:
        return next(iter(parts.values()))
    if mode == "angle":
        return ops.atan2(imaginary, real)
    if mode == "stft":
        return ops.concat_v2([real, imaginary], np.int32(2))
    power = real * real + imaginary * imaginary
    if mode == "psd":
        inner = ops.pad(power[:, :, 1:-1], np.array([(0, 0), (0, 0), (1, 1)], np.int32))
        return power + inner
    least = constant_like(_LEAST, power)
    magnitude = ops.sqrt(ops.maximum(power, least))
    return magnitude if mode == "magnitude" else ops.log(ops.maximum(magnitude, least))


def _arranged(config: Config, x: Symbol, s: Symbol) -> Symbol:
    """Batch, channels, time and pitch in the order that is wanted."""
    order = [0, 1, 2, 3]
    has_all = config.flag("expand_dims", default=False)
    if not config.is_channels_first:
        order = [0, 2, 3, 1] if has_all else [0, 2, 1, 3]
    elif not has_all:
        order = [0, 1, 3, 2]
    moved = ops.transpose(s.tensor, np.array(order, np.int32))
    shape = [s.shape[place] for place in order]
    if has_all:
        return x.made(moved, shape)
    first = 1 if config.is_channels_first else 2
    both = [shape[first], shape[first + 1]]
    size = None if None in both else (both[0] or 0) * (both[1] or 0)
    sizes = s.made(moved, shape).sizes()
    joined = [*sizes[:first], -1, *sizes[first + 2 :]]
    return x.made(ops.reshape(moved, pack(joined)), [*shape[:first], size, *shape[first + 2 :]])


# -- by a Fourier transform -----------------------------------------------------------------------


@layer("MelSpectrogram")
def mel_spectrogram(self: Layer, x: Symbol) -> Symbol:
    """What a sound has of each of some bands of pitches, as wide as ears hear them."""
    config = self.config
    if x.rank != 2:
        raise config.unsupported(f"sounds in {x.rank} dimensions")
    bands = config.integer("num_mel_bins", 128, at_least=1)
    magnitudes = _spectrum(config, x.tensor)
    exponent = config.number("mag_exp", 2.0)
    strength = ops.pow(magnitudes, constant_like(exponent, magnitudes))
    scale = ops.constant(_mel_matrix(config, bands))
    made = ops.batch_mat_mul_v2(strength, scale)
    if config.flag("power_to_db", default=True):
        made = _decibels(config, made)
    return x.made(ops.transpose(made, np.array([0, 2, 1], np.int32)), (x.shape[0], bands, None))


def _spectrum(config: Config, sound: Tensor) -> Tensor:
    """The magnitude of each pitch in each piece of time."""
    size = config.integer("fft_length", 2048, at_least=1)
    step = config.integer("sequence_stride", 512, at_least=1)
    length = config.integer("sequence_length", size, at_least=1)
    if length > size or size > _LONGEST:
        raise config.error(f"pieces of {length} numbers, as {size}, are not taken of a sound")
    around = np.array([(0, 0), (size // 2, size // 2)], np.int32)
    padded = ops.mirror_pad(ops.cast(sound, dtypes.float32), around, mode="REFLECT")
    image = ops.expand_dims(ops.expand_dims(padded, 1), 3)
    pieces = ops.extract_image_patches(
        image, ksizes=[1, 1, size, 1], strides=[1, 1, step, 1], rates=[1, 1, 1, 1], padding="VALID"
    )
    before = (size - length) // 2
    window = np.pad(_window(config, length), (before, size - length - before))
    weighted = ops.squeeze(pieces, squeeze_dims=[1]) * ops.constant(window)
    transformed = ops.rfft(weighted, np.array([size], np.int32))
    real, imaginary = ops.real(transformed), ops.imag(transformed)
    return ops.sqrt(real * real + imaginary * imaginary)


def _window(config: Config, length: int) -> Array:
    """A raised cosine; of an even length it is one period, of an odd one it is symmetric."""
    share = {"hann": 0.5, "hamming": 0.54}[config.choice("window", ("hann", "hamming"), "hann")]
    if length == 1:
        return np.ones(1, np.float32)
    period = length if length % 2 == 0 else length - 1
    angles = 2 * np.pi * np.arange(length) / period
    return np.asarray(share - (1 - share) * np.cos(angles), np.float32)


def _mel_matrix(config: Config, bands: int) -> Array:
    """How much of each pitch belongs to each band: triangles of one width on the scale of HTK."""
    rate = config.integer("sampling_rate", 16000, at_least=1)
    lowest, highest = config.number("min_freq", 20.0), config.number("max_freq", rate // 2)
    pitches = config.integer("fft_length", 2048, at_least=1) // 2 + 1
    if pitches * bands > _LONGEST:
        raise config.error(f"{bands} bands of {pitches} pitches are too many")
    # In float32 throughout, like Keras: what is nearly nothing differs by its rounding.
    hertz = np.linspace(0.0, rate / 2.0, pitches, dtype=np.float32)[1:]  # the first has no pitch
    edges = np.linspace(_mel(lowest), _mel(highest), bands + 2, dtype=np.float32)
    place = _mel(hertz)[:, None]
    rising = (place - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - place) / (edges[2:] - edges[1:-1])
    shares = np.maximum(np.float32(0), np.minimum(rising, falling))
    return np.pad(shares, ((1, 0), (0, 0)))


def _mel(hertz: Any) -> Any:
    one = np.float32(1)
    return np.float32(_MEL_FACTOR) * np.log(one + np.float32(hertz) / np.float32(_MEL_BREAK))


def _decibels(config: Config, power: Tensor) -> Tensor:
    """Powers by their logarithm, none further than so much below the largest of all."""
    least = config.number("min_power", 1e-10)
    per_e = constant_like(10.0 / np.log(10.0), power)
    against = 10.0 * np.log10(max(abs(config.number("ref_power", 1.0)), least))
    level = ops.log(ops.maximum(power, constant_like(least, power))) * per_e
    level = level - constant_like(against, power)
    loudest = ops.max(ops.reshape(level, np.array([-1], np.int32)), [0])
    return ops.maximum(level, loudest - constant_like(config.number("top_db", 80.0), power))
