"""Images of other sizes by PyTorch.

In:   images, or gradients of resized ones, and how many rows and columns there are to be.
Out:  images of that size, of the same type.
Not:  only what is blended from two neighbours, and sums over places side by side.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.batches import depth_second, filled_by_images
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.library import Tensor, Torch, tensor
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel
from penstock.kernels.image.linear_resize import SHORT, AxisBlend, BlendLines, by_element
from penstock.kernels.image.resize_ops import make_resize_bilinear, nearest

#: Elements from which on PyTorch is faster: measured.
_HEAVY: Final = 1 << 14
#: Lines that a node remembers the sources of.
_MOST_LINES: Final = 64


@accelerated("ResizeBilinear")
def offer_resize_bilinear(attrs: Attrs) -> Offer:
    """Rows and columns blended from the two nearest ones."""

    def pays(images: Value, size: Value) -> bool:
        if images.ndim != 4 or np.shape(size) != (2,):
            return False
        return bool(images.shape[0] * images.shape[3] * size[0] * size[1] >= _HEAVY)

    return Offer(pays, lambda torch: make_resize_bilinear(attrs, _blend_by(torch)))


class _Ends(NamedTuple):
    """Where a line's sources are, for PyTorch."""

    #: Kept, so that no other line is taken for it.
    line: AxisBlend
    #: First all first ones, then all second ones.
    sources: Tensor
    #: The part of the second one for each first one.
    parts: Tensor


def _blend_by(torch: Torch) -> BlendLines:  # noqa: C901  (functions in a function)
    """Blend in one pass, without differences in between."""
    #: By the identity of a line and the elements of a source; races do no harm.
    known: dict[tuple[int, int], _Ends] = {}

    def blend(x: Array, line: AxisBlend, out: Array) -> None:
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

    def gather(x: Array, line: AxisBlend, out: Array) -> None:
        outer, _, inner = x.shape
        ends = known.get((id(line), inner))
        if ends is None:
            if len(known) >= _MOST_LINES:
                known.clear()
            ends = known[id(line), inner] = ends_of(line, inner)
        if inner < SHORT:
            x, out = x.reshape(outer, -1), out.reshape(outer, -1)
        both = torch.index_select(tensor(torch, x), 1, ends.sources)
        first, second = both.chunk(2, 1)
        torch.lerp(first, second, ends.parts, out=tensor(torch, out))

    def ends_of(line: AxisBlend, inner: int) -> _Ends:
        sources, parts = np.concatenate([line.first, line.second]), line.parts[:, np.newaxis]
        if inner < SHORT:
            sources, parts = by_element(sources, inner), np.repeat(line.parts, inner)
        return _Ends(line, torch.from_numpy(sources), torch.from_numpy(parts))

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
