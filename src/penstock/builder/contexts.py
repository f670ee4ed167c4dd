"""Branches and loops under construction, and how values get into them.

In:   a tensor or a node, and the context that wants to use it.
Out:  a tensor at home in that context: captured by a Switch per branch and by a constant
      Enter per loop on the way; or an error if there is no way in.
Not:  builds no branch and no loop; ``branches.py`` and ``loops.py`` do.

A context's home is the context around it.  A value can be used where it is at home and
anywhere inside of that.  It leaves a branch only through its Merge and a loop only through
its Exit, both of which are at home outside.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from penstock.builder.nodes import make_node, set_context
from penstock.builder.scope import Context, Dependencies, Scope
from penstock.builder.tensor import Tensor
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, Where
from penstock.graph.graph import Node

if TYPE_CHECKING:
    from penstock.builder.graph import Graph


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One side of a choice: runs if ``pred`` has the value of ``side``."""

    name: str
    parent: Context | None
    pred: Tensor
    #: The output slot of a Switch for this branch.
    side: int
    pivot: Node
    members: list[Node] = field(default_factory=list)
    #: Tensors inside, by the tensor outside that they stand for.
    captured: dict[Tensor, Tensor] = field(default_factory=dict)

    def capture(self, tensor: Tensor) -> Tensor:
        """Let a tensor in by a Switch that is alive on this side only."""
        if tensor not in self.captured:
            scope = Scope(tensor.graph, device=tensor.device, context=self.parent)
            node = make_switch(scope, tensor, self.pred, self.name + "Switch")
            set_context(tensor.graph, node, self)
            self.captured[tensor] = Tensor(tensor.graph, node, self.side)
        return self.captured[tensor]

    def __str__(self) -> str:
        return f"a branch of '{self.name.rstrip('/')}'"


@dataclass(frozen=True, slots=True, eq=False)
class LoopContext:
    """What the condition and the body of one loop share."""

    name: str
    #: The name of the frame, which no other loop of the graph may share.
    frame: str
    parent: Context | None
    parallel_iterations: int
    #: What every Enter waits for; grows if the body waits for something outside.
    dependencies: list[Dependencies]
    #: All Enters, of variables and of invariants.
    enters: list[Node] = field(default_factory=list)
    #: Invariants inside, by the tensor outside that they stand for.
    captured: dict[Tensor, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class LoopPart:
    """The condition or the body of a loop; the body runs once less."""

    part: str
    loop: LoopContext
    pivot: Node
    members: list[Node] = field(default_factory=list)

    @property
    def parent(self) -> Context | None:
        """The context around the loop."""
        return self.loop.parent

    def capture(self, tensor: Tensor) -> Tensor:
        """Let a tensor in by an Enter that gives it to every iteration."""
        captured = self.loop.captured
        if tensor not in captured:
            scope = Scope(tensor.graph, device=tensor.device, context=self.parent)
            scope = replace(scope, dependencies=tuple(self.loop.dependencies))
            node = make_enter(scope, tensor, self.loop, is_constant=True)
            set_context(tensor.graph, node, self)
            captured[tensor] = Tensor(tensor.graph, node, 0)
        return captured[tensor]

    def __str__(self) -> str:
        return f"the {self.part} of loop '{self.loop.name.rstrip('/')}'"


def make_switch(scope: Scope, data: Tensor, pred: Tensor, name: str) -> Node:
    """A Switch of ``data``; both inputs are at home in the scope's context."""
    op = "RefSwitch" if data.dtype.is_ref else "Switch"
    unique = scope.graph.name_pool.unique(name)
    return make_node(scope, op, {"T": data.dtype.base}, [data, pred], unique)


def make_enter(scope: Scope, data: Tensor, loop: LoopContext, *, is_constant: bool) -> Node:
    """An Enter into ``loop``; only invariants keep their references."""
    op = "RefEnter" if data.dtype.is_ref and is_constant else "Enter"
    attrs = {
        "T": data.dtype.base,
        "frame_name": loop.frame.encode(),
        "is_constant": is_constant,
        "parallel_iterations": loop.parallel_iterations,
    }
    name = scope.graph.name_pool.unique(loop.name + "Enter")
    loop.enters.append(make_node(scope, op, attrs, [data], name))
    return loop.enters[-1]


def resolve(tensor: Tensor, context: Context | None) -> Tensor:
    """The tensor that stands for ``tensor`` in ``context``, captured on the way in.

    Raises:
        InvalidArgumentError: the tensor is at home in another branch or loop.

    """
    for around in reversed(_way_in(tensor.graph, tensor.node, context)):
        tensor = around.capture(tensor)
    return tensor


def resolve_control(graph: Graph, node: Node, context: Context | None) -> Node | None:
    """The node to wait for in ``context`` so as to wait for ``node``.

    No control edge may cross into a loop.  So if there are loops on the way in, the whole
    outermost of them waits, and there is nothing left to wait for: the result is None.

    Raises:
        InvalidArgumentError: the node is at home in another branch or loop.

    """
    loops = [c.loop for c in _way_in(graph, node, context) if isinstance(c, LoopPart)]
    if not loops:
        return node
    outermost = loops[-1]
    for enter in outermost.enters:
        graph.add_control_edge(node, enter)
    outermost.dependencies.append(Dependencies((node,)))
    return None


def _way_in(graph: Graph, node: Node, context: Context | None) -> list[Context]:
    """The contexts to enter, innermost first, from where ``node`` is at home."""
    home = graph.context_of.get(node.id)
    way: list[Context] = []
    inner = context
    while inner is not home:
        if inner is None:
            raise InvalidArgumentError(
                f"'{node.name}' belongs to {home} and cannot be used in "
                f"{'the graph around it' if context is None else context}",
                where=Where(node.name, node.op.name),
                next_step="return it from the branch or the body, and use what cond or "
                "while_loop returns",
            )
        way.append(inner)
        inner = inner.parent
    return way
