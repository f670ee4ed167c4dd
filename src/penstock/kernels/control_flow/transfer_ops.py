"""Kernels that bring values into a partition and out of it.

In:   values from the call frame or the rendezvous.
Out:  values to the same.
Not:  does not know who is on the other side.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from penstock.core.values import DEAD, Value
from penstock.errors import Code, InternalError, OpError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext, Waiting
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.api.traits import READS_FRAME
from penstock.state.call_frame import CallFrame
from penstock.state.rendezvous import Rendezvous, key_prefix

#: How the splitter, and TensorFlow's, name what a node's output is sent as.
_EDGE: Final = re.compile(r"edge_\d+_(.+)", re.DOTALL)


@context_kernel("_Arg", "_DeviceArg", cost=Cost.CHEAP)
def make_arg(attrs: Attrs) -> Kernel:
    """Take an argument from the call frame."""
    index = attrs.int("index")

    def arg(context: OpKernelContext) -> Value:
        return _frame(context).get_arg(index)

    return arg


@context_kernel("_Retval", "_DeviceRetval", cost=Cost.CHEAP)
def make_retval(attrs: Attrs) -> Kernel:
    """Put a result into the call frame."""
    index = attrs.int("index")

    def retval(context: OpKernelContext, value: Value) -> None:
        _frame(context).set_retval(index, value)

    return retval


def _frame(context: OpKernelContext) -> CallFrame:
    frame = context.step.call_frame
    if frame is None:
        raise InternalError("no call frame")
    return frame


def _prefix(attrs: Attrs) -> str:
    """What all rendezvous keys of a node begin with."""
    return key_prefix(
        attrs.str("send_device"),
        attrs.int("send_device_incarnation"),
        attrs.str("recv_device"),
        attrs.str("tensor_name"),
    )


def _sender(attrs: Attrs) -> str:
    """Who sends what a node receives, for people."""
    name, device = attrs.str("tensor_name"), attrs.str("send_device")
    if attrs.bool("client_terminated"):
        return f"{name}, which the client feeds"
    edge = _EDGE.fullmatch(name)
    node = f"node {edge[1]}" if edge else f"whatever is sent as {name}"
    return f"{node} on {device}"


def _awaited(sender: str, key: str) -> str:
    return f"{sender}; the key is {key}"


def _rendezvous(context: OpKernelContext) -> Rendezvous:
    rendezvous = context.step.rendezvous
    if rendezvous is None:
        raise InternalError(f"{context.op} needs a rendezvous, and the step has none")
    return rendezvous


@context_kernel("_Send", "_HostSend", cost=Cost.CHEAP, traits=READS_FRAME)
def make_send(attrs: Attrs) -> Kernel:
    """Hand the input, or the news that it is dead, to whoever receives under the key."""
    prefix = _prefix(attrs)

    def send(context: OpKernelContext, value: Value) -> None:
        key = f"{prefix}{context.frame.id}:{context.iteration}"
        if context.is_input_dead:
            _rendezvous(context).send(key, DEAD, is_dead=True)
        else:
            _rendezvous(context).send(key, value)

    return send


@async_kernel("_Recv", "_HostRecv", traits=READS_FRAME)
def make_recv(attrs: Attrs) -> Kernel:
    """Wait for a value under the key; a dead one leaves the output empty."""
    prefix, sender = _prefix(attrs), _sender(attrs)

    def recv(context: OpKernelContext, done: Done) -> None:
        key = f"{prefix}{context.frame.id}:{context.iteration}"
        context.waits_for = Waiting(partial(_awaited, sender, key))

        def received(error: OpError | None, value: Value, is_dead: bool) -> None:  # noqa: FBT001
            if error is not None:
                failure = error.copy()
                # Who sends has an error of its own to report, unless it cannot be reached.
                failure.derived = error.code is not Code.UNAVAILABLE
                done(failure)
            else:
                done(DEAD if is_dead else value)

        _rendezvous(context).recv_async(key, received)

    return recv
