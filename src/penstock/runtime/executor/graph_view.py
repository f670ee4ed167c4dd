"""What the executor knows before the first step: flat, and shared by all steps.

In:   a partition's graph, and a kernel for each node.
Out:  ``GraphView``: a ``NodeItem`` per node, an ``EdgeInfo`` per edge, a ``FrameInfo`` per
      static frame.
Not:  nothing here changes after construction.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.limits import DEFAULT_LIMITS
from penstock.core.names import CONTROL_SLOT
from penstock.dataclass import dataclass
from penstock.errors import Where
from penstock.graph.frames import Frame, build_control_flow_info
from penstock.graph.graph import Graph, Node
from penstock.graph.references import References
from penstock.graph.roles import Role
from penstock.kernels.api.bound_kernel import BoundKernel, patience_of
from penstock.kernels.api.context import StepContext
from penstock.kernels.api.registry import Calling, Cost, Kernel
from penstock.kernels.api.try_kernel import TryKernel
from penstock.runtime.executor.pending_counts import PendingCounts
from penstock.runtime.kernel_binder import bind_at
from penstock.state.checkpoints import begin
from penstock.state.rendezvous import key_prefix


class DispatchKind(enum.IntEnum):
    """What the driver does with a node; integers, since it asks once per activation."""

    PLAIN = 0
    CONTEXT = 1
    ASYNC = 2
    LOOP_COND = 3
    NOTHING = 4


class Flow(enum.IntEnum):
    """Which rule of propagation a node follows."""

    ORDINARY = 0
    ENTER = 1
    CONSTANT_ENTER = 2
    EXIT = 3
    NEXT_ITERATION = 4


#: A data edge: the output slot, the destination, and an index in the ``inputs`` of the
#: destination's iteration.  A bare tuple, since one is taken apart per delivery (7 ns; a named
#: tuple takes 32).
EdgeInfo: TypeAlias = "tuple[int, NodeItem, int]"


@dataclass(frozen=False, slots=True, eq=False)
class NodeItem:
    """One node.  Assembled by ``GraphView``, and never changed before that is let go."""

    id: int
    name: str
    op: str
    compute: Kernel
    dispatch: int
    flow: int
    #: The frame that the node runs in.
    frame: FrameInfo
    #: Where its inputs begin among those of its frame.
    input_start: int
    num_inputs: int
    #: Its entry in the frame's pending counts.
    pending_id: int
    output_types: tuple[DType, ...]
    #: Whether the kernel returns its single output as it is, rather than in a tuple.
    has_bare_output: bool
    is_merge: bool
    is_enter: bool
    is_control_trigger: bool
    #: Send and Recv: they run even if they are dead.
    is_transfer: bool
    #: A compiled region: it runs whatever is dead, and finds None in its place.
    takes_dead: bool
    #: Whether an input may be a lock, which is open when nobody has it any more.
    takes_locks: bool
    #: Whether an output may be missing: Switch, Recv and regions.
    may_omit_outputs: bool
    #: Whether outputs are compared with the declared types on every activation.
    is_checked: bool
    #: Whether the kernel's running time is measured.
    is_measured: bool
    #: Seconds that a step which is ended waits for it.
    patience: float
    #: Input slots at which a reference arrives and a value is wanted, with the input's text.
    derefs: tuple[tuple[int, str], ...]
    #: Input slots that want an initialised reference, with the input's text.
    initialized_refs: tuple[tuple[int, str], ...]
    #: Whether there is either of these two.
    has_refs: bool
    #: What may have the outputs without waiting; None for any other kernel.
    try_compute: Kernel | None
    #: What clears its inputs after use.
    no_inputs: tuple[None, ...]
    #: What says where in a step the kernel is, if it does many things; None for any other.
    explain: Callable[[StepContext], str] | None = None
    #: The function whose body the node is in; empty for the graph's own nodes.
    function: str = ""
    #: What the keys of a Send or Recv begin with; empty for others.
    key_prefix: str = ""
    #: The frame that an Enter opens.
    child_frame: FrameInfo | None = None
    parallel_iterations: int = 1
    data_edges: tuple[EdgeInfo, ...] = ()
    control_edges: tuple[NodeItem, ...] = ()
    in_edges: tuple[tuple[NodeItem, int], ...] = ()

    def where(self, device: str, frame: str = "", iteration: int = 0) -> Where:
        """The node as a place in an error message."""
        return Where(self.name, self.op, device, frame, iteration, self.function)

    def __repr__(self) -> str:
        return f"<{self.op} {self.name}>"


@dataclass(frozen=False, slots=True, eq=False)
class FrameInfo:
    """One static frame.  Assembled by ``GraphView``, and never changed before that is let go."""

    name: str
    #: How many Enters name the frame: it is complete when all of them have fired.
    input_count: int = 0
    #: Length of the ``inputs`` of each of its iterations.
    total_inputs: int = 0
    pending_counts: PendingCounts = field(default_factory=PendingCounts)
    nodes: list[NodeItem] = field(default_factory=list)


class _OfRole(NamedTuple):
    """What a node's role says of its item."""

    flow: Flow
    #: None if its kernel says.
    dispatch: DispatchKind | None
    is_merge: bool
    is_enter: bool
    is_control_trigger: bool
    is_transfer: bool
    is_region: bool
    may_omit_outputs: bool


_FLOW: Final[Mapping[Role, Flow]] = {
    Role.ENTER: Flow.ENTER,
    Role.EXIT: Flow.EXIT,
    Role.NEXT_ITERATION: Flow.NEXT_ITERATION,
}
_DISPATCH: Final[Mapping[Role, DispatchKind]] = {
    Role.LOOP_COND: DispatchKind.LOOP_COND,
    Role.CONTROL_TRIGGER: DispatchKind.NOTHING,
}
_OF_ROLE: Final = {
    role: _OfRole(
        flow=_FLOW.get(role, Flow.ORDINARY),
        dispatch=_DISPATCH.get(role),
        is_merge=role is Role.MERGE,
        is_enter=role is Role.ENTER,
        is_control_trigger=role is Role.CONTROL_TRIGGER,
        is_transfer=role in (Role.SEND, Role.RECV),
        is_region=role is Role.REGION,
        may_omit_outputs=role in (Role.SWITCH, Role.RECV, Role.REGION),
    )
    for role in Role
}
_DISPATCH_OF_CALLING: Final[Mapping[Calling, DispatchKind]] = {
    Calling.PLAIN: DispatchKind.PLAIN,
    Calling.CONTEXT: DispatchKind.CONTEXT,
    Calling.ASYNC: DispatchKind.ASYNC,
}


class GraphView:
    """A partition as flat records."""

    def __init__(
        self,
        graph: Graph,
        device: str,
        make_kernel: Callable[[Node], BoundKernel],
        *,
        check_outputs: bool = False,
        patience: float = DEFAULT_LIMITS.patience,
    ) -> None:
        """Bind a kernel to each node and number everything.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        #: Every node that can run, in the graph's order; an item's id is its index.
        self.items: list[NodeItem] = []
        #: Static frames; the root comes first.
        self.frames: dict[Frame, FrameInfo] = {}
        begin("making an executor")
        self.device = device
        #: The function whose body the graph is; empty if it is none's.
        self.function: Final = graph.function
        self._check_outputs = check_outputs
        self._patience = patience
        info = build_control_flow_info(graph)
        self.frames |= {frame: FrameInfo(frame.name) for frame in info.frames.values()}
        self.root = self.frames[info.root]
        reachable = [node for node in graph if node.id in info.frame_of]
        self._references = References(reachable)
        items: dict[Node, NodeItem] = {}
        for node in reachable:
            frame = self.frames[info.frame_of[node.id]]
            items[node] = self._add_item(
                node, frame, bind_at(make_kernel, node, device, graph.function)
            )
            if node.role is Role.ENTER:
                self._open_frame(node, items[node], self.frames[info.output_frame_of[node.id]])
        for node in reachable:
            _join(node, items)
        #: Nodes without inputs: where every step starts.
        self.roots = [
            item
            for node, item in items.items()
            if node.inputs.count(None) == len(node.inputs) and not node.control_inputs
        ]

    def __del__(self) -> None:
        """Take items and frames apart, which hold each other, when no step needs them any more."""
        for item in self.items:
            item.data_edges = item.control_edges = item.in_edges = ()
        for frame in self.frames.values():
            frame.nodes.clear()

    @property
    def title(self) -> str:
        """What is run, for people: the device, and the function if it is one's body."""
        return f"{self.device}, function {self.function}" if self.function else self.device

    def _add_item(self, node: Node, frame: FrameInfo, kernel: BoundKernel) -> NodeItem:
        references, inputs, of_role = self._references, node.inputs, _OF_ROLE[node.role]
        in_edges, controls = len(inputs) - inputs.count(None), len(node.control_inputs)
        counts = frame.pending_counts
        flow = of_role.flow
        if flow is Flow.ENTER and node.attrs["is_constant"]:
            flow = Flow.CONSTANT_ENTER
        dispatch = of_role.dispatch
        if dispatch is None:
            is_nothing = node.op.name == "NoOp"
            dispatch = DispatchKind.NOTHING if is_nothing else _DISPATCH_OF_CALLING[kernel.calling]
        is_recv = node.role is Role.RECV
        derefs, initialized_refs = references.derefs(node), references.initialized(node)
        compute = kernel.compute
        item = NodeItem(
            id=len(self.items),
            name=node.name,
            op=node.op.name,
            compute=compute,
            dispatch=int(dispatch),
            flow=int(flow),
            frame=frame,
            input_start=frame.total_inputs,
            num_inputs=len(inputs),
            pending_id=counts.add_merge(controls)
            if of_role.is_merge
            else counts.add_ordinary(in_edges + controls),
            output_types=node.output_types,
            has_bare_output=node.op.has_bare_output,
            is_merge=of_role.is_merge,
            is_enter=of_role.is_enter,
            is_control_trigger=of_role.is_control_trigger,
            is_transfer=of_role.is_transfer,
            takes_dead=of_role.is_region,
            takes_locks=dtypes.variant in node.input_types,
            may_omit_outputs=of_role.may_omit_outputs,
            # The kernel of a Recv is ours, but what it hands on is somebody else's.
            is_checked=(self._check_outputs or is_recv or not kernel.is_builtin)
            and not references.is_read(node),
            # Others have effects, and may not be safe beside one another.
            is_measured=kernel.cost is Cost.MEASURED
            and (dispatch is DispatchKind.PLAIN or of_role.is_region),
            patience=patience_of(kernel, self._patience),
            derefs=derefs,
            initialized_refs=initialized_refs,
            has_refs=bool(derefs or initialized_refs),
            try_compute=compute.try_compute if isinstance(compute, TryKernel) else None,
            no_inputs=(None,) * len(inputs),
            explain=kernel.explain,
            function=node.function or self.function,
            key_prefix=_key_prefix(node) if of_role.is_transfer else "",
        )
        frame.total_inputs += item.num_inputs
        frame.nodes.append(item)
        self.items.append(item)
        return item

    @staticmethod
    def _open_frame(node: Node, item: NodeItem, child: FrameInfo) -> None:
        child.input_count += 1
        item.child_frame = child
        item.parallel_iterations = max(1, node.attrs["parallel_iterations"])


def _key_prefix(node: Node) -> str:
    """What the rendezvous keys of a Send or Recv begin with."""
    attrs = node.attrs
    sender, receiver, name = (
        _text(attrs[a]) for a in ("send_device", "recv_device", "tensor_name")
    )
    return key_prefix(sender, attrs["send_device_incarnation"], receiver, name)


def _text(attr: Any) -> str:
    return attr.decode("utf-8", "replace") if isinstance(attr, bytes) else str(attr)


def _join(node: Node, items: Mapping[Node, NodeItem]) -> None:
    """Give an item its edges; those to nodes that can never run are left out."""
    item = items[node]
    data_edges, control_edges = [], []
    for _, src_slot, dst, dst_slot in node.out_edges:
        reached = items.get(dst)
        if reached is None:
            continue
        if src_slot == CONTROL_SLOT:
            control_edges.append(reached)
        else:
            data_edges.append((src_slot, reached, reached.input_start + dst_slot))
    item.data_edges, item.control_edges = tuple(data_edges), tuple(control_edges)
    item.in_edges = tuple(
        [(items[edge.src], edge.src_slot) for edge in node.in_edges() if edge.src in items]
    )
