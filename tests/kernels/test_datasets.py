"""What recorded cases cannot say of datasets: threads, deadlines, and what a failure leaves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from penstock import Config, RunOptions, Session, Tier, errors
from penstock.kernels.datasets.seeds import SeedGenerator
from support.graphs import graph_def

RANGE = """
    start = Const[value=0; dtype=int64]
    stop = Const[value={stop}; dtype=int64]
    step = Const[value=1; dtype=int64]
    range = RangeDataset[output_types=int64; output_shapes=](start, stop, step)
"""
ITERATOR = """
    it = IteratorV2[output_types=int64; output_shapes=; shared_name=it; container=]
    init = MakeIterator(data, it)
    next = IteratorGetNext[output_types=int64; output_shapes=](it)
"""


def pipeline(text: str, stop: int) -> Session:
    """A session over an iterator of a pipeline that begins with ``range``."""
    proto = graph_def(RANGE.format(stop=stop) + text + ITERATOR)
    for node in proto.node:
        if "output_shapes" in node.attr:
            node.attr["output_shapes"].list.shape.add()
    return Session(proto, config=Config(tier=Tier.DATAFLOW))


def test_threads_share_an_iterator() -> None:
    """Each element is given once, whoever asks."""
    prefetch = "data = PrefetchDataset[output_types=int64; output_shapes=](range, step)"
    with pipeline(prefetch, 200) as s:
        s.run("init")
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _: int(s.run("next:0")), range(200)))

        assert sorted(found) == list(range(200))
        with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
            s.run("next:0")


def test_an_endless_search_can_be_ended() -> None:
    """A deadline ends a step that skips and skips, and the iterator goes on from there."""
    skip = "data = SkipDataset[output_types=int64; output_shapes=](range, stop)"
    with pipeline(skip, 2**62) as session:
        session.run("init")

        with pytest.raises(errors.DeadlineExceededError):
            session.run("next:0", options=RunOptions(timeout_in_ms=50))


def test_an_iterator_begins_anew() -> None:
    """Its initializer may run at any time."""
    take = "data = TakeDataset[output_types=int64; output_shapes=](range, stop)"
    with pipeline(take, 9) as session:
        for _ in range(2):
            session.run("init")
            assert [int(session.run("next:0")) for _ in range(3)] == [0, 1, 2]


def test_types_are_those_of_the_dataset() -> None:
    """Elements keep the declared type."""
    take = "data = TakeDataset[output_types=int64; output_shapes=](range, stop)"
    with pipeline(take, 1) as session:
        session.run("init")

        assert session.run("next:0").dtype == np.int64


def test_seeds_are_the_same_or_the_next_ones() -> None:
    """A fixed generator repeats its seeds; another one gives the words of its stream."""
    fixed, moving = SeedGenerator(3, 4, is_fixed=True), SeedGenerator(3, 4, is_fixed=False)

    assert fixed.next_seeds() == fixed.next_seeds() == (3, 4)
    # The first words of Philox with this key and counter.
    assert moving.next_seeds() == (1995848961, 2377083460)
    assert moving.next_seeds() == (192503441, 2649255194)
