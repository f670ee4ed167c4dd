"""Where the nodes of a session's graph lie.

In:   the session's graph, devices and configuration; then requests.
Out:  Placed: the whole graph, or the part that a request needs.
Not:  chooses no device itself; the pass does.

The graph is placed when somebody first needs it, and again when it has grown.  Nodes with
state stay where they are.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

from penstock.advice import RefuseSoftPlacement
from penstock.config import Config
from penstock.errors import AdvisedWarning, InvalidArgumentError
from penstock.graph.graph import Graph, Node
from penstock.graph.stages import Placed
from penstock.passes.place import PlacerOptions, may_lie_on_only
from penstock.passes.prune import Request
from penstock.printable import printable
from penstock.runtime.place_graph import place_for, place_whole
from penstock.state.devices import DeviceSet


class Placement:
    """The placement of one session's graph, as far as it is known."""

    def __init__(self, graph: Graph, devices: DeviceSet, config: Config) -> None:
        self._graph = graph
        self._devices = devices
        self._config = config
        #: The whole graph and the ``next_id`` that it had then; None until it is needed.
        self._whole: tuple[int, Placed] | None = None
        #: The devices in it.  Grows with the graph, and changes no node's.
        self._device_of: dict[int, str] = {}
        #: Devices of nodes with state, by name.
        self._stateful_devices: dict[str, str] = {}
        #: Whether a node lies elsewhere than it asked to, which was said.
        self._has_warned = False

    def placed_for(self, request: Request) -> Placed:
        """The graph with devices: all of it, unless the configuration says otherwise.

        The caller holds the graph's lock.

        Raises:
            InvalidArgumentError: the graph is empty, or a node cannot be placed.

        """
        if not len(self._graph):
            raise InvalidArgumentError("The Session graph is empty.")
        if self._config.place_pruned_graph:
            return self._noted(
                place_for(self._graph, request, self._devices, self._config, self._options())
            )
        size = self._graph.next_id
        if self._whole is None or self._whole[0] != size:
            self._whole = (size, self._grown() or self._placed_anew())
        return self._whole[1]

    def device_of(self, node: Node) -> str:
        """Where a node of the graph lies; the caller holds the graph's lock.

        Raises:
            InvalidArgumentError: a node cannot be placed.

        """
        if len(self._devices) == 1:
            return self._devices.devices[0].name
        known = self._stateful_devices.get(node.name)
        return known or self.placed_for(Request(targets=(node.name,))).device_of[node.id]

    def _placed_anew(self) -> Placed:
        placed = place_whole(self._graph, self._devices, self._config, self._options())
        self._device_of = dict(placed.device_of)
        return self._noted(Placed(placed.graph, self._device_of, placed.stand_ins))

    def _grown(self) -> Placed | None:
        """What was placed with the nodes that came since; None if that takes another look at all.

        Where all nodes may lie on an only device, no node's place depends on another's: who runs
        a graph while it is built need not have all of it placed each time.
        """
        if self._whole is None or self._has_warned:
            return None
        first, placed = self._whole
        new = self._graph.nodes_from(first)
        is_all = len(self._device_of) + len(new) == len(self._graph)
        if not is_all or not may_lie_on_only(self._graph, new, self._devices, self._options()):
            return None
        device = self._devices.devices[0].name
        self._device_of |= dict.fromkeys([node.id for node in new], device)
        self._note(new, placed)
        return placed

    def _noted(self, placed: Placed) -> Placed:
        self._note(placed.graph, placed)
        return placed

    def _note(self, nodes: Iterable[Node], placed: Placed) -> None:
        """Remember where nodes with state lie."""
        for node in nodes:
            if node.op.is_stateful and node.id in placed.device_of:
                self._stateful_devices[node.name] = placed.device_of[node.id]

    def _options(self) -> PlacerOptions:
        return PlacerOptions(
            allow_soft_placement=self._config.allow_soft_placement,
            assigned=self._stateful_devices,
            log=_print if self._config.log_device_placement else None,
            on_fallback=self._warn_of_fallback,
        )

    def _warn_of_fallback(self, node: Node, wanted: str, got: str) -> None:
        """Say once that the graph was made for devices that this host lacks."""
        if not self._has_warned:
            self._has_warned = True
            reason = (
                f"Node '{node.name}' and perhaps others ask for device '{printable(wanted)}', "
                f"which is not here; they run on '{got}'"
            )
            warnings.warn(AdvisedWarning(reason, RefuseSoftPlacement()), stacklevel=2)


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
