"""What a session gives to all of its requests: devices, their state, their kernels.

In:   the session's graph, configuration and devices.
Out:  what the executors of each device have in common, functions included.
Not:  prepares and runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from penstock.config import Config
from penstock.errors import InternalError
from penstock.graph.graph import Graph
from penstock.kernels.api.host import CLOSED, OPEN
from penstock.passes.prune import ClientDevice
from penstock.runtime.call_functions import FunctionRuntime
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.explain_deadlock import explain_deadlock
from penstock.runtime.explain_wait import explain_wait
from penstock.runtime.kernel_binder import KernelBinder
from penstock.runtime.make_instance import InstanceMaker
from penstock.runtime.native import asks_for_jit, compiles_loops
from penstock.runtime.placement import Placement
from penstock.runtime.ready_order import ready_queues
from penstock.runtime.thread_pool import thread_count
from penstock.runtime.workers import Workers
from penstock.state.device_resources import DeviceResources
from penstock.state.devices import DeviceSet
from penstock.state.node_states import NodeStates
from penstock.state.resources import StepContainer


class Environment:
    """Devices, their state and their kernels, of one session."""

    def __init__(
        self,
        graph: Graph,
        config: Config,
        devices: DeviceSet,
        resources: DeviceResources | None = None,
        workers: Workers | None = None,
        kernels: dict[str, KernelBinder] | None = None,
        session: str = "",
        new_container: Callable[[], StepContainer] = StepContainer,
    ) -> None:
        """Note what all requests have in common.

        Args:
            graph: the session's.
            config: the session's.
            devices: what the graph may be placed on; without ``workers`` all of this process.
            resources: where variables, queues and tables are; a session's own if none is given.
            workers: who runs what lies on devices of other tasks; None if there are none.
            kernels: by device, those with state that several graphs of one session share; grows.
            session: what names of the session's own resources begin with.
            new_container: makes the container of a step.

        """
        self.config = config
        self.new_container = new_container
        self.devices = devices
        self._graph = graph
        #: Where the nodes of the graph lie.
        self.placement = Placement(graph, devices, config)
        self.resources = DeviceResources() if resources is None else resources
        #: Who runs what lies elsewhere; None if nothing does.
        self.workers = workers
        self._kernels = {} if kernels is None else kernels
        #: What kernels keep in themselves from step to step.
        self.node_states = NodeStates()
        self._session = session
        #: The devices of this process.
        self.own_devices = _own(devices, workers)
        client = devices.client_device
        assert client is not None  # local_devices always makes a CPU
        self.client = ClientDevice(client.name, client.incarnation)
        maker = InstanceMaker(config, self.own_devices, self.params_of, self._new_binder)
        self._functions = {
            device.name: FunctionRuntime(
                graph.library, device.name, maker, self.functions_of, config.limits
            )
            for device in self.own_devices
        }
        self._params: Mapping[str, LocalExecutorParams] = {
            device.name: self._device_params(device.name) for device in self.own_devices
        }

    def params_of(self, device: str) -> LocalExecutorParams:
        """What executors on ``device`` have in common."""
        return self._params[device]

    def functions_of(self, device: str) -> FunctionRuntime:
        """The functions on ``device``; raises InternalError if there is no such device."""
        found = self.devices.find(device)
        if found is None:
            raise InternalError(
                f"Currently don't support instantiating functions on device: {device}"
            )
        return self._functions[found.name]

    def incarnation_of(self, device: str) -> int:
        """The number that tells this instance of a device from earlier ones."""
        return self.devices.lookup(device).incarnation

    def _device_params(self, device: str) -> LocalExecutorParams:
        return LocalExecutorParams(
            device=device,
            make_kernel=self._kernels.setdefault(device, self._new_binder(device)).bind,
            resources=self.resources.on(device),
            functions=self._functions[device],
            explain_wait=partial(explain_wait, self._graph),
            explain_deadlock=partial(explain_deadlock, self._graph),
            make_ready_queue=ready_queues(self.config.ready_order_seed),
            offload_seconds=self.config.offload_seconds,
            adaptive=self.config.adaptive,
            check_outputs=self.config.check_outputs,
            accelerate=self.config.accelerate,
            native_loops=compiles_loops(self.config),
            native_nodes=self.config.limits.native_nodes if asks_for_jit(self.config) else None,
            limits=self.config.limits,
            threads=thread_count(self.config.inter_op_parallelism_threads),
        )

    def _new_binder(self, device: str, function: str = "") -> KernelBinder:
        """What makes kernels on a device, of the graph or of a function."""
        host = OPEN if self.config.allow_files else CLOSED
        return KernelBinder(
            device,
            accelerate=self.config.accelerate,
            by_trial=self.config.adaptive and not self.config.exact_repetition,
            host=host,
            session=self._session,
            keeper=self.node_states.scope(f"{device} {function}".rstrip()),
        )


def _own(devices: DeviceSet, workers: Workers | None) -> DeviceSet:
    """Those of some devices that are this process's."""
    if workers is None:
        return devices
    own = [device for device in devices if workers.is_own(device.name)]
    return DeviceSet(own, client_device=devices.client_device)
