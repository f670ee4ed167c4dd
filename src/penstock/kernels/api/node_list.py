"""Some nodes, computed one after the other.

In:   a GraphDef without functions, whose nodes stand in an order in which they can run.
Out:  ``NodeList``: a function of what the nodes read from elsewhere.
Not:  no control flow, nothing that waits: every kernel returns what it computes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from typing import Any, Final

from penstock.catalogue.registry import get_op
from penstock.core.names import Endpoint, parse_endpoint
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.defs import attrs as attr_codec
from penstock.defs.schema import GraphDef
from penstock.errors import Where
from penstock.exceptions import from_exception, shown_cause
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Calling, Kernel, get_kernel
from penstock.tracing.watching import Watcher, watcher_here, watching

_CONSTANT: Final = "Const"
#: The attribute of a node that says in which function it was written.
_INLINED_FROM: Final = "_inlined_from"


@dataclass(frozen=True, slots=True)
class _Step:
    """One node."""

    where: Where
    compute: Kernel
    #: Where its inputs are in the list of all values.
    sources: tuple[int, ...]
    #: Whether the kernel returns its only output as it is, and no tuple.
    is_bare: bool
    #: Whether the kernel takes the context of the step.
    asks_step: bool


class NodeList:
    """Nodes as one function; they are looked at when it is first called."""

    __slots__ = ("_content", "_gives", "_like", "_reads", "_ready")

    def __init__(
        self, content: bytes, reads: Sequence[bytes], gives: Sequence[bytes], like: Attrs
    ) -> None:
        """Note what is to be computed.

        Args:
            content: a GraphDef, serialized.
            reads: the tensors that the function takes, in their order, by their names.
            gives: the tensors that it returns.
            like: how kernels are made: on which device, and with which libraries.

        """
        self._content: Final = content
        self._reads: Final = [name.decode() for name in reads]
        self._gives: Final = [name.decode() for name in gives]
        self._like: Final = like
        #: The steps, where results are among all values, and constants, which come after what is
        #: read; replaced once, by any thread.
        self._ready: tuple[list[_Step], list[int], list[Value]] | None = None

    def __call__(
        self, values: Sequence[Value], context: OpKernelContext | None = None
    ) -> tuple[Value, ...]:
        """Compute the nodes; raises OpError, with the place of the node that failed.

        Nodes that touch what a step has can only be computed with its context.
        """
        if self._ready is None:
            self._ready = self._prepared()
        steps, places, constants = self._ready
        known = [*values, *constants]
        watcher = watcher_here() if watching else None
        if watcher is not None:
            _compute_watched(steps, known, context, watcher)
            return tuple([known[place] for place in places])
        for step in steps:
            try:
                inputs = [known[place] for place in step.sources]
                results = (
                    step.compute(context, *inputs) if step.asks_step else step.compute(*inputs)
                )
            except Exception as cause:  # noqa: BLE001  (the border of kernels)
                raise from_exception(cause).at(step.where) from shown_cause(cause)
            known += [results] if step.is_bare else results
        return tuple([known[place] for place in places])

    def _prepared(self) -> tuple[list[_Step], list[int], list[Value]]:
        places = {str(parse_endpoint(name)): slot for slot, name in enumerate(self._reads)}
        nodes = GraphDef.FromString(self._content).node
        constants: list[Value] = []
        for proto in (node for node in nodes if node.op == _CONSTANT):
            places[str(Endpoint(proto.name, 0))] = len(places)
            step, _ = self._step(proto, places)
            constants.append(step.compute())
        steps, count = [], len(places)
        for proto in (node for node in nodes if node.op != _CONSTANT):
            step, outputs = self._step(proto, places)
            steps.append(step)
            names = [str(Endpoint(proto.name, slot)) for slot in range(outputs)]
            places.update({name: count + slot for slot, name in enumerate(names)})
            count += outputs
        return steps, [places[str(parse_endpoint(name))] for name in self._gives], constants

    def _step(self, proto: Any, places: Mapping[str, int]) -> tuple[_Step, int]:
        op, like = get_op(proto.op), self._like
        attrs = {name: attr_codec.from_proto(value) for name, value in proto.attr.items()}
        types, device = op.types(attrs), like.device
        made = dataclasses.replace(
            like, op=op, values=attrs, input_types=types[0], output_types=types[1],
            node_name=proto.name,
        )  # fmt: skip
        function = attrs.get(_INLINED_FROM)
        text = function.decode("utf-8", "replace") if isinstance(function, bytes) else ""
        where = Where(proto.name, proto.op, device, function=text)
        found = get_kernel(proto.op, "CPU", attrs)
        compute, asks_step = found.made(made), found.calling is Calling.CONTEXT
        sources = [places[str(parse_endpoint(name))] for name in proto.input]
        return _Step(where, compute, tuple(sources), op.has_bare_output, asks_step), len(types[1])


def _compute_watched(
    steps: Sequence[_Step], known: list[Value], context: OpKernelContext | None, watcher: Watcher
) -> None:
    """Compute nodes one after the other, and tell of each when it is done."""
    for step in steps:
        start = perf_counter_ns()
        try:
            inputs = [known[place] for place in step.sources]
            results = step.compute(context, *inputs) if step.asks_step else step.compute(*inputs)
        except Exception as cause:  # noqa: BLE001  (the border of kernels)
            raise from_exception(cause).at(step.where) from shown_cause(cause)
        watcher.inside(step.where.node, step.where.op, start)
        known += [results] if step.is_bare else results
