"""Python's cyclic garbage collector, paused while much is built that will stay.

In:   a function, or lines, that make many objects and little garbage.
Out:  the same, run without collections.
Not:  decides nothing about what else the process does with its collector.

A graph of ten thousands of nodes is a million objects, all of them alive.  The collector would
look through them again and again while they are made, which takes longer than making them.  Nor
does it look through them once more when the pause ends: by then they are as old as objects get,
which it looks through when a quarter has been added to them, and not before.

The collector belongs to the whole process, and so does a pause.  Every call turns it on again
if it was on when the call began, whether it returns or raises; so calls may overlap on any
threads, at worst one of them goes on with the collector running, and a program that does
without it keeps doing so.  The child of a fork goes on with the collector running.

What is built in pauses becomes garbage some day, all of it cyclic.  So that a program which
opens and closes one graph after the other does not drown in it, the collector looks through all
that there is after every million objects that got old like that.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

from penstock.core.forks import in_children

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

#: Whether the collector knows how old objects are; in a Python without a GIL it does not.
_KNOWS_AGES: Final = hasattr(gc, "freeze") and "t" not in getattr(sys, "abiflags", "")
_OBJECTS_PER_LOOK: Final = 1_000_000
#: Objects that got old by a pause since it last looked for that, in its one element.  A number
#: that is lost in a race between threads does no harm.
_aged: Final = [0]
#: Whether somebody else was seen to have frozen objects, in its one element.  Only becomes true.
_has_frozen: Final = [False]
#: Pauses under way that turned the collector off.  Each operation on it is atomic.
_pauses: Final[dict[int, object]] = {}


@contextmanager
def collector_pause() -> Iterator[None]:
    """Go without garbage collections."""
    if not gc.isenabled():
        yield
        return
    pause = object()
    try:
        _begin(pause)
        yield
    finally:
        _end(pause)


def collector_paused(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Run ``function`` without garbage collections."""

    @functools.wraps(function)
    def paused(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        if not gc.isenabled():
            return function(*args, **kwargs)
        pause = object()
        try:
            _begin(pause)
            return function(*args, **kwargs)
        finally:
            _end(pause)

    return paused


def _begin(pause: object) -> None:
    """Turn the collector off."""
    _pauses[id(pause)] = pause
    gc.disable()


def _end(pause: object) -> None:
    """Turn it on, as it was."""
    try:
        _resume()
    finally:  # a child of a fork that comes before has the collector turned on
        _pauses.pop(id(pause), None)


def _end_pauses() -> None:
    """Turn the collector on in the child of a fork, where nobody else is left to do it."""
    if _pauses:
        _pauses.clear()
        gc.enable()


in_children(_end_pauses)


def _resume() -> None:
    """Turn the collector on; what there is by now is old, or is looked through."""
    try:
        if _KNOWS_AGES and not _has_frozen_objects():
            _aged[0] += _count_young()
            if _aged[0] < _OBJECTS_PER_LOOK:
                _make_old()
            else:
                _aged[0] = 0
                gc.collect()
    finally:
        gc.enable()


def _has_frozen_objects() -> bool:
    """Whether something is frozen: it is somebody else's, who would not have it thawed."""
    if not _has_frozen[0]:  # they are counted one by one, be they millions
        _has_frozen[0] = gc.get_freeze_count() > 0
    return _has_frozen[0]


def _count_young() -> int:
    """About how many objects were made since the collector last looked through all of them."""
    (new, collections, larger_ones), (per_collection, per_larger, _) = (
        gc.get_count(),
        gc.get_threshold(),
    )
    return new + per_collection * (collections + per_larger * larger_ones)


def _make_old() -> None:
    """Make all objects as old as they can be, which takes no time.

    Frozen and thawed, they are among the old ones; for as long as that takes, they are not
    looked through.
    """
    try:
        gc.freeze()
    finally:  # Ctrl-C may come before this, and not within
        gc.unfreeze()
