"""All state of a session at one moment: variables, tables, queues, iterators, random streams.

In:   what a session keeps, while nothing goes on in it.
Out:  a ``Snapshot``, which never changes; the session as it was, or another one of the same graph
      as that one was; a file.
Not:  knows no kind of resource (``state/restorable.py``); what lives as long as a step is no state
      of the session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from penstock.core import trees
from penstock.core.files import FileSystem
from penstock.core.trees import Tree
from penstock.core.values import freeze
from penstock.dataclass import dataclass
from penstock.errors import DataLossError, InvalidArgumentError, OpError, UnimplementedError
from penstock.printable import printable
from penstock.runtime.environment import Environment
from penstock.session.tree_file import Contents, Kind, packed, unpacked
from penstock.state.device_resources import DeviceResources
from penstock.state.resources import ResourceKey
from penstock.state.restorable import kind_of, made
from penstock.state.session_state import SessionState

_KIND: Final = Kind("penstock snapshot", 1)
_Read = TypeVar("_Read")


class ResourcePlace(NamedTuple):
    """Where a resource is."""

    device: str
    container: str
    type_name: str
    name: str

    @property
    def key(self) -> ResourceKey:
        """What its device knows it by."""
        return self.container, self.type_name, self.name

    def __str__(self) -> str:
        return printable(f"{self.type_name} {self.name!r} of container {self.container!r}")


class Held(NamedTuple):
    """What a resource was, and held."""

    kind: str
    state: Tree


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The state of a session; nothing in it changes.

    Its arrays are the session's own: what a session keeps is replaced, and never written into.
    """

    resources: Mapping[ResourcePlace, Held]
    #: The tensors that the session keeps under handles.
    tensors: Tree
    #: What kernels keep in themselves: places in random streams.
    kernels: Tree
    #: What could not be copied, and was skipped.
    skipped: tuple[ResourcePlace, ...] = ()

    def __repr__(self) -> str:
        return f"<Snapshot of {len(self.resources)} resources>"

    def as_tree(self) -> Tree:
        """All of it as one tree, the same for equal states."""
        rows = tuple((*place, *held) for place, held in sorted(self.resources.items(), key=_place))
        return rows, self.tensors, self.kernels, tuple(map(tuple, self.skipped))

    @classmethod
    def of_tree(cls, tree: Tree) -> Snapshot:
        """The snapshot that was a tree; raises ValueError if none was."""
        rows, tensors, kernels, skipped = trees.parts(tree, 4)
        found = {}
        for row in trees.listed(rows):
            *place, kind, state = trees.parts(row, 6)
            found[ResourcePlace(*map(trees.text, place))] = Held(trees.text(kind), state)
        left_out = [map(trees.text, trees.parts(row, 4)) for row in trees.listed(skipped)]
        return cls(found, tensors, kernels, tuple(ResourcePlace(*place) for place in left_out))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it into a file.

        Raises:
            UnimplementedError: something in it cannot leave the process.
            OpError: the file system refuses.

        """
        FileSystem().write(os.fspath(path), packed(_KIND, Contents(self.as_tree(), {})))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Snapshot:
        """Read what ``save`` has written; a file of a stranger does no harm.

        Raises:
            InvalidArgumentError: it is another kind of file, or of a later version.
            DataLossError: it is damaged.
            OpError: the file system refuses.

        """
        origin = os.fspath(path)
        contents = unpacked(_KIND, FileSystem().read(origin), printable(origin))
        return reading(lambda: cls.of_tree(contents.tree), printable(origin))


def _place(item: tuple[ResourcePlace, Held]) -> ResourcePlace:
    return item[0]


def reading(read: Callable[[], _Read], what: str) -> _Read:
    """What ``read`` makes of a tree.

    Raises:
        DataLossError: the tree is not what it should be.
        OpError: what ``read`` raises itself.

    """
    try:
        return read()
    except OpError:
        raise
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as cause:
        raise DataLossError(f"The state of {what} makes no sense: {cause}") from None


# -- taking ----------------------------------------------------------------------------------------


def take(environment: Environment, tensors: SessionState, *, skips: bool) -> Snapshot:
    """Copy what a session keeps; the caller sees to it that nothing goes on.

    Raises:
        UnimplementedError: something cannot be copied, and ``skips`` does not ask to leave it out.
        FailedPreconditionError: a mutex is held.

    """
    found, skipped = {}, []
    for place, resource in _resources(environment.resources):
        kind = kind_of(resource)
        if kind:
            found[place] = Held(kind, _frozen(resource.state()))
        elif skips:
            skipped.append(place)
        else:
            raise UnimplementedError(
                f"{place} cannot be copied: it is more than what a session holds, such as an "
                "open file",
                next_step="give skip_unsupported=True; it then stays as it is when the session "
                "is restored",
            )
    kernels = _frozen(environment.node_states.state())
    return Snapshot(found, _frozen(tensors.state()), kernels, tuple(skipped))


def _resources(resources: DeviceResources) -> list[tuple[ResourcePlace, Any]]:
    return [
        (ResourcePlace(manager.device, *key), resource)
        for manager in resources.managers
        for key, resource in manager.everything()
    ]


def _frozen(tree: Tree) -> Tree:
    """The same tree, into whose arrays nobody can write; as it is, no kernel writes into any."""
    if type(tree) is tuple:
        return tuple(map(_frozen, tree))
    return freeze(tree)


# -- putting back ----------------------------------------------------------------------------------


def put_back(snapshot: Snapshot, environment: Environment, tensors: SessionState) -> None:
    """Have a session keep what is in a snapshot; the caller sees to it that nothing goes on.

    Nothing is changed if a resource cannot be made.  Resources that could not be copied stay.

    Raises:
        InvalidArgumentError: the session lacks a device.
        DataLossError: what was read from a file makes no sense.
        FailedPreconditionError: the dataset of an iterator is lost.

    """
    there = dict(_resources(environment.resources))
    kept = {place: one for place, one in there.items() if not kind_of(one)}
    for place, held in snapshot.resources.items():
        _check_device(environment, place)
        kept[place] = _made(place, held, there.get(place))
    reading(lambda: tensors.restore(snapshot.tensors), "kept tensors")
    reading(lambda: environment.node_states.restore(snapshot.kernels), "kernels")
    for device in {place.device for place in (*there, *kept)}:
        own = {place.key: one for place, one in kept.items() if place.device == device}
        environment.resources.on(device).replace(own)


def _made(place: ResourcePlace, held: Held, there: object) -> Any:
    return reading(lambda: made(held.kind, place.name, held.state, there), str(place))


def _check_device(environment: Environment, place: ResourcePlace) -> None:
    if environment.own_devices.find(place.device) is None:
        raise InvalidArgumentError(
            f"{place} was on {printable(place.device)}, which the session lacks",
            next_step="open the session with the same Config.device_count",
        )
