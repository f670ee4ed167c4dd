"""How pooling windows slide over images, in PyTorch's terms.

In:   windows, and shapes of images with the depth last.
Out:  shapes of what comes out; padding as PyTorch has it, where it can be said at all.
Not:  pools nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.kernels.nn.window_reduction import runs_of_counts
from penstock.kernels.values.windows import Fit, Window, even_margins


class Geometry:
    """How windows slide over images with the depth last."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self.sizes: Final = [w.size for w in windows]
        self.strides: Final = [w.stride for w in windows]
        self._windows: Final = windows

    def pooled(self, images: Sequence[int]) -> tuple[int, ...]:
        """The shape of what comes out."""
        fits = [w.fit(n) for w, n in zip(self._windows, images[1:-1], strict=True)]
        return (images[0], *(fit.places for fit in fits), images[-1])

    def even_margins(self, images: Sequence[int]) -> list[int] | None:
        """The padding at both ends of each dimension, if it is the same."""
        return even_margins([w.fit(n) for w, n in zip(self._windows, images[1:-1], strict=True)])

    def counts(self, images: Sequence[int]) -> list[tuple[tuple[slice, int], ...]]:
        """For each dimension runs of places in which windows see equally much, and how much."""
        return [runs_of_counts(w, n) for w, n in zip(self._windows, images[1:-1], strict=True)]

    def padding(self, images: Sequence[int]) -> tuple[list[int], bool] | None:
        """The padding and whether places are rounded up; None if PyTorch cannot do it."""
        fits = [w.fit(n) for w, n in zip(self._windows, images[1:-1], strict=True)]
        before = [fit.before for fit in fits]
        if any(2 * b > size for b, size in zip(before, self.sizes, strict=True)):
            return None
        for is_rounded_up in (False, True):
            facts = zip(self._windows, images[1:-1], fits, strict=True)
            if all(_places(w, n, fit, is_rounded_up) == fit.places for w, n, fit in facts):
                return before, is_rounded_up
        return None


def _places(window: Window, length: int, fit: Fit, is_rounded_up: bool) -> int:  # noqa: FBT001
    """How many places PyTorch finds for a window."""
    room = length + 2 * fit.before - window.size
    if not is_rounded_up:
        return room // window.stride + 1
    places = -(-room // window.stride) + 1
    # A window that would start beyond the image is left out.
    return places - ((places - 1) * window.stride >= length + fit.before)
