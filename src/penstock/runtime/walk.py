"""A straight graph, node after node on the calling thread: what a first step needs, and no more.

In:   a partition's nodes, none of which chooses, repeats, waits or refers, and their kernels.
Out:  ``Path``; and ``Walk``, which is to a step what a compiled region is, without a text.
Not:  chooses no path, runs nothing beside anything, and learns nothing.

The executor runs such graphs as well.  What it must know beforehand, so that nodes may run in any
frame, order and thread, takes as long as a whole first step takes here; and no step comes after
that needs it, since the next one is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import Where
from penstock.graph.graph import Graph, Node
from penstock.graph.order import are_in_order, sources_first
from penstock.graph.roles import COMPUTES, Role
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.context import OpKernelContext, StepContext
from penstock.kernels.api.registry import Calling
from penstock.printable import printable
from penstock.runtime.failure import judged
from penstock.runtime.frame_names import FrameTag
from penstock.runtime.outputs import as_outputs, check_outputs
from penstock.state.interrupt import Interruptible, end_loop

_ROLES: Final = COMPUTES | {Role.ARG, Role.RETVAL}
#: Where all of it runs.
_ROOT: Final = FrameTag(None, 0, "")


@dataclass(frozen=True, slots=True)
class Path:
    """The nodes of a straight graph, in an order, and what all walks have in common."""

    #: Each after those that it depends on.
    nodes: Sequence[Node]
    kernels: Mapping[Node, BoundKernel]
    #: How many results there are.
    result_count: int
    device: str
    #: The function whose body it is; empty for the graph's own nodes.
    function: str
    #: Whether outputs of Penstock's own kernels are checked as well.
    checks_outputs: bool
    #: Whether some kernel asks for more of its step than whether to go on.
    needs_context: bool


def path_through(
    graph: Graph,
    kernels: Mapping[Node, BoundKernel],
    device: str,
    result_count: int,
    *,
    checks_outputs: bool = False,
) -> Path | None:
    """A path through all nodes of a graph; None if the graph is not straight.

    Args:
        graph: what is to be run.
        kernels: of its nodes.
        device: where it is.
        result_count: how many results there are.
        checks_outputs: whether outputs of Penstock's own kernels are checked as well.

    """
    args, others, needs_context = [], [], False
    for node in graph:
        kernel = kernels.get(node)
        if kernel is None or kernel.calling is Calling.ASYNC or not _is_straight(node):
            return None
        if node.role is Role.ARG:
            args.append(node)
            continue
        others.append(node)
        needs_context |= kernel.calling is Calling.CONTEXT and node.role is not Role.RETVAL
    nodes = [*args, *others]  # which mostly is an order: a graph has its arguments last
    if not are_in_order(nodes):
        nodes = sources_first(nodes)
    return Path(nodes, kernels, result_count, device, graph.function, checks_outputs, needs_context)


def _is_straight(node: Node) -> bool:
    """Whether a node computes what it gives, and gives values."""
    if node.role not in _ROLES or None in node.inputs:
        return False
    return all(not dtype.is_ref for dtype in node.output_types)


class Walk:
    """One step along a path; used once."""

    __slots__ = ("_node", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        #: The node that the walk has come to; None before it begins.  Set by the thread that
        #: walks, and read by any.
        self._node: Node | None = None

    @property
    def needs_context(self) -> bool:
        """Whether some kernel asks for more of its step than whether to go on."""
        return self._path.needs_context

    @property
    def is_pure(self) -> bool:
        """Whether it does nothing but compute."""
        kernels = self._path.kernels
        return all(kernels[node].is_pure for node in self._path.nodes if node.role in COMPUTES)

    def run(self, step: Interruptible, *args: Value) -> tuple[Value | None, ...]:
        """Run all nodes.

        Args:
            step: a ``StepContext`` if ``needs_context``.
            args: what the nodes for arguments give.

        Raises:
            OpError: a kernel's error, with its place; or the reason why the step must end.

        """
        try:
            return self._results(step, args)
        except BaseException as cause:  # the one border of kernels
            interrupt = step.interrupt
            error = judged(cause, interrupt, self._where, is_late=interrupt.loops_end)
            if error is cause:
                raise
            raise error from error.__cause__

    def without_programs(self) -> Walk:
        """The same: no node stands for others."""
        return self

    def describe(self, _thread: int) -> str:
        """What it is doing."""
        where = self._where()
        at = f", is at {where}" if where is not None else ""
        return printable(f"{self._path.device}, node after node{at}")

    def _results(self, step: Interruptible, args: Sequence[Value]) -> tuple[Value | None, ...]:
        path, interrupt = self._path, step.interrupt
        results: list[Value | None] = [None] * path.result_count
        #: What was given, as long as somebody is still to come for it, and how many are.
        given: dict[Node, Sequence[Value]] = {}
        awaited: dict[Node, int] = {}
        for node in path.nodes:
            if interrupt.loops_end:
                end_loop(interrupt)
            self._node = node
            inputs = [given[src][slot] for src, slot, _, _ in node.inputs]  # type: ignore[misc]
            outputs: Sequence[Value] = ()
            if node.role is Role.ARG:
                outputs = (args[node.attrs["index"]],)
            elif node.role is Role.RETVAL:
                results[node.attrs["index"]] = inputs[0]
            else:
                outputs = self._outputs(node, step, inputs)
            if node.out_edges:
                given[node], awaited[node] = outputs, len(node.out_edges)
            for edge in node.in_edges():
                awaited[edge.src] -= 1
                if not awaited[edge.src]:
                    del given[edge.src]
        return tuple(results)

    def _outputs(self, node: Node, step: Interruptible, inputs: list[Value]) -> Sequence[Value]:
        """What one node gives."""
        kernel = self._path.kernels[node]
        if kernel.calling is Calling.PLAIN:
            result = kernel.compute(*inputs)
        else:
            assert isinstance(step, StepContext)
            context = OpKernelContext(step, node.name, node.op.name, _ROOT, 0, is_input_dead=False)
            result = kernel.compute(context, *inputs)
        outputs = as_outputs(node.op, result)
        if self._path.checks_outputs or not kernel.is_builtin:
            check_outputs(node, outputs)
        return outputs

    def _where(self) -> Where | None:
        """The node that it has come to."""
        node, path = self._node, self._path
        if node is None:
            return None
        return Where(node.name, node.op.name, path.device, function=node.function or path.function)
