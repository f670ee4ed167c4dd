"""A random part of an image, of a given size.

In:   an image, and the height and the width of the part.
Out:  the part, another one each time.
Not:  knows no boxes (distorted_box_ops).
"""

from __future__ import annotations

from penstock.core.values import Value
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.random.node_stream import stream_of
from penstock.kernels.random.plain_random import PlainRandom
from penstock.kernels.values.arrays import shape_text


@kernel("RandomCrop", types={"T": REALS})
def make_random_crop(attrs: Attrs) -> Kernel:
    """A part that begins anywhere; its column is drawn before its row."""
    generator = stream_of(attrs)

    def random_crop(image: Value, size: Value) -> Value:
        height, width = _size_in(image, size)
        rows, columns = image.shape[0] - height, image.shape[1] - width
        if not rows and not columns:
            return image
        random = PlainRandom(generator.reserve(1))
        left = random.below(columns + 1) if columns else 0
        top = random.below(rows + 1) if rows else 0
        return image[top : top + height, left : left + width]

    return random_crop


def _size_in(image: Value, size: Value) -> tuple[int, int]:
    if image.ndim != 3:
        raise InvalidArgumentError(f"input must be 3-dimensional{shape_text(image.shape)}")
    if size.ndim != 1:
        raise InvalidArgumentError(f"shape_t must be 1-dimensional{shape_text(size.shape)}")
    if len(size) != 2:
        raise InvalidArgumentError(f"shape_t must have two elements{shape_text(size.shape)}")
    height, width = size.tolist()
    for name, have, want in (("height", image.shape[0], height), ("width", image.shape[1], width)):
        if want < 0:
            raise InvalidArgumentError(f"target_{name} must not be negative: {want}")
        if have < want:
            raise FailedPreconditionError(
                f"{name} must be >= target_{name}: {name} = {have}, target_{name} = {want}"
            )
    return height, width
