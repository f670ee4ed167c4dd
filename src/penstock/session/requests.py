"""What the requests of one session need of the runtime, prepared when it is first asked for.

In:   plans of fetches, and the names that are fed.
Out:  ``PreparedRequest``, made once for each request.
Not:  runs nothing.

To prepare a request may take long, so it can be ended like a step: by a deadline, by ``close``,
and by whoever cancels the run.  Nothing is kept then, and who asks next begins anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from penstock.core.collector import collector_paused
from penstock.graph.graph import Graph
from penstock.passes.prune import Request
from penstock.passes.split import colocate_loop_nodes
from penstock.runtime.environment import Environment
from penstock.runtime.optimize_request import UNWATCHED, Watch
from penstock.runtime.preparation import Preparation
from penstock.runtime.prepare import PreparedRequest, place_and_prune, prepare, prepare_nothing
from penstock.session.fetches import FetchPlan
from penstock.session.run import Call
from penstock.session.under_way import UnderWay
from penstock.state.checkpoints import begin, holding

_PREPARING: Final = "the graph, which another thread prepares or extends"


class Requests:
    """The requests of one session."""

    def __init__(self, graph: Graph, environment: Environment, under_way: UnderWay) -> None:
        self.environment = environment
        self._graph = graph
        self._under_way = under_way
        #: What was prepared.  Grows under the graph's lock; read without, and emptied in the end.
        self._prepared: dict[Request, PreparedRequest] = {}

    def prepared_for(
        self,
        plan: FetchPlan,
        fed: tuple[str, ...],
        deadline: float = math.inf,
        run: Call | None = None,
        watch: Watch = UNWATCHED,
    ) -> PreparedRequest:
        """What a plan needs of the runtime; fed tensors that are fetched need nothing.

        Args:
            plan: what is fetched, and run.
            fed: the names of what is fed, in order.
            deadline: the ``monotonic`` time at which it must be there.
            run: what it is for, if that can be cancelled.
            watch: who is shown what becomes of the graph, unless that was prepared before.

        Raises:
            OpError: the request does not fit the graph, or the graph cannot be run; or why it
                was not prepared.

        """
        if not plan.endpoints and not plan.targets:
            return prepare_nothing(self.environment)
        known_values = frozenset(fed)
        fetches = tuple(name for name in plan.endpoints if name not in known_values)
        request = Request(fed, fetches, plan.targets)
        known = self._prepared.get(request)
        if known is not None:
            return known
        if not fetches and not plan.targets:
            return prepare_nothing(self.environment)
        return self._endable(partial(self._known_or_new, request, watch), deadline, run)

    def prepare(self, request: Request) -> PreparedRequest:
        """Prepare a request that nobody else has; raises OpError like ``prepared_for``."""
        return self._endable(partial(self._new, request))

    def _endable(
        self,
        work: Callable[[], PreparedRequest],
        deadline: float = math.inf,
        run: Call | None = None,
    ) -> PreparedRequest:
        preparation = Preparation(may_be_left=run is not None or deadline < math.inf)
        if run is not None:
            run.turn_to(preparation)
        self._under_way.add_step(preparation)
        try:
            return preparation.run(work, deadline)
        finally:
            self._under_way.remove_step(preparation)

    def _known_or_new(self, request: Request, watch: Watch) -> PreparedRequest:
        with holding(self._graph.lock, _PREPARING):
            if request not in self._prepared:
                self._prepared[request] = self._new(request, watch)
            return self._prepared[request]

    def _new(self, request: Request, watch: Watch = UNWATCHED) -> PreparedRequest:
        with holding(self._graph.lock, _PREPARING):
            return prepare(request, self.environment, watch, at_once=False)

    def compile(
        self, prepared: PreparedRequest, deadline: float = math.inf, run: Call | None = None
    ) -> None:
        """Compile a request that made its first steps without; raises like ``prepared_for``."""
        self._endable(partial(self._compiled, prepared), deadline, run)

    @collector_paused
    def _compiled(self, prepared: PreparedRequest) -> PreparedRequest:
        with holding(self._graph.lock, _PREPARING):
            begin("choosing tiers")
            prepared.runnable.compile()
        return prepared

    def give_up(self) -> None:
        """Let go of what was prepared, which nobody runs or will run; nor is more prepared."""
        while self._prepared:
            self._prepared.popitem()[1].give_up()

    def placement(self, plan: FetchPlan) -> dict[str, str]:
        """The device of every node that a plan needs, by name, before any optimisation."""
        request = Request((), plan.endpoints, plan.targets)
        with self._graph.lock:
            pruned = colocate_loop_nodes(place_and_prune(request, self.environment))
        return {
            node.name: pruned.device_of[node.id]
            for node in pruned.graph
            if not node.op.name.startswith("_")
        }
