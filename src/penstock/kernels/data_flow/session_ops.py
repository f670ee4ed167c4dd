"""Tensors that stay in the session between runs, and the handles that name them.

In:   values to keep, or handles.
Out:  handles, or what was kept.
Not:  keeps nothing itself: a value goes to the session when its run ends, if its handle was
      fetched.
"""

from __future__ import annotations

from penstock.core.values import (
    KEPT_TENSOR,
    KeptTensor,
    ResourceHandle,
    Value,
    describe,
    has_dtype,
)
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, context_kernel
from penstock.state.session_state import SessionState


@context_kernel("GetSessionHandle", "GetSessionHandleV2", cost=Cost.CHEAP)
def make_get_session_handle(attrs: Attrs) -> Kernel:
    """A handle under which the value stays, if the handle is fetched."""
    is_resource = attrs.op.name == "GetSessionHandleV2"

    def get_session_handle(context: OpKernelContext, value: Value) -> Value:
        step = context.step
        handle = f"{context.node_name};{_session(context).new_id()};{step.device}"
        step.tensor_store.add(context.node_name, handle, value)
        if is_resource:
            return ResourceHandle(step.device, KEPT_TENSOR, handle, KEPT_TENSOR)
        return KeptTensor(handle.encode())

    return get_session_handle


@context_kernel("GetSessionTensor", cost=Cost.CHEAP)
def make_get_session_tensor(attrs: Attrs) -> Kernel:
    """The value that was kept under the handle."""
    dtype = attrs.dtype("dtype")

    def get_session_tensor(context: OpKernelContext, handle: Value) -> Value:
        value = _session(context).get(_text(handle))
        if not has_dtype(value, dtype):
            raise InternalError(
                f"Output 0 of type {describe(value)} does not match declared output type {dtype}"
            )
        return value

    return get_session_tensor


@context_kernel("DeleteSessionTensor", cost=Cost.CHEAP)
def make_delete_session_tensor(_attrs: Attrs) -> Kernel:
    """Give up what was kept under the handle."""

    def delete_session_tensor(context: OpKernelContext, handle: Value) -> None:
        _session(context).delete(_text(handle))

    return delete_session_tensor


def _session(context: OpKernelContext) -> SessionState:
    session = context.step.session_state
    if session is None:
        raise InternalError(f"{context.op} needs a session, and the step has none")
    return session


def _text(handle: Value) -> str:
    if not isinstance(handle, bytes):
        raise InvalidArgumentError(f"a handle is a scalar string, got {describe(handle)}")
    return handle.decode("utf-8", "replace")
