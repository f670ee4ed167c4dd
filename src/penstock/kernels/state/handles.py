"""Handles of resources that a node makes, in both generations.

In:   a node's attributes, a context, a kind of resource.
Out:  its handle: a resource, or a reference to two strings; and the resource of a handle.
Not:  registers no kernel; makes no resource itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.core import dtypes
from penstock.core.values import Ref, ResourceHandle, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.state.variables import resource_name
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.strings import string_array
from penstock.state.resources import DEFAULT_CONTAINER, ResourceManager


def make_handle(
    context: OpKernelContext, attrs: Attrs, kind: str, create: Callable[[str], Any]
) -> tuple[Value, Any]:
    """The handle of the node's resource, and the resource, made if it is not there."""
    container, name = resource_name(attrs)[0], attrs.own_name
    found = context.resources.lookup_or_create(container, name, kind, lambda: create(name))
    if attrs.output_types[0] is dtypes.resource:
        return ResourceHandle(attrs.device, container or DEFAULT_CONTAINER, name, kind), found
    texts = string_array(((container or DEFAULT_CONTAINER).encode(), name.encode()), (2,))
    return Ref(name, dtypes.string, texts), found


def resource_of(context: OpKernelContext, handle: Value, kind: str) -> Any:
    """The resource that a handle of either generation means."""
    return home_of(context.resources, handle).lookup(*place_of(handle, kind), kind)


def home_of(resources: ResourceManager, handle: Value) -> ResourceManager:
    """Where the resource of a handle of either generation is.

    A handle of strings names no device.  Its consumers are placed where its maker is.
    """
    handle = as_value(handle)
    return resources.at(handle.device) if isinstance(handle, ResourceHandle) else resources


def place_of(handle: Value, kind: str = "Resource") -> tuple[str, str]:
    """Container and name of what a handle of either generation means."""
    handle = as_value(handle)
    if isinstance(handle, ResourceHandle):
        return handle.container, handle.name
    text = handle.value if isinstance(handle, Ref) else handle
    if shape_of(text) != (2,):
        raise InvalidArgumentError(
            f"{kind} handle must have two elements, but had shape: {shape_text(shape_of(text))}"
        )
    return text[0].decode(), text[1].decode()
