"""A persistent vector is a list of which old versions stay as they were."""

from __future__ import annotations

import random

import pytest

from penstock.kernels.variant.persistent_vector import PersistentVector

SIZES = [0, 1, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 1056, 1057, 32_769, 33_825]


@pytest.mark.parametrize("size", SIZES)
def test_all_items_are_there(size: int) -> None:
    """However it was made."""
    items = list(range(size))
    pushed: PersistentVector[int] = PersistentVector()
    for item in items:
        pushed = pushed.put(item, item)
    grown = PersistentVector[int]().resize(size, 7)
    for vector, wanted in (
        (PersistentVector.of(items), items),
        (pushed, items),
        (grown, [7] * size),
    ):
        assert vector.size == size
        assert list(vector) == wanted
        assert [vector.get(index) for index in range(size)] == wanted


@pytest.mark.parametrize("start", SIZES)
@pytest.mark.parametrize("end", SIZES)
def test_from_each_size_to_each_other(start: int, end: int) -> None:
    """The first items stay; and the old vector is what it was."""
    old = PersistentVector.of(range(start))
    new = old.resize(end, -1)
    wanted = [*range(min(start, end)), *[-1] * (end - start)]
    assert list(new) == wanted
    assert new.size == end
    pushed = new.put(end, 5)
    assert list(pushed) == [*wanted, 5]
    assert list(new) == wanted
    assert list(old) == list(range(start))


@pytest.mark.parametrize("seed", range(30))
def test_versions_are_lists(seed: int) -> None:
    """Pushed to, popped from and written into in any order, and later once more."""
    rng = random.Random(seed)
    versions: list[tuple[PersistentVector[int], list[int]]] = [(PersistentVector(), [])]
    for step in range(400):
        vector, items = rng.choice(versions[-5:])
        what = rng.choice(["push", "push", "push", "pop", "put", "resize", "many"])
        items = list(items)
        if what == "push":
            count = rng.choice([1, 1, 40])
            for number in range(count):
                at_end = vector.put(len(items), step + number), vector.pushed(step + number)
                vector = rng.choice(at_end)
                items.append(step + number)
        elif what == "pop" and items:
            assert vector.last() == items.pop()
            vector = rng.choice((vector.resize(len(items), 0), vector.popped()))
        elif what == "put" and items:
            index = rng.randrange(len(items))
            items[index] = step
            vector = vector.put(index, step)
        elif what == "many" and items:
            indices = [rng.randrange(len(items)) for _ in range(3)]
            vector = vector.put_many(indices, [step, step + 1, step + 2])
            for place, index in enumerate(indices):
                items[index] = step + place
        elif what == "resize":
            size = rng.randrange(200)
            items = items[:size] + [step] * (size - len(items))
            vector = vector.resize(size, step)
        versions.append((vector, items))
    for vector, items in versions:
        assert list(vector) == items
        assert vector.size == len(items)
        assert [vector.get(index) for index in range(len(items))] == items


def test_a_huge_size_takes_no_room() -> None:
    """Equal parts are one object."""
    huge = PersistentVector[int]().resize(10**9, 0)
    changed = huge.put(123_456_789, 5)
    assert huge.get(123_456_789) == 0
    assert changed.get(123_456_789) == 5
    assert changed.get(10**9 - 1) == 0
    assert changed.resize(123_456_790, 1).get(123_456_789) == 5
