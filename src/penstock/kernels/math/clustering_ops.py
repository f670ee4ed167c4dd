"""First centres for k-means.

In:   points, or how far candidates are from the centres so far; a seed.
Out:  points that are chosen, or the index of one candidate; the same ones for one seed.
Not:  clusters nothing.

Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", 2007; Bachem, Lucic,
Hassani, Krause, "Approximate k-means++ in sublinear time", 2016.  All is in float32; where two
candidates are equally good but for rounding, TensorFlow may choose the other one.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.plain_random import PlainRandom


def _random(seed: Value) -> PlainRandom:
    return PlainRandom(Philox(int(seed) & (1 << 64) - 1, 0))


def _check_scalars(**values: Value) -> None:
    for name, value in values.items():
        if value.ndim:
            raise InvalidArgumentError(f"Input {name} should be a scalar.")


@kernel("KmeansPlusPlusInitialization")
def make_kmeans_plus_plus(_: Attrs) -> Kernel:
    """Points drawn one by one, each as likely as its squared distance from those before.

    Of several tries for each point, the one that leaves the smallest sum of distances counts.
    """

    def initialize(points: Value, num_to_sample: Value, seed: Value, num_retries: Value) -> Array:
        _check_scalars(num_to_sample=num_to_sample, seed=seed, num_retries_per_sample=num_retries)
        if points.ndim != 2:
            raise InvalidArgumentError("Input points should be a matrix.")
        count, retries = int(num_to_sample), int(num_retries)
        if len(points) == 0:
            raise InvalidArgumentError("Expected points.rows() > 0.")
        if count <= 0:
            raise InvalidArgumentError("Expected num_to_sample > 0.")
        if count > len(points):
            raise InvalidArgumentError(
                f"Expected num_to_sample <= points.rows(). {count} vs {len(points)}."
            )
        if retries < 0:
            retries = 2 + int(math.log(count))
        samples: Array = points[_centres(points, count, 1 + retries, _random(seed))]
        return samples

    return initialize


def _centres(points: Array, count: int, tries: int, random: PlainRandom) -> list[int]:
    chosen: list[int] = []
    distances = np.full(len(points), np.inf, np.float32)
    while len(chosen) < count:
        sums = np.cumsum(distances)
        candidates = [
            _by_distance(sums, random) if chosen else random.below_64(len(points))
            for _ in range(tries)
        ]
        left = [np.minimum(distances, ((points - points[at]) ** 2).sum(1)) for at in candidates]
        best = int(np.argmin([rest.sum() for rest in left]))
        chosen.append(candidates[best])
        distances = left[best]
    return chosen


def _by_distance(sums: Array, random: PlainRandom) -> int:
    wanted = np.float32(random.fraction()) * sums[-1]
    return min(int(np.searchsorted(sums, wanted)), len(sums) - 1)


@kernel("KMC2ChainInitialization")
def make_kmc2(_: Attrs) -> Kernel:
    """The last of a chain of candidates: each follows if it is further away, or by chance."""

    def initialize(distances: Value, seed: Value) -> np.int64:
        if distances.ndim != 1:
            raise InvalidArgumentError("Input distances should be a vector.")
        _check_scalars(seed=seed)
        if len(distances) == 0:
            raise InvalidArgumentError("Expected distances_tensor.size() > 0.")
        random, chosen = _random(seed), 0
        for at in range(1, len(distances)):
            if distances[at] > np.float32(random.fraction()) * distances[chosen]:
                chosen = at
        return np.int64(chosen)

    return initialize
