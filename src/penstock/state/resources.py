"""Named resources: those of a device, and those of a single step.

In:   a container, a name, a type, and how to make the resource.
Out:  the one resource of that container, type and name.
Not:  knows no kinds of resources.  When one is dropped, it is told so by ``end_waits()``, if steps
      wait for it, and by ``dispose()``, if it holds something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import RLock
from typing import Any, Final, TypeAlias

from penstock.core.values import ResourceHandle
from penstock.errors import AlreadyExistsError, NotFoundError
from penstock.state.callbacks import call_all

DEFAULT_CONTAINER: Final = "localhost"
#: Container, type and name of a resource.
ResourceKey: TypeAlias = tuple[str, str, str]


class ResourceManager:
    """Resources of one device that live as long as their session: variables, queues, tables.

    The empty container name stands for the default one.  ``end_waits`` and ``dispose`` of a
    resource, if it has them, are called without arguments and outside the lock.
    """

    def __init__(
        self, device: str = "", beside: Mapping[str, ResourceManager] | None = None
    ) -> None:
        """Begin with nothing.

        Args:
            device: whose resources these are, by its full name; empty if it is the only one.
            beside: those of all devices of the process, this one's included, by device.

        """
        self.device: Final = device
        self._beside: Final = {} if beside is None else beside
        #: Held while ``_resources`` changes, and while a resource is made, so that it is made
        #: once.  Making one may look others up, hence re-entrant; it must not wait for
        #: another thread.  Taken before any resource's own lock.
        self.lock = RLock()
        #: Resources by (container, type, name).  Read without the lock.
        self._resources: dict[ResourceKey, Any] = {}

    def at(self, device: str) -> ResourceManager:
        """The resources of the device that a handle names; these if it names none that is known."""
        return self if device == self.device else self._beside.get(device, self)

    def find_of(self, handle: ResourceHandle) -> Any:
        """What a handle means, on whichever device; None if it is not there."""
        here = self if handle.device == self.device else self.at(handle.device)
        key = handle.container or DEFAULT_CONTAINER, handle.type_name, handle.name
        return here._resources.get(key)  # noqa: SLF001  (another of this class)

    def lookup(self, container: str, name: str, type_name: str) -> Any:
        """The resource; raises NotFoundError if there is none."""
        found = self._resources.get((container or DEFAULT_CONTAINER, type_name, name))
        if found is None:
            raise _no_resource(container, name, type_name)
        return found

    def find(self, container: str, name: str, type_name: str) -> Any:
        """The resource; None if there is none."""
        return self._resources.get((container or DEFAULT_CONTAINER, type_name, name))

    def lookup_or_create(
        self, container: str, name: str, type_name: str, create: Callable[[], Any]
    ) -> Any:
        """The resource; made by ``create`` if it is not there.  If that raises, nothing is."""
        key = container or DEFAULT_CONTAINER, type_name, name
        found = self._resources.get(key)
        if found is not None:
            return found
        with self.lock:
            found = self._resources.get(key)
            if found is None:
                found = self._resources[key] = create()
            return found

    def everything(self) -> list[tuple[ResourceKey, Any]]:
        """All resources, each behind its (container, type, name), in the order they were made."""
        return [*self._resources.items()]

    def replace(self, resources: Mapping[ResourceKey, Any]) -> None:
        """Have these resources and no others; while no step uses any."""
        with self.lock:
            dropped = [
                found for key, found in self._resources.items() if resources.get(key) is not found
            ]
            self._resources = dict(resources)
        _close(dropped)

    def create(self, container: str, name: str, type_name: str, resource: Any) -> None:
        """Add a resource; raises AlreadyExistsError if the name is taken."""
        key = container or DEFAULT_CONTAINER, type_name, name
        with self.lock:
            if self._resources.setdefault(key, resource) is not resource:
                raise AlreadyExistsError(f"Resource {_spell(container, name, type_name)} exists")

    def delete(self, container: str, name: str, type_name: str) -> None:
        """Drop a resource; raises NotFoundError if there is none."""
        with self.lock:
            key = container or DEFAULT_CONTAINER, type_name, name
            found = self._resources.pop(key, None)
        if found is None:
            raise _no_resource(container, name, type_name)
        _close([found])

    def clear(self, container: str = "") -> None:
        """Drop all resources of one container."""
        self._drop(lambda key: key[0] == (container or DEFAULT_CONTAINER))

    def drop_named(self, prefix: str) -> None:
        """Drop all resources whose names begin so."""
        self._drop(lambda key: key[2].startswith(prefix))

    def end_waits(self, containers: Iterable[str] = ()) -> None:
        """Cancel whoever waits for what is in some containers, which stays; else like cleanup."""
        names = _named(containers)
        found = [resource for key, resource in [*self._resources.items()] if key[0] in names]
        _tell(found, "end_waits")

    def cleanup(self, containers: Iterable[str] = ()) -> None:
        """Drop all resources of some containers; of the default one if none are named."""
        names = _named(containers)
        self._drop(lambda key: key[0] in names)

    def close(self) -> None:
        """Drop everything."""
        self._drop(lambda _key: True)

    def _drop(self, is_meant: Callable[[ResourceKey], bool]) -> None:
        with self.lock:
            dropped = [self._resources.pop(key) for key in filter(is_meant, [*self._resources])]
        _close(dropped)


class StepContainer:
    """Resources that live for one step: stacks, tensor arrays, temporary variables."""

    def __init__(self) -> None:
        #: Like the lock of a ResourceManager; also guards ``_next_id``.
        self._lock = RLock()
        #: Resources by (type, name).  Read without the lock.
        self._resources: dict[tuple[str, str], Any] = {}
        #: All smaller ids are given out.
        self._next_id = 0

    def unique_id(self) -> int:
        """A number that nothing else in this step has."""
        with self._lock:
            self._next_id += 1
            return self._next_id - 1

    def lookup(self, name: str, type_name: str) -> Any:
        """The resource; raises NotFoundError if there is none."""
        found = self._resources.get((type_name, name))
        if found is None:
            raise _no_step_resource(name, type_name)
        return found

    def create(self, name: str, type_name: str, resource: Any) -> None:
        """Add a resource; raises AlreadyExistsError if the name is taken."""
        with self._lock:
            if self._resources.setdefault((type_name, name), resource) is not resource:
                raise AlreadyExistsError(f"Resource {name}/{type_name} exists in this step")

    def lookup_or_create(self, name: str, type_name: str, create: Callable[[], Any]) -> Any:
        """The resource; made by ``create`` if it is not there.  If that raises, nothing is."""
        with self._lock:
            found = self._resources.get((type_name, name))
            if found is None:
                found = self._resources[type_name, name] = create()
            return found

    def delete(self, name: str, type_name: str) -> Any:
        """Drop a resource and return it, unclosed; raises NotFoundError if there is none."""
        with self._lock:
            found = self._resources.pop((type_name, name), None)
        if found is None:
            raise _no_step_resource(name, type_name)
        return found

    def close(self) -> None:
        """Drop everything: the step is over."""
        if not self._resources:
            return
        with self._lock:
            dropped = list(self._resources.values())
            self._resources.clear()
        _close(dropped)


def _spell(container: str, name: str, type_name: str) -> str:
    return f"{container or DEFAULT_CONTAINER}/{name}/{type_name}"


def _no_resource(container: str, name: str, type_name: str) -> NotFoundError:
    return NotFoundError(
        f"Resource {_spell(container, name, type_name)} does not exist.",
        next_step="run the node that creates or initializes it first",
    )


def _no_step_resource(name: str, type_name: str) -> NotFoundError:
    return NotFoundError(f"Resource {name}/{type_name} does not exist in this step.")


def _named(containers: Iterable[str]) -> set[str]:
    """Containers by their full names; the default one if none are named."""
    return {name or DEFAULT_CONTAINER for name in containers} or {DEFAULT_CONTAINER}


def _close(resources: Sequence[Any]) -> None:
    _tell(resources, "end_waits")
    _tell(resources, "dispose")


def _tell(resources: Iterable[Any], what: str) -> None:
    """Call a method of all resources that have it."""
    methods = [getattr(resource, what, None) for resource in resources]
    call_all(method for method in methods if method is not None)
