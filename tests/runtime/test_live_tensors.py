"""What is alive is counted once, by whom it belongs to, until it dies."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import numpy as np

from penstock.runtime import live_tensors
from penstock.runtime.live_tensors import LiveTensors, Owner


def test_random_lives_are_counted() -> None:
    """Against a plain count of what comes and goes; also when changes are summed up often."""
    for limit in (5, 100_000):
        random, tensors, alive = Random(3), LiveTensors(), dict[int, Any]()
        before, live_tensors._MAX_CHANGES = live_tensors._MAX_CHANGES, limit  # type: ignore[misc]
        try:
            peak = 0
            at_peak: list[int] = []
            for turn in range(300):
                if alive and random.random() < 0.45:
                    del alive[random.choice([*alive])]
                else:
                    alive[turn] = np.zeros(random.randrange(1, 50), np.uint8)
                    tensors.add(Owner(str(turn), "Op"), alive[turn])
                    tensors.add(Owner("view", "Op"), alive[turn].reshape(1, -1))
                total = sum(a.nbytes for a in alive.values())
                if total > peak:
                    peak, at_peak = total, sorted(alive)
                assert tensors.total() == total
            found, live = tensors.peak()
            assert (found, sorted(int(one.owner.name) for one in live)) == (peak, at_peak)
            assert sorted(int(one.owner.name) for one in tensors.alive()) == sorted(alive)
        finally:
            live_tensors._MAX_CHANGES = before  # type: ignore[misc]


def test_many_threads_may_add_and_free() -> None:
    """When all have ended, what they keep is what is counted."""
    tensors, kept = LiveTensors(), list[Any]()
    shared = [np.zeros(100, np.uint8) for _ in range(50)]

    def work(number: int) -> None:
        random = Random(number)
        for turn in range(500):
            made = np.zeros(random.randrange(1, 9), np.uint8)
            tensors.add(Owner(f"{number}/{turn}", "Op"), made)
            tensors.add(Owner("shared", "Op"), shared[turn % 50])
            if random.random() < 0.1:
                kept.append(made)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tensors.total() == sum(a.nbytes for a in kept) + 50 * 100


def test_strings_count_with_their_text() -> None:
    """An array of strings takes what these take."""
    tensors = LiveTensors()
    text = np.array([b"abc", b"defgh"], object)
    tensors.add(Owner("text", "Op"), text)
    assert tensors.total() == 8
