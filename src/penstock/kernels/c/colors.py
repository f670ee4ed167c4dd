"""Colours of pixels as red, green and blue, or hue, saturation and value, by the library in C.

In:   pixels of three numbers of float32.
Out:  as many pixels, rounded where numpy would round; None where there is no library.
Not:  knows no ops; checks no shapes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Colors, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: In the order in which ``colors.c`` has them.
WAYS: Final = ("to_hsv", "from_hsv", "shift_hue", "scale_saturation")
#: With fewer numbers no other thread is asked to help.
_SHARED: Final = 1 << 15


def recolored(images: Array, way: str, amount: float = 0.0) -> Array | None:
    """Pixels after one of ``WAYS``; None if that is for others to do.

    Args:
        images: [..., 3].
        way: to or from hue, saturation and value; or what is adjusted.
        amount: what is added to hues, or saturations are multiplied by.

    """
    with_c = library()
    if with_c is None or images.dtype is not FLOAT:
        return None
    images, result = np.ascontiguousarray(images), np.empty(images.shape, FLOAT)
    colors = Colors(
        from_=address(images), to=address(result), count=images.size // 3, way=WAYS.index(way),
        amount=amount,
    )  # fmt: skip
    if images.size:
        with_c.recolor(colors, contention.helpers(HELPERS) if images.size >= _SHARED else 0)
    return result
