"""Choices: ``cond``, ``case`` and ``switch_case``.

In:   predicates, and functions that build the branches.
Out:  what the branches return, merged.
Not:  chooses nothing now; both branches are built, and every step takes one.

A branch is built in a ``Branch`` context, which lets values in by Switches.  Its pivot is
alive only if the branch is taken.  Each result of the choice is a Merge with one input per
branch, of which exactly one is alive.  More than two branches make no nested choices but
one flat choice: every branch has a predicate of its own, true for one branch only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, TypeAlias

from penstock.builder import structure
from penstock.builder.blocks import control_dependencies, name_scope
from penstock.builder.contexts import Branch, make_switch, resolve, resolve_control
from penstock.builder.graph import Graph, apply
from penstock.builder.inference import common_type
from penstock.builder.nodes import make_node, set_context
from penstock.builder.operators import Operators
from penstock.builder.scope import Dependencies, Scope, scope_in, use_scope
from penstock.builder.sources import as_tensor
from penstock.builder.structure import Structure
from penstock.builder.tensor import Operation, Tensor
from penstock.builder.tensor_array import TensorArray
from penstock.core import dtypes
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Node
from penstock.graph.roles import Role

#: Builds a branch; takes nothing, returns a structure of values, or None.
BranchFunction: TypeAlias = Callable[[], Structure]

#: The output slots of a Switch.
_FALSE: Final = 0
_TRUE: Final = 1


def cond(
    pred: Any, true_fn: BranchFunction, false_fn: BranchFunction, name: str = "cond"
) -> Structure:
    """What ``true_fn`` returns in steps in which ``pred`` is true, else what ``false_fn`` does.

    Both are called now, once each, and must return the same structure of the same types:
    tensors, literals, TensorArrays, operations, or lists, tuples and dicts of these.  Only
    nodes that are made in a function, or by functions it calls, depend on the choice.  If
    the functions return None, the choice is for the sake of effects: the result is an
    operation that runs all that was made in the branch taken.

    Raises:
        TypeError: ``pred`` is a Python truth value, known already.
        InvalidArgumentError: ``pred`` is no truth value, or the branches do not match.

    """
    if isinstance(pred, bool):
        raise TypeError(
            f"pred is the Python value {pred}, so the choice can be made now, by `if`; to "
            "choose in every step, pass a tensor"
        )
    pred = as_tensor(pred, dtypes.bool_)
    graph: Graph = pred.graph
    with graph.lock, graph.as_default(), name_scope(name):
        return _first_true([pred], [true_fn, false_fn])


def case(
    pred_fn_pairs: Mapping[Tensor, BranchFunction] | Sequence[tuple[Any, BranchFunction]],
    default: BranchFunction | None = None,
    *,
    exclusive: bool = False,
    name: str = "case",
) -> Structure:
    """What the function of the first true predicate returns, or else ``default``.

    Without a ``default``, a step in which no predicate is true fails; with ``exclusive``, so
    does one in which several are.

    Raises:
        TypeError: there are no pairs.
        InvalidArgumentError: a predicate is no truth value, or the branches do not match.

    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else pred_fn_pairs)
    if not pairs:
        raise TypeError("case needs at least one pair of a predicate and a function")
    preds = [as_tensor(pred, dtypes.bool_) for pred, _ in pairs]
    functions = [function for _, function in pairs]
    graph: Graph = preds[0].graph
    with graph.lock, graph.as_default(), name_scope(name):
        checks = [_check_exclusive(preds)] if exclusive else []
        if default is None:
            checks.append(_check_any(preds))
            preds.pop()  # If no other is true, the last one is.
        else:
            functions.append(default)
        with control_dependencies(checks):
            return _first_true(preds, functions)


def switch_case(
    branch_index: Any,
    branch_fns: Mapping[int, BranchFunction] | Sequence[Any],
    default: BranchFunction | None = None,
    name: str = "switch_case",
) -> Structure:
    """What the function of number ``branch_index`` returns.

    ``branch_fns`` is a list of functions, a list of pairs, or a dict.  A number without a
    function takes ``default``, or, without one, the function of the largest number.

    Raises:
        TypeError: there are no functions.
        InvalidArgumentError: the index is no int32, or the branches do not match.

    """
    numbered = _numbered(branch_fns)
    if not numbered:
        raise TypeError("switch_case needs at least one function")
    index = as_tensor(branch_index, dtypes.int32)
    graph: Graph = index.graph
    functions = [function for _, function in numbered]
    keys = [key for key, _ in numbered]
    if default is None:
        keys.pop()
    else:
        functions.append(default)
    with graph.lock, graph.as_default(), name_scope(name):
        preds = [apply("Equal", index, key, name="is_chosen") for key in keys]
        return _first_true(preds, functions)


def _numbered(branch_fns: Any) -> list[tuple[int, BranchFunction]]:
    if isinstance(branch_fns, Mapping):
        return sorted(branch_fns.items())
    if all(callable(function) for function in branch_fns):
        return list(enumerate(branch_fns))
    return sorted(branch_fns)


def _check_any(preds: Sequence[Tensor]) -> Operation:
    found: Operation = apply(
        "Assert", apply("Any", preds, 0), ["No predicate of the case is true:", *preds]
    )
    return found


def _check_exclusive(preds: Sequence[Tensor]) -> Operation:
    count = apply("Sum", apply("Cast", preds, dtypes.int32), 0)
    found: Operation = apply(
        "Assert", count <= 1, ["Several predicates of the case are true:", *preds]
    )
    return found


def _first_true(preds: Sequence[Tensor], functions: Sequence[BranchFunction]) -> Structure:
    """One function per predicate, and a last one for when none is true."""
    if not preds:
        return functions[0]()
    choice = _Choice(scope_in(preds[0].graph))
    any_before = apply("Identity", preds[0], name="pred_id")
    branches = [choice.branch(any_before, _TRUE)]
    for pred in preds[1:]:
        branches.append(choice.branch(pred & ~any_before, _TRUE))
        any_before = any_before | pred
    branches.append(choice.branch(any_before, _FALSE))
    results = [
        choice.build(branch, function) for branch, function in zip(branches, functions, strict=True)
    ]
    return choice.merge(branches, results)


@dataclass(frozen=True, slots=True)
class _Choice:
    """One choice under construction."""

    #: The scope around the branches, in the choice's own name scope.
    scope: Scope
    #: The Switch that tells the sides of a predicate apart, by predicate.
    switch_of: dict[Tensor, Node] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """The graph that it is built in."""
        return self.scope.graph

    def name(self, name: str) -> str:
        """A new name in the choice's name scope."""
        return self.graph.name_pool.unique(self.scope.name + name)

    def inside(self, branch: Branch, *sources: Node) -> Scope:
        """The scope of a branch, in which nodes wait for ``sources``.

        They need not wait for what the choice waits for: the pivot has done so.
        """
        blocks = (Dependencies(sources),) if sources else ()
        return replace(self.scope, context=branch, dependencies=blocks)

    def branch(self, pred: Tensor, side: int) -> Branch:
        """A branch with its pivot.

        The pivot is no Switch, since control edges out of a Switch do not tell its sides
        apart.
        """
        if pred not in self.switch_of:
            name = self.scope.name + "Switch"
            self.switch_of[pred] = make_switch(self.scope, pred, pred, name)
        name = self.name("switch_t" if side == _TRUE else "switch_f")
        taken = Tensor(self.graph, self.switch_of[pred], side)
        pivot = make_node(self.scope, "Identity", {"T": dtypes.bool_}, [taken], name)
        branch = Branch(self.scope.name, self.scope.context, pred, side, pivot)
        set_context(self.graph, pivot, branch)
        return branch

    def build(self, branch: Branch, function: BranchFunction) -> Structure:
        """Call the function that makes the branch's nodes."""
        with use_scope(self.inside(branch)):
            return function()

    def merge(self, branches: Sequence[Branch], results: Sequence[Structure]) -> Structure:
        """Merge what the branches return, leaf by leaf."""
        _check_forms(branches[0], results)
        columns = list(zip(*map(structure.flatten, results), strict=True))
        if columns:
            merged = [self.merge_leaves(branches, column) for column in columns]
            return structure.pack(results[0], merged)
        ends = [self.token(branch, _loose_ends(self.graph, branch)) for branch in branches]
        return self.merge_tensors(ends).op

    def merge_leaves(self, branches: Sequence[Branch], leaves: Sequence[Any]) -> Any:
        """One result: a tensor, an operation, or a TensorArray."""
        if any(isinstance(leaf, TensorArray) for leaf in leaves):
            return self.merge_arrays(branches, leaves)
        if any(isinstance(leaf, Operation) for leaf in leaves):
            return self.merge_operations(branches, leaves)
        dtype = common_type(leaves)
        tensors = []
        for branch, leaf in zip(branches, leaves, strict=True):
            with use_scope(self.inside(branch)):
                tensors.append(resolve(_as_result(leaf, dtype, branch), branch))
        return self.merge_tensors(tensors)

    def merge_tensors(self, tensors: Sequence[Tensor]) -> Tensor:
        """A Merge outside of the branches."""
        attrs = {"T": tensors[0].dtype.base, "N": len(tensors)}
        scope = replace(self.scope, dependencies=())
        node = make_node(scope, "Merge", attrs, tensors, self.name("Merge"))
        for block in self.scope.dependencies:
            block.waiting.add(node.id)  # Every branch has waited.
        return Tensor(self.graph, node, 0)

    def merge_operations(self, branches: Sequence[Branch], leaves: Sequence[Any]) -> Operation:
        """An operation that runs the operation of the branch taken."""
        ends = []
        for branch, leaf in zip(branches, leaves, strict=True):
            if not isinstance(leaf, (Operation, Operators)):
                raise InvalidArgumentError(
                    f"{branch} returns {leaf!r:.80} where another branch returns an operation"
                )
            node = leaf.as_tensor().node if isinstance(leaf, Operators) else leaf.node
            direct = resolve_control(self.graph, node, branch)
            ends.append(self.token(branch, [] if direct is None else [direct]))
        return self.merge_tensors(ends).op

    def merge_arrays(self, branches: Sequence[Branch], leaves: Sequence[Any]) -> TensorArray:
        """The array as the branch taken has left it."""
        for branch, leaf in zip(branches, leaves, strict=True):
            if not isinstance(leaf, TensorArray) or leaf.dtype is not leaves[0].dtype:
                raise InvalidArgumentError(
                    f"{branch} returns {leaf!r:.80} where another branch returns {leaves[0]!r}"
                )
        flow = self.merge_leaves(branches, [array.flow for array in leaves])
        handle = leaves[0].handle
        if any(array.handle != handle for array in leaves):
            handle = self.merge_leaves(branches, [array.handle for array in leaves])
        first: TensorArray = leaves[0]
        return first.moved_to(handle, flow)

    def token(self, branch: Branch, sources: Sequence[Node]) -> Tensor:
        """A tensor that comes alive in ``branch`` when ``sources`` have run."""
        pivot = Tensor(self.graph, branch.pivot, 0)
        scope = self.inside(branch, *sources)
        node = make_node(scope, "Identity", {"T": dtypes.bool_}, [pivot], self.name("done"))
        return Tensor(self.graph, node, 0)


def _loose_ends(graph: Graph, branch: Branch) -> list[Node]:
    """The nodes of a branch that no other node takes from or waits for."""
    return [
        node
        for node in branch.members
        if graph.context_of.get(node.id) is branch
        and node is not branch.pivot
        and node.role is not Role.SWITCH
        and not node.out_edges
    ]


def _check_forms(branch: Branch, results: Sequence[Structure]) -> None:
    forms = [structure.form(result) for result in results]
    for form in forms:
        if form != forms[0]:
            raise InvalidArgumentError(
                f"One branch of '{branch.name.rstrip('/')}' returns {forms[0]}, another {form}",
                next_step="every branch must return the same structure; return None from all "
                "of them for effects alone",
            )


def _as_result(leaf: Any, dtype: Any, branch: Branch) -> Tensor:
    try:
        return as_tensor(leaf, dtype)
    except InvalidArgumentError as cause:
        raise InvalidArgumentError(
            f"The branches of '{branch.name.rstrip('/')}' return values of different types: "
            f"{cause.reason}",
            next_step="convert one of them with ops.cast",
        ) from cause
