"""One pass of the optimiser as a record: what it does, what switches it, and when it may run.

In:   a function that changes a graph, and what its author says about it.
Out:  ``GraphPass``; ``PassInput``, what such a function works on; ``PassError``.
Not:  orders nothing (``pass_list.py``) and runs nothing (``optimize.py``).

When a pass may run follows from *properties* of graphs.  A pass comes after all that provide a
property that it requires, and before all that invalidate it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, TypeAlias

from penstock.core.limits import DEFAULT_LIMITS
from penstock.dataclass import dataclass
from penstock.errors import InternalError
from penstock.graph.graph import Graph
from penstock.kernels.api.host import CLOSED, Host
from penstock.passes.fold_constants import MAX_BYTES
from penstock.passes.graph_rewriter import GraphRewriter


class GraphProperty(enum.Enum):
    """What may be true of a graph between two passes."""

    #: There is one of each, so identity will do, and is faster than a hash of the name.
    __hash__ = object.__hash__

    #: True at first: what the graph as it was written puts into an order is in that order.
    AS_ORDERED = enum.auto()
    #: True at first: equal nodes are still several, so what only one node reads has one reader.
    UNMERGED = enum.auto()
    #: Functions are where they are called, as far as the options and the functions allow.
    LOWERED = enum.auto()
    #: Who comes after an in-place op reads what that wrote.
    WRITES_READ = enum.auto()
    #: No pass that runs in rounds finds anything to do.
    SETTLED = enum.auto()
    #: Every node is needed.  Not provided by a pass: nodes are dropped when one requires it.
    SWEPT = enum.auto()


class Phase(enum.Enum):
    """How often a pass runs; the phases follow each other."""

    #: Once, before the graph is rewritten.
    OPENING = enum.auto()
    #: With others of this phase in turn, until a round changes nothing.
    ROUNDS = enum.auto()
    #: Once, when the rounds are over.
    CLOSING = enum.auto()


#: What every pass that rewrites relies on.
REWRITING: Final = frozenset({GraphProperty.LOWERED, GraphProperty.WRITES_READ})
_NONE: Final = frozenset[GraphProperty]()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSettings:
    """How far the passes of one session may go."""

    #: A result of more bytes than this is not made a constant.
    max_folded_bytes: int = MAX_BYTES
    #: What may be reached outside of the graph while constants are folded.
    host: Host = field(default=CLOSED, compare=False)
    #: Constants are computed with denormal numbers as zeros.
    flush_denormals: bool = field(default=False, compare=False)
    #: Whether another library may compute a part of the graph.
    accelerate: bool = False
    #: Products of numbers from which on a part is worth it.
    region_products: int = DEFAULT_LIMITS.region_products
    #: Elements of the largest array that some entries of a batch have where they are done together.
    entries_at_once: int = DEFAULT_LIMITS.entries_at_once
    #: The graph is compared with its laws after every pass that changed it.
    checks_graphs: bool = field(default=False, compare=False)
    #: Told of each pass that has changed something, and what the graph is then.
    on_pass: Callable[[GraphPass, Graph], object] | None = field(default=None, compare=False)


#: Lowers a graph whose nodes lie on some devices, and says where they lie afterwards.
Lower: TypeAlias = Callable[[Graph, Mapping[int, str]], Mapping[int, str]]


@dataclass(frozen=False, slots=True)
class PassInput:
    """A graph on its way through the passes; each of them finds what the last one left."""

    graph: Graph
    #: Full device name by node id; of a function's body, nothing.  The draft has its own.
    device_of: Mapping[int, str]
    settings: PassSettings = field(default_factory=PassSettings)
    #: What the request lowers, and how; None if that is nothing.
    lower: Lower | None = None
    _draft: GraphRewriter | None = None
    #: The ops that the graph has; None if they have to be looked up.
    _ops: set[str] | None = None

    @property
    def draft(self) -> GraphRewriter:
        """The graph for passes that rewrite: made when the first of them asks."""
        if self._draft is None:
            self._draft = GraphRewriter(self.graph, self.device_of)
        return self._draft

    def has_one_of(self, ops: frozenset[str]) -> bool:
        """Whether some node is of one of some ops."""
        if self._ops is None:
            self._ops = {node.op.name for node in self.graph}
        return not ops.isdisjoint(self._ops)

    def note_change(self) -> None:
        """Take note that a pass has changed the graph."""
        self._ops = None


#: What a pass does: changes its input, and says at how many places.
RunPass: TypeAlias = Callable[[PassInput], int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphPass:
    """One pass."""

    name: str
    run: RunPass = field(repr=False)
    #: What it is good for, as a clause.
    does: str
    #: What it leaves as it is.
    never: str = ""
    #: Ops of which a graph must have one, or there is nothing to do; None if any may do.
    starts_at: frozenset[str] | None = None
    #: The toggle of ``RewriterConfig`` that switches it; empty if the level alone does.
    option: str = ""
    #: What asks for it in ``OptimizerOptions`` at the lowest level, if something does.  Level 1
    #: has such a pass also where the rewriters that have toggles are disabled.
    level_option: str = ""
    #: A pass that graphs need, whatever the options say.
    is_optional: bool = True
    #: What must be true when it runs.
    requires: frozenset[GraphProperty] = REWRITING
    #: What is true when it has run; for passes of the rounds, when all of these have.
    provides: frozenset[GraphProperty] = _NONE
    #: What may be true no longer when it has changed something.
    invalidates: frozenset[GraphProperty] = frozenset(
        {GraphProperty.AS_ORDERED, GraphProperty.SWEPT}
    )
    #: Answers may differ from those of the graph as it was written by rounding.
    may_change_last_bits: bool = False
    is_builtin: bool = True

    @property
    def phase(self) -> Phase:
        """When it runs, as what it requires says."""
        if GraphProperty.SETTLED in self.requires:
            return Phase.CLOSING
        return Phase.ROUNDS if self.requires >= REWRITING else Phase.OPENING

    def must_follow(self, other: GraphPass) -> bool:
        """Whether it may only run when another pass has.

        In rounds each comes after each, so there none may break what another one needs: then
        both must follow, and there is no order.
        """
        if self.requires & other.provides or self._breaks_for(other):
            return True
        are_in_rounds = self.phase is other.phase is Phase.ROUNDS
        return are_in_rounds and other._breaks_for(self)

    def _breaks_for(self, other: GraphPass) -> bool:
        return bool((self.invalidates & other.requires) - {GraphProperty.SWEPT})


def rewriting(run: Callable[[GraphRewriter], int]) -> RunPass:
    """A pass that only needs the graph under rewriting."""
    return lambda given: run(given.draft)


class PassError(InternalError):
    """A pass that is not Penstock's own failed, or broke the graph; the text names it."""
