"""One graph and one session for all functions of a model.

In:   a MetaGraphDef with objects; names of concrete functions.
Out:  prepared callables: the tensors of a function's own arguments in, its tensors out.
Not:  knows no structures, no signatures, no paths.

A call of a function is a node of the graph, whose inputs are placeholders for the arguments and
what the function captures.  It is made when the function is first asked for; what it then costs
to call it is what a call of ``Session.make_callable`` costs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

from penstock.config import Config
from penstock.core.shapes import UNKNOWN
from penstock.core.values import Value
from penstock.defs.attrs import FuncAttr, TensorAttr
from penstock.defs.schema import Message
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.formats.stored_model import Companions
from penstock.graph.check_versions import check_versions
from penstock.graph.graph import Graph, Node, Versions
from penstock.saved_model.captures import Captures, check_type
from penstock.saved_model.object_graph import RESOURCE, SIGNATURES, VARIABLE, SavedObjects
from penstock.saved_model.signatures import Endpoints
from penstock.saved_model.stored_values import StoredValues
from penstock.saved_model.structured import TensorSpec
from penstock.saved_model.variables import Variables
from penstock.session import Session
from penstock.session.handles import handle_in
from penstock.session.missing import check_functions

#: Takes the tensors of a function's own arguments, in order, and gives those of its results.
Flat = Callable[..., list[Value]]


class FunctionGraph:
    """All functions of a model, ready to be called."""

    def __init__(
        self, meta_graph: Message, objects: SavedObjects, companions: Companions, config: Config
    ) -> None:
        """Read the functions; none is instantiated yet.

        Raises:
            OpError: the library of functions, or the checkpoint's index, is damaged.

        """
        self.objects: Final = objects
        self.meta_graph: Final = meta_graph
        self._companions: Final = companions
        self.graph: Final = _graph_of(meta_graph)
        self.session: Final = Session(self.graph, config=config)
        self.stored: Final = StoredValues(companions, objects)
        devices = self.session.list_devices()
        home = devices[0].name
        #: Variables are restored before anything is placed, so that they ask for their device.
        wanted = home if len(devices) > 1 else ""
        resources = self.session.resources.on(home)
        self.variables: Final = Variables(objects, self.stored, resources)
        constants = {node.name: node for node in meta_graph.graph_def.node if node.op == "Const"}
        self._captures: Final = Captures(
            self.graph, objects, constants, self.asset, self.resource_handle, wanted
        )
        #: Held while a function is made ready or a resource is made.  Outermost, above the
        #: graph's.
        self._lock: Final = Lock()
        #: Numbers for the names of nodes; of those of an attempt that failed some may be there.
        self._numbers: Final = itertools.count()
        #: Functions that were asked for, by name.  Grows under the lock; read without.
        self._ready: Final[dict[str, Flat]] = {}
        #: The tensors of each of these.  An entry is made before the one in ``_ready``.
        self._endpoints: Final[dict[str, Endpoints]] = {}
        #: Handles of resources by the numbers of objects.  Grows like ``_ready``.
        self._handles: Final[dict[int, Value]] = {}

    def ready(self, name: str) -> Flat:
        """A function to be called with its own arguments.

        Raises:
            UnimplementedError: it needs ops that have no kernels; all of them are named.
            OpError: what it captures cannot be had.

        """
        found = self._ready.get(name)
        if found is None:
            for number in self._captured(name, RESOURCE):
                self.resource_handle(number)  # which may call functions, so not under the lock
            with self._lock:
                found = self._ready.get(name) or self._make(name)
                self._ready[name] = found
        return found

    def endpoints(self, name: str) -> Endpoints:
        """The tensors of a function's own arguments and results; raises like ``ready``."""
        self.ready(name)
        return self._endpoints[name]

    def argument_count(self, name: str) -> int:
        """How many arguments of its own a function has: without what it captures."""
        count = len(self.definition(name).signature.input_arg) - len(self.captured(name))
        if count < 0:
            raise DataLossError(f"the SavedModel is damaged: {name} captures more than it takes")
        return count

    def captured(self, name: str) -> Sequence[int]:
        """The numbers of the objects that a function captures, in the order of its arguments."""
        facts = self.objects.functions.get(name)
        if facts is None:
            raise DataLossError(f"the SavedModel is damaged: nothing is known of function {name}")
        bound: Sequence[int] = facts.bound_inputs
        return bound

    def signature_function(self, name: str) -> str:
        """The concrete function of a signature that there is."""
        root = self.objects.child(0, SIGNATURES)
        found = None if root is None else self.concrete(self.objects.child(root, name))
        if found is None:
            raise DataLossError(f"the SavedModel is damaged: {name} is no signature")
        return found

    def constant(self, number: int) -> TensorAttr:
        """The constant that an object stands for."""
        return self._captures.constant(number)

    def argument_specs(self, name: str) -> tuple[TensorSpec, ...]:
        """What is known of a function's own arguments without their structure."""
        args = self.graph.op_def(name).inputs[: self.argument_count(name)]
        return tuple(TensorSpec(arg.dtype, UNKNOWN, arg.name) for arg in args if arg.dtype)

    def asset(self, place: int) -> str:
        """The absolute path of an asset, by its place in the model's list."""
        files = self.meta_graph.asset_file_def
        if not 0 <= place < len(files):
            raise DataLossError(f"the SavedModel is damaged: there is no asset {place}")
        return self._companions.asset(files[place].filename)

    def resource_handle(self, number: int) -> Value:
        """The handle of a table or the like, made by the function that the object has for it."""
        if number not in self._handles:
            creator = self.concrete(self.objects.child(number, "_create_resource"))
            if creator is None:
                raise InvalidArgumentError(
                    f"nothing says how to make the resource {self.objects.shown(number)}"
                )
            made = self.ready(creator)()
            handle = handle_in(made[0]) if len(made) == 1 else None
            if handle is None:
                raise DataLossError(
                    f"the SavedModel is damaged: what makes {self.objects.shown(number)} returns "
                    "no handle"
                )
            self._handles.setdefault(number, handle)
        return self._handles[number]

    def concrete(self, number: int | None) -> str | None:
        """The concrete function of an object, if it is one that has just one."""
        if number is None:
            return None
        kind, facts = self.objects.kind(number), self.objects.facts(number)
        if kind == "bare_concrete_function":
            return str(facts.concrete_function_name)
        names = list(facts.concrete_functions) if kind == "function" else []
        return str(names[0]) if len(names) == 1 else None

    # -- making ------------------------------------------------------------------------

    def definition(self, name: str) -> Any:
        """The FunctionDef of a name; raises DataLossError if there is none."""
        if name not in self.graph.library:
            raise DataLossError(f"the SavedModel is damaged: there is no function {name}")
        return self.graph.library.get(name)

    def _captured(self, name: str, kind: str) -> list[int]:
        return [number for number in self.captured(name) if self.objects.kind(number) == kind]

    def _make(self, name: str) -> Flat:
        self.definition(name)
        check_functions(self.graph.library, [name])
        self.variables.restore(self._captured(name, VARIABLE))
        with self.graph.lock:
            call, fed = self._call_node(name)
        fetches: Any = [f"{call.name}:{slot}" for slot in range(len(call.output_types))]
        self._endpoints[name] = Endpoints(fetches or [call.name], fed)
        if fetches:
            run: Flat = self.session.make_callable(fetches, fed)
            return run
        only_run = self.session.make_callable(call.name, fed)

        def effects(*values: Value) -> list[Value]:
            only_run(*values)
            return []

        return effects

    def _call_node(self, name: str) -> tuple[Node, list[str]]:
        """A node that calls a function, and the names of its arguments' placeholders."""
        op = self.graph.op_def(name)
        given, results = [arg.dtype for arg in op.inputs], [arg.dtype for arg in op.outputs]
        if None in given or None in results:
            raise DataLossError(f"the SavedModel is damaged: {name} has arguments without a type")
        scope, count = f"call/{next(self._numbers)}", self.argument_count(name)
        sources = []
        for place, dtype in enumerate(given[:count]):
            attrs = {"dtype": dtype, "shape": UNKNOWN}
            sources.append(self._add(f"{scope}/argument_{place}", "Placeholder", attrs))
        fed = [f"{node.name}:0" for node in sources]
        for number, dtype in zip(self.captured(name), given[count:], strict=True):
            sources.append(self._captures.node(number))
            check_type(sources[-1], dtype, name)
        types = {"Tin": tuple(given), "Tout": tuple(results)}
        call = self._add(scope, "StatefulPartitionedCall", {**types, "f": FuncAttr(name, {})})
        for slot, node in enumerate(sources):
            self.graph.add_edge(node, 0, call, slot)
        return call, fed

    def _add(self, name: str, op: str, attrs: Any) -> Node:
        op_def = self.graph.op_def(op)
        defaults = {
            key: attr.default
            for key, attr in op_def.attrs.items()
            if attr.default is not None and key not in attrs
        }
        return self.graph.add_node(name, op_def, {**defaults, **attrs})

    def close(self) -> None:
        """Give up the session, and with it all variables and tables."""
        self.session.close()


def _graph_of(meta_graph: Message) -> Graph:
    """A graph without nodes, with the functions of a model."""
    proto = meta_graph.graph_def
    check_versions(proto.versions)
    graph = Graph()
    graph.library.add_library(proto.library)
    versions = proto.versions
    graph.versions = Versions(
        versions.producer, versions.min_consumer, tuple(versions.bad_consumers)
    )
    return graph
