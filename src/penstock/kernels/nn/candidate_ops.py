"""Candidates for losses over so many classes that only a sample of them is looked at.

In:   the true classes.
Out:  sampled classes, and how often each of them, and of the true ones, was to be expected.
Not:  learns no distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.random.node_stream import stream_of
from penstock.kernels.random.plain_random import PlainRandom
from penstock.kernels.values.arrays import check_room, shape_text

#: So many counters are reserved for each candidate, however many its draws need.
_RESERVED: Final = 512
#: Bytes that a candidate takes until all are there.
_SAMPLE: Final = 64
_LOWEST: Final = np.finfo(np.float32).min


@dataclass(frozen=True, slots=True)
class Distribution:
    """How classes are drawn."""

    draw: Callable[[PlainRandom], int]
    probability: Callable[[int], float]


def _uniform(size: int) -> Distribution:
    return Distribution(lambda random: random.below_64(size), lambda _: 1.0 / size)


def _log_uniform(size: int) -> Distribution:
    """Class k about as likely as log((k + 2) / (k + 1)): for classes sorted by frequency."""
    log_range = math.log1p(size)

    def draw(random: PlainRandom) -> int:
        return (int(math.exp(random.fraction_64() * log_range)) - 1) % size

    return Distribution(draw, lambda value: math.log((value + 2) / (value + 1)) / log_range)


_DISTRIBUTIONS: Final[dict[str, Callable[[int], Distribution]]] = {
    "UniformCandidateSampler": _uniform,
    "LogUniformCandidateSampler": _log_uniform,
}


@kernel(*_DISTRIBUTIONS)
def make_candidate_sampler(attrs: Attrs) -> Kernel:
    """Classes drawn from a distribution, each at most once if they are to be unique."""
    size, count = attrs.int("range_max"), attrs.int("num_sampled")
    is_unique, generator = attrs.bool("unique"), stream_of(attrs)
    distribution = _DISTRIBUTIONS[attrs.op.name](size)
    if is_unique and count > size:
        raise InvalidArgumentError("Sampler's range is too small.")

    def sample(true_classes: Value) -> tuple[Array, Array, Array]:
        _check(true_classes, attrs.int("num_true"))
        check_room(count, _SAMPLE, "samples")
        random = PlainRandom(generator.reserve(count * _RESERVED))
        chosen, tries = _chosen(distribution, random, count, is_unique=is_unique)

        def expected(value: int) -> float:
            probability = distribution.probability(value) if 0 <= value < size else 0.0
            if tries == count:
                return probability * count
            return -math.expm1(tries * math.log1p(-probability))

        return _facts(chosen, true_classes, expected)

    return sample


def _chosen(
    distribution: Distribution, random: PlainRandom, count: int, *, is_unique: bool
) -> tuple[list[int], int]:
    """The classes in the order they were drawn, and how many draws it took."""
    if not is_unique:
        return [distribution.draw(random) for _ in range(count)], count
    chosen: dict[int, None] = {}
    tries = 0
    while len(chosen) < count:
        tries += 1
        chosen.setdefault(distribution.draw(random))
    return list(chosen), tries


def _facts(
    chosen: Sequence[int], true_classes: Array, expected: Callable[[int], float]
) -> tuple[Array, Array, Array]:
    trues = [expected(value) for value in true_classes.reshape(-1).tolist()]
    return (
        np.array(chosen, np.int64),
        np.array(trues, np.float32).reshape(true_classes.shape),
        np.array([expected(value) for value in chosen], np.float32),
    )


def _check(true_classes: Value, count: int) -> None:
    shape = np.shape(true_classes)
    if len(shape) != 2 or shape[1] != count:
        raise InvalidArgumentError(
            f"true_classes must be a matrix with num_true columns, got {shape_text(shape)}"
        )


@kernel("AllCandidateSampler")
def make_all_candidate_sampler(attrs: Attrs) -> Kernel:
    """All classes, in order."""
    count = attrs.int("num_sampled")

    def sample(true_classes: Value) -> tuple[Array, Array, Array]:
        _check(true_classes, attrs.int("num_true"))
        check_room(count, _SAMPLE, "samples")
        return _facts(range(count), true_classes, lambda _: 1.0)

    return sample


@kernel("ComputeAccidentalHits")
def make_compute_accidental_hits(attrs: Attrs) -> Kernel:
    """Where a sampled class is one of a row's true ones, and a weight that rules it out."""
    count = attrs.int("num_true")

    def hits(true_classes: Array, sampled: Array) -> tuple[Array, Array, Array]:
        _check(true_classes, count)
        if np.ndim(sampled) != 1:
            raise InvalidArgumentError(
                "sampled_candidates must be a vector, which is typically an output from "
                "CandidateSampler"
            )
        place = {value: at for at, value in enumerate(sampled.tolist())}
        found = [
            (row, place[value])
            for row, values in enumerate(true_classes.tolist())
            for value in values
            if value in place
        ]
        rows = np.array([row for row, _ in found], np.int32)
        ids = np.array([at for _, at in found], np.int64)
        return rows, ids, np.full(len(found), _LOWEST, np.float32)

    return hits
