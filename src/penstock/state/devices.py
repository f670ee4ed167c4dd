"""The devices of this process, and their types.

In:   how many devices of each type the user wants; device types that users register.
Out:  ``DeviceSet``, in which devices are found by name or by part of a name.
Not:  runs nothing and places nothing; a device is only a name with facts.

Each type has a priority: where nothing else decides, a node goes to the type of the highest
one that has a kernel for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from penstock.core.device_names import DeviceName
from penstock.core.forks import process_lock
from penstock.dataclass import dataclass
from penstock.errors import AlreadyExistsError, InvalidArgumentError

#: The process that a session without a cluster runs in.
LOCAL_TASK: Final = "/job:localhost/replica:0/task:0"
#: The memory that a CPU claims to have, as TensorFlow's does.
_CPU_MEMORY: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class Device:
    """One place where kernels run."""

    #: Full name, such as ``/job:localhost/replica:0/task:0/device:CPU:0``.
    name: str
    device_type: str
    #: Bytes.
    memory_limit: int = _CPU_MEMORY
    #: Differs between lives of a process, so that values for its past life get lost.
    incarnation: int = 1

    @property
    def parsed_name(self) -> DeviceName:
        """The name in its parts."""
        return DeviceName.parse(self.name)

    @property
    def priority(self) -> int:
        """The priority of its type."""
        return priority_of(self.device_type)


#: Makes the devices of a type: given the name of the process, the number that the user
#: asked for (None if nobody did), and the incarnation.
DeviceFactory: TypeAlias = Callable[[str, int | None, int], Sequence[Device]]


@dataclass(frozen=True, slots=True)
class _DeviceType:
    priority: int
    factory: DeviceFactory


#: Device types by name.  Grows under ``_lock``; nothing is replaced.
_types: Final[dict[str, _DeviceType]] = {}
_lock: Final = process_lock()


def register_device_type(device_type: str, *, priority: int = 50, factory: DeviceFactory) -> None:
    """Add a type of devices; raises AlreadyExistsError if the name is taken."""
    with _lock:
        if device_type in _types:
            raise AlreadyExistsError(f"The device type '{device_type}' is registered already")
        _types[device_type] = _DeviceType(priority, factory)


def priority_of(device_type: str) -> int:
    """The priority of a device type; -1 for a type that this process knows nothing of."""
    known = _types.get(device_type)
    return -1 if known is None else known.priority


def by_priority(device_type: str) -> tuple[int, str]:
    """The sort key that puts preferred device types first."""
    return -priority_of(device_type), device_type


class DeviceSet:
    """Devices that a graph may be placed on, in a fixed order."""

    def __init__(self, devices: Sequence[Device], *, client_device: Device | None = None) -> None:
        self.devices: Final = tuple(devices)
        #: A device of the process that the client talks to; None if there is no device.
        self.client_device: Final = client_device or next(iter(self.devices), None)
        #: Devices by every spelling of their names; the first device keeps a local name.
        self._by_name: Final[dict[str, Device]] = {}
        self._parsed: Final = [(device.parsed_name, device) for device in self.devices]
        for parsed, device in self._parsed:
            for name in parsed.spellings():
                self._by_name.setdefault(name, device)
        #: Types of these devices, preferred ones first.
        self.prioritized_types: Final = tuple(
            sorted({device.device_type for device in self.devices}, key=by_priority)
        )

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)

    def __len__(self) -> int:
        return len(self.devices)

    def find(self, name: str) -> Device | None:
        """The device of a full name, a name in the old spelling, or a local name; or None."""
        return self._by_name.get(name)

    def lookup(self, name: str) -> Device:
        """Like ``find``; raises InvalidArgumentError if there is no such device."""
        found = self._by_name.get(name)
        if found is None:
            known = ", ".join(device.name for device in self.devices)
            raise InvalidArgumentError(f"{name} unknown device.", next_step=f"there are: {known}")
        return found

    def find_matching(self, wanted: DeviceName) -> list[Device]:
        """All devices that a whole or partial name means."""
        return [device for name, device in self._parsed if name.is_specialization_of(wanted)]


def local_devices(
    device_count: Mapping[str, int] | None = None,
    *,
    task: str = LOCAL_TASK,
    incarnation: int = 1,
) -> DeviceSet:
    """The devices of this process: at least one CPU, then those of other registered types.

    Args:
        device_count: how many devices of a type; a type that is missing decides itself.
        task: the name of the process.
        incarnation: the number of this life of the process.

    """
    wanted = device_count or {}
    devices: list[Device] = []
    for device_type, known in list(_types.items()):
        devices += known.factory(task, wanted.get(device_type), incarnation)
    return DeviceSet(devices)


def _make_cpus(task: str, count: int | None, incarnation: int) -> list[Device]:
    return [
        Device(f"{task}/device:CPU:{index}", "CPU", incarnation=incarnation)
        for index in range(max(1, count or 1))
    ]


register_device_type("CPU", priority=60, factory=_make_cpus)
