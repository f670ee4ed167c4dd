"""The centres that are nearest to points.

In:   points and centres as rows, and how many centres each point is to get.
Out:  numbers of centres, nearest first, of equally near ones the first; and the squares of
      their distances.
Not:  builds no index: every distance is computed.
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel

#: Distances are computed for so many pairs at a time, to bound the memory they take.
_PAIRS_AT_ONCE = 1 << 22


@kernel("NearestNeighbors")
def make_nearest_neighbors(_: Attrs) -> Kernel:
    """The k nearest centres of each point, and how far they are, squared."""

    def compute(points: Value, centers: Value, k: Value) -> tuple[Array, Array]:
        _check(points, centers, k)
        count = min(int(k), len(centers))
        numbers = np.empty((len(points), count), np.int64)
        distances = np.empty((len(points), count), np.float32)
        step = max(1, _PAIRS_AT_ONCE // max(1, centers.size))
        for start in range(0, len(points), step):
            part = slice(start, start + step)
            difference = points[part, None, :] - centers[None, :, :]
            squares = np.einsum("pcd,pcd->pc", difference, difference)
            numbers[part] = np.argsort(squares, axis=1, kind="stable")[:, :count]
            distances[part] = np.take_along_axis(squares, numbers[part], 1)
        return numbers, distances

    return compute


def _check(points: Value, centers: Value, k: Value) -> None:
    for name, value in (("points", points), ("centers", centers)):
        if value.ndim != 2:
            raise InvalidArgumentError(f"Input {name} should be a matrix.")
    if k.ndim:
        raise InvalidArgumentError("Input k should be a scalar.")
    if k < 0:
        raise InvalidArgumentError(f"Expected k >= 0, got {k}")
    if len(points) == 0:
        raise InvalidArgumentError("Expected points.rows() > 0.")
    if points.shape[1] != centers.shape[1]:
        raise InvalidArgumentError(
            "Expected point_dimensions == center_dimensions: "
            f"{points.shape[1]} vs {centers.shape[1]}."
        )
