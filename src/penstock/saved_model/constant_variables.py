"""Variables become constants: bodies that are given handles are rewritten to be given values.

In:   nodes of a graph or of a function's body; which of their inputs were handles of variables,
      and are values now; a library of functions.
Out:  nodes that do the same with values; copies of the functions that they call.
Not:  knows no values; a node that would change a variable is refused.

A handle travels like any other value: through Identity, into branches and loops, as argument of
functions.  So what it becomes is followed from node to node, and every function that it reaches
gets a copy whose argument has the value's type.  Types of attributes change, names of outputs
too, where another op takes a node's place; names of nodes stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.defs.schema import FunctionDef, NodeDef
from penstock.defs.tensors import to_proto
from penstock.errors import FailedPreconditionError, UnimplementedError
from penstock.graph.functions import FunctionLibrary, signature_of

#: Ops that hand on what they get, by the number of outputs that are it.
_PASSING: Final[Mapping[str, int]] = {
    "Identity": 1, "Enter": 1, "Exit": 1, "NextIteration": 1, "Switch": 2, "Merge": 1,
}  # fmt: skip
#: Ops that call functions: the attribute with the types of what these are given, the number of
#: inputs before those, and the attributes that name the functions.
_CALLS: Final[Mapping[str, tuple[str, int, tuple[str, ...]]]] = {
    "PartitionedCall": ("Tin", 0, ("f",)),
    "StatefulPartitionedCall": ("Tin", 0, ("f",)),
    "If": ("Tin", 1, ("then_branch", "else_branch")),
    "StatelessIf": ("Tin", 1, ("then_branch", "else_branch")),
    "Case": ("Tin", 1, ("branches",)),
    "StatelessCase": ("Tin", 1, ("branches",)),
    "While": ("T", 0, ("cond", "body")),
    "StatelessWhile": ("T", 0, ("cond", "body")),
}
_LOOPS: Final = frozenset({"While", "StatelessWhile"})


class GraphNames:
    """How nodes of a graph refer to outputs: ``node:slot``, and ``node`` for the first."""

    @staticmethod
    def refer(node: str, _name: str, _place: int, slot: int) -> str:
        """The full form of an output."""
        return f"{node}:{slot}"

    @staticmethod
    def full(source: str) -> str:
        """The full form of an input; a control input stays as it is."""
        return source if ":" in source or source.startswith("^") else f"{source}:0"


class FunctionNames:
    """How nodes in a function's body do: ``node:output:place``, and ``argument``."""

    @staticmethod
    def refer(node: str, name: str, place: int, _slot: int) -> str:
        """The full form of an output."""
        return f"{node}:{name}:{place}"

    @staticmethod
    def full(source: str) -> str:
        """The full form of an input."""
        return source


Names: TypeAlias = type[GraphNames] | type[FunctionNames]


class FunctionCopies:
    """Copies of functions that take values where the originals take handles."""

    def __init__(self, library: FunctionLibrary) -> None:
        self.library: Final = library
        #: Copies by the original's name and the types of arguments that changed, each with the
        #: types of results that changed.
        self._made: Final[dict[Any, tuple[Any, dict[int, DType]]]] = {}

    @property
    def functions(self) -> list[Any]:
        """All copies, as FunctionDef messages."""
        return [copy for copy, _ in self._made.values()]

    def copy(self, name: str, changed: Mapping[int, DType]) -> tuple[str, dict[int, DType]]:
        """The name of a function's copy, and the types of those results that changed.

        Args:
            name: the original.
            changed: the new types of arguments, by their places.

        Raises:
            FailedPreconditionError: a variable is written to.
            UnimplementedError: a handle is given to an op that nobody knows how to rewrite.

        """
        key = name, tuple(sorted(changed.items()))
        if key not in self._made:
            made = FunctionDef()
            made.CopyFrom(self.library.get(name))
            made.signature.name = self._free_name(name)
            results: dict[int, DType] = {}
            # Noted first: a function may call itself.
            self._made[key] = made, results
            self._rewrite(made, changed, results)
        made, results = self._made[key]
        return made.signature.name, results

    def _free_name(self, name: str) -> str:
        taken = {copy.signature.name for copy in self.functions}
        number = len(taken)
        while f"{name}_frozen_{number}" in taken or f"{name}_frozen_{number}" in self.library:
            number += 1
        return f"{name}_frozen_{number}"

    def _rewrite(self, made: Any, changed: Mapping[int, DType], results: dict[int, DType]) -> None:
        values = {}
        for place, dtype in changed.items():
            arg = made.signature.input_arg[place]
            arg.type = dtype.number
            arg.ClearField("handle_data")
            values[arg.name] = dtype
            made.arg_attr.pop(place, None)
        body = Body(made.node_def, self, FunctionNames, f"function {made.signature.name}")
        body.rewrite(values)
        made.node_def.extend(body.added)
        for place, arg in enumerate(made.signature.output_arg):
            source = body.renamed(made.ret[arg.name])
            made.ret[arg.name] = source
            if source in body.values:
                results[place] = body.values[source]
                arg.type = results[place].number
        made.attr.pop("_input_shapes", None)
        made.resource_arg_unique_id.clear()


class Body:
    """The nodes of a graph, or of a function, that are rewritten in place."""

    def __init__(
        self, nodes: Sequence[Any], copies: FunctionCopies, names: Names, where: str
    ) -> None:
        self._nodes: Final = nodes
        self._copies: Final = copies
        self._names: Final = names
        self._where: Final = where
        #: Types of inputs that were handles, by how they are referred to.
        self.values: Final[dict[str, DType]] = {}
        #: How outputs are referred to now, if otherwise than before.
        self._renames: Final[dict[str, str]] = {}
        #: Nodes that must be added: constants that rewritten ones read.
        self.added: Final[list[Any]] = []

    def renamed(self, source: str) -> str:
        """How an output is referred to now."""
        return self._renames.get(self._names.full(source), source)

    def rewrite(self, values: Mapping[str, DType]) -> None:
        """Rewrite all nodes that some values, or what they are handed on as, lead to."""
        self.values.update(values)
        for node in in_order(self._nodes):
            if any(self._names.full(source) in self.values for source in node.input):
                self._rewrite_node(node)
        for node in self._nodes:
            node.input[:] = [self.renamed(source) for source in node.input]

    # -- one node ----------------------------------------------------------------------------

    def _rewrite_node(self, node: Any) -> None:
        types = [self.values.get(self._names.full(source)) for source in node.input]
        changed = {place: dtype for place, dtype in enumerate(types) if dtype is not None}
        if node.op in _PASSING:
            self._pass_on(node, next(iter(changed.values())))
        elif node.op == "IdentityN":
            self._pass_list(node, changed)
        elif node.op in _CALLS:
            self._call(node, changed)
        elif node.op in self._copies.library:
            self._call_directly(node, changed)
        elif node.op in _READERS:
            _READERS[node.op](self, node, changed[0])
        else:
            raise self._refusal(node)

    def _refusal(self, node: Any) -> FailedPreconditionError | UnimplementedError:
        if node.op.startswith(("Assign", "Resource", "Destroy", "Scatter")):
            return FailedPreconditionError(
                f"{self._where}: {node.name} ({node.op}) changes a variable, which so cannot "
                "become a constant",
                next_step="freeze a signature that only reads variables, or keep the SavedModel",
            )
        return UnimplementedError(
            f"{self._where}: {node.name} ({node.op}) takes the handle of a variable, and is not "
            "known to read it",
            next_step="keep the SavedModel: it runs as it is",
        )

    def _pass_on(self, node: Any, dtype: DType) -> None:
        node.attr["T"].type = dtype.number
        names = {"Switch": ("output_false", "output_true")}.get(node.op, ("output",))
        for slot in range(_PASSING[node.op]):
            self.values[self._names.refer(node.name, names[slot], 0, slot)] = dtype

    def _pass_list(self, node: Any, changed: Mapping[int, DType]) -> None:
        for place, dtype in changed.items():
            node.attr["T"].list.type[place] = dtype.number
            self.values[self._names.refer(node.name, "output", place, place)] = dtype

    def _call(self, node: Any, changed: Mapping[int, DType]) -> None:
        types, first, names = _CALLS[node.op]
        for place, dtype in changed.items():
            node.attr[types].list.type[place - first] = dtype.number
        given = {place - first: dtype for place, dtype in changed.items()}
        results: dict[int, DType] = {}
        for name in names:
            many = node.attr[name].list.func
            for function in many if len(many) else [node.attr[name].func]:
                function.name, found = self._copies.copy(function.name, given)
                results.update(found if name != "cond" else {})
        if node.op not in _LOOPS:
            for place, dtype in results.items():
                node.attr["Tout"].list.type[place] = dtype.number
        # What stands in a loop's variable is what the loop gives in the end.
        for place, dtype in (given if node.op in _LOOPS else results).items():
            self.values[self._names.refer(node.name, "output", place, place)] = dtype
        for stale in ("_output_shapes", "output_shapes"):
            if results or node.op in _LOOPS:
                node.attr.pop(stale, None)

    def _call_directly(self, node: Any, changed: Mapping[int, DType]) -> None:
        """A node whose op is a function of the library."""
        outputs = signature_of(self._copies.library.get(node.op).signature).outputs
        node.op, results = self._copies.copy(node.op, changed)
        for place, dtype in results.items():
            self.values[self._names.refer(node.name, outputs[place].name, 0, place)] = dtype

    # -- what reads a variable ---------------------------------------------------------------

    def _become(self, node: Any, op: str, attrs: Mapping[str, Any], old: str, new: str) -> None:
        """Make a node one of another op, whose output has another name."""
        node.op = op
        for key in [key for key in node.attr if not key.startswith("_")]:
            del node.attr[key]
        node.attr.pop("_output_shapes", None)
        for key, value in attrs.items():
            if isinstance(value, DType):
                node.attr[key].type = value.number
            else:
                node.attr[key].i = value
        self._renames[self._names.refer(node.name, old, 0, 0)] = self._names.refer(
            node.name, new, 0, 0
        )

    def read(self, node: Any, dtype: DType) -> None:
        """The value, as it is."""
        self._become(node, "Identity", {"T": dtype}, "value", "output")

    def gather(self, node: Any, dtype: DType) -> None:
        """Slices of the value."""
        batch, indices = node.attr["batch_dims"].i, dtypes.of_number(node.attr["Tindices"].type)
        axis = NodeDef(name=f"{node.name}/axis", op="Const")
        axis.attr["dtype"].type = dtypes.int32.number
        axis.attr["value"].tensor.CopyFrom(to_proto(np.int32(batch), dtypes.int32))
        controls = [source for source in node.input if source.startswith("^")]
        data = [source for source in node.input if not source.startswith("^")]
        node.input[:] = [*data, self._names.refer(axis.name, "output", 0, 0), *controls]
        if self._names is GraphNames:  # in a loop of TensorFlow 1 it must belong to the iteration
            axis.input.append(f"^{data[1].partition(':')[0]}")
        types = {"Tparams": dtype, "Tindices": indices, "Taxis": dtypes.int32}
        self._become(node, "GatherV2", {**types, "batch_dims": batch}, "output", "output")
        self.added.append(axis)

    def gather_nd(self, node: Any, dtype: DType) -> None:
        """Elements of the value."""
        indices = dtypes.of_number(node.attr["Tindices"].type)
        types = {"Tparams": dtype, "Tindices": indices}
        self._become(node, "GatherNd", types, "output", "output")

    def shape(self, node: Any, dtype: DType) -> None:
        """The sizes of the value."""
        out = dtypes.of_number(node.attr["out_type"].type or dtypes.int32.number)
        self._become(node, "Shape", {"T": dtype, "out_type": out}, "output", "output")

    def is_there(self, node: Any, _dtype: DType) -> None:
        """That there is a value."""
        node.input[:] = [source for source in node.input if source.startswith("^")]
        self._become(node, "Const", {"dtype": dtypes.bool_}, "is_initialized", "output")
        node.attr["value"].tensor.CopyFrom(to_proto(np.True_, dtypes.bool_))

    def nothing(self, node: Any, _dtype: DType) -> None:
        """Nothing, in its time."""
        node.input[:] = [source for source in node.input if source.startswith("^")]
        node.op = "NoOp"
        node.attr.clear()


#: How nodes are rewritten that read a variable, by op.
_READERS: Final[Mapping[str, Callable[[Body, Any, DType], None]]] = {
    "ReadVariableOp": Body.read,
    "ResourceGather": Body.gather,
    "ResourceGatherNd": Body.gather_nd,
    "VariableShape": Body.shape,
    "VarIsInitializedOp": Body.is_there,
    "DisableCopyOnRead": Body.nothing,
}


def in_order(nodes: Iterable[Any]) -> list[Any]:
    """Nodes behind what they read; where loops go back, the edge back counts for nothing."""
    by_name = {node.name: node for node in nodes}
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for start in by_name.values():
        if start.name in seen:
            continue
        seen.add(start.name)
        stack = [(start, iter(start.input))]
        while stack:
            node, sources = stack[-1]
            names = (source.lstrip("^").partition(":")[0] for source in sources)
            name = next((one for one in names if one in by_name and one not in seen), None)
            if name is None:
                found[node.name] = node
                stack.pop()
            else:
                seen.add(name)
                stack.append((by_name[name], iter(by_name[name].input)))
    return list(found.values())
