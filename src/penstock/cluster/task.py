"""One process of a cluster: its name, its devices, and what lives in them.

In:   a cluster, and which of its tasks this process is.
Out:  what the master and the worker of the process share.
Not:  listens to nobody.

What lives in a task, such as variables, outlives the sessions that made it, and all sessions see
it, unless they ask for state of their own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from penstock.cluster.bounds import Bounds
from penstock.cluster.cluster_spec import task_name
from penstock.cluster.peers import Peers
from penstock.cluster.rendezvous import StepTable, TaskRendezvous
from penstock.config import Config
from penstock.defs.schema import Message, message_class
from penstock.errors import AbortedError, InvalidArgumentError
from penstock.state.device_resources import DeviceResources
from penstock.state.devices import Device, DeviceSet, local_devices
from penstock.state.rendezvous import parse_key
from penstock.state.resources import StepContainer

_DeviceAttributes: Final = message_class("DeviceAttributes")


class Task:
    """What the master and the worker of one process share."""

    def __init__(self, job: str, index: int, config: Config, peers: Peers, bounds: Bounds) -> None:
        """Name the process's devices; each life of it gives them other incarnations."""
        self.job: Final = job
        self.index: Final = index
        self.name: Final = task_name(job, index)
        self.config: Final = config
        self.peers: Final = peers
        self.bounds: Final = bounds
        incarnation = secrets.randbits(62) + 1
        self.devices: Final = local_devices(
            config.device_count, task=self.name, incarnation=incarnation
        )
        self.incarnation: Final = incarnation
        self.resources: Final = DeviceResources()
        self.steps: Final = StepTable(self._new_rendezvous, bounds.steps)
        #: Makes the container of a step.  Set before there is one.
        self.new_container: Callable[[], StepContainer] = StepContainer

    @property
    def client_device(self) -> Device:
        """Where this task's clients feed and fetch."""
        device = self.devices.client_device
        assert device is not None  # local_devices always makes a CPU
        return device

    def _new_rendezvous(self, step_id: int) -> TaskRendezvous:
        client = self.client_device
        return TaskRendezvous(step_id, self.name, self.peers.pull, client.name, client.incarnation)

    def check_key(self, key: str) -> None:
        """Raise OpError unless a key is one of what this life of the task's devices sends."""
        parsed = parse_key(key)
        device = self.devices.find(parsed.src_device)
        if device is None or device.name != parsed.src_device:
            raise InvalidArgumentError(
                f"{parsed.src_device} unknown device: this task is {self.name}"
            )
        own = device.incarnation & (1 << 64) - 1
        if parsed.src_incarnation != own:
            raise AbortedError(
                f"RecvTensor expects a different device incarnation: {parsed.src_incarnation} vs. "
                f'{own}. Your worker job ("{self.name}") was probably restarted. Check your '
                "worker job for the reason why it was restarted."
            )

    def device_attributes(self) -> list[Message]:
        """The task's devices as messages."""
        return [device_to_proto(device) for device in self.devices]


def device_to_proto(device: Device) -> Message:
    """A DeviceAttributes message of a device."""
    return _DeviceAttributes(
        name=device.name,
        device_type=device.device_type,
        memory_limit=device.memory_limit,
        incarnation=device.incarnation & (1 << 64) - 1,
    )


def device_from_proto(proto: Message) -> Device:
    """The device of a DeviceAttributes message."""
    incarnation = signed(proto.incarnation)
    return Device(proto.name, proto.device_type, proto.memory_limit, incarnation)


def signed(bits: int) -> int:
    """64 bits as the number that nodes' attributes, and other messages, have for them."""
    return bits - (1 << 64) if bits >= 1 << 63 else bits


def device_set(own: DeviceSet, others: list[Device]) -> DeviceSet:
    """All devices of a cluster, as one of its tasks sees them."""
    return DeviceSet([*own, *others], client_device=own.client_device)
