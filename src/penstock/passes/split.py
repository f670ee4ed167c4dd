"""Cut a pruned graph into partitions; join them by Send and Recv.

In:   Pruned, and a function that names the partition of each device.
Out:  one Partition per name; every cut edge became a Send in its source's partition and a
      Recv in its destination's.
Not:  does not run anything, and does not know what a device can do.

Runs last, so that no other pass has to know Send and Recv.  How edges are cut:

- A data edge: Send there, Recv here.  One Recv serves all consumers of a value, but each
  reader of a reference has its own, which comes after the reader's other inputs.
- A control edge: an empty Const that waits for the source is sent; here an Identity of the
  Recv stands for the source.  (A Recv is itself alive when a dead tensor comes; its
  Identity is dead, and that is what must reach the consumer.)
- An edge inside a loop: the Recv must be armed once an iteration, so every partition that
  receives inside a frame gets a copy of the loop's skeleton, the *control loop*:
  Enter → Merge → Switch on the loop's own predicate → NextIteration.  Its Merge starts the
  Recvs of each iteration.  A partition that only sends from inside a frame, what it makes of
  loop constants, has a copy as well: without it, there would be no iteration but the first.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.names import CONTROL_SLOT
from penstock.core.values import freeze
from penstock.defs.attrs import TensorAttr
from penstock.errors import InvalidArgumentError
from penstock.graph.frames import ControlFlowInfo, Frame, build_control_flow_info
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import Role
from penstock.graph.stages import Partition, Pruned

_EMPTY: Final = TensorAttr(value=freeze(np.zeros(0, np.float32)))


def split(
    pruned: Pruned,
    *,
    partition_of: Callable[[str], str] = str,
    incarnation_of: Callable[[str], int] = lambda _device: 1,
    numbers: Iterator[int] | None = None,
) -> list[Partition]:
    """One partition per distinct ``partition_of(device)``, in order of first use.

    Args:
        pruned: the graph to cut.
        partition_of: names the partition of a device: itself by default; a worker's name
            splits by worker.
        incarnation_of: the incarnation of a device, for rendezvous keys.
        numbers: where the numbers in names of inserted nodes come from; 1, 2 … if not given.

    Raises:
        InvalidArgumentError: a data input is missing, or a loop that crosses devices has no
            LoopCond.

    """
    _check_complete(pruned.graph)
    names = set(map(partition_of, set(pruned.device_of.values())))
    if len(names) == 1:
        for node in pruned.graph:
            node.assigned_device = pruned.device_of[node.id]
        return [Partition(names.pop(), pruned.graph)]
    pruned = colocate_loop_nodes(pruned)
    return _Splitter(pruned, partition_of, incarnation_of, numbers or itertools.count(1)).run()


def colocate_loop_nodes(pruned: Pruned) -> Pruned:
    """Move nodes that only pass a value on to where the value is, or where it goes.

    A Switch and an Exit follow their input, an Enter and a NextIteration (of values) their
    first consumer.  It saves transfers that nobody asked for.
    """
    if len(set(pruned.device_of.values())) == 1:
        return pruned
    device_of = dict(pruned.device_of)
    for node in pruned.graph:
        if node.role in (Role.SWITCH, Role.EXIT) and node.inputs[0] is not None:
            device_of[node.id] = device_of[node.inputs[0].src.id]
        elif node.role in (Role.ENTER, Role.NEXT_ITERATION) and not node.output_types[0].is_ref:
            consumer = next((e.dst for e in node.out_edges if not e.is_control), None)
            if consumer is not None:
                device_of[node.id] = device_of[consumer.id]
    return dataclasses.replace(pruned, device_of=device_of)


def _check_complete(graph: Graph) -> None:
    for node in graph:
        if None in node.inputs:
            missing = node.inputs.count(None)
            raise InvalidArgumentError(
                f"Incomplete graph, missing {missing} inputs for {node.name}"
            )


class _Splitter:
    """The partitions under construction."""

    def __init__(
        self,
        pruned: Pruned,
        partition_of: Callable[[str], str],
        incarnation_of: Callable[[str], int],
        numbers: Iterator[int],
    ) -> None:
        self.numbers = numbers
        self.source = pruned.graph
        self.device_of = dict(pruned.device_of)
        self.partition_of = partition_of
        self.incarnation_of = incarnation_of
        self.info: ControlFlowInfo = build_control_flow_info(pruned.graph)
        self.loop_cond_of = self.find_loop_conds()
        #: Loops that need no control loop in a partition.
        self.turning = self.find_turning()
        #: Partition graphs by name, in order of first use.
        self.graphs: dict[str, Graph] = {}
        #: The copy of each original node.
        self.copies: dict[Node, Node] = {}
        #: What stands for an output in another partition, by (source copy, slot, partition).
        self.received: dict[tuple[Node, int, str], Node] = {}
        #: The Merge of the control loop, by frame and partition.
        self.loop_merges: dict[tuple[Frame, str], Node] = {}
        self.next_number = 0

    def run(self) -> list[Partition]:
        """Copy all nodes, then their edges, cutting those that cross."""
        for node in self.source:
            self.copy(node)
        for node in self.source:
            for edge in node.inputs:
                assert edge is not None  # _check_complete saw to it
                self.join(edge)
            for edge in node.control_inputs:
                self.join(edge)
        self.order_reads_of_references()
        return [Partition(name, graph) for name, graph in self.graphs.items()]

    def find_loop_conds(self) -> dict[Frame, Node]:
        """The predicate of each loop."""
        return {
            self.info.frame_of[node.id]: node
            for node in self.source
            if node.role is Role.LOOP_COND and node.id in self.info.frame_of
        }

    # -- nodes ---------------------------------------------------------------------

    def graph_of(self, device: str) -> Graph:
        """The partition graph that a device belongs to."""
        name = self.partition_of(device)
        if name not in self.graphs:
            self.graphs[name] = Graph(self.source.library)
            self.graphs[name].versions = self.source.versions
        return self.graphs[name]

    def copy(self, node: Node) -> None:
        """Copy a node into its device's partition."""
        device = self.device_of[node.id]
        copy = self.copies[node] = self.graph_of(device).add_copy(node)
        copy.assigned_device = device

    def insert(self, device: str, name: str, op: str, attrs: dict[str, Any]) -> Node:
        """Add a node of the runtime's own."""
        return self.graph_of(device).add_node(name, get_op(op), attrs, assigned_device=device)

    def fresh(self, name: str) -> str:
        """A name for a node that is inserted because of the node called ``name``."""
        while True:
            self.next_number = next(self.numbers)
            made = f"{name}/_{self.next_number}"
            if made not in self.source:
                return made

    # -- edges ---------------------------------------------------------------------

    def join(self, edge: Edge) -> None:
        """Copy an edge; where it crosses, its source is what the transfer delivers."""
        src, slot, dst = self.copies[edge.src], edge.src_slot, self.copies[edge.dst]
        graph = self.graph_of(dst.assigned_device)
        if self.crosses(edge):
            src, slot = self.transferred(edge.src, slot, dst.assigned_device), 0
        if edge.is_control:
            graph.add_control_edge(src, dst)
        else:
            graph.add_edge(src, slot, dst, edge.dst_slot)

    def crosses(self, edge: Edge) -> bool:
        """Whether the ends of an edge are in different partitions."""
        src, dst = self.device_of[edge.src.id], self.device_of[edge.dst.id]
        return self.partition_of(src) != self.partition_of(dst)

    def transferred(self, source: Node, slot: int, device: str) -> Node:
        """What stands for an output of ``source`` on ``device``."""
        frame = self.info.output_frame_of.get(source.id, self.info.root)
        return self.transfer(self.copies[source], slot, device, frame)

    def transfer(self, src: Node, slot: int, device: str, frame: Frame) -> Node:
        """A Recv on ``device`` of an output (for control, an Identity of it).

        It is made once, except for references: a Recv that waits for what one reader waits
        for must not keep another reader waiting.
        """
        key = (src, slot, self.partition_of(device))
        if key in self.received and not _is_reference(src, slot):
            return self.received[key]
        if slot == CONTROL_SLOT:
            token = self.control_token(src)
            recv = self.add_transfer(token, 0, device, frame, src.name)
            result = self.insert(device, self.fresh(src.name), "Identity", {"T": dtypes.float32})
            self.graph_of(device).add_edge(recv, 0, result, 0)
        else:
            result = self.add_transfer(src, slot, device, frame, src.name)
        self.received[key] = result
        return result

    def control_token(self, src: Node) -> Node:
        """An empty constant that is sent when ``src`` is done."""
        attrs = {"dtype": dtypes.float32, "value": _EMPTY}
        token = self.insert(src.assigned_device, self.fresh(src.name), "Const", attrs)
        self.graph_of(src.assigned_device).add_control_edge(src, token)
        return token

    def add_transfer(self, src: Node, slot: int, device: str, frame: Frame, name: str) -> Node:
        """A Send and its Recv, named after ``name``; returns the Recv."""
        dtype: DType = src.output_types[slot].base
        send_name, recv_name = self.fresh(name), self.fresh(name)
        attrs: dict[str, Any] = {
            "tensor_name": f"edge_{self.next_number}_{name}".encode(),
            "send_device": src.assigned_device.encode(),
            "send_device_incarnation": self.incarnation_of(src.assigned_device),
            "recv_device": device.encode(),
            "client_terminated": False,
        }
        send = self.insert(src.assigned_device, send_name, "_Send", {"T": dtype, **attrs})
        self.graph_of(src.assigned_device).add_edge(src, slot, send, 0)
        recv = self.insert(device, recv_name, "_Recv", {"tensor_type": dtype, **attrs})
        if frame.parent is not None:
            merge = self.loop_merge(frame, device)
            self.graph_of(device).add_control_edge(merge, recv)
            self.have_iterations(frame, src.assigned_device)
        return recv

    def order_reads_of_references(self) -> None:
        """A remote read of a reference comes after all other inputs of its reader."""
        for node in self.source:
            edges = [edge for edge in node.inputs if edge is not None]
            remote = [e for e in edges if _is_reference(e.src, e.src_slot) and self.crosses(e)]
            if remote:
                dst = self.copies[node]
                values = [e.dst_slot for e in edges if not _is_reference(e.src, e.src_slot)]
                sources = [dst.input(slot).src for slot in values]
                for edge in remote:
                    recv = dst.input(edge.dst_slot).src
                    self.graph_of(dst.assigned_device).add_control_edges(sources, recv)

    # -- control loops ---------------------------------------------------------------

    def loop_merge(self, frame: Frame, device: str) -> Node:
        """The Merge that is alive once per iteration of ``frame`` on ``device``."""
        chain: list[Frame] = []
        known: Frame | None = frame
        while known is not None and known.parent is not None:
            if (known, self.partition_of(device)) in self.loop_merges:
                break
            chain.append(known)
            known = known.parent
        for missing in reversed(chain):
            self.add_control_loop(missing, device)
        return self.loop_merges[frame, self.partition_of(device)]

    def have_iterations(self, frame: Frame, device: str) -> None:
        """See to it that what ``device`` sends out of a loop is sent in every iteration."""
        if frame not in self.loop_cond_of or (frame, self.partition_of(device)) in self.turning:
            return
        self.loop_merge(frame, device)

    def find_turning(self) -> set[tuple[Frame, str]]:
        """The loops that go round by themselves in a partition: it has a NextIteration of them."""
        return {
            (self.info.output_frame_of[node.id], self.partition_of(self.device_of[node.id]))
            for node in self.source
            if node.role is Role.NEXT_ITERATION and node.id in self.info.output_frame_of
        }

    def add_control_loop(self, frame: Frame, device: str) -> None:
        """Copy the skeleton of a loop; its outer loop's skeleton is there already."""
        graph, partition = self.graph_of(device), self.partition_of(device)
        predicate = self.loop_cond_of.get(frame)
        if predicate is None:
            raise InvalidArgumentError(
                f"A cross-device loop must have a pivot predicate: {frame.name}"
            )
        value = {"T": dtypes.float32}
        enter_attrs = {
            **value,
            "frame_name": frame.name.encode(),
            "is_constant": False,
            "parallel_iterations": self.parallel_iterations(frame),
        }
        enter = self.insert(device, self.fresh(f"_cloop{frame.name}"), "Enter", enter_attrs)
        merge = self.insert(device, self.fresh(f"_cloop{frame.name}"), "Merge", {**value, "N": 2})
        switch = self.insert(device, self.fresh(f"_cloop{frame.name}"), "Switch", value)
        following = self.insert(device, self.fresh(f"_cloop{frame.name}"), "NextIteration", value)
        self.loop_merges[frame, partition] = merge
        graph.add_edge(self.loop_start(frame, device), 0, enter, 0)
        graph.add_edge(enter, 0, merge, 0)
        graph.add_edge(following, 0, merge, 1)
        graph.add_edge(merge, 0, switch, 0)
        graph.add_edge(self.predicate_on(predicate, device, frame), 0, switch, 1)
        graph.add_edge(switch, 1, following, 0)

    def loop_start(self, frame: Frame, device: str) -> Node:
        """What enters a control loop: the outer loop's Merge, or an empty constant."""
        assert frame.parent is not None
        if frame.parent.parent is not None:
            return self.loop_merges[frame.parent, self.partition_of(device)]
        attrs = {"dtype": dtypes.float32, "value": _EMPTY}
        return self.insert(device, self.fresh(f"_cloop{frame.name}"), "Const", attrs)

    def predicate_on(self, predicate: Node, device: str, frame: Frame) -> Node:
        """The loop's predicate as seen on ``device``."""
        local = self.copies[predicate]
        if self.partition_of(local.assigned_device) == self.partition_of(device):
            return local
        return self.transfer(local, 0, device, frame)

    def parallel_iterations(self, frame: Frame) -> int:
        """What the loop's own Enters say."""
        for node in self.source:
            if node.role is Role.ENTER and self.info.output_frame_of.get(node.id) is frame:
                value: int = node.attrs["parallel_iterations"]
                return value
        return 10


def _is_reference(src: Node, slot: int) -> bool:
    return slot != CONTROL_SLOT and src.output_types[slot].is_ref
