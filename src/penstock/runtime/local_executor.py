"""The door to executors for those who want no session: one graph, one device, steps by hand.

In:   a graph in any form, and whatever of the surroundings is to be another than a session's.
Out:  an ``Executor``.
Not:  places, prunes, optimises and compiles nothing: the nodes run as they are.

See docs/executor.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from penstock.config import Config
from penstock.core.device_names import DeviceName
from penstock.defs.codec import load_graph_def
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Graph, Node
from penstock.graph.import_graph_def import graph_from_def
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.context import FunctionCaller
from penstock.runtime.environment import Environment
from penstock.runtime.executor.executor import Executor
from penstock.runtime.executor.executor import new_local_executor as new_executor
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.state.device_resources import DeviceResources
from penstock.state.devices import Device, DeviceSet, local_devices
from penstock.state.resources import ResourceManager


def new_local_executor(
    graph: Any,
    *,
    device: str = "",
    config: Any = None,
    resources: ResourceManager | None = None,
    make_kernel: Callable[[Node], BoundKernel] | None = None,
    functions: FunctionCaller | None = None,
) -> Executor:
    """An executor that runs all nodes of a graph on one device of this process.

    It runs the graph as it is now: nodes that are added later are not part of it.  Any number of
    steps can run at the same time, ``executor.run(args)`` or ``executor.run_async(args, done)``.

    Args:
        graph: a ``Graph``, a GraphDef message, its bytes, or the path of a file.  Names may begin
            with an underscore, as in the partition graphs of a ``RunMetadata``.
        device: where the nodes run, whatever device they ask for; what the name leaves open is
            taken from ``/job:localhost/replica:0/task:0/device:CPU:0``.
        config: a ``Config``, or a ConfigProto as message or bytes.  What is about kernels and the
            order of ready nodes counts; what is about placing, optimising and compiling does not.
        resources: variables, queues and tables; new ones if None.  Executors that are given the
            same, or ``executor.params.resources`` of another, share them.
        make_kernel: makes the kernel of each node; None is what a session does.
        functions: runs the functions that nodes call; None is what a session does: the graph's
            own, on the same device.

    Raises:
        OpError: the graph is not acceptable, a frame is malformed, or a kernel cannot be made;
            the node is named.

    """
    if isinstance(graph, LocalExecutorParams):
        raise TypeError("new_local_executor takes the graph first; all else is given by keyword")
    if not isinstance(graph, Graph):
        graph = graph_from_def(load_graph_def(graph), allow_internal_names=True)
    where = _device(device)
    given = None if resources is None else DeviceResources(only=resources)
    environment = Environment(graph, Config.of(config), DeviceSet([where]), given)
    params = environment.params_of(where.name)
    if make_kernel is not None:
        params = dataclasses.replace(params, make_kernel=make_kernel)
    if functions is not None:
        params = dataclasses.replace(params, functions=functions)
    with graph.lock:
        return new_executor(params, graph)


def _device(wanted: str) -> Device:
    """The device of a name, which may leave parts of it open."""
    here = local_devices().client_device
    assert here is not None  # local_devices always makes a CPU
    name = here.parsed_name.narrowed_to(DeviceName.parse(wanted))
    if name.process != here.parsed_name.process:
        raise InvalidArgumentError(
            f"{wanted} unknown device.",
            next_step=f"an executor runs in this process, {here.parsed_name.process}",
        )
    return Device(str(name), name.type or here.device_type)
