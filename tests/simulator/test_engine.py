"""The engine against schedules computed by hand, and against laws of all schedules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.simulator.activations import Activations
from penstock.simulator.engine import Schedule, simulate
from penstock.simulator.machine import Hosts


def step(
    seconds: list[float],
    edges: list[tuple[int, int]],
    places: list[int],
    sends: dict[int, tuple[int, int]],
) -> Activations:
    """Activations by their seconds, who waits for whom, their devices, and what they send."""
    names = [str(number) for number in range(len(seconds))]
    devices = [f"device {place}" for place in range(max(places) + 1)]
    made = Activations(
        devices, names, names, places, seconds, [[] for _ in names], [0] * len(names), sends
    )
    for before, after in edges:
        made.link(before, after)
    for receiver, _ in sends.values():
        made.waits[receiver] += 1
    return made


def run(
    work: Activations, cores: int = 1, replicas: int = 1, *, one_host: bool = False
) -> Schedule:
    """One second of latency, ten bytes in a second; replicas share the last device's task."""
    last = len(work.devices) - 1
    tasks = [[*(1 + last * r + d for d in range(last)), 0] for r in range(replicas)]
    count = 1 + last * replicas
    hosts = Hosts([0] * count, [cores]) if one_host else Hosts(range(count), [cores] * count)
    return simulate(work, tasks, hosts, bandwidth=10.0, latency=1.0)


@pytest.mark.parametrize(("cores", "end"), [(1, 8.0), (2, 6.0)])
def test_cores_are_shared(cores: int, end: float) -> None:
    """1 s, then 2 s beside 4 s, then 1 s: in a row with one core, side by side with two."""
    work = step([1.0, 2.0, 4.0, 1.0], [(0, 1), (0, 2), (1, 3), (2, 3)], [0] * 4, {})
    assert run(work, cores).seconds == end


@pytest.mark.parametrize("replicas", [1, 3, 10])
def test_the_link_of_a_shared_task_is_shared(replicas: int) -> None:
    """N workers send 20 bytes after 2 s: the last comes after 2 + 1 + 2n s."""
    work = step([2.0, 0.0], [], [0, 1], {0: (1, 20)})
    assert run(work, replicas=replicas).seconds == pytest.approx(3.0 + 2.0 * replicas)


@pytest.mark.parametrize(("cores", "end"), [(1, 9.0), (2, 6.0), (3, 4.0)])
def test_tasks_of_one_host_share_its_cores(cores: int, end: float) -> None:
    """Three tasks with 2, 3 and 4 s of work, in this order."""
    work = step([2.0, 3.0, 4.0], [], [0, 1, 2], {})
    assert run(work, cores, one_host=True).seconds == end
    assert run(work, cores).seconds == 4.0


@pytest.mark.parametrize(("cores", "end"), [(1, 8.0), (2, 5.0), (3, 3.0)])
def test_sending_within_a_host_takes_a_core(cores: int, end: float) -> None:
    """Two tasks send 20 bytes each to two more, 1 + 2 s of work; another one computes for 2 s."""
    work = step([0.0] * 4 + [2.0], [], [0, 1, 2, 3, 4], {0: (2, 20), 1: (3, 20)})
    assert run(work, cores, one_host=True).seconds == end


@pytest.mark.parametrize(("cores", "end"), [(1, 8.0), (2, 6.0), (3, 6.0)])
def test_a_task_receives_one_thing_after_the_other(cores: int, end: float) -> None:
    """Two tasks send 20 bytes each to a third, 1 + 2 s of work; another one computes for 2 s."""
    work = step([0.0] * 4 + [2.0], [], [0, 1, 2, 2, 3], {0: (2, 20), 1: (3, 20)})
    assert run(work, cores, one_host=True).seconds == end
    assert run(work).seconds == 5.0  # the link of the third is shared


@given(st.data())
def test_no_schedule_is_better_than_possible_or_worse_than_serial(data: st.DataObject) -> None:
    """Not below the longest way or all work on all cores, nor above one thing after another."""
    count, cores = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 3))
    seconds = data.draw(st.lists(st.integers(0, 9).map(float), min_size=count, max_size=count))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    longest = list(seconds)
    for before, after in sorted(edges, key=lambda edge: edge[1]):
        longest[after] = max(longest[after], longest[before] + seconds[after])
    found = run(step(seconds, edges, [0] * count, {}), cores).seconds
    assert max(*longest, sum(seconds) / cores) <= found + 1e-9
    assert found <= sum(seconds) + 1e-9
