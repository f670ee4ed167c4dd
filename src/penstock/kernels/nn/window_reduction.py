"""What windows see, joined in each place of theirs, and what places have, spread to what they saw.

In:   images, [batch, sizes..., depth]; windows; a function of two arrays, such as a maximum.
Out:  for each place of the windows all that is under them, joined by the function; or for each
      element of the images the sum of what the places have that see it.
Not:  registers no kernel; knows no types.

A window is a rectangle or a block, so it is joined along one dimension after the other.  What
is beyond the images is left out, not filled in: padding would have to copy them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.kernels.parallel.image_tiles import PIECES, in_bands
from penstock.kernels.parallel.strided_copies import gathered, has_short_runs, put
from penstock.kernels.values.arrays import check_new
from penstock.kernels.values.windows import Fit, Window, pad, seen_by

#: A dimension, and how a window slides and fits along it.
Along: TypeAlias = tuple[int, Window, Fit]
#: What becomes of joined windows, in place; rows of places are given with them.
Finish: TypeAlias = Callable[[Array, slice], None]
#: Bytes of images that are worked on at a time: measured.
_AT_ONCE: Final = 1 << 22
#: With fewer elements it is not worthwhile to wake other threads.
_SHARED: Final = 1 << 19
#: Into more blocks than this an array is not worth to be divided.
_BLOCKS: Final = 32


class Joiner(NamedTuple):
    """How two elements become one, and what changes no element that it is joined with."""

    join: np.ufunc
    neutral: Any


def join_windows(
    images: Array,
    windows: Sequence[Window],
    joiner: Joiner,
    finish: Finish,
    *,
    at_once: int = _AT_ONCE,
    shared: int = _SHARED,
) -> Array:
    """What is under the windows in each place, joined."""
    fits = [w.fit(n) for w, n in zip(windows, images.shape[1:-1], strict=True)]
    result = np.empty((len(images), *(fit.places for fit in fits), images.shape[-1]), images.dtype)
    if not result.size:
        return result

    def some(part: slice, rows: slice) -> None:
        seen, first = seen_by(rows, windows[0], fits[0], images.shape[1])
        joined = images[part, seen]
        facts = list(zip(itertools.count(1), windows, (first, *fits[1:]), strict=False))
        for axis, window, fit in facts[:-1]:
            joined = join_along(joined, (axis, window, fit), joiner)
        joined = join_along(joined, facts[-1], joiner, result[part, rows])
        finish(joined, rows)

    row_bytes = max(images[:1].nbytes // fits[0].places, 1)
    pieces = PIECES if images.size >= shared else 1
    in_bands(len(images), fits[0].places, at_once // row_bytes, pieces, some)
    return result


def join_along(images: Array, facts: Along, joiner: Joiner, out: Array | None = None) -> Array:
    """Join what is under a window along one dimension, perhaps into an array."""
    axis, window, fit = facts
    plan = _joining(window, fit.places, fit.before, images.shape[axis])
    if not plan.is_covered:  # no element of the window is inside in all places
        fits = [fit if at == axis else Fit(0, 0, 0) for at in range(1, images.ndim - 1)]
        inside = axis, window, Fit(fit.places, 0, 0)
        return join_along(pad(images, fits, joiner.neutral), inside, joiner, out)
    before = (slice(None),) * axis
    if fit.places == 1:
        seen = images[(*before, slice(*plan.seen, window.dilation))]
        return np.asarray(joiner.join.reduce(seen, axis, keepdims=True, out=out))
    if out is None:
        out = np.empty((*images.shape[:axis], fit.places, *images.shape[axis + 1 :]), images.dtype)
    _meet(plan, images, out, axis, joiner.join)
    return out


def spread_along(parts: Array, facts: Along, length: int) -> Array:
    """Give what is in each place to all elements of its window along one dimension."""
    axis, window, fit = facts
    shape = (*parts.shape[:axis], length, *parts.shape[axis + 1 :])
    check_new(shape, parts.dtype)
    result, before = np.empty(shape, parts.dtype), (slice(None),) * axis
    for way, plan in enumerate(_spreading(window, fit.places, fit.before, length)):
        there = result[(*before, slice(way, None, window.stride))]
        some = np.empty(there.shape, there.dtype) if has_short_runs(there) else there
        if not plan.is_covered:
            some[...] = 0
        _meet(plan, parts, some, axis, np.add)
        if some is not there:
            put(there, some)
    return result


class _Meeting(NamedTuple):
    """What of a result an array is joined to along a dimension, and what of the array."""

    there: slice
    here: slice


@dataclass(frozen=True, slots=True)
class _JoinPlan:
    """How parts of an array along a dimension are joined."""

    #: The longest first, which is the whole result if that is covered.
    meetings: tuple[_Meeting, ...]
    is_covered: bool
    #: What the second meeting leaves of a result that is covered.
    ends: tuple[slice, ...]
    #: The first of the array that is met, and what comes after the last.
    seen: tuple[int, int]


def _plan(meetings: list[_Meeting], length: int) -> _JoinPlan:
    first = min((here.start for _, here in meetings), default=0)
    seen = first, max((here.stop for _, here in meetings), default=first)
    meetings.sort(key=lambda meeting: meeting.there.start - meeting.there.stop)
    is_covered = bool(meetings) and meetings[0].there == slice(0, length)
    ends: list[slice] = []
    if is_covered and len(meetings) > 1:
        there = meetings[1].there
        both = (slice(0, there.start), slice(there.stop, length))
        ends = [end for end in both if end.start < end.stop]
    return _JoinPlan(tuple(meetings), is_covered, tuple(ends), seen)


@functools.lru_cache(maxsize=256)
def _joining(window: Window, places: int, before: int, length: int) -> _JoinPlan:
    return _plan([_Meeting(*tap) for tap in _taps(window, places, before, length)], places)


@functools.lru_cache(maxsize=256)
def _spreading(window: Window, places: int, before: int, length: int) -> tuple[_JoinPlan, ...]:
    """One for each way in which elements are under windows."""
    ways = min(window.stride, length)
    meetings: list[list[_Meeting]] = [[] for _ in range(ways)]
    for tap in _taps(window, places, before, length):
        first, way = divmod(tap.seen.start, window.stride)
        there = slice(first, first + tap.places.stop - tap.places.start)
        meetings[way].append(_Meeting(there, tap.places))
    lengths = [len(range(way, length, window.stride)) for way in range(ways)]
    return tuple(itertools.starmap(_plan, zip(meetings, lengths, strict=True)))


class _Tap(NamedTuple):
    """Places in which an element of a window meets the images, and what it meets there."""

    places: slice
    seen: slice


def _taps(window: Window, places: int, before: int, length: int) -> Iterator[_Tap]:
    """Those of each element of the window; elements that meet nothing are left out."""
    step = window.stride
    least = max(before - (places - 1) * step, 0)
    elements = range(-(-least // window.dilation), (before + length - 1) // window.dilation + 1)
    for element in elements[: max(window.size - elements.start, 0)]:
        start = element * window.dilation - before
        first = max(-(start // step), 0)
        last = min(-((start - length) // step), places)
        if first < last:
            at = first * step + start
            yield _Tap(slice(first, last), slice(at, at + (last - first - 1) * step + 1, step))


def _meet(plan: _JoinPlan, array: Array, result: Array, axis: int, join: np.ufunc) -> None:
    """Join parts of an array to a result, which has nothing yet if it is covered."""
    meetings, before = plan.meetings, (slice(None),) * axis

    def part(where: slice) -> Array:
        return gathered(array[(*before, where)])

    if plan.is_covered:
        whole = part(meetings[0].here)
        if len(meetings) == 1:
            result[...] = whole
            return
        there, here = meetings[1]  # together with the first, which is a pass less
        join(whole[(*before, there)], part(here), out=result[(*before, there)])
        for end in plan.ends:
            result[(*before, end)] = whole[(*before, end)]
        meetings = meetings[2:]
    for there, here in meetings:
        some = result[(*before, there)]
        join(some, part(here), out=some)


# -- means -------------------------------------------------------------------------------------


def divide_by_counts(
    sums: Array,
    windows: Sequence[Window],
    lengths: Sequence[int],
    rows: slice = slice(None),
    *,
    max_blocks: int = _BLOCKS,
) -> None:
    """Divide by how many elements the windows see, in place; these rows of places are given.

    The counts are equal in blocks, and to divide by one number is faster than by an array.
    """
    runs = [
        _runs_of_counts(window, length) for window, length in zip(windows, lengths, strict=True)
    ]
    first, last, _ = rows.indices(runs[0][-1][0].stop if runs[0] else 0)
    runs[0] = tuple(
        (slice(max(run.start, first) - first, min(run.stop, last) - first), count)
        for run, count in runs[0]
        if run.start < last and first < run.stop
    )
    if prod(map(len, runs)) <= max_blocks:
        for block in itertools.product(*runs):
            where = (slice(None), *(run for run, _ in block))
            np.true_divide(sums[where], sums.dtype.type(prod(n for _, n in block)), out=sums[where])
        return
    for axis, along in enumerate(runs, 1):
        counts = np.concatenate([np.full(run.stop - run.start, count) for run, count in along])
        column = counts.astype(sums.dtype).reshape(-1, *(1,) * (sums.ndim - 1 - axis))
        np.true_divide(sums, column, out=sums)


@functools.lru_cache(maxsize=64)
def _runs_of_counts(window: Window, length: int) -> tuple[tuple[slice, int], ...]:
    """Places along a dimension in which equally many elements are no padding, and how many."""
    fit = window.fit(length)
    start = np.arange(fit.places) * window.stride - fit.before
    counts = (np.minimum(start + window.size, length) - np.maximum(start, 0)).tolist()
    runs, first = [], 0
    for count, equal in itertools.groupby(counts):
        last = first + len(list(equal))
        runs.append((slice(first, last), count))
        first = last
    return tuple(runs)
