"""Run once what only depends on constants; put constants in its place.

In:   a GraphRewriter.
Out:  the GraphRewriter with fewer nodes; how many were folded.
Not:  folds nothing that has effects, that fails (it must fail at run time, under its name),
      or whose result is large.

A constant inside of a loop or a branch waits for a node that says when it is alive.  What is
folded waits for all that its constants waited for, and so it stays in their frame and is alive
exactly when they all are.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from penstock.catalogue.op_traits import ResultSize
from penstock.core.denormals import flushing
from penstock.core.values import Value, as_value, has_dtype, size_in_bytes
from penstock.graph.graph import Node
from penstock.graph.roles import COMPUTES, Role
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.host import CLOSED, Host
from penstock.kernels.api.registry import Calling, find_kernel
from penstock.kernels.api.result_elements import result_elements
from penstock.kernels.parallel.beside import prepared_beside
from penstock.passes.graph_rewriter import GraphRewriter, const_attrs, value_of
from penstock.state.checkpoints import begin, checkpoint

#: Results of more bytes than this stay what they are, as in TensorFlow.
MAX_BYTES: Final = 10 << 20
#: More elements than this are not computed in the hope that the result is small.
MAX_ELEMENTS: Final = 1 << 25
#: Whatever waits for more nodes than this is not worth its edges.
_MAX_WAITS: Final = 32
_FOLDABLE: Final = COMPUTES - {Role.CONSTANT}
_Outputs: TypeAlias = tuple[Value, ...]


def fold_constants(
    draft: GraphRewriter,
    max_bytes: int = MAX_BYTES,
    host: Host = CLOSED,
    *,
    flush: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> int:
    """Replace by constants what depends on nothing else; returns how many nodes that were.

    Args:
        draft: the graph.
        max_bytes: a result of more bytes stays what it is.
        host: what kernels may reach outside of the graph.
        flush: whether denormal numbers are zeros.
        max_elements: what may have more elements is not computed to see how large it is.

    """
    folding = _Folding(draft, (max_bytes, max_elements), host, flush=flush)
    first = [node for node in draft.graph if node.inputs and folding.is_known(node)]
    if first:
        prepared_beside(lambda: folding.compute(first))
        folding.put_in_place()
    return len(folding.outputs)


class _Folding:
    """One pass over a graph: first all values, then all changes."""

    def __init__(
        self, draft: GraphRewriter, limits: tuple[int, int], host: Host, *, flush: bool
    ) -> None:
        self.draft = draft
        self.host = host
        self.max_bytes, self.max_elements = limits
        #: Whether denormal numbers are zeros.
        self.flush = flush
        #: What each folded node gives.
        self.outputs: dict[Node, _Outputs] = {}
        #: What each folded node waits for.
        self.waits: dict[Node, frozenset[Node]] = {}
        self.given_up = draft.given_up.setdefault("fold_constants", set())

    def compute(self, candidates: list[Node]) -> None:
        """Run what can be run of some nodes, and whatever that makes possible."""
        seen = set(candidates)
        for node in candidates:  # grows
            checkpoint()
            if not self.fold(node):
                continue
            for edge in node.out_edges:
                dst = edge.dst
                if dst not in seen and dst.inputs and not edge.is_control and self.is_known(dst):
                    seen.add(dst)
                    candidates.append(dst)

    def is_known(self, node: Node) -> bool:
        """Whether all data inputs are constants."""
        if node.role not in _FOLDABLE:
            return False
        for edge in node.inputs:
            if edge is None:
                return False
            src = edge.src
            if src.role is not Role.CONSTANT and src not in self.outputs:
                return False
        return True

    def fold(self, node: Node) -> bool:
        """Compute what a node gives; False if that must not or cannot be done."""
        if node in self.given_up:
            return False
        outputs = self.run(node) if self.may_run(node) else None
        waits = frozenset(self.waits_of(node))
        if outputs is None or len(waits) > _MAX_WAITS:
            self.given_up.add(node)
            return False
        self.outputs[node], self.waits[node] = outputs, waits
        return True

    def may_run(self, node: Node) -> bool:
        """Whether the node is a function of its inputs, and runs on a CPU anyway."""
        if not node.output_types or node.op.result_size is ResultSize.UNKNOWN:
            return False
        device = self.draft.device(node)
        return self.draft.is_pure(node) and (not device or "/device:CPU:" in device)

    def waits_of(self, node: Node) -> set[Node]:
        """What must be alive and done for the node to run, apart from constants."""
        waits = {edge.src for edge in node.control_inputs}
        for edge in node.inputs:
            assert edge is not None  # is_known saw to it
            known = self.waits.get(edge.src)
            waits |= {e.src for e in edge.src.control_inputs} if known is None else known
        return waits

    def run(self, node: Node) -> _Outputs | None:
        """What the node's kernel gives; None if it fails, or gives too much."""
        kernel = find_kernel(node.op.name, "CPU", node.attrs)
        if kernel is None or kernel.calling is not Calling.PLAIN or not kernel.is_builtin:
            return None
        inputs = self.inputs_of(node)
        if inputs is None:
            return None
        facts = Attrs(
            node.op,
            node.attrs,
            node.input_types,
            node.output_types,
            node.name,
            self.draft.device(node),
            host=self.host,
        )
        try:
            if result_elements(node.op, node.attrs, inputs) > self.max_elements:
                return None
            with np.errstate(all="ignore"):
                begin(f"folding constants: {node.name} ({node.op.name})")
                compute = kernel.made(facts)
                with flushing(self.flush):
                    result = compute(*inputs)
        except Exception:  # noqa: BLE001  (the run will raise it, and name the node)
            return None
        outputs = (result,) if node.op.has_bare_output else tuple(result)
        return self.accepted(node, tuple(map(as_value, outputs)))

    def inputs_of(self, node: Node) -> list[Value] | None:
        """The values of a node's inputs; None if one of them cannot be read."""
        values = []
        for edge in node.inputs:
            assert edge is not None  # is_known saw to it
            known = self.outputs.get(edge.src)
            value = value_of(edge.src) if known is None else known[edge.src_slot]
            if value is None:
                return None
            values.append(value)
        return values

    def accepted(self, node: Node, outputs: _Outputs) -> _Outputs | None:
        """The outputs, if they are what the node declares, and not too large."""
        if len(outputs) != len(node.output_types):
            return None
        if not all(map(has_dtype, outputs, node.output_types)):
            return None
        return outputs if sum(map(size_in_bytes, outputs)) <= self.max_bytes else None

    def put_in_place(self) -> None:
        """A constant for each output that something else reads."""
        moves = {node: self.constants(node) for node in self.outputs}
        if moves:
            self.draft.replace(moves)

    def constants(self, node: Node) -> list[tuple[Node, int]]:
        """What takes the place of a folded node's outputs."""
        folded, draft = self.outputs, self.draft
        used = {e.src_slot for e in node.out_edges if e.is_control or e.dst not in folded}
        if not used and not draft.is_root(node):
            return []
        outputs, waits = folded[node], self.waits[node]
        first = min((slot for slot in used if slot >= 0), default=0)
        made = draft.take_name(node, "Const", const_attrs(outputs[first], node.output_types[first]))
        draft.graph.add_control_edges(waits, made)
        endpoints = [(made, 0)] * len(outputs)
        for slot in sorted(used - {first, -1}):
            dtype = node.output_types[slot]
            name = f"{node.name}/output_{slot}"
            other = draft.add_const(made, name, outputs[slot], dtype)
            draft.graph.add_control_edges(waits, other)
            endpoints[slot] = (other, 0)
        return endpoints
