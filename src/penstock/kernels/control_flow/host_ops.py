"""Ops that mean something to a host and its devices, and little here.

In:   values, or nothing.
Out:  the values; the time; the number of a device.
Not:  moves no memory: all devices share the process.
"""

from __future__ import annotations

import time

import numpy as np

from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.forwarding import forward
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.traits import FORWARDS
from penstock.kernels.math.cast_ops import make_cast


@kernel("_HostCast")
def make_host_cast(attrs: Attrs) -> Kernel:
    """The values as another type."""
    return make_cast(attrs)


@kernel("_ArrayToList", "_ListToArray", cost=Cost.CHEAP)
def make_list(_: Attrs) -> Kernel:
    """The inputs."""
    return lambda *inputs: inputs


@kernel("WrapDatasetVariant", "UnwrapDatasetVariant", cost=Cost.CHEAP, traits=FORWARDS)
def make_wrapped(_: Attrs) -> Kernel:
    """The dataset itself, which needs no wrapping."""
    return forward


@kernel("DisableCopyOnRead", cost=Cost.CHEAP)
def make_disable_copy_on_read(_: Attrs) -> Kernel:
    """Nothing: variables are never copied when they are read."""

    def nothing(_handle: Value) -> None:
        return None

    return nothing


@kernel("Timestamp", cost=Cost.CHEAP)
def make_timestamp(_: Attrs) -> Kernel:
    """Seconds since 1970."""
    return lambda: np.float64(time.time())


@kernel("DeviceIndex", cost=Cost.CHEAP)
def make_device_index(attrs: Attrs) -> Kernel:
    """The place of the node's type of device in a list; the list's length if it is not there."""
    names = [name.decode() for name in attrs.list("device_names")]
    kind = attrs.device.rpartition("/device:")[2].partition(":")[0] or "CPU"
    index = np.int32(names.index(kind) if kind in names else len(names))
    return lambda: index
