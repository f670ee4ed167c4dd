"""The resources of several devices: variables, queues and tables of a session, or of a task.

In:   the names of devices, as nodes on them need something.
Out:  a ``ResourceManager`` for each device; all of them seen as one.
Not:  places nothing: which device a node lies on, others know.

Equal containers and names on two devices are two resources, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from threading import RLock
from typing import Any, Final

from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.state.callbacks import call_all
from penstock.state.resources import DEFAULT_CONTAINER, ResourceManager


class DeviceResources:
    """One ``ResourceManager`` per device, and a view over all of them.

    ``find`` and ``lookup`` look on all devices, and what concerns containers concerns all of them.
    """

    def __init__(self, only: ResourceManager | None = None) -> None:
        """Begin with nothing; with ``only``, all devices have that one's resources."""
        self._only: Final = only
        #: By the full names of devices.  Only grows, by single operations; read without a lock.
        self._by_device: Final[dict[str, ResourceManager]] = {}

    def on(self, device: str) -> ResourceManager:
        """The resources of a device, by its full name."""
        if self._only is not None:
            return self._only
        found = self._by_device.get(device)
        if found is None:
            made = ResourceManager(device, self._by_device)
            found = self._by_device.setdefault(device, made)
        return found

    @property
    def locks(self) -> list[RLock]:
        """The locks of all devices, none of which is taken while another one is held."""
        return [manager.lock for manager in self.managers]

    def find(self, container: str, name: str, type_name: str) -> Any:
        """The resource, whichever device it is on; None if there is none.

        Raises:
            InvalidArgumentError: several devices have one.

        """
        found = {
            manager.device: resource
            for manager in self.managers
            if (resource := manager.find(container, name, type_name)) is not None
        }
        if len(found) > 1:
            raise InvalidArgumentError(
                f"Resource {container or DEFAULT_CONTAINER}/{name}/{type_name} is on "
                f"{len(found)} devices: {', '.join(sorted(found))}",
                next_step="ask resources.on(device).find",
            )
        return next(iter(found.values()), None)

    def lookup(self, container: str, name: str, type_name: str) -> Any:
        """Like ``find``; raises NotFoundError if there is none."""
        found = self.find(container, name, type_name)
        if found is None:
            raise NotFoundError(
                f"Resource {container or DEFAULT_CONTAINER}/{name}/{type_name} does not exist.",
                next_step="run the node that creates or initializes it first",
            )
        return found

    def create(self, container: str, name: str, type_name: str, resource: Any) -> None:
        """Add a resource to the first device; raises AlreadyExistsError if it has one of the name.

        Devices are in the order in which they were first asked for; a session asks for its own
        when it opens.
        """
        first = next(iter(self.managers), None) or self.on("")
        first.create(container, name, type_name, resource)

    def clear(self, container: str = "") -> None:
        """Drop all resources of one container."""
        call_all(partial(manager.clear, container) for manager in self.managers)

    def end_waits(self, containers: Iterable[str] = ()) -> None:
        """Cancel whoever waits for what is in some containers; see ``ResourceManager``."""
        names = list(containers)
        call_all(partial(manager.end_waits, names) for manager in self.managers)

    def cleanup(self, containers: Iterable[str] = ()) -> None:
        """Drop all resources of some containers; of the default one if none are named."""
        names = list(containers)
        call_all(partial(manager.cleanup, names) for manager in self.managers)

    def drop_named(self, prefix: str) -> None:
        """Drop all resources whose names begin with something; see ``ResourceManager``."""
        call_all(partial(manager.drop_named, prefix) for manager in self.managers)

    def close(self) -> None:
        """Drop everything."""
        call_all(manager.close for manager in self.managers)

    @property
    def managers(self) -> list[ResourceManager]:
        """Those of all devices that were asked for."""
        return [*self._by_device.values()] if self._only is None else [self._only]
