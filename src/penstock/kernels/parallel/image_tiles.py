"""Batches of images in bands: some rows of some images at a time, on several cores.

In:   how many images and rows of results there are, and what computes some of them.
Out:  each row of each image is computed once.
Not:  computes nothing itself; knows no windows.

Each step of a computation finds what the step before has left, in a cache if the band is small.
But every step waits for Python's lock, so bands are no smaller than they must be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from penstock.kernels.parallel.intra_op import HELPERS, parallel_for

#: Computes some rows of some images.
Band: TypeAlias = Callable[[slice, slice], None]
#: Work that several threads share is cut into so many bands at least.  More than one for each
#: thread would wait for Python's lock more often than for a thread that is late.
PIECES: Final = min(HELPERS + 1, 8)


def in_bands(batch: int, rows: int, at_once: int, pieces: int, compute: Band) -> None:
    """Compute all rows of all images: ``at_once`` rows at most, in so many bands at least."""
    if not batch or not rows:
        return
    at_once = max(at_once, 1)
    many = min(max(at_once // rows, 1), -(-batch // pieces))
    step = min(rows, at_once, -(-rows // -(-pieces // batch)))
    bands = [
        (slice(first, min(first + many, batch)), slice(row, min(row + step, rows)))
        for first in range(0, batch, many)
        for row in range(0, rows, step)
    ]
    if len(bands) == 1 or pieces == 1:
        for band in bands:
            compute(*band)
    else:
        parallel_for(len(bands), lambda number: compute(*bands[number]))
