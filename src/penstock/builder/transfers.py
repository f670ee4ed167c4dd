"""The ends of a hand-over by rendezvous, for graphs that run without a session.

In:   the name under which a value is handed over.
Out:  ``_Recv`` and ``_Send`` nodes.

A rendezvous that is given a bare name means the client's own transfer of that name:

    with graph.as_default():
        send(receive("float32", "input") * 2.0, "output")
    rendezvous.send("input", np.float32(3.0))
    executor.run(ExecutorArgs(StepState(rendezvous=rendezvous)))
    rendezvous.recv("output")
"""

from __future__ import annotations

from typing import Any

from penstock.builder.graph import apply
from penstock.builder.sources import as_tensor
from penstock.builder.tensor import Operation, Tensor
from penstock.core import dtypes
from penstock.state.rendezvous import LOCAL_CLIENT


def receive(dtype: Any, tensor_name: str, name: str = "") -> Tensor:
    """The tensor that is sent under ``tensor_name``."""
    result: Tensor = apply(
        "_Recv",
        dtypes.as_dtype(dtype),
        name=name or f"receive_{tensor_name}",
        **_transfer(tensor_name),
    )
    return result


def send(tensor: Any, tensor_name: str, name: str = "") -> Operation:
    """An operation that sends ``tensor`` under ``tensor_name``."""
    result: Operation = apply(
        "_Send",
        as_tensor(tensor),
        name=name or f"send_{tensor_name}",
        **_transfer(tensor_name),
    )
    return result


def _transfer(tensor_name: str) -> dict[str, Any]:
    return {
        "tensor_name": tensor_name,
        "send_device": LOCAL_CLIENT,
        "send_device_incarnation": 1,
        "recv_device": LOCAL_CLIENT,
        "client_terminated": True,
    }
