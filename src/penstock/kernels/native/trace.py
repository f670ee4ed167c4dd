"""Programs from nodes, for inputs of some types and shapes.

In:   a GraphDef without functions, whose nodes stand in an order in which they can run.
Out:  the text of a module, and what it gives; UnsupportedError where there is no such program.
Not:  computes nothing but what depends on constants and sizes alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core.dtypes import DType
from penstock.core.names import Endpoint, parse_endpoint
from penstock.core.values import as_value
from penstock.defs import attrs as attr_codec
from penstock.defs.schema import GraphDef
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Calling, find_kernel
from penstock.kernels.native import array_rules, elementwise_rules
from penstock.kernels.native.emitter import Emitter, Known, Operand, Traced, UnsupportedError
from penstock.kernels.native.list_rules import Elements
from penstock.kernels.native.packing import Layout, packed
from penstock.kernels.native.rules import RULES, TYPES, Written, rule

assert array_rules, elementwise_rules  # their import has made the rules known

#: Constants of more bytes are no part of a program.
MAX_CONSTANT: Final = 1 << 20
#: Ops that make another list of the one that they get: each list has one of them.
_WRITERS: Final = {"TensorArrayScatterV3": (3,), "TensorArrayWriteV3": (3,)}
#: Ops whose results may be far larger than all that they get: programs make them when they run.
_GROWS: Final = frozenset({"Fill"})
#: The type and the shape of an array.
Spec: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]
#: The op of a loop.
LOOP: Final = "_NativeLoop"


@dataclass(frozen=True, slots=True)
class _ListedNode:
    """One node of a GraphDef."""

    op: str
    attrs: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_types: tuple[DType, ...]
    output_types: tuple[DType, ...]


class TracedNodes:
    """Nodes that become parts of programs."""

    def __init__(self, content: bytes, reads: Sequence[bytes], gives: Sequence[bytes]) -> None:
        """Read the nodes; the arguments are those of ``NodeList``."""
        self._reads: Final = [_name(text.decode()) for text in reads]
        self._gives: Final = [_name(text.decode()) for text in gives]
        self._nodes: Final = [_listed(proto) for proto in GraphDef.FromString(content).node]
        self._written: Final = self._times_written()

    def write(self, emitter: Emitter, values: Sequence[Any]) -> list[Any]:
        """What the nodes give for some values."""
        known = dict(zip(self._reads, values, strict=True))
        for node in self._nodes:
            inputs = [known[name] for name in node.inputs]
            for name, value in zip(node.inputs, inputs, strict=True):
                is_array = isinstance(value, Elements) and value.written is not None
                if is_array and self._written.get(name, 0) > 1:
                    raise UnsupportedError  # the order of writing is nobody's but the step's
            known.update(zip(node.outputs, _outputs(emitter, node, inputs), strict=True))
        return [known[name] for name in self._gives]

    def _times_written(self) -> dict[str, int]:
        """How many nodes write to what a name stands for."""
        times: dict[str, int] = {}
        for node in self._nodes:
            slots: tuple[int, ...] = _WRITERS.get(node.op, ())
            if node.op == LOOP:
                slots = tuple(range(len(node.output_types)))
            for slot in slots:
                times[node.inputs[slot]] = times.get(node.inputs[slot], 0) + 1
        return times


def _name(text: str) -> str:
    return str(parse_endpoint(text))


def _listed(proto: Any) -> _ListedNode:
    op = get_op(proto.op)
    attrs = {name: attr_codec.from_proto(value) for name, value in proto.attr.items()}
    inputs, outputs = op.types(attrs)
    names = [str(Endpoint(proto.name, slot)) for slot in range(len(outputs))]
    return _ListedNode(
        proto.op, attrs, tuple(map(_name, proto.input)), tuple(names), inputs, outputs
    )


def _outputs(emitter: Emitter, node: _ListedNode, inputs: Sequence[Any]) -> Sequence[Any]:
    if node.op == "Const":
        return [_constant(node.attrs["value"].value)]
    if inputs and all(isinstance(value, Known) for value in inputs) and node.op != LOOP:
        folded = _folded(node, inputs)
        if folded is not None:
            return folded
    written = Written(emitter, node.op, node.attrs, inputs, node.output_types)
    write = RULES.get(node.op)
    if write is None:
        raise UnsupportedError
    made = write(written)
    return made if isinstance(made, list) else [made]


def _constant(value: Any) -> Known:
    array = np.asarray(value)
    if array.nbytes > MAX_CONSTANT:
        raise UnsupportedError
    return Known(array)


def _folded(node: _ListedNode, inputs: Sequence[Known]) -> list[Known] | None:
    """What a node of known inputs gives; None if its kernel is not asked."""
    if not TYPES.issuperset(node.output_types) or node.op in _GROWS:
        return None
    found = find_kernel(node.op, "CPU", node.attrs)
    if found is None or found.calling is not Calling.PLAIN:
        return None
    facts = Attrs(get_op(node.op), node.attrs, node.input_types, node.output_types)
    try:
        made = found.made(facts)(*[as_value(value.value) for value in inputs])
    except Exception as cause:
        raise UnsupportedError from cause  # the nodes have the words for it
    results = [made] if get_op(node.op).has_bare_output else list(made)
    return [_constant(result) for result in results]


# -- loops ---------------------------------------------------------------------------------------


@rule(LOOP)
def _write_loop(node: Written) -> list[Any]:
    """A loop as one operation; it ends early where the nodes must do all again."""
    count = len(node.types)
    start = [_variable(value) for value in node.inputs[:count]]
    fixed = [_fixed(value) for value in node.inputs[count:]]
    attrs = node.attrs
    cond = TracedNodes(attrs["cond"], attrs["reads"], [attrs["test"]])
    body = TracedNodes(attrs["body"], attrs["reads"], attrs["gives"])
    return _WrittenLoop(node.emitter, cond, body, fixed).write(start)


def _variable(value: Any) -> Any:
    if isinstance(value, Elements | Known | Traced):
        return value
    raise UnsupportedError


def _fixed(value: Any) -> Any:
    return replace(value, is_fixed=True) if isinstance(value, Elements) else value


class _WrittenLoop:
    """One loop that is being written."""

    def __init__(
        self, emitter: Emitter, cond: TracedNodes, body: TracedNodes, fixed: Sequence[Any]
    ) -> None:
        self._emitter: Final = emitter
        self._cond: Final = cond
        self._body: Final = body
        self._fixed: Final = fixed
        #: Arrays of tensors from which the body reads.
        self._cleared: list[int] = []

    def write(self, start: list[Any]) -> list[Any]:
        """The variables after the loop."""
        for _ in range(len(start) + len(self._emitter.cleared) + 2):
            written = self._try(start)
            if isinstance(written, str):
                return self._finish(start, written)
            start = written
        raise UnsupportedError

    def _try(self, start: list[Any]) -> str | list[Any]:
        """The text of the body; or what must be known before the loop begins."""
        emitter = self._emitter
        with emitter.inside() as text:
            head, values = self._enter(start)
            ends = self._body.write(emitter, [*values, *self._fixed])
            known = [
                begin.with_shape(emitter, end.content.shape[1:])
                if isinstance(begin, Elements)
                and isinstance(end, Elements)
                and end.content is not None
                else begin
                for begin, end in zip(start, ends, strict=True)
            ]
            is_new = any(a is not b for a, b in zip(known, start, strict=True))
            changed = self._newly_cleared()
            if not (is_new or changed):
                spent = emitter.number(emitter.cost + 20, np.dtype(np.int64))
                emitter.fuel = emitter.same("subtract", emitter.fuel, spent)
                flat = self._flat(ends)
                self._check(self._flat(start), flat)
                return self._region(head, text, flat)
        self._cleared += changed
        return [
            begin.with_shape(emitter, after.content.shape[1:])
            if isinstance(begin, Elements) and after.content is not None
            else begin
            for begin, after in zip(start, known, strict=True)
        ]

    def _newly_cleared(self) -> list[int]:
        before = self._entered
        return [
            number
            for number, mask in self._emitter.cleared.items()
            if number in before and mask is not before[number] and number not in self._cleared
        ]

    def _enter(self, start: Sequence[Any]) -> tuple[str, list[Any]]:
        """The names of the variables in a region, and what they stand for."""
        emitter = self._emitter
        flat = [Traced(emitter.new_name(), one.dtype, one.shape) for one in self._flat(start)]
        left = list(flat)
        values = [_rebuilt(value, left) for value in start]
        emitter.ok, emitter.fuel = left.pop(0), left.pop(0)
        emitter.cleared.update(zip(self._cleared, left, strict=True))
        self._entered = dict(emitter.cleared)
        self._ok = emitter.ok
        names = ", ".join(f"{one.name}: {one.type}" for one in flat)
        return f"^bb0({names}):\n", values

    def _flat(self, values: Sequence[Any]) -> list[Operand]:
        """All arrays of which the loop's state consists."""
        flat = [part for value in values for part in _parts(value)]
        emitter = self._emitter
        return [*flat, emitter.ok, emitter.fuel, *(emitter.cleared[n] for n in self._cleared)]

    def _check(self, before: Sequence[Operand], after: Sequence[Operand]) -> None:
        kinds = [[(one.dtype, one.shape) for one in flat] for flat in (before, after)]
        if kinds[0] != kinds[1]:
            raise UnsupportedError  # shapes change from iteration to iteration

    def _region(self, head: str, text: Any, results: Sequence[Operand]) -> str:
        traced = [self._emitter.traced(one) for one in results]
        names = ", ".join(one.name for one in traced)
        types = ", ".join(one.type for one in traced)
        return f'{{\n{head}{text()}\n"stablehlo.return"({names}) : ({types}) -> ()\n}}'

    def _finish(self, start: Sequence[Any], body: str) -> list[Any]:
        emitter = self._emitter
        flat = [emitter.traced(one) for one in self._flat(start)]
        types = ", ".join(one.type for one in flat)
        result = emitter.new_name()
        names = ", ".join(one.name for one in flat)
        emitter.line(
            f'{result}:{len(flat)} = "stablehlo.while"({names}) ({self._condition(start)}, {body})'
            f" : ({types}) -> ({types})"
        )
        left = [Traced(f"{result}#{slot}", one.dtype, one.shape) for slot, one in enumerate(flat)]
        values = [_rebuilt(value, left) for value in start]
        emitter.ok, emitter.fuel = left.pop(0), left.pop(0)
        emitter.cleared.update(zip(self._cleared, left, strict=True))
        emitter.need(emitter.compare("GT", emitter.fuel, emitter.number(0, emitter.fuel.dtype)))
        return values

    def _condition(self, start: Sequence[Any]) -> str:
        emitter = self._emitter
        with emitter.inside() as text:
            head, values = self._enter(start)
            (holds,) = self._cond.write(emitter, [*values, *self._fixed])
            if not isinstance(holds, Known | Traced) or holds.shape or holds.dtype != np.bool_:
                raise UnsupportedError
            if emitter.ok is not self._ok or emitter.cleared != self._entered:
                raise UnsupportedError  # what goes wrong here could not be told
            has_fuel = emitter.compare("GT", emitter.fuel, emitter.number(0, emitter.fuel.dtype))
            goes_on = emitter.same("and", emitter.same("and", holds, emitter.ok), has_fuel)
            return self._region(head, text, [goes_on])


def _parts(value: Any) -> list[Operand]:
    if not isinstance(value, Elements):
        return [value]
    return [part for part in (value.content, value.written) if part is not None]


def _rebuilt(value: Any, left: list[Traced]) -> Any:
    """A value of the same kind, of the next of some arrays."""
    if not isinstance(value, Elements):
        return left.pop(0)
    content = None if value.content is None else left.pop(0)
    written = None if value.written is None else left.pop(0)
    return replace(value, content=content, written=written)


# -- whole programs ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Program:
    """A program, written."""

    text: str
    #: Whether its first result says if the others count.
    is_guarded: bool
    #: How its results are found in what it gives.
    layout: Layout


def program_of(nodes: TracedNodes, specs: Sequence[Spec]) -> Program:
    """The program for inputs of such types and shapes; raises UnsupportedError."""
    emitter = Emitter()
    inputs = [Traced(f"%arg{slot}", *spec) for slot, spec in enumerate(specs)]
    results = nodes.write(emitter, inputs)
    if not all(isinstance(result, Known | Traced) for result in results):
        raise UnsupportedError
    if isinstance(emitter.ok, Known) and not emitter.ok.value:
        raise UnsupportedError
    is_guarded = isinstance(emitter.ok, Traced)
    given, layout = packed(emitter, ([emitter.ok] if is_guarded else []) + results)
    arguments = ", ".join(f"{one.name}: {one.type}" for one in inputs)
    types = ", ".join(one.type for one in given)
    names = ", ".join(one.name for one in given)
    text = (
        f"func.func public @main({arguments}) -> ({types}) {{\n{emitter.text}\n"
        f"func.return {names} : {types}\n}}\n"
    )
    return Program(text, is_guarded, layout)
