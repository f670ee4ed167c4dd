"""A value that stays from one step to the next.

In:   an initial value.
Out:  ``Variable``: reads and assignments as operations.
Not:  holds no value; the session's resources do, from the initializer on.
"""

from __future__ import annotations

from typing import Any

from penstock.builder.blocks import control_dependencies, name_scope
from penstock.builder.graph import Graph, apply, default_graph, graph_of
from penstock.builder.groups import group
from penstock.builder.operators import Operators
from penstock.builder.scope import change_scope, scope_in
from penstock.builder.sources import as_tensor
from penstock.builder.tensor import Operation, Tensor
from penstock.core.dtypes import DType
from penstock.core.shapes import UNKNOWN, TensorShape, type_text
from penstock.core.values import shape_of
from penstock.habits import add_hints


class Variable(Operators):
    """A named value that steps read and assign; stands for its value among tensors.

    It belongs to no branch and no loop, even if it is made in one: its initializer must run
    before the first read.
    """

    __slots__ = ("_dtype", "_graph", "_value", "handle", "initial_value", "initializer", "name")

    def __init__(
        self,
        initial_value: Any,
        dtype: Any = None,
        shape: Any = None,
        name: str = "Variable",
    ) -> None:
        self._graph = graph_of([initial_value])
        #: What ``value`` gave before.  Made under the graph's lock.
        self._value: Tensor | None = None
        with self._graph.as_default(), control_dependencies(None):
            scope = scope_in(self._graph)
            #: The name of the resource, under which sessions keep it.
            self.name = self._graph.name_pool.unique(scope.name + name)
            #: What the initializer assigns.
            self.initial_value = as_tensor(initial_value, dtype, self._part("initial_value"))
            self._dtype = self.initial_value.dtype.base
            #: The resource that the value is kept in.
            self.handle: Tensor = apply(
                "VarHandleOp",
                dtype=self._dtype,
                shape=_shape(self.initial_value, shape),
                # Called like the node, so that no two variables share a resource.
                shared_name=self.name,
                name=self.name + "/",
            )
            #: The operation that gives it its first value.
            self.initializer = self._assign("AssignVariableOp", self.initial_value, "Assign")
        self._graph.variables.append(self)

    @classmethod
    def restored(
        cls, name: str, handle: Tensor, initial_value: Tensor, initializer: Operation
    ) -> Variable:
        """A variable whose nodes are in their graph already."""
        self = cls.__new__(cls)
        self._graph, self._value = handle.graph, None
        self.name, self.handle = name, handle
        self.initial_value, self.initializer = initial_value, initializer
        self._dtype = initial_value.dtype.base
        return self

    def _part(self, name: str) -> str:
        """The full name of a new node that belongs to the variable."""
        return self._graph.name_pool.unique(f"{self.name}/{name}") + "/"

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self._graph

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self._dtype

    @property
    def op(self) -> Operation:
        """The operation that makes the handle."""
        return self.handle.op

    def as_tensor(self) -> Tensor:
        """Its value, read anew."""
        return self.read_value()

    def value(self) -> Tensor:
        """Its value, the same tensor each time; when it is read within a step is left open."""
        with self._graph.lock:
            if self._value is None:
                with self._graph.as_default(), name_scope(None), control_dependencies(None):
                    self._value = self.read_value()
            return self._value

    @property
    def fetch_name(self) -> str:
        """The name by which a session fetches its value."""
        return self.value().name

    @property
    def shape(self) -> TensorShape:
        """The shape of its value, as far as it was given or its initial value is a constant."""
        shape: TensorShape = self.handle.op.get_attr("shape")
        return shape

    def get_shape(self) -> TensorShape:
        """The same as ``shape``, under TensorFlow's name."""
        return self.shape

    def eval(self, session: Any = None) -> Any:
        """Its value in a session: that of the innermost ``with`` block, unless one is given.

        Raises:
            FailedPreconditionError: there is none.
            OpError: what ``Session.run`` raises.

        """
        return self.value().eval(session=session)

    def read_value(self) -> Tensor:
        """Its value, after everything that new nodes wait for here."""
        with self._beside():
            name = self._part("Read")
            value: Tensor = apply("ReadVariableOp", self.handle, self._dtype, name=name)
        return value

    def assign(self, value: Any) -> Tensor:
        """Replace the value; the result is the new one."""
        return self._assigned("AssignVariableOp", value, "Assign")

    def assign_add(self, value: Any) -> Tensor:
        """Add to the value; the result is the new one."""
        return self._assigned("AssignAddVariableOp", value, "AssignAdd")

    def assign_sub(self, value: Any) -> Tensor:
        """Subtract from the value; the result is the new one."""
        return self._assigned("AssignSubVariableOp", value, "AssignSub")

    def is_initialized(self) -> Tensor:
        """Whether it has a value."""
        with self._beside():
            result: Tensor = apply("VarIsInitializedOp", self.handle)
        return result

    def _assign(self, op: str, value: Any, name: str) -> Operation:
        with self._beside():
            tensor = as_tensor(value, self._dtype)
            result: Operation = apply(op, self.handle, tensor, name=self._part(name))
        return result

    def _assigned(self, op: str, value: Any, name: str) -> Tensor:
        done = self._assign(op, value, name)
        with self._graph.as_default(), control_dependencies([done]):
            return self.read_value()

    def _beside(self) -> Any:
        """A block whose nodes ask for the variable's device."""
        return change_scope(scope_in(self._graph), device=self.handle.device)

    def __reduce__(self) -> tuple[Any, ...]:
        return _in_graph, (self._graph, self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Variable {self.name} {type_text(self.dtype, self.shape)}>"


add_hints(Variable)


def _in_graph(graph: Graph, name: str) -> Variable:
    return next(variable for variable in graph.variables if variable.name == name)


def _shape(initial_value: Tensor, shape: Any) -> TensorShape:
    if shape is not None:
        return shape if isinstance(shape, TensorShape) else TensorShape.of(shape)
    if initial_value.op.type == "Const":
        return TensorShape(shape_of(initial_value.op.get_attr("value").value))
    return UNKNOWN


def global_variables_initializer(name: str = "init") -> Operation:
    """An operation that runs the initializers of all variables of the default graph."""
    return group(*[v.initializer for v in default_graph().variables], name=name)
