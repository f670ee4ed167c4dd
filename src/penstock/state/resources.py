"""Named resources: those of a session, and those of a single step.

In:   a container, a name, a type, and how to make the resource.
Out:  the one resource of that container, type and name.
Not:  knows no kinds of resources; one that has a ``close`` is closed when it is dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any, Final

from penstock.errors import AlreadyExistsError, NotFoundError

DEFAULT_CONTAINER: Final = "localhost"


class ResourceManager:
    """Resources that live as long as their session: variables, queues, tables."""

    def __init__(self) -> None:
        #: Guards ``_containers``; held while a resource is made, so that it is made once.
        #: Making one may look others up, hence re-entrant.  Taken before any resource's own.
        self._lock = RLock()
        #: Resources by container, then by (type, name).
        self._containers: dict[str, dict[tuple[str, str], Any]] = {}

    def lookup(self, container: str, name: str, type_name: str) -> Any:
        """The resource; raises NotFoundError if there is none."""
        with self._lock:
            found = self._of(container).get((type_name, name))
        if found is None:
            raise NotFoundError(
                f"Resource {container or DEFAULT_CONTAINER}/{name}/{type_name} does not exist.",
                next_step="run the node that creates or initializes it first",
            )
        return found

    def lookup_or_create(
        self, container: str, name: str, type_name: str, create: Callable[[], Any]
    ) -> Any:
        """The resource; made by ``create`` if it is not there."""
        with self._lock:
            resources = self._of(container)
            found = resources.get((type_name, name))
            if found is None:
                found = resources[type_name, name] = create()
            return found

    def create(self, container: str, name: str, type_name: str, resource: Any) -> None:
        """Add a resource; raises AlreadyExistsError if the name is taken."""
        with self._lock:
            resources = self._of(container)
            if (type_name, name) in resources:
                raise AlreadyExistsError(
                    f"Resource {container or DEFAULT_CONTAINER}/{name}/{type_name}"
                )
            resources[type_name, name] = resource

    def delete(self, container: str, name: str, type_name: str) -> None:
        """Drop a resource; raises NotFoundError if there is none."""
        with self._lock:
            found = self._of(container).pop((type_name, name), None)
        if found is None:
            raise NotFoundError(
                f"Resource {container or DEFAULT_CONTAINER}/{name}/{type_name} does not exist."
            )
        _close([found])

    def clear(self, container: str = "") -> None:
        """Drop all resources of one container."""
        with self._lock:
            dropped = self._containers.pop(container or DEFAULT_CONTAINER, {})
        _close(dropped.values())

    def close(self) -> None:
        """Drop everything."""
        with self._lock:
            dropped = [r for resources in self._containers.values() for r in resources.values()]
            self._containers.clear()
        _close(dropped)

    def _of(self, container: str) -> dict[tuple[str, str], Any]:
        return self._containers.setdefault(container or DEFAULT_CONTAINER, {})


class StepContainer:
    """Resources that live for one step: stacks, tensor arrays, temporary variables."""

    def __init__(self) -> None:
        #: Guards ``_resources``.  Innermost.
        self._lock = RLock()
        self._resources: dict[tuple[str, str], Any] = {}
        self._ids = itertools.count()

    def unique_id(self) -> int:
        """A number that nothing else in this step has."""
        return next(self._ids)

    def lookup(self, name: str, type_name: str) -> Any:
        """The resource; raises NotFoundError if there is none."""
        with self._lock:
            found = self._resources.get((type_name, name))
        if found is None:
            raise NotFoundError(f"Resource {name}/{type_name} does not exist in this step.")
        return found

    def create(self, name: str, type_name: str, resource: Any) -> None:
        """Add a resource; raises AlreadyExistsError if the name is taken."""
        with self._lock:
            if (type_name, name) in self._resources:
                raise AlreadyExistsError(f"Resource {name}/{type_name} exists in this step")
            self._resources[type_name, name] = resource

    def lookup_or_create(self, name: str, type_name: str, create: Callable[[], Any]) -> Any:
        """The resource; made by ``create`` if it is not there."""
        with self._lock:
            key = (type_name, name)
            if key not in self._resources:
                self._resources[key] = create()
            return self._resources[key]

    def delete(self, name: str, type_name: str) -> None:
        """Drop a resource; raises NotFoundError if there is none."""
        with self._lock:
            found = self._resources.pop((type_name, name), None)
        if found is None:
            raise NotFoundError(f"Resource {name}/{type_name} does not exist in this step.")

    def close(self) -> None:
        """Drop everything: the step is over."""
        with self._lock:
            dropped = list(self._resources.values())
            self._resources.clear()
        _close(dropped)


def _close(resources: Iterable[Any]) -> None:
    for resource in resources:
        close = getattr(resource, "close", None)
        if close is not None:
            close()
