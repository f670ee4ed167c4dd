"""Go through a graph, and infer the shapes of its tensors.

In:   a graph; for the body of a function, what is known of the arguments.
Out:  ``Shapes``: the shape of every output, as far as rules and attributes tell it.
Not:  changes no graph and fails for none; what contradicts itself has unknown shapes, and the
      contradiction is noted.

A node is looked at when somebody asks for it or for what depends on it.  A loop is gone around
until nothing changes: a Merge begins with the shape that enters the loop, and what another
iteration brings can only make less of it known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Final

from penstock.core import dtypes
from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.errors import InternalError, InvalidArgumentError, OpError
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import Role
from penstock.graph.static_shapes import declared_shape, noted_shapes
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.partial_shapes import join
from penstock.kernels.api.partial_values import PartialValue
from penstock.kernels.api.shape_context import Held, ShapeContext
from penstock.kernels.api.shape_rules import ShapeRule, shape_rule_of
from penstock.shapes.calls import Calls, joined_held
from penstock.shapes.facts import Facts, Known
from penstock.shapes.values import Values

#: Whatever else changes, a loop is not gone around more often than this.
_MAX_ROUNDS: Final = 64
#: The first size that 64 bits do not hold.
_TOO_LARGE: Final = 1 << 63
#: A graph's own attributes that tell what lies behind a handle.
_HANDLE_SHAPES: Final = "_handle_shapes"
_HANDLE_TYPES: Final = "_handle_dtypes"


class Shapes:
    """What is known of the shapes in one graph; asks no more than it is asked.

    Threads that share one hold the graph's lock meanwhile.
    """

    def __init__(
        self, graph: Graph, arguments: Sequence[Known] = (), calls: Calls | None = None
    ) -> None:
        self.graph = graph
        self.arguments = arguments
        #: Who goes into functions; nothing is known of what they return if nobody does.
        self.calls = calls
        #: Why nothing is known of a node's outputs though its op has a rule, by the node's id:
        #: InvalidArgumentError if its inputs cannot go together, InternalError if the rule failed.
        self.errors: dict[int, OpError] = {}
        self._values = Values(self)
        #: By the node's id.
        self._facts: dict[int, Facts] = {}
        #: Merges that waited for their loop's end when they were looked at, by id.
        self._open: dict[int, Node] = {}
        #: The least id of those whose loop was closed since then; None if none was.
        self._closed: int | None = None

    # -- what is asked ---------------------------------------------------------------

    def shape(self, node: Node, slot: int) -> TensorShape:
        """The shape of an output."""
        return self.facts(node).shapes[slot]

    def held(self, node: Node, slot: int) -> Held | None:
        """What lies behind an output that is a handle."""
        return self.facts(node).holds.get(slot)

    def value(self, node: Node, slot: int) -> PartialValue | None:
        """What is known of the value of an output."""
        self.facts(node)
        return self._values.of(node, slot)

    def facts(self, node: Node) -> Facts:
        """All that is known of a node's outputs."""
        if self._closed is not None:
            self._forget(self._closed)
        found = self._facts.get(node.id)
        if found is None:
            self._infer(node)
            found = self._facts[node.id]
        return found

    def check(self, node: Node) -> None:
        """Infer a node's shapes; raises InvalidArgumentError if its inputs contradict its op."""
        self.facts(node)
        error = self.errors.get(node.id)
        if isinstance(error, InvalidArgumentError):
            raise error

    def known(self, node: Node) -> Facts | None:
        """What is known by now, without a look at anything else."""
        return self._facts.get(node.id)

    # -- how it is found out -----------------------------------------------------------

    def loop_closed(self, merge: Node) -> None:
        """Note that a Merge got its back edge: what it gives is to be inferred once more."""
        if self._open.pop(merge.id, None) is not None:
            self._closed = merge.id if self._closed is None else min(self._closed, merge.id)

    def _forget(self, oldest: int) -> None:
        """Forget all nodes from an id on; takes no longer in a graph that has more before it."""
        self._closed = None
        for number in range(oldest, self.graph.next_id):
            self._facts.pop(number, None)
            self.errors.pop(number, None)
        self._values.forget()

    def _infer(self, target: Node) -> None:
        order = self._order(target)
        for node in order:
            self._facts[node.id] = self._look_at(node)
        loops = [node for node in order if node.role is Role.MERGE]
        if loops:
            self._go_around(order, loops)

    def _order(self, target: Node) -> list[Node]:
        """All that a node depends on and that is not known, sources first but for back edges."""
        order: list[Node] = []
        seen: set[int] = set()
        roots = [target]
        while roots:
            #: Nodes, each with the first of its inputs that is still to be visited.
            stack = [(roots.pop(), 0)]
            while stack:
                node, slot = stack.pop()
                if slot == 0 and (node.id in seen or node.id in self._facts):
                    continue
                seen.add(node.id)
                if slot == len(node.inputs):
                    order.append(node)
                    continue
                stack.append((node, slot + 1))
                edge = node.inputs[slot]
                if edge is None:
                    continue
                if node.role is Role.MERGE and edge.src.role is Role.NEXT_ITERATION:
                    roots.append(edge.src)
                else:
                    stack.append((edge.src, 0))
        return order

    def _go_around(self, order: Sequence[Node], merges: Iterable[Node]) -> None:
        """Look at Merges, and at all that depends on them, until nothing changes.

        At all of it each time: a rule may ask for values, which change where no shape does.
        """
        after = _readers(merges, {node.id for node in order})
        due = [node for node in order if node.id in after]
        for _ in range(_MAX_ROUNDS):
            self._values.forget()
            if True not in [self._look_again(node) for node in due]:
                return
        for node in due:
            self._facts[node.id] = _nothing(node)

    def _look_again(self, node: Node) -> bool:
        """Whether less is known of a node than before."""
        old = self._facts[node.id]
        new = self._look_at(node)
        shapes = tuple(map(join, old.shapes, new.shapes))
        behind = {slot: joined_held(held, new.holds.get(slot)) for slot, held in old.holds.items()}
        holds = {slot: held for slot, held in behind.items() if held is not None}
        found = self._facts[node.id] = Facts(shapes, holds)
        return found != old

    def _look_at(self, node: Node) -> Facts:
        """What follows from what is known of the inputs, and from the attributes."""
        if node.role is Role.MERGE:
            facts = self._merged(node)
        elif node.role is Role.ARG:
            facts = self._argument(node)
        elif self.calls is not None and self.calls.is_call(node):
            facts = self._called(self.calls, node)
        else:
            facts = self._ruled(node)
        noted = noted_shapes(node)
        return facts if not noted else Facts(_agreed(facts.shapes, noted), facts.holds)

    def _merged(self, node: Node) -> Facts:
        """What is true of all inputs; of those that are known, as long as a loop is new."""
        if None in node.inputs:
            self._open[node.id] = node
            return Facts((UNKNOWN, SCALAR)[: len(node.output_types)], {})
        known = [self._input(edge) for edge in node.inputs if edge and edge.src.id in self._facts]
        shape, held = known[0] if known else (UNKNOWN, None)
        for other, behind in known[1:]:
            shape = join(shape, other)
            held = joined_held(held, behind)
        return Facts((shape, SCALAR)[: len(node.output_types)], {} if held is None else {0: held})

    def _input(self, edge: Edge) -> Known:
        """What is known of what comes along an edge; nothing yet, where a loop is malformed."""
        facts = self._facts.get(edge.src.id) or _nothing(edge.src)
        return facts.shapes[edge.src_slot], facts.holds.get(edge.src_slot)

    def _called(self, calls: Calls, node: Node) -> Facts:
        """What functions return."""
        if None in node.inputs:
            return _nothing(node)
        found = calls.outputs(node, [self._input(edge) for edge in node.inputs if edge])
        holds = {slot: held for slot, (_, held) in enumerate(found) if held is not None}
        return Facts(tuple(shape for shape, _ in found), holds)

    def _argument(self, node: Node) -> Facts:
        index = node.attrs["index"]
        if isinstance(index, int) and 0 <= index < len(self.arguments):
            shape, held = self.arguments[index]
            return Facts((shape,), {} if held is None else {0: held})
        return Facts((UNKNOWN,), _stated_handles(node))

    def _ruled(self, node: Node) -> Facts:
        if node.role is Role.PLACEHOLDER:
            return Facts((declared_shape(self.graph, node),), _stated_handles(node))
        rule = shape_rule_of(node.op.name)
        # What the shapes of a loop's first iteration contradict, those of all need not.
        self.errors.pop(node.id, None)
        if rule is None or None in node.inputs:
            return Facts(_nothing(node).shapes, _stated_handles(node))
        try:
            return self._apply(rule, node)
        except OpError as error:
            self.errors[node.id] = error
        except Exception as cause:  # noqa: BLE001  (attributes may hold any numbers)
            self.errors[node.id] = InternalError(
                f"The shape rule of {node.op.name} failed at {node.name}: {cause!r:.200}"
            )
        return _nothing(node)

    def _apply(self, rule: ShapeRule, node: Node) -> Facts:
        attrs = Attrs(node.op, node.attrs, node.input_types, node.output_types, node.name)
        shapes = [self._input(edge)[0] for edge in node.inputs if edge is not None]
        context = ShapeContext(attrs, shapes, _NodeShapes(self, node))
        found = rule(context)
        outputs = (found,) if isinstance(found, TensorShape) else tuple(found)
        if len(outputs) != len(node.output_types):
            raise ValueError(f"it knows {len(outputs)} of {len(node.output_types)} outputs")
        return Facts(tuple(map(_possible, outputs)), context.holds)


class _NodeShapes:
    """What a rule may ask about a node's inputs."""

    def __init__(self, shapes: Shapes, node: Node) -> None:
        self._shapes = shapes
        self._node = node

    def value(self, slot: int) -> PartialValue | None:
        edge = self._node.input(slot)
        return self._shapes._values.of(edge.src, edge.src_slot)  # noqa: SLF001  (its own view)

    def held(self, slot: int) -> Held | None:
        edge = self._node.input(slot)
        facts = self._shapes.known(edge.src)
        return None if facts is None else facts.holds.get(edge.src_slot)


def infer_shapes(graph: Graph) -> Shapes:
    """What is known of the shapes in a graph and in the functions that it calls.

    Nothing is looked at before it is asked for.
    """
    return Shapes(graph, calls=Calls(graph.library, Shapes))


def _possible(shape: TensorShape) -> TensorShape:
    """The shape without what 64 bits do not hold; raises InvalidArgumentError if it is less."""
    if shape.dims is None or all(size is None or 0 <= size < _TOO_LARGE for size in shape.dims):
        return shape
    for size in shape.dims:
        if size is not None and size < 0:
            raise InvalidArgumentError(f"Dimension size must be non-negative, but is {size}")
    return TensorShape(
        tuple(None if size is None or size >= _TOO_LARGE else size for size in shape.dims)
    )


def _readers(nodes: Iterable[Node], among: Set[int]) -> set[int]:
    """The ids of some nodes and of those of ``among`` that depend on them by way of such."""
    waiting = list(nodes)
    found = {node.id for node in waiting}
    while waiting:
        for edge in waiting.pop().out_edges:
            if not edge.is_control and edge.dst.id in among and edge.dst.id not in found:
                found.add(edge.dst.id)
                waiting.append(edge.dst)
    return found


def _nothing(node: Node) -> Facts:
    return Facts((UNKNOWN,) * len(node.output_types), {})


def _agreed(found: Sequence[TensorShape], noted: Sequence[TensorShape]) -> tuple[TensorShape, ...]:
    """What was found together with what somebody noted; where they differ, neither."""
    pairs = zip(found, (*noted, *[UNKNOWN] * len(found)), strict=False)
    return tuple(
        mine.merge_with(other) if mine.is_compatible_with(other) else join(mine, other)
        for mine, other in pairs
    )


def _stated_handles(node: Node) -> dict[int, Held]:
    """What the attributes of a fed handle say about what it points to."""
    shapes, types = node.attrs.get(_HANDLE_SHAPES), node.attrs.get(_HANDLE_TYPES)
    if not isinstance(shapes, tuple) or not isinstance(types, tuple):
        return {}
    if len(shapes) != 1 or len(types) != 1 or not isinstance(shapes[0], TensorShape):
        return {}
    dtype = types[0] if isinstance(types[0], dtypes.DType) else None
    return {0: Held(shapes[0], dtype)}
