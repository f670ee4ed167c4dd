"""Loops: ``while_loop``.

In:   functions that build the condition and the body, and the variables' first values.
Out:  the variables' last values.
Not:  unrolls nothing; the body is built once.

For each variable: an Enter brings the first value into the loop's frame, a Merge joins it
with the value of the iteration before, a Switch sends it to the body as long as the
condition holds, a NextIteration carries the body's result around, and in the end an Exit
lets it out.  The condition is built in one context and the body in another, because the
body runs once less: what the condition computes stays there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from penstock.builder import structure
from penstock.builder.blocks import name_scope
from penstock.builder.contexts import LoopContext, LoopPart, make_enter, resolve
from penstock.builder.graph import Graph, graph_of
from penstock.builder.nodes import make_node, set_context
from penstock.builder.scope import Scope, scope_in, use_scope
from penstock.builder.sources import as_tensor
from penstock.builder.structure import Structure
from penstock.builder.tensor import Tensor
from penstock.builder.tensor_array import TensorArray
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Node

#: Builds the condition or the body, from the variables.
LoopFunction: TypeAlias = Callable[..., Structure]


def while_loop(
    cond: LoopFunction,
    body: LoopFunction,
    loop_vars: Structure,
    *,
    parallel_iterations: int = 10,
    maximum_iterations: Any = None,
    back_prop: object = None,  # noqa: ARG001 - programs for TensorFlow 1 give it
    name: str = "while",
) -> Structure:
    """Let ``body`` make new variables from the old ones while ``cond`` holds.

    Both functions are called now, once each.  They take what ``loop_vars`` holds: the items
    of a list or tuple one by one, anything else (one tensor, a dict) as one argument.
    ``body`` returns the same structure with the same types.  Nodes of the body that no
    variable depends on do not run; put them under ``control_dependencies``.

    ``maximum_iterations`` ends the loop even if the condition still holds.
    ``parallel_iterations`` is how far iterations may run ahead of each other.

    Raises:
        TypeError: there are no variables.
        InvalidArgumentError: the condition is no truth value; or the body returns another
            structure, or values of other types.

    """
    if not structure.flatten(loop_vars):
        raise TypeError("while_loop needs at least one loop variable")
    if parallel_iterations < 1:
        raise InvalidArgumentError("parallel_iterations must be at least 1")
    graph = graph_of([_speaker(leaf) for leaf in structure.flatten(loop_vars)])
    with graph.lock, graph.as_default(), name_scope(name):
        if maximum_iterations is not None:
            cond, body, loop_vars = _counted(cond, body, loop_vars, maximum_iterations)
        construction = _Construction(scope_in(graph), loop_vars, parallel_iterations)
        result = construction.run(cond, body)
    return result if maximum_iterations is None else result[1]


def _speaker(leaf: Any) -> Any:
    """The tensor that says which graph a variable belongs to."""
    return leaf.flow if isinstance(leaf, TensorArray) else leaf


def _counted(
    cond: LoopFunction, body: LoopFunction, loop_vars: Structure, limit: Any
) -> tuple[LoopFunction, LoopFunction, Structure]:
    """The same loop with a counter in front of its variables."""
    limit = as_tensor(limit, dtypes.int32, name="maximum_iterations")

    def counted_cond(count: Tensor, inner: Structure) -> Tensor:
        holds = as_tensor(_call(cond, inner), dtypes.bool_)
        goes_on: Tensor = (count < limit) & holds
        return goes_on

    def counted_body(count: Tensor, inner: Structure) -> Structure:
        return count + 1, _fitted(_call(body, inner), inner)

    return counted_cond, counted_body, (as_tensor(0, name="counter"), loop_vars)


def _call(function: LoopFunction, variables: Structure) -> Structure:
    if isinstance(variables, (list, tuple)):
        return function(*variables)
    return function(variables)


def _fitted(result: Structure, variables: Structure) -> Structure:
    """A body's result; the only variable of a list may come without the list."""
    alone = isinstance(variables, (list, tuple)) and len(variables) == 1
    if alone and structure.form(result) == structure.form(variables[0]):
        return [result]
    return result


class _Construction:
    """One loop under construction."""

    def __init__(self, scope: Scope, loop_vars: Structure, parallel_iterations: int) -> None:
        #: The scope around the loop, in the loop's own name scope.
        self.scope = scope
        self.graph: Graph = scope.graph
        self.loop_vars = loop_vars
        self.leaves = structure.flatten(loop_vars)
        waits = list(scope.dependencies)
        frame = self.name("while_context")
        self.loop = LoopContext(scope.name, frame, scope.context, parallel_iterations, waits)

    def run(self, cond: LoopFunction, body: LoopFunction) -> Structure:
        """The whole construction, from the Enters to the Exits."""
        merges = [self.enter(leaf) for leaf in self.leaves]
        condition = LoopPart("condition", self.loop, merges[0].node)
        for tensor in merges:
            set_context(self.graph, tensor.node, condition)
        pred = self.condition(condition, cond, merges)
        switches = [self.make(condition, "Switch", [tensor, pred]) for tensor in merges]
        inside = self.body_part(switches)
        self.body(inside, body, merges)
        return self.packed([self.exit(condition, switch) for switch in switches])

    def name(self, name: str) -> str:
        """A new name in the loop's name scope."""
        return self.graph.name_pool.unique(self.scope.name + name)

    def inside(self, part: LoopPart) -> Scope:
        """The scope of a part.  What the loop waits for, its Enters have waited for."""
        return replace(self.scope, context=part, dependencies=())

    def make(self, part: LoopPart, op: str, inputs: Sequence[Tensor]) -> Node:
        """One of the loop's own nodes."""
        attrs = {"T": inputs[0].dtype.base} if op != "LoopCond" else {}
        return make_node(self.inside(part), op, attrs, inputs, self.name(op))

    def enter(self, leaf: Any) -> Tensor:
        """The Merge at a variable's place, its way around still open."""
        if isinstance(leaf, TensorArray):
            leaf = leaf.flow
        first = resolve(as_tensor(leaf), self.scope.context)
        node = make_enter(self.scope, first, self.loop, is_constant=False)
        scope = replace(self.scope, context=None, dependencies=())
        attrs = {"T": first.dtype.base, "N": 2}
        entered = Tensor(self.graph, node, 0)
        merge = make_node(scope, "Merge", attrs, [entered, None], self.name("Merge"))
        return Tensor(self.graph, merge, 0)

    def condition(self, part: LoopPart, cond: LoopFunction, merges: Sequence[Tensor]) -> Tensor:
        """The LoopCond."""
        for enter in self.loop.enters:
            set_context(self.graph, enter, part)
        with use_scope(self.inside(part)):
            result = _call(cond, self.packed(merges))
            if isinstance(result, (list, tuple)) and len(result) == 1:
                result = result[0]
            pred = resolve(self.as_pred(result), part)
            return Tensor(self.graph, self.make(part, "LoopCond", [pred]), 0)

    def as_pred(self, result: Any) -> Tensor:
        """What ``cond`` returned, as a truth value."""
        try:
            return as_tensor(result, dtypes.bool_)
        except (InvalidArgumentError, TypeError) as cause:
            raise InvalidArgumentError(
                f"The condition of loop '{self.scope.name.rstrip('/')}' is no truth value: "
                f"{result!r:.80}",
                next_step="return a comparison from cond",
            ) from cause

    def body_part(self, switches: Sequence[Node]) -> LoopPart:
        """The context of the body.

        Its values are Identities, since control edges out of a Switch do not tell its sides
        apart; the first of them is the pivot.
        """
        scope = replace(self.scope, context=None, dependencies=())
        taken = [Tensor(self.graph, switch, 1) for switch in switches]
        nodes = [
            make_node(scope, "Identity", {"T": one.dtype}, [one], self.name("Identity"))
            for one in taken
        ]
        part = LoopPart("body", self.loop, nodes[0])
        for node in nodes:
            set_context(self.graph, node, part)
        return part

    def body(self, part: LoopPart, body: LoopFunction, merges: Sequence[Tensor]) -> None:
        """Build the body, and close every variable's way around."""
        variables = [Tensor(self.graph, node, 0) for node in part.members[: len(merges)]]
        with use_scope(self.inside(part)):
            result = _fitted(_call(body, self.packed(variables)), self.loop_vars)
            self.check_form(result)
            results = structure.flatten(result)
            for leaf, merge, value in zip(self.leaves, merges, results, strict=True):
                tensor = resolve(self.as_result(leaf, merge.dtype, value), part)
                back = self.make(part, "NextIteration", [tensor])
                self.graph.add_edge(back, 0, merge.node, 1)

    def check_form(self, result: Structure) -> None:
        """Raise unless the body returns what the loop's variables are."""
        wanted, got = structure.form(self.loop_vars), structure.form(result)
        if wanted != got:
            raise InvalidArgumentError(
                f"The variables of loop '{self.scope.name.rstrip('/')}' are {wanted}, but its "
                f"body returns {got}",
                next_step="return one value for each loop variable, in the same structure",
            )

    def as_result(self, leaf: Any, dtype: DType, value: Any) -> Tensor:
        """A variable's next value."""
        if isinstance(leaf, TensorArray) or isinstance(value, TensorArray):
            if not (isinstance(leaf, TensorArray) and isinstance(value, TensorArray)):
                raise self.mismatch(leaf, value)
            if value.handle != leaf.handle:
                raise self.mismatch(leaf, value)
            flow: Tensor = value.flow
            return flow
        try:
            return as_tensor(value, dtype)
        except (InvalidArgumentError, TypeError) as cause:
            raise self.mismatch(leaf, value) from cause

    def mismatch(self, leaf: Any, value: Any) -> InvalidArgumentError:
        """A variable changes what it is."""
        return InvalidArgumentError(
            f"A variable of loop '{self.scope.name.rstrip('/')}' starts as {leaf!r:.80}, but its "
            f"body returns {value!r:.80} for it",
            next_step="a loop variable keeps its type; convert with ops.cast",
        )

    def exit(self, part: LoopPart, switch: Node) -> Tensor:
        """A variable's last value, at home outside."""
        node = self.make(part, "Exit", [Tensor(self.graph, switch, 0)])
        set_context(self.graph, node, self.scope.context)
        for block in self.scope.dependencies:
            block.waiting.add(node.id)  # The Enters have waited.
        return Tensor(self.graph, node, 0)

    def packed(self, tensors: Sequence[Tensor]) -> Structure:
        """The variables in the structure that the caller gave them in."""
        pairs = zip(self.leaves, tensors, strict=True)
        return structure.pack(
            self.loop_vars,
            [
                leaf.moved_to(leaf.handle, tensor) if isinstance(leaf, TensorArray) else tensor
                for leaf, tensor in pairs
            ],
        )
