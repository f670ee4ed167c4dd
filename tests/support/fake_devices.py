"""Devices, ops and kernels that only tests know: ten fake CPUs and ten fake GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from penstock.catalogue import registry as ops
from penstock.catalogue.registry import get_op, register_op
from penstock.core import dtypes
from penstock.graph.graph import Graph, Node
from penstock.kernels.api import registry as kernels
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.state import devices as device_types
from penstock.state.devices import Device, DeviceSet, register_device_type

TASK = "/job:a/replica:0/task:0"
CPU, GPU = "FakeCPU", "FakeGPU"

#: Rows of ops, with the kernels that each has: device type, or (device type, priority).
_OPS: tuple[tuple[str, tuple[str | tuple[str, int], ...]], ...] = (
    ("PtInput() -> (a: float32, b: float32)", (CPU, GPU)),
    ("PtConst() -> (o: float32)", (CPU, GPU)),
    ("PtConstCpu() -> (o: float32)", (CPU,)),
    ("PtRelu(i: float32) -> (o: float32)", (CPU, GPU)),
    ("PtReluCpu(i: float32) -> (o: float32)", (CPU,)),
    ("PtReluGpu(i: float32) -> (o: float32)", (GPU,)),
    ("PtAdd(a: float32, b: float32) -> (o: float32)", (CPU, GPU)),
    ("PtVariable() -> (o: ref float32) stateful", (CPU, GPU)),
    ("PtVariableCpu() -> (o: ref float32) stateful", (CPU,)),
    ("PtVariableGpu() -> (o: ref float32) stateful", (GPU,)),
    ("PtAssign(i: ref float32, v: float32) -> (o: ref float32)", (CPU, GPU)),
    ("PtAssignCpu(i: ref float32, v: float32) -> (o: ref float32)", (CPU,)),
    ("PtAssignGpu(i: ref float32, v: float32) -> (o: ref float32)", (GPU,)),
    ("PtHandle() -> (o: resource) stateful", (CPU, GPU)),
    ("PtHandleCpu() -> (o: resource) stateful", (CPU,)),
    ("PtUse(i: resource) -> (o: float32)", (CPU, GPU)),
    ("PtUseCpu(i: resource) -> (o: float32)", (CPU,)),
    ("PtUseTwo(a: resource, b: resource) -> ()", (CPU, GPU)),
    ("PtPass(i: resource) -> (o: resource)", (CPU, GPU)),
    ("PtSourceDataset() -> (o: variant)", (CPU, GPU)),
    ("PtMapDataset(i: variant) -> (o: variant)", (CPU, GPU)),
    ("PtVariant() -> (o: variant)", (CPU, GPU)),
    ("PtReadVariant(i: variant) -> (o: float32)", (CPU, GPU)),
    ("PtPrefersCpu(i: float32) -> (o: float32)", ((CPU, 2), (GPU, 1))),
    ("PtPrefersCpuToo(i: float32) -> (o: float32)", ((CPU, 7), (GPU, 0))),
    ("PtPrefersGpu(i: float32) -> (o: float32)", ((CPU, 1), (GPU, 2))),
    ("PtTyped(i: T) -> (o: T) [T: type]", ()),
    ("PtNoKernels(i: float32) -> (o: float32)", ()),
)


@contextmanager
def fake_world() -> Iterator[DeviceSet]:
    """Register everything, yield the twenty devices, and forget it all again."""
    kernels.load_families()
    tables: list[dict[str, Any]] = [ops._custom, kernels._kernels, device_types._types]
    before = [dict(table) for table in tables]
    try:
        _register_all()
        yield fake_devices()
    finally:
        for table, content in zip(tables, before, strict=True):
            table.clear()
            table.update(content)


def _register_all() -> None:
    register_device_type(CPU, priority=50, factory=_none)
    register_device_type(GPU, priority=51, factory=_none)
    for row, supported in _OPS:
        op = register_op(row)
        for entry in supported:
            device_type, priority = entry if isinstance(entry, tuple) else (entry, 0)
            kernel(op.name, device=device_type, priority=priority)(_make_nothing)
    for op_name in ("Identity", "Shape", "NoOp", "IdentityN"):
        kernel(op_name, device=CPU)(_make_nothing)
        kernel(op_name, device=GPU)(_make_nothing)
    kernel("PtTyped", types={"T": {dtypes.float32}}, device=GPU)(_make_nothing)
    kernel("PtTyped", types={"T": {dtypes.int32}}, device=CPU)(_make_nothing)


def _none(_task: str, _count: int | None, _incarnation: int) -> Sequence[Device]:
    return ()


def _make_nothing(_attrs: Attrs) -> Kernel:
    return lambda *_inputs: None


def device(kind: str, index: int) -> str:
    """The full name of a fake device."""
    return f"{TASK}/device:{kind}:{index}"


def fake_devices(*kinds: str) -> DeviceSet:
    """Ten devices of each kind; both kinds if none is given."""
    return DeviceSet(
        [Device(device(kind, i), kind) for kind in kinds or (CPU, GPU) for i in range(10)]
    )


class GraphMaker:
    """A graph under construction; names follow from the order if they do not matter."""

    def __init__(self) -> None:
        self.graph = Graph()

    def add(
        self,
        op: str,
        *inputs: Node | tuple[Node, int],
        name: str = "",
        on: str = "",
        assigned: str = "",
        after: Sequence[Node] = (),
        groups: Sequence[str] = (),
        **attrs: Any,
    ) -> Node:
        """Add a node with its edges; ``groups`` are names for its ``_class``."""
        ends = [end if isinstance(end, tuple) else (end, 0) for end in inputs]
        signature = get_op(op)
        if "T" in signature.attrs and "T" not in attrs:
            types = tuple(node.output_types[slot].base for node, slot in ends)
            attrs["T"] = types if signature.attrs["T"].kind == "list(type)" else types[0]
        if groups:
            attrs["_class"] = tuple(f"loc:@{group}".encode() for group in groups)
        defaults = {n: a.default for n, a in signature.attrs.items() if a.default is not None}
        node = self.graph.add_node(
            name or f"n{len(self.graph)}",
            signature,
            defaults | attrs,
            device=on,
            assigned_device=assigned,
        )
        for index, (source, slot) in enumerate(ends):
            self.graph.add_edge(source, slot, node, index)
        for source in after:
            self.graph.add_control_edge(source, node)
        return node
