"""What models do with their inputs before anything else: numbers and images.

What draws at random (flips, rotations …) does so in training only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.builder import ops
from penstock.core.values import Array
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, Weight, layer
from penstock.formats.keras.layers.reshaping import resized
from penstock.formats.keras.symbol import Nest, Symbol, constant_like
from penstock.formats.keras.windows import in_channels_last

#: The least standard deviation that is divided by: Keras' ``backend.epsilon()``.
_LEAST = 1e-7


@layer(
    "RandomFlip",
    "RandomRotation",
    "RandomZoom",
    "RandomContrast",
    "RandomTranslation",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomGrayscale",
    "RandomHue",
    "RandomSaturation",
    "RandomSharpness",
    "RandomShear",
    "RandomErasing",
    "RandomGaussianBlur",
    "RandomInvert",
    "RandomPosterization",
    "RandomPerspective",
    "RandomElasticTransform",
    "RandomColorDegeneration",
    "RandomHeight",
    "RandomWidth",
    "AugMix",
    "CutMix",
    "MixUp",
    "RandAugment",
    "Solarization",
    masking=Masking.ENDS,
)
def in_training_only(_: Layer, x: Nest, **_unused: Any) -> Nest:
    """The inputs themselves."""
    return x


# -- numbers --------------------------------------------------------------------------------------


@layer("Rescaling", masking=Masking.PASSES)
def rescaling(self: Layer, x: Symbol) -> Symbol:
    """Multiply by one number, or one for each channel, and add another."""
    scale, offset = _numbers(self.config, "scale"), _numbers(self.config, "offset")
    if x.tensor.dtype is not self.config.dtype:
        x = x.made(ops.cast(x.tensor, self.config.dtype))
    return x.made(x.tensor * self.constant("scale", scale) + self.constant("offset", offset))


def _numbers(config: Config, key: str) -> Array:
    """A setting that is a number or an array of numbers, in any of its forms."""
    value: Any = config.get(key, 0.0 if key == "offset" else None)
    if isinstance(value, dict):
        inner = value.get("config")
        value = inner.get("value") if isinstance(inner, dict) else value.get("value")
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise config.error(f"'{key}' must be numbers") from None


def _statistics(config: Config) -> list[Weight]:
    """What Normalization has learned, unless it was told."""
    if config.settings.get("mean") is not None:
        return []
    names = ("mean", "variance", "count")
    return [Weight(name, is_trained=False) for name in names]


@layer("Normalization", weights=_statistics, masking=Masking.PASSES)
def normalization(self: Layer, x: Symbol) -> Symbol:
    """(x - mean) / standard deviation, along some dimensions; or the other way round."""
    config = self.config
    if x.tensor.dtype is not config.dtype:
        x = x.made(ops.cast(x.tensor, config.dtype))
    told = config.settings.get("mean") is not None
    mean = _numbers(config, "mean") if told else self.array("mean")
    variance = _numbers(config, "variance") if told else self.array("variance")
    axes = (
        [] if config.settings.get("axis", -1) is None else sorted(config.axes("axis", x.rank, -1))
    )
    form = [size if place in axes else 1 for place, size in enumerate(x.shape)]
    shift = self.constant("mean", _broadcast(config, mean, form))
    scale = _broadcast(config, np.maximum(np.sqrt(variance), _LEAST), form)
    factor = self.constant("deviation", scale)
    if config.flag("invert", default=False):
        return x.made(shift + x.tensor * factor)
    return x.made(ops.real_div(x.tensor - shift, factor))


def _broadcast(config: Config, values: Array, form: Sequence[int | None]) -> Array:
    wanted = tuple(-1 if size is None else size for size in form)
    try:
        return np.broadcast_to(values, wanted) if values.size == 1 else values.reshape(wanted)
    except ValueError:
        raise config.error(f"{values.size} statistics do not fit an input of {wanted}") from None


# -- images ---------------------------------------------------------------------------------------


@layer("Resizing")
def resizing(self: Layer, x: Symbol) -> Symbol:
    """Images of another size; of their middle, if they must not be distorted."""
    config = self.config
    height, width = (config.integer(key, at_least=1) for key in ("height", "width"))
    method = config.text("interpolation", "bilinear").lower()
    is_smooth = config.flag("antialias", default=False)

    def changed(x: Symbol) -> Symbol:
        if config.flag("crop_to_aspect_ratio", default=False):
            x = _middle(config, x, *_largest_box(config, x, height, width))
        elif config.flag("pad_to_aspect_ratio", default=False):
            x = _framed(config, x, height, width)
        return resized(config, x, [height, width], method, is_smooth=is_smooth)

    return in_channels_last(_real(self, x), changed, is_channels_first=config.is_channels_first)


@layer("RandomCrop")
def random_crop(self: Layer, x: Symbol) -> Symbol:
    """The largest part in the middle of each image that has the wanted form, in the wanted size.

    Keras 3 leaves images as they are (since 3.8, which reads the files of 3.0 to 3.7 so, too).
    """
    config = self.config
    if config.is_keras_3:
        return x
    height, width = (config.integer(key, at_least=1) for key in ("height", "width"))
    x = _real(self, x)
    box = _largest_box(config, x, height, width)
    return resized(config, _middle(config, x, *box), [height, width], "bilinear")


def _real(self: Layer, x: Symbol) -> Symbol:
    """Images of whole numbers in the type of the layer."""
    is_same = x.tensor.dtype is self.config.dtype
    return x if is_same else x.made(ops.cast(x.tensor, self.config.dtype))


def _largest_box(config: Config, x: Symbol, height: int, width: int) -> tuple[int, int]:
    """The size of the largest part of an image with the form of another one."""
    rows, columns = x.shape[1], x.shape[2]
    if rows is None or columns is None:
        raise config.unsupported("a part of images of unknown size")
    box_height = max(min(rows, int(columns * height / width)), 1)
    box_width = max(min(columns, int(rows * width / height)), 1)
    return box_height, box_width


def _framed(config: Config, x: Symbol, height: int, width: int) -> Symbol:
    """An image in a frame, with which it has the form of another one."""
    rows, columns = x.shape[1], x.shape[2]
    if rows is None or columns is None:
        raise config.unsupported("a frame around images of unknown size")
    config.choice("fill_mode", ("constant",), "constant")
    above = max(int(columns * height / width) - rows, 0) // 2
    beside = max(int(rows * width / height) - columns, 0) // 2
    around = np.array([(0, 0), (above, above), (beside, beside), (0, 0)], np.int32)
    value = constant_like(config.number("fill_value", 0.0), x.tensor)
    made = ops.pad_v2(x.tensor, around, value)
    return x.made(made, (x.shape[0], rows + 2 * above, columns + 2 * beside, x.shape[3]))


def _middle(config: Config, x: Symbol, height: int, width: int) -> Symbol:
    """The middle of an image; where it cannot be exact, nearer to the upper left."""
    rows, columns = x.shape[1], x.shape[2]
    if rows is None or columns is None:
        raise config.unsupported("the middle of images of unknown size")
    top, left = (rows - height) // 2, (columns - width) // 2
    made = x.tensor[:, top : top + height, left : left + width]
    return x.made(made, (x.shape[0], height, width, x.shape[3]))


@layer("CenterCrop")
def center_crop(self: Layer, x: Symbol) -> Symbol:
    """The middle of each image; of one that is smaller, as much as keeps its form, made larger."""
    config = self.config
    height, width = (config.integer(key, at_least=1) for key in ("height", "width"))

    def cropped(x: Symbol) -> Symbol:
        rows, columns = x.shape[1], x.shape[2]
        if rows is not None and columns is not None and (rows < height or columns < width):
            x = _middle(config, x, *_largest_box(config, x, height, width))
            return resized(config, x, [height, width], "bilinear")
        return _middle(config, x, height, width)

    return in_channels_last(_real(self, x), cropped, is_channels_first=config.is_channels_first)


@layer("AutoContrast")
def auto_contrast(self: Layer, x: Symbol) -> Symbol:
    """Each channel of each image stretched to the whole range; one of a single value stays."""
    low, high = self.config.items("value_range", [0, 255])
    if not all(isinstance(bound, (int, float)) for bound in (low, high)):
        raise self.config.error("'value_range' must be two numbers")
    given = _real(self, x)
    span = constant_like(high - low, given.tensor)
    bright = constant_like(255.0, given.tensor)
    start = constant_like(low, given.tensor)
    is_byte = (low, high) == (0, 255)
    image = given.tensor if is_byte else ops.real_div(given.tensor - start, span) * bright
    least = ops.min(image, [1, 2], keep_dims=True)
    scale = ops.real_div(bright, ops.max(image, [1, 2], keep_dims=True) - least)
    zero = constant_like(0.0, image)
    stretched = ops.minimum(ops.maximum(image * scale - least * scale, zero), bright)
    made = stretched if is_byte else ops.real_div(stretched, bright) * span + start
    return given.made(ops.select_v2(ops.is_nan(made), given.tensor, made))
