"""Make a request's graph smaller and faster, with the same answers but for rounding.

In:   Pruned, or the graph of a function's body; and ``Passes``.
Out:  the same graph, changed in place.
Not:  knows no request: what is fed and fetched are nodes like others.  Lists no pass: that is
      ``pass_list.py``.

Passes that rewrite run in rounds until a round changes nothing, since each may make work for the
others.  Some may change the last bits of answers; their records say which.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from penstock.dataclass import dataclass
from penstock.errors import InternalError
from penstock.exceptions import shown_cause
from penstock.graph.check import check_graph, check_pruned
from penstock.graph.graph import Graph
from penstock.graph.stages import Pruned
from penstock.passes.graph_pass import (
    GraphPass,
    GraphProperty,
    Lower,
    PassError,
    PassInput,
    PassSettings,
    Phase,
)
from penstock.passes.graph_rewriter import GraphRewriter
from penstock.passes.pass_list import ordered_passes
from penstock.state.checkpoints import begin, checkpoint

#: Rounds after which a graph is taken as it is.
_MAX_ROUNDS: Final = 10
#: Nodes of the smallest graph that is worth all passes, as in TensorFlow.
MIN_GRAPH_NODES: Final = 4
_ADVICE: Final = "docs/add-a-pass.md says what a pass may do, and how to take it away again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """The passes that run, in their order, and how far they may go."""

    chosen: tuple[GraphPass, ...] = field(default_factory=ordered_passes)
    settings: PassSettings = field(default_factory=PassSettings)
    #: The graph of a request that has fewer nodes is not gone through by all of them.
    min_graph_nodes: int = MIN_GRAPH_NODES

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(one.name for one in self.chosen)

    def of(self, phase: Phase) -> tuple[GraphPass, ...]:
        """Those of one phase; what opens graphs does so always, and is told what to lower."""
        return _of_phase(ordered_passes() if phase is Phase.OPENING else self.chosen, phase)

    def for_nodes(self, count: int) -> Passes:
        """Those for the graph of a request that has so many nodes."""
        if count >= self.min_graph_nodes:
            return self
        return Passes(chosen=_worth_it_in_few(self.chosen), settings=self.settings)

    @property
    def opens_calls(self) -> bool:
        """Whether functions are put where they are called, though no node asks for it."""
        return _open_calls(self.chosen)

    @property
    def skip_unread(self) -> bool:
        """Whether what nobody reads is not computed."""
        return _skip_unread(self.chosen)

    @property
    def change_nothing(self) -> bool:
        """Whether graphs run as they are, but for what asks to be lowered."""
        return not any(one.is_optional for one in self.chosen)


# Nearly every session has the same passes, of which each request asks the same.
@functools.lru_cache(maxsize=64)
def _open_calls(chosen: tuple[GraphPass, ...]) -> bool:
    return any(GraphProperty.LOWERED in one.provides for one in chosen)


@functools.lru_cache(maxsize=64)
def _skip_unread(chosen: tuple[GraphPass, ...]) -> bool:
    return any(one.name == "skip_unread" for one in chosen)


@functools.lru_cache(maxsize=64)
def _worth_it_in_few(chosen: tuple[GraphPass, ...]) -> tuple[GraphPass, ...]:
    """What TensorFlow leaves to no rewriter, what begins at certain ops, and what users want."""
    return tuple(
        one
        for one in chosen
        if one.level_option or one.starts_at is not None or not (one.is_builtin and one.is_optional)
    )


@functools.lru_cache(maxsize=64)
def _of_phase(among: tuple[GraphPass, ...], phase: Phase) -> tuple[GraphPass, ...]:
    return tuple(one for one in among if one.phase is phase)


def open_graph(
    graph: Graph, device_of: Mapping[int, str], passes: Passes, lower: Lower | None
) -> Mapping[int, str]:
    """Get a graph ready for rewriting, in place; returns the devices of its nodes afterwards.

    Args:
        graph: what is opened.
        device_of: full device names by node id; of a function's body, nothing.
        passes: which ones run.
        lower: puts functions where they are called; None if none are.

    Raises:
        OpError: whoever waits for it waits no more; or what was lowered can lie nowhere.

    """
    given = PassInput(graph, device_of, passes.settings, lower)
    for one in passes.of(Phase.OPENING):
        if one.run(given):
            _tell(one, given)
    return given.device_of


def optimize(pruned: Pruned, passes: Passes) -> Pruned:
    """The graph of a request, optimised; the one that was given is used up."""
    # Where something is fetched is not a node of the graph as it was written.
    passes = passes.for_nodes(len(pruned.graph) - len(pruned.fetch_types))
    device_of = optimize_graph(pruned.graph, pruned.device_of, passes)
    return pruned.with_devices(device_of)


def optimize_graph(graph: Graph, device_of: Mapping[int, str], passes: Passes) -> Mapping[int, str]:
    """Optimise a graph in place; returns the devices of the nodes that it has afterwards.

    Raises:
        OpError: whoever waits for it waits no more.
        PassError: a pass that is not Penstock's own failed, or broke the graph.

    """
    given = PassInput(graph, device_of, passes.settings)
    draft, rounds = given.draft, passes.of(Phase.ROUNDS)
    for _ in range(_MAX_ROUNDS):
        if not sum(_run(one, given, "simplifying the graph") for one in rounds):
            break
        draft.drop_unused()
    _close(given, passes.of(Phase.CLOSING))
    return draft.device_of


def _close(given: PassInput, passes: tuple[GraphPass, ...]) -> None:
    """Run what runs once; drop what is not needed before the next one that requires it."""
    is_swept = True
    for one in passes:
        if not is_swept and GraphProperty.SWEPT in one.requires:
            given.draft.drop_unused()
            is_swept = True
        if _run(one, given, "fusing and merging nodes"):
            is_swept &= GraphProperty.SWEPT not in one.invalidates
    if not is_swept:
        given.draft.drop_unused()


def _run(one: GraphPass, given: PassInput, doing: str) -> int:
    """What a pass changes, unless it is not to begin, or would find nothing."""
    if one.starts_at is not None and not given.has_one_of(one.starts_at):
        return 0
    if one.is_builtin:
        begin(doing)
        count = one.run(given)
    else:
        begin(f"the pass '{one.name}'")
        count = _run_foreign(one, given)
    if given.settings.checks_graphs and (count or not one.is_builtin):
        _check(one, given.draft)
    if count:
        given.note_change()
        _tell(one, given)
    return count


def _tell(one: GraphPass, given: PassInput) -> None:
    """Say that a pass has changed something, if anybody wants to know."""
    if given.settings.on_pass is not None:
        given.settings.on_pass(one, given.graph)


def _run_foreign(one: GraphPass, given: PassInput) -> int:
    """The same for a pass that is somebody else's.

    Raises:
        PassError: it failed, or did not say what it changed.

    """
    try:
        count = one.run(given)
    except (Exception, SystemExit) as cause:  # noqa: BLE001  (the one border of foreign passes)
        checkpoint()
        raise PassError(
            f"The pass '{one.name}' failed: {type(cause).__name__}: {cause}", next_step=_ADVICE
        ) from shown_cause(cause)
    if not isinstance(count, int):
        raise PassError(
            f"The pass '{one.name}' returned {type(count).__name__}, and not the number of nodes "
            "that it changed",
            next_step=_ADVICE,
        )
    return count


def _check(one: GraphPass, draft: GraphRewriter) -> None:
    """Compare a graph with its laws when a pass has run.

    Raises:
        PassError: a pass that is not Penstock's own broke it.
        InternalError: one of Penstock's did.

    """
    try:
        if draft.device_of:
            check_pruned(Pruned(draft.graph, draft.device_of, (), ()))
        else:
            check_graph(draft.graph)
    except InternalError as breach:
        kind = InternalError if one.is_builtin else PassError
        raise kind(
            f"The pass '{one.name}' has broken the graph. {breach.reason}",
            details=breach.details,
            next_step=breach.advice if one.is_builtin else _ADVICE,
        ) from None
