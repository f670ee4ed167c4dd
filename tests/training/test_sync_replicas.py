"""Workers whose gradients become one update, and stragglers that nobody waits for."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.training.sync_replicas import SyncReplicas


class Team:
    """Workers with constant gradients, and a chief that subtracts their mean."""

    def __init__(self, gradients: list[float], wanted: int, first_step: int = 0) -> None:
        self.graph = ps.Graph()
        with self.graph.as_default():
            self.step = ps.Variable(np.int64(first_step), name="global_step")
            self.w = ps.Variable(np.zeros(2, np.float32), name="w")
            sync = SyncReplicas([self.w], wanted, len(gradients))
            self.workers = [
                sync.worker([ps.constant(np.full(2, gradient, np.float32))])
                for gradient in gradients
            ]
            self.chief = sync.chief(lambda variable, mean: variable.assign_sub(mean))
            self.start = sync.start()
            self.init = ps.global_variables_initializer()
        self.session = ps.Session(self.graph)
        self.session.run(self.init)
        self.session.run(self.start)

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: Any) -> None:
        self.session.close()

    def update(self, *workers: int) -> list[float]:
        """One update by some of the workers; the variable and the step after it."""
        runs = [self.session.run_async(self.workers[number]) for number in workers]
        self.session.run(self.chief, options=ps.RunOptions(timeout_in_ms=30_000))
        for run in runs:
            run.result()
        return [float(self.session.run(self.w)[1]), float(self.session.run(self.step))]


def test_an_update_is_the_mean_of_all_workers() -> None:
    """Nobody goes on before everybody's gradient was applied."""
    with Team([1, 2, 6], 3) as team:
        assert team.update(0, 1, 2) == [-3, 1]
        assert team.update(2, 0, 1) == [-6, 2]


def test_a_straggler_is_not_waited_for_and_what_it_brings_is_dropped() -> None:
    """The first two of three count; the third computed for a step that is over."""
    with Team([1, 2, 1000], 2) as team:
        assert team.update(0, 1) == [-1.5, 1]
        # It takes the token that was left for it, and changes nothing.
        team.session.run(team.workers[2])
        assert team.update(0, 1) == [-3, 2]
        # So it is once more; then it has caught up, and counts.
        team.session.run(team.workers[2])
        assert team.update(0, 2) == [-3 - (1 + 1000) / 2, 3]


def test_the_chief_waits_for_as_many_as_it_wants() -> None:
    """One gradient is not two; a deadline says what is missing."""
    with Team([1, 2], 2) as team:
        one = team.session.run_async(team.workers[0])
        with pytest.raises(errors.DeadlineExceededError, match="2 gradients of Accumulator"):
            team.session.run(team.chief, options=ps.RunOptions(timeout_in_ms=200))
        assert team.update(1) == [-1.5, 1]
        one.result()


def test_training_goes_on_from_a_restored_step() -> None:
    """``start`` tells accumulators and workers which step it is."""
    with Team([1, 3], 2, first_step=40) as team:
        assert team.update(0, 1) == [-2, 41]
        assert team.update(0, 1) == [-4, 42]


def test_workers_and_chief_in_threads_of_their_own() -> None:
    """Fifty updates of four workers, of which the first three count: each a mean of gradients."""
    with Team([1, 1, 1, 1], 3) as team:
        is_over = threading.Event()

        def work(number: int) -> None:
            while not is_over.is_set():
                try:
                    team.session.run(team.workers[number])
                except errors.OpError:
                    return  # the session is closed

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            team.session.run(team.chief, options=ps.RunOptions(timeout_in_ms=60_000))
        is_over.set()
        assert team.session.run(team.w).tolist() == [-50, -50]
        assert int(team.session.run(team.step)) == 50
        team.session.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()


def test_numbers_that_make_no_sense_are_refused() -> None:
    """More gradients than workers would be waited for in vain."""
    with pytest.raises(errors.InvalidArgumentError, match="3 cannot be aggregated"):
        Team([1, 2], 3)
    with ps.Graph().as_default():
        step = ps.Variable(np.int64(0), name="global_step")
        w = ps.Variable(np.float32(0), name="w")
        sync = SyncReplicas([w], 1, global_step=step)
        with pytest.raises(errors.InvalidArgumentError, match="0 gradients were given for 1"):
            sync.worker([])
