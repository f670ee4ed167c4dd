"""A name means one resource, however many ask for it at once."""

from __future__ import annotations

import threading
import time

import pytest

from penstock.errors import AlreadyExistsError, NotFoundError
from penstock.state.resources import ResourceManager, StepContainer


class Closeable:
    """A resource that wants to know when it is dropped."""

    def __init__(self) -> None:
        self.close_count = 0

    def dispose(self) -> None:
        self.close_count += 1


@pytest.fixture
def manager() -> ResourceManager:
    """An empty manager."""
    return ResourceManager()


def test_resource_is_found_by_container_name_and_type(manager: ResourceManager) -> None:
    """Equal names of other types or in other containers are other resources."""
    resources = {key: object() for key in [("", "Var"), ("", "Queue"), ("c", "Var")]}
    for (container, type_name), resource in resources.items():
        manager.create(container, "x", type_name, resource)

    for (container, type_name), resource in resources.items():
        assert manager.lookup(container, "x", type_name) is resource
        assert manager.find(container, "x", type_name) is resource


def test_empty_container_name_is_the_default_one(manager: ResourceManager) -> None:
    """The default container is called localhost."""
    manager.create("", "x", "Var", 1)

    assert manager.lookup("localhost", "x", "Var") == 1


def test_missing_resource_is_named(manager: ResourceManager) -> None:
    """Looking up and deleting what is not there says what was meant."""
    assert manager.find("", "x", "Var") is None
    with pytest.raises(NotFoundError, match=r"^Resource localhost/x/Var does not exist\."):
        manager.lookup("", "x", "Var")
    with pytest.raises(NotFoundError, match=r"^Resource c/x/Var does not exist\."):
        manager.delete("c", "x", "Var")


def test_taken_name_is_refused(manager: ResourceManager) -> None:
    """Creating twice is an error, and the first resource stays."""
    manager.create("", "x", "Var", "first")

    with pytest.raises(AlreadyExistsError, match="localhost/x/Var"):
        manager.create("", "x", "Var", "second")
    assert manager.lookup("", "x", "Var") == "first"


def test_resource_is_made_when_it_is_first_asked_for(manager: ResourceManager) -> None:
    """Later ones get the same resource, and make none."""
    made = manager.lookup_or_create("", "x", "Var", object)

    assert manager.lookup_or_create("", "x", "Var", lambda: pytest.fail("made twice")) is made


def test_failed_making_leaves_nothing(manager: ResourceManager) -> None:
    """If the resource cannot be made, the name stays free."""

    def fail() -> object:
        raise ValueError("no such file")

    with pytest.raises(ValueError, match="no such file"):
        manager.lookup_or_create("", "x", "Table", fail)
    assert manager.lookup_or_create("", "x", "Table", lambda: 5) == 5


def test_making_may_look_up_others(manager: ResourceManager) -> None:
    """A resource that is made of others finds or makes them on the way."""

    def make() -> list[object]:
        return [manager.lookup_or_create("", "inner", "Var", lambda: 1)]

    assert manager.lookup_or_create("", "outer", "Var", make) == [1]


def test_many_threads_make_one_resource(manager: ResourceManager) -> None:
    """Whoever comes while it is made waits and gets the same."""
    start = threading.Barrier(4)
    made: list[object] = []
    got: list[object] = []

    def make() -> object:
        time.sleep(0.01)  # so that the others come meanwhile
        made.append(object())
        return made[-1]

    def ask() -> None:
        start.wait(10)
        got.append(manager.lookup_or_create("", "x", "Var", make))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert got == made * 4


def test_dropped_resources_are_closed(manager: ResourceManager) -> None:
    """Deleting, clearing and closing close what they drop, once, and nothing else."""
    closeables = {name: Closeable() for name in "abc"}
    for name, closeable in closeables.items():
        manager.create(name, "x", "Queue", closeable)
    manager.create("a", "plain", "Var", object())

    manager.delete("a", "x", "Queue")
    manager.clear("b")
    assert [c.close_count for c in closeables.values()] == [1, 1, 0]
    manager.close()
    assert [c.close_count for c in closeables.values()] == [1, 1, 1]
    assert manager.find("a", "plain", "Var") is None


def test_clear_empties_one_container(manager: ResourceManager) -> None:
    """Other containers keep what they have; without a name it is the default one."""
    manager.create("", "x", "Var", 1)
    manager.create("c", "x", "Var", 2)
    manager.clear()

    assert manager.find("", "x", "Var") is None
    assert manager.lookup("c", "x", "Var") == 2


@pytest.mark.parametrize(
    ("named", "left"), [((), {"c", "d"}), (("c",), {"", "d"}), (("", "d"), {"c"})]
)
def test_cleanup_empties_several_containers(
    manager: ResourceManager, named: tuple[str, ...], left: set[str]
) -> None:
    """Those that are named are emptied; the default one if none are."""
    for container in ("", "c", "d"):
        manager.create(container, "x", "Var", 1)
    manager.cleanup(named)

    assert {c for c in ("", "c", "d") if manager.find(c, "x", "Var")} == left


def test_all_are_closed_though_one_fails(manager: ResourceManager) -> None:
    """A resource that cannot be closed does not keep the others open."""

    class Careless:
        def dispose(self) -> None:
            raise OSError("disk full")

    closeable = Closeable()
    manager.create("", "a", "Queue", Careless())
    manager.create("", "b", "Queue", closeable)

    with pytest.raises(OSError, match="disk full"):
        manager.clear()
    assert closeable.close_count == 1


# -- one step ------------------------------------------------------------------------------


def test_step_has_resources_of_its_own() -> None:
    """They are found by name and type, and a missing one is named."""
    step = StepContainer()
    step.create("x", "Stack", 1)

    assert step.lookup("x", "Stack") == 1
    assert step.lookup_or_create("x", "Stack", lambda: 2) == 1
    assert step.lookup_or_create("y", "Stack", lambda: 2) == 2
    with pytest.raises(AlreadyExistsError, match="x/Stack"):
        step.create("x", "Stack", 3)
    with pytest.raises(NotFoundError, match="Resource z/Stack does not exist"):
        step.lookup("z", "Stack")


def test_deleted_step_resource_is_handed_out_open() -> None:
    """Whoever deletes it may still want what is in it."""
    step = StepContainer()
    closeable = Closeable()
    step.create("x", "Stack", closeable)

    assert step.delete("x", "Stack") is closeable
    assert closeable.close_count == 0
    with pytest.raises(NotFoundError, match="x/Stack"):
        step.delete("x", "Stack")


def test_end_of_a_step_closes_its_resources() -> None:
    """Closing empties the step; doing so twice does no harm."""
    step = StepContainer()
    closeable = Closeable()
    step.create("x", "Stack", closeable)
    step.close()
    step.close()

    assert closeable.close_count == 1
    with pytest.raises(NotFoundError):
        step.lookup("x", "Stack")


def test_ids_of_a_step_are_unique() -> None:
    """Each step counts from 0."""
    step = StepContainer()

    assert [step.unique_id() for _ in range(3)] == [0, 1, 2]
    assert StepContainer().unique_id() == 0
