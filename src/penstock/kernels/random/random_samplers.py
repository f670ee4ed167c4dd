"""Samples that take more than one random number each: gamma, Poisson, binomial, choices.

In:   a stream of bits, and the parameter of each sample.
Out:  a vector of samples; the same bits give the same samples as in TensorFlow.
Not:  no state, no shapes.

Each sample has a stretch of the stream of its own (a lane), from which it takes fractions
and normal numbers until a candidate is accepted.  All lanes advance together.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.random_numbers import normal_float64, uniform_float64

#: So many counters lie between the lanes of two samples.
RESERVED: Final = 256
#: Between those of two binomial samples of small mean; not intended, but so it is.
_RESERVED_FOR_FEW: Final = 42
#: Means from here on are sampled by rejection, smaller ones by counting.
_LARGE_MEAN: Final = 10.0


class Lanes:
    """One generator per sample.  Numbers are made in pairs, of which the second comes first."""

    def __init__(self, stream: Philox, count: int, distance: int = RESERVED) -> None:
        self._stream = stream
        #: How far ahead in the stream each lane's next counter stands.
        self._next = np.arange(count, dtype=np.uint64) * np.uint64(distance)
        #: The last pair of each kind, and how many of it are still unused.
        self._fractions = np.empty((count, 2))
        self._fractions_left = np.zeros(count, np.intp)
        self._normals = np.empty((count, 2))
        self._normals_left = np.zeros(count, np.intp)

    def uniform(self, lanes: Array) -> Array:
        """The next fraction of each of these lanes."""
        empty = lanes[self._fractions_left[lanes] == 0]
        if empty.size:
            self._fractions[empty] = uniform_float64(self._bits(empty)).reshape((-1, 2))
            self._fractions_left[empty] = 2
        self._fractions_left[lanes] -= 1
        return self._fractions[lanes, self._fractions_left[lanes]]

    def normal(self, lanes: Array) -> Array:
        """The next normal number of each of these lanes."""
        empty = lanes[self._normals_left[lanes] == 0]
        if empty.size:
            self._normals[empty] = normal_float64(self._bits(empty)).reshape((-1, 2))
            self._normals_left[empty] = 2
        self._normals_left[lanes] -= 1
        return self._normals[lanes, self._normals_left[lanes]]

    def _bits(self, lanes: Array) -> Array:
        words = self._stream.blocks_at(self._next[lanes])
        self._next[lanes] += np.uint64(1)
        return words.reshape(-1)


def gamma(stream: Philox, alphas: Array) -> Array:
    """Samples of gamma distributions with these shapes, and scale 1.

    Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; shapes
    below 1 by their boost, shape 1 as an exponential variable.
    """
    lanes = Lanes(stream, len(alphas))
    samples = np.where(alphas == np.inf, np.inf, np.nan)
    exponential = np.flatnonzero(alphas == 1)
    samples[exponential] = -np.log1p(-lanes.uniform(exponential))
    active = np.flatnonzero((alphas >= 0) & (alphas != 1) & (alphas != np.inf))
    while active.size:
        alpha = alphas[active]
        d = alpha + np.where(alpha < 1, 2 / 3, -1 / 3)
        x = lanes.normal(active)
        v = 1 + x / 3 / np.sqrt(d)
        positive = v > 0
        tried, alpha, d, x, v = (
            active[positive],
            alpha[positive],
            d[positive],
            x[positive],
            v[positive],
        )
        v = v * v * v
        u = lanes.uniform(tried)
        accepted = u < 1 - 0.0331 * (x * x) * (x * x)
        accepted |= np.log(u) < 0.5 * x * x + d * (1 - v + np.log(v))
        done, alpha, sample = tried[accepted], alpha[accepted], (d * v)[accepted]
        small = alpha < 1
        sample[small] *= lanes.uniform(done[small]) ** (1 / alpha[small])
        samples[done] = sample
        active = np.setdiff1d(active, done, assume_unique=True)
    return samples


def poisson(stream: Philox, rates: Array, largest: float) -> Array:
    """Samples of Poisson distributions with these rates (finite), none above ``largest``."""
    lanes = Lanes(stream, len(rates))
    samples = np.zeros(len(rates))
    _count_arrivals(lanes, np.flatnonzero(rates < _LARGE_MEAN), rates, samples)
    _reject_poisson(lanes, np.flatnonzero(rates >= _LARGE_MEAN), rates, samples, largest)
    return samples


def _count_arrivals(lanes: Lanes, active: Array, rates: Array, samples: Array) -> None:
    """Count fractions while their product stays above exp(-rate): Knuth, volume 2."""
    products = np.ones(len(active))
    bounds = np.exp(-rates[active])
    count = 0
    while active.size:
        products *= lanes.uniform(active)
        going = products > bounds
        samples[active[~going]] = count
        active, products, bounds = active[going], products[going], bounds[going]
        count += 1


def _reject_poisson(
    lanes: Lanes, active: Array, rates: Array, samples: Array, largest: float
) -> None:
    """Transformed rejection with squeeze (PTRS): Hoermann, 1993."""
    while active.size:
        rate = rates[active]
        b = 0.931 + 2.53 * np.sqrt(rate)
        a = -0.059 + 0.02483 * b
        u = lanes.uniform(active) - 0.5
        v = lanes.uniform(active)
        room = 0.5 - np.abs(u)
        k = np.floor((2 * a / room + b) * u + rate + 0.43)
        accepted = (room >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        doubtful = np.flatnonzero(~accepted & (k >= 0) & ~((room < 0.013) & (v > room)))
        a, b, k_, rate, room = (x[doubtful] for x in (a, b, k, rate, room))
        height = np.log(v[doubtful] * (1.1239 + 1.1328 / (b - 3.4)) / (a / (room * room) + b))
        accepted[doubtful] = height <= -rate + k_ * np.log(rate) - _log_factorial(k_)
        accepted &= k <= largest
        samples[active[accepted]] = k[accepted]
        active = active[~accepted]


def _log_factorial(numbers: Array) -> Array:
    return np.array([math.lgamma(number + 1) for number in numbers.tolist()])


def binomial(stream: Philox, counts: Array, chances: Array) -> Array:
    """Samples of binomial distributions: successes in so many trials of such a chance."""
    samples = np.where(chances >= 1, counts, 0.0)
    samples[(counts <= 0) | (chances <= 0)] = 0
    samples[~np.isfinite(counts) | np.isnan(chances)] = np.nan
    rare = np.where(chances <= 0.5, chances, 1 - chances)
    is_open = (counts > 0) & np.isfinite(counts) & (chances > 0) & (chances < 1)
    is_large = counts * rare >= _LARGE_MEAN
    few = Lanes(stream, len(counts), _RESERVED_FOR_FEW)
    _count_trials(few, np.flatnonzero(is_open & ~is_large), counts, rare, samples)
    many = Lanes(stream, len(counts))
    _reject_binomial(many, np.flatnonzero(is_open & is_large), counts, rare, samples)
    return np.where(is_open & (chances > 0.5), counts - samples, samples)


def _count_trials(
    lanes: Lanes, active: Array, counts: Array, chances: Array, samples: Array
) -> None:
    """Add up the distances between successes until the trials are used up."""
    passed = np.zeros(len(active))
    failures = np.log1p(-chances[active])
    successes = 0
    while active.size:
        passed += np.ceil(np.log(lanes.uniform(active)) / failures)
        going = passed <= counts[active]
        samples[active[~going]] = successes
        active, passed, failures = active[going], passed[going], failures[going]
        successes += 1


def _reject_binomial(
    lanes: Lanes, active: Array, counts: Array, chances: Array, samples: Array
) -> None:
    """Transformed rejection with squeeze (BTRS): Hoermann, 1993."""
    while active.size:
        n, p = counts[active], chances[active]
        deviation = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        u = lanes.uniform(active) - 0.5
        v = lanes.uniform(active)
        room = 0.5 - np.abs(u)
        k = np.floor((2 * a / room + b) * u + (n * p + 0.5))
        accepted = (room >= 0.07) & (v <= 0.92 - 4.2 / b)
        doubtful = np.flatnonzero(~accepted & (k >= 0) & (k <= n))
        n, p, a, b, k_, room, deviation = (x[doubtful] for x in (n, p, a, b, k, room, deviation))
        height = np.log(v[doubtful] * (2.83 + 5.1 / b) * deviation / (a / (room * room) + b))
        accepted[doubtful] = height <= _log_ratio_to_mode(n, p, k_)
        samples[active[accepted]] = k[accepted]
        active = active[~accepted]


def _log_ratio_to_mode(n: Array, p: Array, k: Array) -> Array:
    """The logarithm of how likely k is in comparison with the likeliest number."""
    odds, mode = p / (1 - p), np.floor((n + 1) * p)
    ratio: Array = (
        (mode + 0.5) * np.log((mode + 1) / (odds * (n - mode + 1)))
        + (n + 1) * np.log((n - mode + 1) / (n - k + 1))
        + (k + 0.5) * np.log(odds * (n - k + 1) / (k + 1))
        + (_stirling_error(mode) + _stirling_error(n - mode))
        - _stirling_error(k)
        - _stirling_error(n - k)
    )
    return ratio


def _stirling_error(k: Array) -> Array:
    """The logarithm of k! less Stirling's approximation of it."""
    exact: Array = _STIRLING_ERRORS[np.clip(k, 0, 9).astype(np.intp)]
    square = (k + 1) ** 2
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, exact, series)


_STIRLING_ERRORS: Final = np.array(
    [
        math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
        for k in range(10)
    ]
)


def choices(stream: Philox, logits: Array, count: int) -> Array:
    """For each row of logits so many classes, each as likely as its exponential says.

    Numbers that are not finite stand for classes that are never chosen.
    """
    rows = len(logits)
    wide = logits.astype(np.float64)
    finite = np.isfinite(wide)
    largest = np.max(wide, axis=1, keepdims=True, where=finite, initial=-np.inf)
    sums = np.cumsum(np.where(finite, np.exp(wide - largest), 0.0), axis=1)
    fractions = uniform_float64(stream.blocks(-(-rows * count // 2)).reshape(-1))[: rows * count]
    wanted = fractions.reshape((rows, count)) * sums[:, -1:]
    chosen = np.empty((rows, count), np.int64)
    if count < rows:
        for column in range(count):
            chosen[:, column] = np.count_nonzero(sums <= wanted[:, column, None], axis=1)
    else:
        for row in range(rows):
            chosen[row] = np.searchsorted(sums[row], wanted[row], side="right")
    return chosen


def shuffled(stream: Philox, size: int) -> Array:
    """The numbers below ``size`` in random order (Fisher and Yates)."""
    words = stream.blocks(-(-size // 4)).reshape(-1)[: max(size - 1, 0)]
    steps = words % np.arange(size, 1, -1, dtype=np.uint32)
    order = list(range(size))
    for place, step in enumerate(steps.tolist()):
        other = place + step
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.intp)
