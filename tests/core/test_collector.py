"""The garbage collector is off while a graph is built, and as it was afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

import penstock as ps
from penstock.core import collector
from penstock.core.collector import collector_paused

knows_ages = pytest.mark.skipif(
    "t" in getattr(sys, "abiflags", ""), reason="without a GIL, objects have no ages"
)


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    was_enabled, has_frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.unfreeze()  # the tests themselves are frozen
    collector._has_frozen[0] = False
    yield
    (gc.enable if was_enabled else gc.disable)()
    if has_frozen:
        gc.freeze()


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_as_it_was(is_on: bool) -> None:
    """Inside it is off, afterwards it is on only if it was on before."""
    (gc.enable if is_on else gc.disable)()

    assert collector_paused(gc.isenabled)() is False
    assert gc.isenabled() is is_on


def test_a_failure_ends_the_pause() -> None:
    """A function that raises leaves no collector turned off behind."""
    gc.enable()

    @collector_paused
    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_pauses_overlap() -> None:
    """Whichever of two overlapping pauses ends last, the collector is on afterwards."""
    gc.enable()
    inside, leave = threading.Event(), threading.Event()

    @collector_paused
    def wait() -> None:
        inside.set()
        leave.wait(10)

    @collector_paused
    def meanwhile() -> None:
        inside.wait(10)

    other = threading.Thread(target=wait)
    other.start()
    meanwhile()
    leave.set()
    other.join()

    assert gc.isenabled()


def test_loading_a_graph_collects_nothing() -> None:
    """No collection runs while a graph of five thousand nodes is read and prepared."""
    graph = ps.Graph()
    with graph.as_default():
        total = ps.ops.AddN(inputs=[ps.constant(float(i), name=f"c{i}") for i in range(5000)])
    graph_def = ps.load_graph_def(ps.graph_to_def(graph).SerializeToString())
    collections: list[str] = []

    def note(phase: str, _info: dict[str, int]) -> None:
        collections.append(phase)

    gc.enable()
    gc.callbacks.append(note)
    try:
        ps.Session(graph_def).make_callable(total.name)
    finally:
        gc.callbacks.remove(note)

    # Between the two pauses, reading and preparing, and after them, Python may catch up.
    assert collections.count("start") <= 6


@knows_ages
def test_what_a_pause_made_is_old() -> None:
    """The next collections of young objects do not look through it, and find nothing to do."""
    gc.enable()
    made: list[list[object]] = []

    @collector_paused
    def make() -> None:
        made.extend([] for _ in range(50_000))

    make()

    assert gc.get_count()[0] < 1000
    assert not any(one is made for age in (0, 1) for one in gc.get_objects(age))
    assert gc.get_freeze_count() == 0


@knows_ages
def test_what_somebody_froze_stays_frozen() -> None:
    """A server freezes what it has before it forks; a pause does not undo that."""
    gc.enable()
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        for _ in range(2):
            collector_paused(list)()
            assert gc.get_freeze_count() > frozen // 2  # some may not be needed any more
    finally:
        gc.unfreeze()


def new_knots() -> tuple[Callable[[], object], list[int]]:
    """What makes objects that hold themselves, and how many of them there are."""
    alive = [0]

    class Knot:
        def __init__(self) -> None:
            self.itself = self
            alive[0] += 1

        def __del__(self) -> None:
            alive[0] -= 1

    return Knot, alive


@knows_ages
@pytest.mark.parametrize("count", [600, 6000, 60_000])
def test_garbage_of_others_does_not_pile_up(count: int) -> None:
    """What a program makes between pauses, and drops, is found as well, though it gets old.

    Be it too little for collections, or in use when these come.
    """
    knot, alive = new_knots()
    nothing = collector_paused(list)
    gc.enable()
    most = 0
    for _ in range(3_200_000 // count):
        in_use = [knot() for _ in range(count)]
        del in_use
        nothing()
        most = max(most, alive[0])

    assert most < 1_500_000


def test_garbage_of_pauses_does_not_pile_up() -> None:
    """What is made in one pause after the other, and dropped, is found without being asked."""
    knot, alive = new_knots()

    @collector_paused
    def make() -> None:
        for _ in range(10_000):
            knot()

    gc.enable()
    most = 0
    for _ in range(200):
        make()
        most = max(most, alive[0])

    assert most < 1_500_000


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_imports_leave_the_collector_as_it_was(is_on: bool, fails: bool) -> None:
    """Penstock is imported without collections, even if something that it needs is missing."""
    code = f"""
import gc, sys
gc.{"enable" if is_on else "disable"}()
if {fails}:
    sys.modules["penstock.session"] = None
started = []
gc.callbacks.append(lambda phase, info: started.append(phase))
try:
    import penstock
except ImportError:
    pass
print(gc.isenabled(), len(started) < 40, "penstock" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(is_on), "True", str(not fails)]
