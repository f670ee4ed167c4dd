"""Nodes that become parts of programs.

In:   a GraphDef without functions, whose nodes stand in an order in which they can run; arrays of
      some types and shapes, lists.
Out:  what the nodes give, by lines that an emitter writes; UnsupportedError where it cannot.
Not:  computes nothing but what depends on constants and sizes alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.catalogue.registry import get_op
from penstock.core.dtypes import DType
from penstock.core.names import Endpoint, parse_endpoint
from penstock.core.values import as_value
from penstock.dataclass import dataclass, replace
from penstock.defs import attrs as attr_codec
from penstock.defs.schema import GraphDef
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Calling, find_kernel
from penstock.kernels.native import (
    array_rules,
    einsum_rules,
    elementwise_rules,
    gradient_rules,
    growing_lists,
    own_rules,
)
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.list_rules import Elements
from penstock.kernels.native.parts import Known, UnsupportedError
from penstock.kernels.native.random_rules import RANDOM
from penstock.kernels.native.rules import RULES, TYPES, Written
from penstock.kernels.random.node_stream import Seeds

# Their import has made the rules known.
assert array_rules
assert einsum_rules
assert elementwise_rules
assert gradient_rules
assert growing_lists
assert own_rules

#: Constants of more bytes are no part of a program.
MAX_CONSTANT: Final = 1 << 20
#: Ops that make another list of the one that they get: each list has one of them.
_WRITERS: Final = {"TensorArrayScatterV3": (3,), "TensorArrayWriteV3": (3,)}
#: Ops whose results may be far larger than all that they get: programs make them when they run.
_GROWS: Final = frozenset({"Fill"})
#: The op of a loop.
LOOP: Final = "_NativeLoop"
#: Ops whose results do not follow from their inputs alone, or are for rules to make.
_UNFOLDED: Final = RANDOM | {LOOP}
_RANDOM_NAMES: Final = [op.encode() for op in RANDOM]


@dataclass(frozen=True, slots=True)
class ListedNode:
    """One node of a GraphDef."""

    name: str
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
        #: Names of what the nodes read from outside, and of what they give.
        self.reads: Final = [_name(text.decode()) for text in reads]
        self.gives: Final = [_name(text.decode()) for text in gives]
        self._nodes: Final = [_listed(proto) for proto in GraphDef.FromString(content).node]
        self._makers: Final = {name: node for node in self._nodes for name in node.outputs}
        self._written: Final = self._times_written()
        self._readers: Final = Counter(name for node in self._nodes for name in node.inputs)

    def maker(self, name: str) -> ListedNode | None:
        """The node that gives something; None for what comes from outside."""
        return self._makers.get(name)

    @staticmethod
    def constant(node: ListedNode) -> Known | None:
        """The value of a Const; None for other nodes."""
        return _constant(node.attrs["value"].value) if node.op == "Const" else None

    def write(self, emitter: Emitter, values: Sequence[Any]) -> list[Any]:
        """What the nodes give for some values."""
        known = dict(zip(self.reads, values, strict=True))
        for node in self._nodes:
            inputs = [self._read(emitter, name, known[name]) for name in node.inputs]
            known.update(zip(node.outputs, _outputs(emitter, node, inputs), strict=True))
        return [known[name] for name in self.gives]

    def _read(self, emitter: Emitter, name: str, value: Any) -> Any:
        """A value as a node gets it."""
        if not isinstance(value, Elements):
            return value
        if value.written is not None and self._written.get(name, 0) > 1:
            raise UnsupportedError  # the order of writing is nobody's but the step's
        is_shared = value.is_shared or self._readers[name] > 1
        return replace(value.settled(emitter), is_shared=is_shared)

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


def seeds_in(content: bytes) -> dict[str, Seeds]:
    """The seeds of all nodes that draw from a stream, also those in loops, by their names."""
    found: dict[str, Seeds] = {}
    # Hardly any region draws, and no node draws whose op is not named.
    if any(op in content for op in _RANDOM_NAMES):
        for proto in GraphDef.FromString(content).node:
            if proto.op in RANDOM:
                found[proto.name] = proto.attr["seed"].i, proto.attr["seed2"].i
            elif proto.op == LOOP:
                found |= seeds_in(proto.attr["cond"].s) | seeds_in(proto.attr["body"].s)
    return found


def _name(text: str) -> str:
    return str(parse_endpoint(text))


def _listed(proto: Any) -> ListedNode:
    op = get_op(proto.op)
    attrs = {name: attr_codec.from_proto(value) for name, value in proto.attr.items()}
    inputs, outputs = op.types(attrs)
    names = [str(Endpoint(proto.name, slot)) for slot in range(len(outputs))]
    return ListedNode(
        proto.name, proto.op, attrs, tuple(map(_name, proto.input)), tuple(names), inputs, outputs
    )


def _outputs(emitter: Emitter, node: ListedNode, inputs: Sequence[Any]) -> Sequence[Any]:
    if node.op == "Const":
        return [_constant(node.attrs["value"].value)]
    if inputs and all(isinstance(value, Known) for value in inputs) and node.op not in _UNFOLDED:
        folded = _folded(node, inputs)
        if folded is not None:
            return folded
    written = Written(emitter, node.op, node.attrs, inputs, node.output_types, node.name)
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


def _folded(node: ListedNode, inputs: Sequence[Known]) -> list[Known] | None:
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
