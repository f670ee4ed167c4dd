"""The devices of a process and their types."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.core.device_names import ANY, DeviceName
from penstock.errors import AlreadyExistsError, InvalidArgumentError
from penstock.state.devices import (
    LOCAL_TASK,
    Device,
    DeviceSet,
    by_priority,
    local_devices,
    priority_of,
    register_device_type,
)
from support.fake_devices import CPU, GPU, device, fake_devices, fake_world


@pytest.mark.parametrize(("count", "expected"), [({}, 1), ({"CPU": 0}, 1), ({"CPU": 3}, 3)])
def test_cpus_of_this_process(count: dict[str, int], expected: int) -> None:
    """There are as many CPUs as asked for, and never none."""
    devices = local_devices(count)

    assert [d.name for d in devices] == [f"{LOCAL_TASK}/device:CPU:{i}" for i in range(expected)]
    assert {d.incarnation for d in devices} == {1}
    assert {d.device_type for d in devices} == {"CPU"}


def test_client_device_is_the_first() -> None:
    """The client talks to the first device, unless another is named."""
    devices = local_devices({"CPU": 2})
    other = DeviceSet(devices.devices, client_device=devices.devices[1])

    assert devices.client_device is devices.devices[0]
    assert other.client_device is devices.devices[1]
    assert DeviceSet([]).client_device is None


def test_another_task() -> None:
    """A worker's devices bear its name and its incarnation."""
    (cpu,) = local_devices(task="/job:worker/replica:0/task:3", incarnation=99)

    assert cpu == Device("/job:worker/replica:0/task:3/device:CPU:0", "CPU", incarnation=99)


@pytest.mark.parametrize(
    "name",
    [
        f"{LOCAL_TASK}/device:CPU:1",
        f"{LOCAL_TASK}/cpu:1",
        "/device:CPU:1",
        "CPU:1",
    ],
)
def test_look_up_by_any_spelling(name: str) -> None:
    """The full, the old and the local names all find the device."""
    devices = local_devices({"CPU": 2})

    assert devices.lookup(name) is devices.devices[1]
    assert devices.find(name) is devices.devices[1]


@pytest.mark.parametrize("name", ["", "/job:localhost", "CPU:7", "/cpu", "nonsense"])
def test_look_up_of_a_stranger(name: str) -> None:
    """A partial name, or the name of no device, finds nothing."""
    devices = local_devices()

    assert devices.find(name) is None
    with pytest.raises(InvalidArgumentError, match=f"{name} unknown device."):
        devices.lookup(name)


def test_local_names_mean_the_first_process() -> None:
    """Of two processes with equal local names the first keeps them."""
    names = [f"/job:a/replica:0/task:{task}/device:CPU:0" for task in (0, 1)]
    devices = DeviceSet([Device(name, "CPU") for name in names])

    assert devices.lookup("CPU:0").name == names[0]


def test_matching() -> None:
    """A partial name means all devices that it fits, in the order of the set."""
    devices = fake_devices()

    assert devices.find_matching(ANY) == list(devices)
    assert len(devices.find_matching(DeviceName(type=CPU))) == 10
    assert [d.name for d in devices.find_matching(DeviceName("a", id=3))] == [
        device(CPU, 3),
        device(GPU, 3),
    ]
    assert devices.find_matching(DeviceName(task=1)) == []


def test_types_by_priority() -> None:
    """A higher priority comes first, equal ones by name; a strange type comes last."""
    with fake_world() as devices:
        assert devices.prioritized_types == (GPU, CPU)
        assert sorted(["Strange", CPU, "CPU", GPU], key=by_priority) == ["CPU", GPU, CPU, "Strange"]
    assert (priority_of("CPU"), priority_of(GPU)) == (60, -1)


def test_registered_types_join_the_local_devices() -> None:
    """A user's type is asked for its devices, after the CPU."""

    def make(task: str, count: int | None, incarnation: int) -> Sequence[Device]:
        return [
            Device(f"{task}/device:Abacus:{i}", "Abacus", 1 << 10, incarnation)
            for i in range(count or 0)
        ]

    with fake_world():
        register_device_type("Abacus", factory=make)
        devices = local_devices({"Abacus": 2})
        assert len(local_devices()) == 1

    assert [d.name.removeprefix(LOCAL_TASK) for d in devices] == [
        "/device:CPU:0",
        "/device:Abacus:0",
        "/device:Abacus:1",
    ]


def test_types_are_registered_once() -> None:
    """A second factory for a type is refused."""
    with pytest.raises(AlreadyExistsError, match="'CPU' is registered already"):
        register_device_type("CPU", factory=lambda *_: [])
