"""A graph that is being written by hand.

In:   the runtime's ``Graph``.
Out:  the same with what its author needs: free names, the home of every node, a way to
      call ops, tensors by name, definitions in and out; and the default graph.
Not:  knows no single op.

``with graph.as_default():`` makes nodes go to ``graph``.  Outside of all such blocks they
go to one graph that the whole process shares, as in TensorFlow 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from penstock.builder import call
from penstock.builder.names import NamePool
from penstock.builder.operators import Operators
from penstock.builder.scope import Context, current_scope, scope_in, use_scope
from penstock.builder.tensor import Operation, Tensor
from penstock.catalogue.op_def import OpDef
from penstock.core.forks import importing
from penstock.core.given import leaves
from penstock.core.names import CONTROL_SLOT, parse_endpoint
from penstock.defs.attrs import Attr
from penstock.defs.codec import load_apart
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError
from penstock.graph.export import graph_to_def
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Edge, Node
from penstock.graph.graph import Graph as BaseGraph
from penstock.graph.import_graph_def import import_graph_def as merge_graph_def
from penstock.graph.import_options import ImportOptions
from penstock.graph.roles import Role
from penstock.habits import add_hints
from penstock.shapes.infer import Shapes, infer_shapes

if TYPE_CHECKING:
    from penstock.builder.variable import Variable


class Graph(BaseGraph):
    """A graph that nodes are added to by calling ops."""

    def __init__(self, library: FunctionLibrary | None = None) -> None:
        if library is not None and not isinstance(library, FunctionLibrary):
            raise InvalidArgumentError(
                f"A graph cannot be made from a {type(library).__name__}",
                next_step="ps.Graph() is an empty one; its import_graph_def takes a path, bytes or "
                "a GraphDef, and so does ps.Session",
            )
        super().__init__(library)
        self._begin_building()

    def _begin_building(self) -> None:
        #: The names of all nodes, and those of name scopes.
        self.name_pool = NamePool()
        for name in self.names():
            self.name_pool.take(name)
        #: Where the outputs of a node are at home, by its id; nodes outside of every branch
        #: and loop have no entry.
        self.context_of: dict[int, Context] = {}
        #: The variables made in this graph, in order.
        self.variables: list[Variable] = []
        #: What is known of the shapes of its tensors; asked under ``lock``.
        self.shapes: Shapes = infer_shapes(self)

    @staticmethod
    def opened(graph: BaseGraph) -> Graph:
        """The same graph, as one that can be built upon.

        A graph that was read is a plain one, so that who only runs it need not wait for the
        builder.  It becomes one of these when somebody looks at it; sessions keep it meanwhile,
        so it cannot be a copy.
        """
        with graph.lock:
            if not isinstance(graph, Graph):
                Graph._begin_building(graph)  # type: ignore[arg-type]  # the next line makes it true
                graph.__class__ = Graph
        assert isinstance(graph, Graph)
        return graph

    def _repr_html_(self) -> str:
        # Notebooks alone need it.
        with importing:
            from penstock.graph.graph_html import graph_html  # noqa: PLC0415

        return graph_html(self)

    def add_node(
        self,
        name: str,
        op: OpDef,
        attrs: Mapping[str, Attr],
        *,
        device: str = "",
        assigned_device: str = "",
        requested_inputs: Sequence[str] = (),
    ) -> Node:
        """Create a node without edges, and note its name; see the runtime's ``Graph``."""
        node = super().add_node(
            name,
            op,
            attrs,
            device=device,
            assigned_device=assigned_device,
            requested_inputs=requested_inputs,
        )
        self.name_pool.take(name)
        return node

    def add_edge(self, src: Node, src_slot: int, dst: Node, dst_slot: int) -> Edge:
        """Join an output to an input, and note it if that closes a loop; see the runtime's."""
        edge = super().add_edge(src, src_slot, dst, dst_slot)
        if dst.role is Role.MERGE:
            self.shapes.loop_closed(dst)
        return edge

    def apply(self, op: str, *args: Any, **kwargs: Any) -> Any:
        """Call an op or a function of the library by its own name; see ``call.call``."""
        return call.call(self, self.op_def(op), args, kwargs)

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """A block whose nodes go to this graph; yields it."""
        with use_scope(scope_in(self)):
            yield self

    def tensor(self, name: str) -> Tensor:
        """The tensor of a name such as ``x:0``; raises OpError if there is none."""
        node, slot = self.endpoint(parse_endpoint(name))
        if slot == CONTROL_SLOT or not node.output_types:
            raise InvalidArgumentError(
                f"'{name}' names an operation, not a tensor",
                next_step="use graph.operation for operations",
            )
        return Tensor(self, node, slot)

    def operation(self, name: str) -> Operation:
        """The operation of a name; raises InvalidArgumentError if there is none."""
        return Operation(self, self.node(name))

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The same as ``tensor``, under TensorFlow's name."""
        return self.tensor(name)

    def get_operation_by_name(self, name: str) -> Operation:
        """The same as ``operation``, under TensorFlow's name."""
        return self.operation(name)

    def get_operations(self) -> list[Operation]:
        """All operations, in the order in which they were made."""
        return [Operation(self, node) for node in self]

    def as_graph_def(self) -> Message:
        """The definition of this graph, as TensorFlow reads it."""
        return graph_to_def(self)

    def import_graph_def(
        self,
        graph_def: Any,
        *,
        input_map: Mapping[str, Tensor] | None = None,
        return_elements: Sequence[str] = (),
        name: str = "import",
    ) -> list[Tensor | Operation]:
        """Add the nodes of a definition under a name scope; "" adds them as they are called.

        ``graph_def`` is a GraphDef message, its bytes, or the path of a file, as in ``Session``.
        ``input_map`` puts tensors of this graph in the place of tensors of the definition.
        ``return_elements`` lists tensors (``x:0``) and operations (``x``) to return.
        """
        proto, contents = load_apart(graph_def)
        options = ImportOptions(
            contents=contents,
            prefix=scope_in(self).name + name if name else "",
            input_map={key: str(tensor) for key, tensor in (input_map or {}).items()},
            return_tensors=[element for element in return_elements if ":" in element],
            return_nodes=[element for element in return_elements if ":" not in element],
            uniquify_prefix=True,
        )
        with self.lock:
            results = merge_graph_def(self, proto, options)
        tensors = iter([Tensor(self, *place) for place in results.return_tensors])
        nodes = iter([Operation(self, node) for node in results.return_nodes])
        return [next(tensors) if ":" in element else next(nodes) for element in return_elements]


add_hints(Graph)
_default: Final = [Graph()]


def default_graph() -> Graph:
    """The graph that nodes go to here."""
    scope = current_scope()
    return scope.graph if scope is not None else _default[0]


def reset_default_graph() -> None:
    """Begin a new graph for the nodes that no block sends elsewhere."""
    _default[0] = Graph()


def graph_of(inputs: Sequence[Any]) -> Graph:
    """The graph of the first tensor among inputs, or the default graph."""
    for leaf in leaves(inputs):
        if isinstance(leaf, Operators):
            return leaf.graph
    return default_graph()


def apply(op: str, *args: Any, **kwargs: Any) -> Any:
    """Call an op by its own name, in the graph of its inputs."""
    return graph_of([*args, *kwargs.values()]).apply(op, *args, **kwargs)
