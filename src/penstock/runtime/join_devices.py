"""What lies on several CPUs, as one function.

In:   a graph and the devices of its nodes.
Out:  one region, or None if that cannot be.
Not:  moves nothing: what one CPU of this host sends to another one is the same memory, so that
      in compiled code a transfer is nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.config import Config, Tier
from penstock.graph.graph import Node
from penstock.graph.stages import Pruned
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.runtime.compiler.compile_regions import Compiler
from penstock.runtime.compiler.region import Region
from penstock.state.devices import DeviceSet


def join_devices(
    pruned: Pruned,
    config: Config,
    devices: DeviceSet,
    client: str,
    binder_of: Callable[[str], Callable[[Node], BoundKernel]],
) -> Region | None:
    """All partitions of a graph as one function, if their devices are but names for this host.

    Args:
        pruned: the graph, before it is cut.
        config: the session's.
        devices: the session's.
        client: the device that stands for all of it.
        binder_of: makes what makes the kernels of nodes on a device.

    """
    device_of = pruned.device_of
    used = {devices.lookup(name) for name in device_of.values()}
    if config.tier is Tier.DATAFLOW or any(device.device_type != "CPU" for device in used):
        return None

    def make_kernel(node: Node) -> BoundKernel:
        return binder_of(device_of[node.id])(node)

    compiler = Compiler(
        device=client,
        make_kernel=make_kernel,
        checks_outputs=config.check_outputs,
        accelerate=config.accelerate,
        device_of=device_of,
        ends=(len(pruned.feed_types), len(pruned.fetch_types)),
        limits=config.limits,
    )
    return compiler.compile_whole(pruned.graph)
