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

from penstock.advice import RefuseSoftPlacement
from penstock.config import Config
from penstock.errors import AdvisedWarning, InvalidArgumentError
from penstock.graph.graph import Graph, Node
from penstock.graph.stages import Placed
from penstock.passes.place import PlacerOptions
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
        #: Devices of nodes with state, by name.
        self._stateful_devices: dict[str, str] = {}
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
            placed = place_whole(self._graph, self._devices, self._config, self._options())
            self._whole = (size, self._noted(placed))
        return self._whole[1]

    def _noted(self, placed: Placed) -> Placed:
        """Remember where nodes with state lie."""
        for node in placed.graph:
            if node.op.is_stateful and node.id in placed.device_of:
                self._stateful_devices[node.name] = placed.device_of[node.id]
        return placed

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
