"""Make a request's graph smaller and faster, with the same answers but for rounding.

In:   Pruned, or the graph of a function's body; and ``GraphOptions``.
Out:  the same graph, changed in place.
Not:  knows no request: what is fed and fetched are nodes like others.

Runs when functions are where they are called (``lower.py``).  Passes that rewrite run in rounds
until a round changes nothing, since each may make work for the others.  Fusing and merging come
last: they make none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.graph.graph import Graph
from penstock.graph.stages import Pruned
from penstock.kernels.host import CLOSED, Host
from penstock.passes.draft import Draft
from penstock.passes.fold_batch_norm import fold_batch_norm
from penstock.passes.fold_constants import MAX_BYTES, fold_constants
from penstock.passes.fuse_convolutions import fuse_convolutions
from penstock.passes.fuse_gates import fuse_gates
from penstock.passes.merge_duplicates import merge_duplicates
from penstock.passes.remove_identities import remove_identities
from penstock.passes.simplify_arithmetic import simplify_arithmetic
from penstock.passes.skip_unread import skip_unread
from penstock.state.checkpoints import begin

#: Rounds after which a graph is taken as it is.
_MAX_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Which passes run, and how far they may go."""

    #: Calls become what they call, before anything else.
    lower: bool = True
    remove_identities: bool = True
    skip_unread: bool = True
    fold_constants: bool = True
    simplify_arithmetic: bool = True
    fold_batch_norm: bool = True
    fuse_convolutions: bool = True
    fuse_gates: bool = True
    merge_duplicates: bool = True
    #: A result of more bytes than this is not made a constant.
    max_folded_bytes: int = MAX_BYTES
    #: What may be reached outside of the graph while constants are folded.
    host: Host = field(default=CLOSED, compare=False)
    #: Constants are computed with denormal numbers as zeros.
    flush_denormals: bool = field(default=False, compare=False)

    def rewriting(self) -> list[Callable[[Draft], int]]:
        """The passes that run in rounds, in their order."""
        every: list[tuple[bool, Callable[[Draft], int]]] = [
            (self.remove_identities, remove_identities),
            (self.skip_unread, skip_unread),
            (self.fold_constants, self._fold_constants),
            (self.simplify_arithmetic, simplify_arithmetic),
            (self.fold_batch_norm, fold_batch_norm),
        ]
        return [run for is_on, run in every if is_on]

    def _fold_constants(self, draft: Draft) -> int:
        return fold_constants(draft, self.max_folded_bytes, self.host, flush=self.flush_denormals)


NO_PASSES: Final = Passes(
    lower=False,
    remove_identities=False,
    skip_unread=False,
    fold_constants=False,
    simplify_arithmetic=False,
    fold_batch_norm=False,
    fuse_convolutions=False,
    fuse_gates=False,
    merge_duplicates=False,
)


def optimize(pruned: Pruned, passes: Passes) -> Pruned:
    """The graph of a request, optimised; the one that was given is used up."""
    device_of = optimize_graph(pruned.graph, pruned.device_of, passes)
    return dataclasses.replace(pruned, device_of=device_of)


def optimize_graph(graph: Graph, device_of: Mapping[int, str], passes: Passes) -> Mapping[int, str]:
    """Optimise a graph in place; returns the devices of the nodes that it has afterwards.

    Raises:
        OpError: whoever waits for it waits no more.

    """
    draft, rewriting = Draft(graph, device_of), passes.rewriting()
    for _ in range(_MAX_ROUNDS):
        if not sum(_begun(run, draft) for run in rewriting):
            break
        draft.drop_unused()
    begin("fusing and merging nodes")
    if passes.fuse_gates and fuse_gates(draft):
        draft.drop_unused()
    if passes.fuse_convolutions:
        fuse_convolutions(draft)
    if passes.merge_duplicates and merge_duplicates(draft):
        draft.drop_unused()
    return draft.device_of


def _begun(run: Callable[[Draft], int], draft: Draft) -> int:
    """What a pass changes, unless it is not to begin."""
    begin("simplifying the graph")
    return run(draft)
