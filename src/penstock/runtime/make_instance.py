"""The body of a function → what runs it, on one device or on several.

In:   a body, the device of its caller, and how it is called.
Out:  ``FunctionInstance``.
Not:  instantiates no body, and keeps nothing.

A function that is called by its own name lies on its caller's device as a whole.  The nodes of
one that is called by ``PartitionedCall`` lie where they ask to.  Those that ask for nothing
rather lie with the caller, arguments and results do so as well, and whatever uses a resource lies
where that is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from penstock.config import Config
from penstock.graph.check import check_graph, check_partitions
from penstock.graph.instantiate import FunctionBody, prune_body
from penstock.graph.roles import Role
from penstock.graph.stages import Partition, Pruned
from penstock.kernels.api.context import CallKind
from penstock.passes.place import PlacerOptions, place
from penstock.passes.split import split
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.function_instance import FunctionInstance, Pinned
from penstock.runtime.join_devices import join_devices
from penstock.runtime.kernel_binder import KernelBinder
from penstock.runtime.optimize_request import optimize_body, optimize_spread, place_body
from penstock.runtime.runnable import Runnable
from penstock.state.devices import DeviceSet


class InstanceMaker:
    """Makes what runs functions, for all devices of one session."""

    def __init__(
        self,
        config: Config,
        devices: DeviceSet,
        params_of: Callable[[str], LocalExecutorParams],
        new_binder: Callable[[str, str], KernelBinder],
    ) -> None:
        self._config = config
        self._devices = devices
        self._params_of = params_of
        self._new_binder = new_binder

    @property
    def spreads(self) -> bool:
        """Whether a function may lie on several devices."""
        return len(self._devices) > 1

    def make(
        self, body: FunctionBody, device: str, kind: CallKind, pinned: Pinned, title: str
    ) -> FunctionInstance:
        """What runs a body.

        Args:
            body: the body with all of its nodes, which is used up.
            device: the caller's.
            kind: how it is called.
            pinned: the devices of resources among the arguments, by index, if it may lie on several
                devices.
            title: what no other instance on the caller's device is called.

        Raises:
            OpError: a node can lie nowhere.

        """
        is_partitioned = kind is CallKind.PARTITIONED
        if is_partitioned and self.spreads and len(body.graph):
            return self._on_several(body, device, pinned, title)
        # Of a function that neither returns nor names anything, TensorFlow takes nothing away.
        keeps_effects = not (is_partitioned and body.wanted)
        return self._on_one(body, device, title, keeps_effects=keeps_effects)

    def _on_one(
        self, body: FunctionBody, device: str, title: str, *, keeps_effects: bool
    ) -> FunctionInstance:
        # What has no kernel for the device runs as on a CPU.
        types = {self._devices.lookup(device).device_type, "CPU"}
        prune_body(body.graph, body.wanted, keeps_effects=keeps_effects)
        optimize_body(body, self._config, types, keeps_effects=keeps_effects)
        if self._config.check_graphs:
            check_graph(body.graph)
        part = Partition(device, body.graph)
        params = self._own_params(device, title)
        runnable = Runnable((part,), lambda _device: params, self._config.tier, _ends_of(body))
        runnable.compile()
        return FunctionInstance(body.arg_types, body.ret_types, runnable)

    def _on_several(
        self, body: FunctionBody, device: str, pinned: Pinned, title: str
    ) -> FunctionInstance:
        placed = self._placed(body, device, dict(pinned))
        made = optimize_spread(placed, self._config, self._devices)
        params = {name: self._own_params(name, title) for name in set(made.device_of.values())}
        partitions = split(made, incarnation_of=lambda name: self._devices.lookup(name).incarnation)
        if self._config.check_graphs:
            check_partitions(partitions)
        ends, tier = _ends_of(body), self._config.tier
        joined = None
        if len(partitions) > 1:
            joined = join_devices(
                made, self._config, self._devices, device, lambda name: params[name].make_kernel
            )
        runnable = Runnable(partitions, params.__getitem__, tier, ends, joined=joined)
        runnable.compile()
        return FunctionInstance(body.arg_types, body.ret_types, runnable, pinned)

    def _placed(self, body: FunctionBody, device: str, pinned: Mapping[int, str]) -> Pruned:
        assigned = {}
        for node in body.graph:
            if node.role in (Role.ARG, Role.RETVAL):
                is_arg = node.role is Role.ARG
                index = node.attrs["index"]
                assigned[node.name] = pinned.get(index, device) if is_arg else device
        options = PlacerOptions(
            allow_soft_placement=self._config.allow_soft_placement,
            assigned=assigned,
            default_device=device,
        )

        def place_all(_device_of: Mapping[int, str]) -> Mapping[int, str]:
            return place(body.graph, self._devices, options).device_of

        return place_body(body, self._config, self._devices, place_all)

    def _own_params(self, device: str, title: str) -> LocalExecutorParams:
        """A device's, but with kernels of their own: equal node names of bodies share no state."""
        return dataclasses.replace(
            self._params_of(device), make_kernel=self._new_binder(device, title).bind
        )


def _ends_of(body: FunctionBody) -> tuple[int, int]:
    return len(body.arg_types), len(body.ret_types)
