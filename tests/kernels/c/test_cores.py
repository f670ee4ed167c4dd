"""Whoever waits for a thread that has lost its core lends it its own, and takes it back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from threading import get_native_id
from time import monotonic
from typing import Any

import numpy as np
import pytest

from benchmarks.burning import burning
from penstock.kernels.c import softmax as module
from penstock.kernels.c.library import library
from penstock.kernels.c.softmax import softmax
from support.shared_library import KINDS, Shared

pytestmark = [
    pytest.mark.skipif(library() is None, reason="there was no C compiler"),
    pytest.mark.skipif(
        sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
        reason="cores are lent on Linux, where there are several",
    ),
]
#: So long is waited for what a busy machine brings about after a moment.
_PATIENCE = 60
LOGITS: Any = np.random.default_rng(5).normal(size=(500, 1000)).astype(np.float32)


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work is shared with three threads, and other processes want all cores."""
    monkeypatch.setattr(module, "library", lambda: Shared(KINDS[-1], 3))
    whole = os.sched_getaffinity(0)
    with burning(len(whole)):
        yield
    os.sched_setaffinity(0, whole)
    for thread in others():
        with suppress(ProcessLookupError):  # it has ended
            os.sched_setaffinity(thread, whole)


def others() -> set[int]:
    """Threads of this process, but for this one."""
    return {int(number) for number in os.listdir("/proc/self/task")} - {get_native_id()}


def cores_of_threads() -> set[frozenset[int]]:
    """What others may run on."""
    found = set()
    for thread in others():
        with suppress(ProcessLookupError):
            found.add(frozenset(os.sched_getaffinity(thread)))
    return found


def work_until_some_thread_may_run_on(wanted: set[frozenset[int]]) -> None:
    """Compute softmaxes, all of which are right."""
    expected = softmax(LOGITS)
    end = monotonic() + _PATIENCE
    while cores_of_threads().isdisjoint(wanted):
        assert monotonic() < end, cores_of_threads()
        np.testing.assert_array_equal(softmax(LOGITS), expected)


def test_a_thread_that_had_the_callers_core_goes_elsewhere() -> None:
    """It may run on all cores that the caller may use, but for one."""
    whole = frozenset(os.sched_getaffinity(0))

    work_until_some_thread_may_run_on({whole - {core} for core in whole})

    assert frozenset() not in cores_of_threads()
    assert all(cores <= whole for cores in cores_of_threads())


def test_who_has_one_core_shares_it() -> None:
    """There is no other one to go to; what others may use is not used."""
    first = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {first})

    work_until_some_thread_may_run_on({frozenset({first})})
