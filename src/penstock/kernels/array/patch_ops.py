"""Patches of images and volumes.

In:   an array with the batch first and the depth last.
Out:  at each place of a sliding window, what is under it, as one vector.
Not:  weighs and adds nothing: that is convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import OutOfRangeError, UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS, REALS
from penstock.kernels.values.arrays import check_new
from penstock.kernels.values.windows import Window, margins_of, per_dimension, slide


@kernel("ExtractImagePatches", types={"T": NUMBERS})
def make_extract_image_patches(attrs: Attrs) -> Kernel:
    """The patches of images: rows, columns and depth of each become one depth."""
    return _extract(_windows(attrs, "NHWC", ("ksizes", "strides", "rates")))


@kernel("ExtractVolumePatches", types={"T": REALS})
def make_extract_volume_patches(attrs: Attrs) -> Kernel:
    """The patches of volumes: planes, rows, columns and depth of each become one depth."""
    windows = _windows(attrs, "NDHWC", ("ksizes", "strides"))
    extract = _extract(windows)

    def extract_centred(values: Value) -> Array:
        return extract(_without_margins(np.asarray(values), windows))

    return extract_centred if attrs.str("padding") == "SAME" else extract


def _without_margins(array: Array, windows: Sequence[Window]) -> Array:
    """Leave out half of what strides longer than the window do not reach anyway.

    TensorFlow pads volumes by a negative number there, so places start later; images not.
    """
    inside = [slice(None)]
    for window, length in zip(windows, array.shape[1:-1], strict=False):
        reach = (window.fit(length).places - 1) * window.stride + window.extent
        inside.append(slice(max(length - reach, 0) // 2, None))
    return array[tuple(inside)]


def _windows(attrs: Attrs, layout: str, names: Sequence[str]) -> list[Window]:
    """The windows that the attributes of these names describe."""
    sizes, strides, *rates = (_spatial(attrs, name, layout) for name in names)
    dilations = rates[0] if rates else [1] * len(sizes)
    facts = zip(sizes, strides, dilations, margins_of(attrs, layout), strict=True)
    return [Window(*fact) for fact in facts]


def _extract(windows: Sequence[Window]) -> Callable[[Value], Array]:
    """The kernel that reads out what is under windows with as many spatial dimensions."""
    rank = len(windows) + 2

    def extract(values: Value) -> Array:
        array = np.asarray(values)
        if array.ndim != rank:
            raise ValueError(f"input must be {rank}-dimensional, got shape {array.shape}")
        patches = slide(array, windows, array.dtype.type(0))
        check_new(patches.shape, patches.dtype)
        places = patches.shape[: len(windows) + 1]
        return patches.reshape(*places, prod(patches.shape[len(places) :]))

    return extract


def _spatial(attrs: Attrs, name: str, layout: str) -> list[int]:
    """The spatial numbers of an attribute, which must be positive."""
    of_letter = per_dimension(attrs, name, layout)
    if of_letter.pop("N") != 1 or of_letter.pop("C") != 1:
        raise UnimplementedError(f"Only support {name} across space.")
    if min(of_letter.values()) < 1:
        raise OutOfRangeError(f"{name} is out of range: {list(of_letter.values())}")
    return list(of_letter.values())
