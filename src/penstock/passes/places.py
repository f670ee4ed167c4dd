"""Where the nodes of a body lie when it stands where it is called.

In:   the device of a call, or the one it asks for; the nodes of a body and their copies.
Out:  the device that each copy asks for, and the groups of copies that lie together.
Not:  places nothing.

A node lies where it asks to, and what it does not say is as the call says.  Only a call by the
function's own name has all of its body in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from penstock.core import dtypes
from penstock.core.device_names import DeviceName
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.passes.colocation import LOCATION


class Places:
    """The devices of one body's nodes."""

    __slots__ = ("_call", "_is_one")

    def __init__(self, call: str, *, is_one: bool) -> None:
        #: The device of the call, as far as it is known.
        self._call = call
        self._is_one = is_one

    def device(self, node: Node) -> str:
        """The device that a node's copy asks for."""
        own = node.requested_device
        if not own or self._is_one:
            return self._call
        wanted, given = DeviceName.try_parse(own), DeviceName.try_parse(self._call)
        if wanted is None or given is None:
            return own  # the placer says what is wrong
        return str(given.narrowed_to(wanted))

    def join(
        self, body: Graph, copies: Mapping[Node, Node], args: Mapping[int, tuple[Node, int]]
    ) -> None:
        """Let copies lie with copies, and with what an argument is, as the nodes of a body do.

        Names of nodes that the body does not have stay: they are those of the graph around it.
        """
        grouped = [copy for copy in copies.values() if "_class" in copy.attrs]
        if not grouped:
            return
        groups: dict[bytes, tuple[bytes, ...]] = {
            group_of(node.name): (group_of(copy.name),) for node, copy in copies.items()
        }
        for node in body:
            if node.role is Role.ARG and node.attrs["index"] in args:
                # A value comes to where all of the body is; only a resource stays where it lies.
                follows = not self._is_one or node.output_types[0] is dtypes.resource
                source = group_of(args[node.attrs["index"]][0].name)
                groups[group_of(node.name)] = (source,) if follows else ()
        for copy in grouped:
            moved = (groups.get(group, (group,)) for group in copy.attrs["_class"])
            copy.attrs = {**copy.attrs, "_class": tuple(chain.from_iterable(moved))}


def group_of(name: str) -> bytes:
    """What stands in ``_class`` for lying with a node."""
    return LOCATION + name.encode()
