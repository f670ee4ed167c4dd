"""What recorded cases cannot say of datasets: threads, deadlines, and what a failure leaves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from penstock import Config, RunOptions, Session, Tier, errors
from penstock.kernels.datasets.iterator_state import IteratorState
from penstock.kernels.datasets.seeds import SeedGenerator, words
from penstock.kernels.variant.optional_ops import Optional
from support.graphs import graph_def

RANGE = """
    start = Const[value=0; dtype=int64]
    stop = Const[value={stop}; dtype=int64]
    step = Const[value=1; dtype=int64]
    range = RangeDataset[output_types=int64; output_shapes=](start, stop, step)
"""
SAVED = """
    save = SerializeIterator(it)
    keep = SerializeTensor[T=variant](save)
    kept = Placeholder[dtype=string; shape=]
    state = ParseTensor[out_type=variant](kept)
    restore = DeserializeIterator(it, state)
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


def test_who_waits_for_a_turn_can_be_ended() -> None:
    """A deadline ends a step that waits until another one has its element, and nothing is left."""
    skip = "data = SkipDataset[output_types=int64; output_shapes=](range, stop)"
    with pipeline(skip, 2**62) as session:
        session.run("init")
        slow = session.run_async("next:0")
        while not slow.dump_state():
            pass

        with pytest.raises(errors.DeadlineExceededError) as caught:
            session.run("next:0", options=RunOptions(timeout_in_ms=50))
        slow.cancel()
        with pytest.raises(errors.CancelledError):
            slow.result(30)

    assert "has not called done" not in str(caught.value)


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


# -- places ----------------------------------------------------------------------------

#: Pipelines whose iterators remember numbers, elements, and seeds.
REMEMBERING = {
    "range": "data = TakeDataset[output_types=int64; output_shapes=](range, stop)",
    "repeat": "data = RepeatDataset[output_types=int64; output_shapes=](range, stop)",
    "skip": "data = SkipDataset[output_types=int64; output_shapes=](range, step)",
    "unique": "data = UniqueDataset[output_types=int64; output_shapes=](range)",
    "cache": """
        name = Const[value=; dtype=string]
        data = CacheDataset[output_types=int64; output_shapes=](range, name)
    """,
    "shuffle": """
        size = Const[value=3; dtype=int64]
        data = ShuffleDataset[output_types=int64; output_shapes=](range, size, step, step)
    """,
}


def taken(session: Session, count: int) -> list[int]:
    """The next so many elements, or all up to the end."""
    found: list[int] = []
    for _ in range(count):
        try:
            found.append(int(session.run("next:0")))
        except errors.OutOfRangeError:
            break
    return found


@pytest.mark.parametrize("text", REMEMBERING.values(), ids=REMEMBERING.keys())
def test_a_saved_place_outlives_its_session(text: str) -> None:
    """As bytes it can be gone on from in any session, and any number of times."""
    with pipeline(text + SAVED, 7) as session:
        session.run("init")
        taken(session, 4)
        kept = session.run("keep:0")
        rest = taken(session, 99)
        assert rest
    with pipeline(text + SAVED, 7) as other:
        other.run("init")
        for _ in range(2):
            taken(other, 2)
            other.run("restore", {"kept:0": kept})
            assert taken(other, 99) == rest


@pytest.mark.parametrize("text", REMEMBERING.values(), ids=REMEMBERING.keys())
def test_a_place_that_cannot_be_leaves_the_iterator_where_it_is(text: str) -> None:
    """Damaged states, and those of others, are refused; the iterator goes on as if unasked."""
    random = np.random.default_rng(0)
    with pipeline(text + SAVED, 9) as session:
        session.run("init")
        wanted = taken(session, 9)
        session.run("init")
        assert taken(session, 2) == wanted[:2]
        kept = session.run("keep:0")
        for _ in range(200):
            damaged = bytearray(kept)
            at = int(random.integers(len(damaged)))
            damaged[at : at + int(random.integers(3))] = random.bytes(int(random.integers(3)))
            try:
                session.run("restore", {"kept:0": bytes(damaged)})
            except (errors.InvalidArgumentError, errors.NotFoundError):
                continue
            session.run("restore", {"kept:0": kept})
        assert taken(session, 7) == wanted[2:]


GIVEN = """
    state = Placeholder[dtype=variant; shape=]
    restore = DeserializeIterator(it, state)
"""


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (IteratorState((1, 2)), "must be a vector of one variant"),
        (np.array([IteratorState(None)] * 2, object), "must be a vector of one variant"),
        (np.array([Optional(None)], object), "must be an iterator's state. Saw: "),
    ],
)
def test_only_a_state_is_restored(state: Any, says: str) -> None:
    """Another object, or another number of them, is no state."""
    with pipeline(REMEMBERING["range"] + GIVEN, 3) as session:
        session.run("init")
        with pytest.raises(errors.InvalidArgumentError, match=says):
            session.run("restore", {"state:0": state})
        assert taken(session, 9) == [0, 1, 2]


def test_words_can_be_begun_anywhere() -> None:
    """Words from the so-manieth on are the same words."""
    every = [next(stream) for stream in [words(3, 4)] for _ in range(200)]
    for start in (0, 1, 3, 4, 63, 64, 65, 127):
        some = words(3, 4, start)
        assert [next(some) for _ in range(70)] == every[start : start + 70]
