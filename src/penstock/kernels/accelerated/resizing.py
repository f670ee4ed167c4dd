"""Images of other sizes by PyTorch.

In:   images, or gradients of resized ones, and how many rows and columns there are to be.
Out:  images of that size, of the same type.
Not:  only what is blended from two neighbours, and sums over places side by side.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.batches import depth_second, filled_by_images
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.library import Torch, tensor
from penstock.kernels.attrs import Attrs
from penstock.kernels.linear_resize import SHORT, BlendLines, Line, by_element
from penstock.kernels.registry import Kernel
from penstock.kernels.resize_ops import make_resize_bilinear, nearest

#: Elements from which on PyTorch is faster: measured.
_HEAVY: Final = 1 << 14


@accelerated("ResizeBilinear")
def offer_resize_bilinear(attrs: Attrs) -> Offer:
    """Rows and columns blended from the two nearest ones."""

    def pays(images: Value, size: Value) -> bool:
        if images.ndim != 4 or np.shape(size) != (2,):
            return False
        return bool(images.shape[0] * images.shape[3] * size[0] * size[1] >= _HEAVY)

    return Offer(pays, lambda torch: make_resize_bilinear(attrs, _blend_by(torch)))


def _blend_by(torch: Torch) -> BlendLines:
    """Blend in one pass, without differences in between."""

    def blend(x: Array, line: Line, out: Array) -> None:
        if line.runs is None:
            gather(x, line, out)
            return
        for run in line.runs:
            target, first = out[:, run.places], x[:, run.first]
            if run.part:
                ends = tensor(torch, first), tensor(torch, x[:, run.second])
                torch.lerp(*ends, float(run.part), out=tensor(torch, target))
            else:
                target[...] = first

    def gather(x: Array, line: Line, out: Array) -> None:
        first, second, parts = line.first, line.second, line.parts[:, np.newaxis]
        outer, _, inner = x.shape
        if inner < SHORT:
            first, second = by_element(first, inner), by_element(second, inner)
            parts = np.repeat(line.parts, inner)
            x, out = x.reshape(outer, -1), out.reshape(outer, -1)
        source = tensor(torch, x)
        ends = (torch.index_select(source, 1, tensor(torch, some)) for some in (first, second))
        torch.lerp(*ends, tensor(torch, parts), out=tensor(torch, out))

    return blend


@accelerated("ResizeNearestNeighborGrad")
def offer_resize_nearest_grad(attrs: Attrs) -> Offer:
    """The sum of what is sent back to all places that an element was picked for."""

    def pays(grads: Value, size: Value) -> bool:
        return bool(grads.ndim == 4 and np.shape(size) == (2,) and grads.size >= _HEAVY)

    def build(torch: Torch) -> Kernel:
        average = torch.ops.aten.avg_pool2d.out

        def resize_grad(grads: Array, size: Value) -> Any:
            rows, columns = size.tolist()
            window = _tiles(attrs, grads.shape[1], rows), _tiles(attrs, grads.shape[2], columns)
            if 0 in window or 0 in grads.shape:
                return NotImplemented

            def fill(result: Array, some: Array) -> None:
                facts = (window, window, [0, 0], False, True, 1)
                average(depth_second(torch, some), *facts, out=depth_second(torch, result))

            shape = (len(grads), rows, columns, grads.shape[3])
            return filled_by_images(torch, fill, shape, grads)

        return resize_grad

    return Offer(pays, build)


def _tiles(attrs: Attrs, places: int, before: int) -> int:
    """For how many places side by side each element was picked; 0 if that is not so."""
    times, rest = divmod(places, before) if before > 0 else (0, 0)
    if not times or rest:
        return 0
    is_tiled = (nearest(attrs, before, places) == np.repeat(np.arange(before), times)).all()
    return times if is_tiled else 0
