"""What a node, or a group of nodes, demands of its device.

In:   a node's requested and assigned devices, and the kernels there are for it.
Out:  ``Constraints``; those of two groups merged into one, or the reason why not.
Not:  knows no edges and no groups, and chooses nothing.

Three names are kept apart, since they give way to different things:

- *assigned*: fixed by an earlier placement; never changed.
- *resource*: requested for a node that makes a reference or a resource; gives way only
  under soft placement, and last of all.
- *requested*: what users asked for.  It always specialises the other two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from penstock.core import dtypes
from penstock.core.device_names import ANY, DeviceName, MergeMode
from penstock.dataclass import dataclass
from penstock.errors import InternalError, InvalidArgumentError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Node
from penstock.kernels.api.registry import find_kernel, kernels_of, no_kernel_error
from penstock.state.devices import DeviceSet, by_priority


@dataclass(frozen=True, slots=True)
class SupportedType:
    """A device type that has kernels for a node, or for all nodes of a group."""

    device_type: str
    #: The kernels' own priority; where it says something, it decides before the type's.
    priority: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Where a group of nodes may be placed."""

    #: Preferred types first.
    supported: tuple[SupportedType, ...]
    assigned: DeviceName = ANY
    resource: DeviceName = ANY
    requested: DeviceName = ANY

    def merge(self, other: Constraints, mode: MergeMode) -> Constraints:
        """What both demand; raises InvalidArgumentError if no name could meet that.

        The types that support both may be none; it is for the caller to say so.
        """
        assigned = self.assigned.merge(other.assigned)
        resource = self.resource.merge(other.resource)
        requested = self.requested.merge(other.requested, mode)
        return Constraints(
            _merge_supported(self.supported, other.supported),
            assigned,
            resource,
            requested.narrowed_to(assigned).narrowed_to(resource),
        )

    def following(self, source: Constraints) -> Constraints:
        """The same, with the requested device of the source of a reference or resource."""
        requested = source.requested.narrowed_to(self.assigned).narrowed_to(self.resource)
        return replace(self, requested=requested)

    def softened(self) -> DeviceName:
        """What is left of the request when the user's type and id are given up."""
        fixed = self.assigned.narrowed_to(self.resource)
        return _give_up(self.requested, keep_type=fixed.type, keep_id=fixed.id)

    def softened_most(self) -> DeviceName:
        """What is left when the devices of resources are given up, too."""
        return _give_up(self.requested, keep_type=self.assigned.type, keep_id=self.assigned.id)


def _give_up(name: DeviceName, *, keep_type: str | None, keep_id: int | None) -> DeviceName:
    return replace(
        name,
        type=None if keep_type is None else name.type,
        id=None if keep_id is None else name.id,
    )


def _merge_supported(
    mine: tuple[SupportedType, ...], theirs: tuple[SupportedType, ...]
) -> tuple[SupportedType, ...]:
    """The types in both, in the order of whichever side's kernels have an opinion."""
    if mine is theirs:
        return mine
    shared = {t.device_type for t in mine} & {t.device_type for t in theirs}
    mine = tuple(t for t in mine if t.device_type in shared)
    theirs = tuple(t for t in theirs if t.device_type in shared)
    if not any(t.priority for t in theirs):
        return mine
    if not any(t.priority for t in mine):
        return theirs
    if [t.device_type for t in mine] == [t.device_type for t in theirs]:
        return mine
    # They disagree: forget what the kernels say, and go by the types.
    return tuple(SupportedType(name) for name in sorted(shared, key=by_priority))


class NodeConstraints:
    """The constraints of single nodes; nodes that are alike share theirs."""

    def __init__(
        self, devices: DeviceSet, library: FunctionLibrary, assigned: Mapping[str, str]
    ) -> None:
        self._devices: Final = devices
        self._library: Final = library
        #: Devices fixed earlier, by node name; beside those that nodes bring along.
        self._assigned: Final = assigned
        #: By op, requested device, and the attributes that kernels look at.
        self._alike: Final[dict[tuple[object, ...], Constraints]] = {}
        #: The names of those attributes, by op.
        self._deciding_attrs: Final[dict[str, tuple[str, ...]]] = {}

    def assigned_device(self, node: Node) -> str:
        """The device that the node was given earlier; or ""."""
        return self._assigned.get(node.name) or node.assigned_device

    def of(self, node: Node) -> Constraints:
        """The constraints of a node on its own; raises OpError if nothing can meet them."""
        assigned = self.assigned_device(node)
        if assigned:
            return self._assigned_constraints(node, assigned)
        op = node.op.name
        names = self._deciding_attrs.get(op)
        if names is None:
            names = self._deciding_attrs[op] = _deciding_attrs(op)
        attrs = node.attrs
        key = (op, node.requested_device, is_generator_of_state(node), *map(attrs.get, names))
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = self._requested_constraints(node)
        return found

    def _requested_constraints(self, node: Node) -> Constraints:
        supported = self._supported(node)
        if not supported:
            raise self._no_kernel(node)
        wanted = DeviceName.try_parse(node.requested_device)
        if wanted is None:
            raise InvalidArgumentError(
                f"Malformed device specification '{node.requested_device}' in node: {node.name}"
            )
        resource = wanted if is_generator_of_state(node) else ANY
        return Constraints(supported, resource=resource, requested=wanted)

    def _assigned_constraints(self, node: Node, assigned: str) -> Constraints:
        """An earlier placement was made by the runtime, so what is wrong with it is internal."""
        if DeviceName.try_parse(assigned) is None:
            raise InternalError(f"Malformed assigned device '{assigned}'")
        device = self._devices.find(assigned)
        if device is None:
            raise InternalError(f"Assigned device '{assigned}' does not match any device")
        supported = self._supported(node)
        if device.device_type not in {t.device_type for t in supported}:
            raise InternalError(
                f"Assigned device '{assigned}' does not have registered OpKernel support for "
                f"{node.op.name}"
            )
        name = device.parsed_name
        return Constraints(supported, assigned=name, requested=name)

    def _supported(self, node: Node) -> tuple[SupportedType, ...]:
        """The types of our devices that can run the node, preferred ones first."""
        op = node.op.name
        if op in self._library:
            # A call by name: its body runs where the runtime itself does.
            return (SupportedType("CPU"),)
        found = []
        for device_type in self._devices.prioritized_types:
            kernel = find_kernel(op, device_type, node.attrs)
            if kernel is not None:
                found.append(SupportedType(device_type, kernel.priority))
        if not found and not kernels_of(op):
            found = self._supported_elsewhere(node)
        return tuple(sorted(found, key=lambda t: -t.priority))

    def _supported_elsewhere(self, node: Node) -> list[SupportedType]:
        """Of an op that is strange here, another process may have kernels: take it so."""
        wanted = DeviceName.try_parse(node.requested_device)
        client = self._devices.client_device
        if wanted is None or client is None:
            return []
        if wanted.process.is_compatible_with(client.parsed_name.process):
            return []
        types = self._devices.prioritized_types if wanted.type is None else (wanted.type,)
        return [SupportedType(device_type) for device_type in types]

    def _no_kernel(self, node: Node) -> InvalidArgumentError:
        types = ", ".join(sorted(self._devices.prioritized_types))
        error = no_kernel_error(node.op.name, node.attrs)
        return InvalidArgumentError(
            error.reason.replace(" with these", f" used by {{{{node {node.name}}}}} with these"),
            details=[f"  Registered devices: [{types}]", *error.details],
            next_step=error.advice,
        )


def is_generator_of_state(node: Node) -> bool:
    """Whether it makes a reference or a resource out of nothing."""
    if node.inputs or len(node.output_types) != 1:
        return False
    made = node.output_types[0]
    return made.is_ref or made is dtypes.resource


def _deciding_attrs(op: str) -> tuple[str, ...]:
    """The attributes that any kernel of an op looks at."""
    return tuple(sorted({name for kernel in kernels_of(op) for name in kernel.types}))


def describe(constraints: Constraints) -> str:
    """The constraints as one line of an error."""
    types = ", ".join(t.device_type for t in constraints.supported)
    return (
        f"requested '{constraints.requested}', assigned '{constraints.assigned}', "
        f"resource '{constraints.resource}', supported [{types}]"
    )
