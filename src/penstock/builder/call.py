"""Call an op: from Python arguments to a node.

In:   an op's name and arguments, positional and by keyword, as its signature has them.
Out:  what the op makes: a tensor, a list of tensors, a named tuple of these, or the
      operation itself if it makes nothing.
Not:  knows nothing of single ops.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.builder.contexts import resolve
from penstock.builder.inference import Constant, Input, complete
from penstock.builder.names import proposed_name
from penstock.builder.nodes import make_node, unmake
from penstock.builder.scope import Scope, scope_in
from penstock.builder.signatures import signature_of
from penstock.builder.tensor import Operation, Tensor, tensors_of
from penstock.core.names import is_legal_name
from penstock.defs.attrs import TensorAttr
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Node

if TYPE_CHECKING:
    from penstock.builder.graph import Graph
    from penstock.catalogue.op_def import OpDef


def call(graph: Graph, op: OpDef, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Make a node of ``op`` in ``graph`` at the current scope; the result is what it makes.

    Raises:
        TypeError: the arguments do not fit the op's signature.
        InvalidArgumentError: their types or shapes contradict each other, or a tensor cannot be
            used here: it is of another graph, or of a branch or loop that is closed.

    """
    given = signature_of(op).bind(*args, **kwargs).arguments
    name = given.pop("name", None)
    completed = complete(op, {a.rstrip("_"): value for a, value in given.items()})
    _check_graph(graph, op.name, completed.inputs)
    with graph.lock:
        scope = scope_in(graph)
        full = full_name(scope, name or proposed_name(op.name))
        inputs = [_materialize(scope, full, item) for item in completed.inputs]
        node = make_node(scope, op.name, completed.attrs, inputs, full)
        _check_shapes(graph, node)
        return result_of(graph, node)


def _check_shapes(graph: Graph, node: Node) -> None:
    """Raise, and leave no node behind, if it must fail with inputs of such shapes."""
    try:
        graph.shapes.check(node)
    except InvalidArgumentError as error:
        given = [Tensor(graph, edge.src, edge.src_slot) for edge in node.inputs if edge]
        unmake(graph, node)
        shapes = ", ".join(str(tensor.shape) for tensor in given)
        raise InvalidArgumentError(
            f"{error.reason} for '{node.name}' (op: '{node.op.name}') with input shapes: {shapes}.",
            next_step=error.advice
            or "print the inputs, such as "
            f"{given[0].name if given else node.name}: they show what is known of their shapes",
        ) from error


def full_name(scope: Scope, name: str) -> str:
    """A new name in the scope; one that ends in a slash is taken as it is.

    Raises:
        InvalidArgumentError: nodes cannot be called so.

    """
    wanted = name[:-1] if name.endswith("/") else scope.name + name
    if not is_legal_name(wanted):
        raise InvalidArgumentError(
            f"'{wanted}' is not a legal name for a node",
            next_step="names begin with a letter, a digit or a dot, and go on with those and _ / -",
        )
    return wanted if name.endswith("/") else scope.graph.name_pool.unique(wanted)


def result_of(graph: Graph, node: Node) -> Any:
    """The outputs of a node in the form that its op declares."""
    if not node.op.outputs:
        return Operation(graph, node)
    tensors = iter(tensors_of(graph, node))
    parts = []
    for arg in node.op.outputs:
        some = [next(tensors) for _ in arg.types(node.attrs)]
        parts.append(some if arg.is_list else some[0])
    return parts[0] if len(parts) == 1 else _tuple_type(node.op.name, _names(node.op))(*parts)


def _names(op: OpDef) -> tuple[str, ...]:
    return tuple(arg.name for arg in op.outputs)


@functools.cache
def _tuple_type(op: str, names: tuple[str, ...]) -> type[Any]:
    return namedtuple(op.lstrip("_").replace(">", "_"), names, rename=True)


def _check_graph(graph: Graph, op: str, inputs: Sequence[Input]) -> None:
    for item in inputs:
        if isinstance(item, Tensor) and item.graph is not graph:
            raise InvalidArgumentError(
                f"{op}: {item.name} belongs to another graph than the rest",
                next_step="build it again in this graph, or feed its value",
            )


def _materialize(scope: Scope, around: str, item: Input) -> Tensor:
    """An input as a tensor that is at home in the scope's context."""
    if isinstance(item, Tensor):
        return resolve(item, scope.context)
    name = f"{around}/{item.name}"
    if isinstance(item, Constant):
        attrs = {"value": TensorAttr(value=item.value), "dtype": item.dtype}
        unique = scope.graph.name_pool.unique(name)
        return Tensor(scope.graph, make_node(scope, "Const", attrs, [], unique), 0)
    packed = scope.graph.name_pool.unique(name) + "/"
    result: Tensor = scope.graph.apply("Pack", list(item.parts), T=item.dtype, name=packed)
    return result
