"""Convolutions by their definition, and each kind of vectors to compute them with in C."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c.library import Convolution, Library, loaded
from penstock.kernels.values.windows import Window, pad, slide

RNG = np.random.default_rng(11)


def floats(*shape: int) -> Array:
    """Numbers of either sign."""
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def expected(images: Array, filters: Array, windows: tuple[Window, ...], *added: Array) -> Array:
    """The definition, in float64: the sum over a window of products."""
    fits = [w.fit(n) for w, n in zip(windows, images.shape[1:-1], strict=True)]
    inner = [Window(w.size, w.stride, w.dilation) for w in windows]
    seen = slide(pad(images.astype(np.float64), fits, 0), inner)
    way = {3: "nhwijd,ijd->nhwd", 4: "nhwijd,ijdk->nhwk", 5: "nphwlijd,lijdk->nphwk"}
    total = np.einsum(way[filters.ndim], seen, filters.astype(np.float64))
    for more in added:
        total = total + more
    return np.asarray(total)


def check(got: Array | None, images: Array, filters: Array, wanted: Array) -> None:
    """Equal, but for what rounding each of the products and sums may do."""
    assert got is not None
    terms = math.prod(filters.shape[:2] if filters.ndim == 3 else filters.shape[:-1])
    most = float(np.abs(images).max() * np.abs(filters).max()) * terms + 4
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2**-24 * most * (math.sqrt(terms) + 4))


class Watched(Library):
    """A library that tells which ways were taken; with so many helpers, if that is said."""

    def __init__(self, kind: int, helpers: int | None = None) -> None:
        super().__init__(loaded(), kind)
        self._helpers = helpers
        self.taken: list[str] = []
        #: From place to place, where all products were computed.
        self.steps: list[int] = []

    def _asked(self, helpers: int) -> int:
        return helpers if self._helpers is None else self._helpers

    def winograd(self, convolution: Convolution, helpers: int) -> bool:
        """Fewer products."""
        self.taken.append("winograd")
        return super().winograd(convolution, self._asked(helpers))

    def convolve(self, convolution: Convolution, helpers: int) -> None:
        """All products."""
        self.taken.append("direct")
        self.steps.append(convolution.seen_column_step)
        super().convolve(convolution, self._asked(helpers))

    def correlate(self, convolution: Convolution, helpers: int) -> None:
        """The gradient of filters."""
        super().correlate(convolution, self._asked(helpers))


def use(chosen: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everybody use it."""
    monkeypatch.setattr("penstock.kernels.c.convolution.library", lambda: chosen)
    monkeypatch.setattr("penstock.kernels.c.filters.library", lambda: chosen)
    monkeypatch.setattr("penstock.kernels.c.product.library", lambda: chosen)
