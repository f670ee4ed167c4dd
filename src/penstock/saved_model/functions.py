"""Functions of a model, as callers call them.

In:   an object that is a function, arguments in their structure.
Out:  results in theirs.
Not:  compiles nothing: ``function_graph`` does, once per function that is called.

What a program wrote as one function was traced for every combination of types, shapes and plain
values that it was called with; each trace is a *concrete* function.  A call means the first one
that its arguments fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.saved_model.arguments import MismatchError, bind, check_count, rebuild
from penstock.saved_model.function_graph import FunctionGraph
from penstock.saved_model.object_graph import CALLABLE, CONCRETE_FUNCTION, SavedObjects
from penstock.saved_model.structured import Fields, arguments_text, decode

#: So many traces are named in an error.
_MOST_SHOWN: Final = 10


class ConcreteFunction:
    """One trace: a function of tensors of certain types."""

    def __init__(self, graph: FunctionGraph, name: str) -> None:
        """Know a function by the name that it has in the library."""
        self._graph: Final = graph
        self.name: Final = name

    @cached_property
    def structure(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Its arguments: those by place, and those by name."""
        found = decode(self._facts.canonicalized_input_signature)
        match found:
            case (tuple() as args, dict() as kwargs):
                count = self._graph.argument_count(self.name)
                check_count([args, kwargs], count, self.name)
                return args, kwargs
        return self._graph.argument_specs(self.name), {}

    @cached_property
    def result(self) -> Any:
        """The structure of its result; None if nothing is said of it."""
        if not self._facts.HasField("output_signature"):
            return None
        structure = decode(self._facts.output_signature)
        count = len(self._graph.definition(self.name).signature.output_arg)
        check_count(structure, count, self.name)
        return structure

    @property
    def _facts(self) -> Any:
        return self._graph.objects.functions[self.name]

    def bound(self, args: Any, kwargs: Any, *, is_strict: bool) -> list[Any]:
        """The tensors of a call; raises MismatchError if its arguments do not fit."""
        wanted_args, wanted_kwargs = self.structure
        by_place = bind(wanted_args, args, is_strict=is_strict, where="arguments")
        return [*by_place, *bind(wanted_kwargs, kwargs, is_strict=is_strict)]

    def run(self, tensors: Sequence[Any]) -> Any:
        """The result for tensors, in its structure."""
        results = self._graph.ready(self.name)(*tensors)
        if self.result is None:
            return results[0] if len(results) == 1 else results
        return rebuild(self.result, iter(results))

    def __str__(self) -> str:
        return arguments_text(self.structure)


class Function:
    """A function of the program that saved the model; call it like that."""

    def __init__(self, graph: FunctionGraph, path: str, number: int) -> None:
        self._graph: Final = graph
        #: Where it is in the model, such as ``encoder.call``.
        self.path: Final = path
        self._number: Final = number

    @cached_property
    def traces(self) -> list[ConcreteFunction]:
        """What a call of it may mean, in the order in which they are tried."""
        facts = self._graph.objects.facts(self._number)
        if self._graph.objects.kind(self._number) == CONCRETE_FUNCTION:
            return [ConcreteFunction(self._graph, facts.concrete_function_name)]
        return [ConcreteFunction(self._graph, name) for name in facts.concrete_functions]

    @cached_property
    def _parameters(self) -> Parameters:
        facts = self._graph.objects.facts(self._number)
        return Parameters(facts.function_spec)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Args:
            *args: tensors as arrays, numbers, texts or lists of them; RaggedTensor and
                SparseTensor; plain values that the function was traced for; nestings of these.
            **kwargs: the same by name.

        Returns:
            Arrays, numpy scalars for rank 0, ``bytes`` and arrays of them for strings, RaggedTensor
            and SparseTensor, in the nesting that the function returns.

        Raises:
            InvalidArgumentError: there is no trace for such arguments; those that there are, are
                listed.
            OpError: like ``Session.run``.

        """
        trace, tensors = self._chosen(args, kwargs)
        return trace.run(tensors)

    def _chosen(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[ConcreteFunction, list[Any]]:
        """The trace that a call means, and its tensors."""
        why = []
        places, names = self._parameters.place(args, kwargs)
        for is_strict in (True, False):
            for trace in self.traces:
                try:
                    return trace, trace.bound(places, names, is_strict=is_strict)
                except MismatchError as error:
                    why.append(str(error))
        raise self._no_trace(args, kwargs, why)

    def _no_trace(self, args: Any, kwargs: Any, why: list[str]) -> InvalidArgumentError:
        given = [*map(_kind, args), *(f"{name}={_kind(arg)}" for name, arg in kwargs.items())]
        listed = [f"{self.path}{trace}" for trace in self.traces[:_MOST_SHOWN]]
        listed += ["…"] * (len(self.traces) > _MOST_SHOWN)
        single = f": {why[0]}" if len(self.traces) == 1 else ""
        return InvalidArgumentError(
            f"Could not find matching concrete function to call for {self.path}"
            f"({', '.join(given)}){single}",
            next_step=f"it was saved with: {'; '.join(listed) or 'no trace at all'}",
        )

    def __repr__(self) -> str:
        count = len(self.traces)
        return f"<function {self.path}, traced {'once' if count == 1 else f'{count} times'}>"


def _kind(given: Any) -> str:
    if hasattr(given, "dtype") and hasattr(given, "shape"):
        return f"{given.dtype}{list(given.shape)}"
    text = repr(given)
    return text if len(text) <= 40 else type(given).__name__


class Parameters:
    """The parameters of a function, as Python's ``inspect.getfullargspec`` tells them."""

    def __init__(self, proto: Message) -> None:
        """Read a FunctionSpec; without one, arguments are taken as they come."""
        spec = decode(proto.fullargspec)
        facts = dict(zip(spec._fields, spec, strict=True)) if isinstance(spec, Fields) else {}
        names = list(facts.get("args") or ())
        self._names: Final = names[1:] if proto.is_method and names[:1] == ["self"] else names
        defaults = list(facts.get("defaults") or ())
        last = self._names[-len(defaults) :] if defaults else []
        self._defaults: Final[Mapping[str, Any]] = dict(zip(last, defaults, strict=False))
        self._named_defaults: Final[Mapping[str, Any]] = dict(facts.get("kwonlydefaults") or {})

    def place(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call's arguments as the traces have them: by place as far as there are places."""
        placed, names = list(args), dict(kwargs)
        for name in self._names[len(args) :]:
            if name in names:
                placed.append(names.pop(name))
            elif name in self._defaults:
                placed.append(self._defaults[name])
            else:
                break
        return tuple(placed), {**self._named_defaults, **names}


class Functions(Mapping[str, Function]):
    """All functions of a model by their paths."""

    def __init__(self, graph: FunctionGraph) -> None:
        self._graph: Final = graph
        #: Functions that were asked for.  Only grows; of two that threads make at once, either
        #: will do.
        self._known: Final[dict[str, Function]] = {}

    def __getitem__(self, path: str) -> Function:
        """The function at the end of a path; raises NotFoundError, a KeyError as well."""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = Function(self._graph, path, self._find(path))
        return found

    def _find(self, path: str) -> int:
        objects = self._graph.objects
        try:
            number = objects.find(path)
        except NotFoundError as error:
            raise self._nothing(error.reason) from None
        if objects.kind(number) not in CALLABLE:
            raise self._nothing(f"{path or 'the model itself'} is no function")
        return number

    def _nothing(self, why: str) -> NoSuchFunctionError:
        paths = list(self)
        listed = ", ".join(paths[:_MOST_SHOWN]) + ", …" * (len(paths) > _MOST_SHOWN)
        return NoSuchFunctionError(why, next_step=f"what can be called: {listed or 'nothing'}")

    def __iter__(self) -> Iterator[str]:
        return iter(public_paths(self._graph.objects))

    def __len__(self) -> int:
        return len(public_paths(self._graph.objects))

    def __contains__(self, path: object) -> bool:
        try:
            return isinstance(path, str) and self._find(path) >= 0
        except NotFoundError:
            return False

    def __repr__(self) -> str:
        return f"<{len(self)} functions: {', '.join(self)}>"


class NoSuchFunctionError(NotFoundError, KeyError):
    """A model has no function of a path."""


#: Edges that lead to functions which make and save resources, and to traces.
_INNER: Final = frozenset({"_create_resource", "_initialize", "_destroy_resource"})


def public_paths(objects: SavedObjects) -> list[str]:
    """The paths of the functions that are the program's own, and not a part of others."""
    found = []
    for path, number in objects.reached("function", CONCRETE_FUNCTION).items():
        parent, _, edge = path.rpartition(".")
        is_trace = edge.startswith("trace_") and objects.kind(objects.find(parent)) == "function"
        facts = objects.facts(number)
        has_traces = objects.kind(number) == CONCRETE_FUNCTION or facts.concrete_functions
        if edge not in _INNER and not is_trace and has_traces and parent != "signatures":
            found.append(path)
    return found
