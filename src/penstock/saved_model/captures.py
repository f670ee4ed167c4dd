"""What functions capture, as nodes of a graph.

In:   numbers of objects; the graph whose library has the functions.
Out:  nodes that give the functions what they were bound to: handles of variables and tables,
      constants, paths of assets.
Not:  restores and initializes nothing; asks the caller for the handle of a table.

A captured input is told by the number of its object, never by a name: models have several
variables of one name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.core import dtypes
from penstock.core.values import Value, dtype_of
from penstock.defs.attrs import Attr, TensorAttr
from penstock.defs.tensors import shape_from_proto
from penstock.errors import DataLossError, InvalidArgumentError, UnimplementedError
from penstock.graph.graph import Graph, Node
from penstock.saved_model.object_graph import (
    ASSET,
    CAPTURED_TENSOR,
    CONSTANT,
    RESOURCE,
    VARIABLE,
    SavedObjects,
)


class Captures:
    """Nodes by the numbers of objects; the caller holds the graph's lock."""

    def __init__(
        self,
        graph: Graph,
        objects: SavedObjects,
        constants: Mapping[str, Any],
        asset: Callable[[int], str],
        handle: Callable[[int], Value],
        device: str,
    ) -> None:
        """Make no node yet.

        Args:
            graph: where nodes are made; its library has the model's functions.
            objects: what is captured.
            constants: nodes of the model's main graph by name, of which some are constants.
            asset: the path of an asset by its place in the model's list.
            handle: the handle of a resource by the number of its object; it makes the resource.
            device: where variables are to lie; empty if there is one device only.

        """
        self._graph: Final = graph
        self._objects: Final = objects
        self._constants: Final = constants
        self._asset: Final = asset
        self._handle: Final = handle
        self._device: Final = device
        #: Nodes that were made.  Grows under the graph's lock.
        self._nodes: Final[dict[int, Node]] = {}

    def node(self, number: int) -> Node:
        """The node that gives what an object stands for; always the same one.

        Raises:
            UnimplementedError: the object is of a kind that no function can be given.
            DataLossError: it names a constant that is not there.

        """
        if number not in self._nodes:
            self._nodes[number] = self._make(number)
        return self._nodes[number]

    def _make(self, number: int) -> Node:
        kind, facts = self._objects.kind(number), self._objects.facts(number)
        match kind:
            case "variable":
                return self._variable(number, facts)
            case "resource":
                return self._const(number, self._handle(number))
            case "asset":
                return self._const(number, self._asset(facts.asset_file_def_index).encode())
            case "constant" | "captured_tensor":
                attr = self.constant(number)
                return self._add(number, "Const", {"value": attr, "dtype": attr.dtype})
        what = kind or "plain object"
        raise UnimplementedError(
            f"a function captures {self._objects.shown(number)}, which is a {what}",
            next_step=f"captured can be: {', '.join(_KINDS)}",
        )

    def _variable(self, number: int, facts: Any) -> Node:
        attrs = {
            "container": b"",
            "shared_name": self._objects.shown(number).encode(),
            "dtype": dtypes.of_number(facts.dtype),
            "shape": shape_from_proto(facts.shape),
            "allowed_devices": (),
            "debug_name": b"",
        }
        return self._add(number, "VarHandleOp", attrs, self._device)

    def _const(self, number: int, value: Value) -> Node:
        attr = TensorAttr(value=value)
        return self._add(number, "Const", {"value": attr, "dtype": dtype_of(value)})

    def constant(self, number: int) -> TensorAttr:
        """What an object that is a constant holds; raises DataLossError if that is not there."""
        facts = self._objects.facts(number)
        if self._objects.kind(number) == CONSTANT:
            node = self._constants.get(facts.operation)
        else:
            node = self._inner_constant(facts)
        if node is None or node.op != "Const" or "value" not in node.attr:
            raise DataLossError(
                f"the SavedModel is damaged: {self._objects.shown(number)} means a constant that "
                "is not there"
            )
        return TensorAttr(proto=node.attr["value"].tensor)

    def _inner_constant(self, facts: Any) -> Any:
        """A node in the body of a function, which something outside captured."""
        name = facts.name.partition(":")[0]
        body = self._graph.library.get(facts.concrete_function)
        return next((node for node in body.node_def if node.name == name), None)

    def _add(self, number: int, op: str, attrs: Mapping[str, Attr], device: str = "") -> Node:
        name = f"captured/{number}"
        return self._graph.add_node(name, self._graph.op_def(op), attrs, device=device)


_KINDS: Final = (VARIABLE, RESOURCE, ASSET, CONSTANT, CAPTURED_TENSOR)


def check_type(node: Node, wanted: object, what: str) -> None:
    """Raise InvalidArgumentError unless what is captured has the type that the function wants."""
    given = node.output_types[0]
    if given is not wanted:
        raise InvalidArgumentError(
            f"the SavedModel is damaged: {what} captures {given} where it wants {wanted}"
        )
