"""Python's cyclic garbage collector, paused while much is built that will stay.

In:   a function, or lines, that make many objects and little garbage.
Out:  the same, run without collections.
Not:  decides nothing about what else the process does with its collector.

A graph of ten thousands of nodes is a million objects, all of them alive.  The collector would
look through them again and again while they are made, which takes longer than making them.

The collector belongs to the whole process, and so does a pause.  Every call turns it on again
if it was on when the call began, whether it returns or raises; so calls may overlap on any
threads, at worst one of them goes on with the collector running, and a program that does
without it keeps doing so.  The child of a fork goes on with the collector running.

What is built in pauses becomes garbage some day, all of it cyclic.  So that a program which
opens and closes one graph after the other does not drown in it, the collector hears about
every hundred thousand objects; about ten such notes make it look through all that there is.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

from penstock.core.forks import in_children

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

_OBJECTS_PER_NOTE: Final = 100_000
#: Objects made in pauses since the last note, in its one element.  A number that is lost in a
#: race between threads does no harm.
_unnoted: Final = [0]
#: Pauses under way that turned the collector off.  Each operation on it is atomic.
_pauses: Final[dict[int, object]] = {}


@contextmanager
def collector_pause() -> Iterator[None]:
    """Go without garbage collections."""
    was_enabled = gc.isenabled()
    before = gc.get_count()[0]
    pause = object()
    try:
        if was_enabled:
            _pauses[id(pause)] = pause
            gc.disable()
        yield
    finally:
        if was_enabled:
            try:
                _resume(gc.get_count()[0] - before)
            finally:  # a child of a fork that comes before has the collector turned on
                _pauses.pop(id(pause), None)


def collector_paused(function: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Run ``function`` without garbage collections."""

    @functools.wraps(function)
    def paused(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        with collector_pause():
            return function(*args, **kwargs)

    return paused


def _end_pauses() -> None:
    """Turn the collector on in the child of a fork, where nobody else is left to do it."""
    if _pauses:
        _pauses.clear()
        gc.enable()


in_children(_end_pauses)


def _resume(made: int) -> None:
    """Turn the collector on, and tell it of new objects by collecting young ones.

    That comes first: turned on, it would look through them by itself, and then once more.
    """
    try:
        _unnoted[0] += max(0, made)
        while _unnoted[0] >= _OBJECTS_PER_NOTE:
            _unnoted[0] -= _OBJECTS_PER_NOTE
            gc.collect(1)
    finally:
        gc.enable()
