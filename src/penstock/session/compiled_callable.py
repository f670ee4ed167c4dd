"""A request that is one compiled function, as a Python callable.

In:   the values of its feeds, in the caller's order.
Out:  the fetched values, in the caller's nesting; a dead fetch gives an empty array, or an error.
Not:  parses no name, builds no dictionary, and takes no thread: all that was done before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.core.values import Value
from penstock.errors import OpError
from penstock.graph.graph import Graph
from penstock.runtime.explain_dead import dead_fetch_error
from penstock.runtime.prepare import PreparedRequest
from penstock.runtime.step_factory import StepFactory
from penstock.session.advise import advise
from penstock.session.feeds import Feeder
from penstock.session.fetches import FetchPlan, copy_of, handed_out
from penstock.session.under_way import UnderWay


class CompiledCallable:
    """One request, ready to be called."""

    __slots__ = (
        "_allow_dead",
        "_dtypes",
        "_feeders",
        "_fetches",
        "_graph",
        "_keeps",
        "_names",
        "_order",
        "_places",
        "_rebuild",
        "_shared",
        "_steps",
        "_timeout",
        "_under_way",
    )

    def __init__(
        self,
        plan: FetchPlan,
        prepared: PreparedRequest,
        fed: Sequence[tuple[str, Feeder]],
        steps: StepFactory,
        under_way: UnderWay,
        graph: Graph,
        timeout_in_ms: int,
        *,
        allow_dead: bool = True,
    ) -> None:
        """Decide everything that does not depend on values.

        Args:
            plan: what the caller wants back.
            prepared: the request.
            fed: canonical endpoints in the caller's order, and how to take their values.
            steps: makes the step of each call.
            under_way: where steps are noted as long as they run.
            graph: the session's, which errors speak of.
            timeout_in_ms: how long a call may take; 0 means any time.
            allow_dead: whether a dead fetch is an empty array, and not an error.

        """
        names = [name for name, _ in fed]
        request = prepared.request
        self._feeders = [feeder for _, feeder in fed]
        #: Where each argument of the function stands among the feeds; None if in their order.
        place_of = {name: place for place, name in enumerate(names)}
        order = [place_of[name] for name in request.feeds]
        self._order = None if order == list(range(len(names))) else order
        #: Where each endpoint of the plan stands among results followed by feeds; None if the
        #: results are what is wanted, in their order.
        where = {name: i for i, name in enumerate([*request.fetches, *names])}
        places = [where[name] for name in plan.endpoints]
        self._places = None if places == list(range(len(request.fetches))) else places
        self._allow_dead = allow_dead
        self._fetches = request.fetches
        self._dtypes = [dtype.numpy for dtype in prepared.fetch_types]
        self._rebuild = plan.rebuild
        #: Places and names of results that must be copied.
        shared = prepared.shared_fetches
        self._shared = [(i, name) for i, name in enumerate(request.fetches) if name in shared]
        self._names = plan.endpoints
        whole = prepared.runnable.whole
        #: Whether what is fetched may be handles of tensors that the session is to keep.
        self._keeps = whole is None or whole.needs_context
        self._steps = steps
        self._under_way = under_way
        self._graph = graph
        self._timeout = timeout_in_ms

    def __call__(self, values: Sequence[Any]) -> Any:
        """Run the request once; raises OpError, or KeyboardInterrupt on Ctrl-C."""
        return self._rebuild(handed_out(self.results(values), self._names))

    def results(self, values: Sequence[Any]) -> Sequence[Value]:
        """The same for what is fetched, each once, as the runtime has it."""
        fed = [feed(value) for feed, value in zip(self._feeders, values, strict=True)]
        args = fed if self._order is None else [fed[index] for index in self._order]
        step = self._steps.new()
        self._under_way.add_step(step)
        try:
            results = step.run(args, self._timeout)
        except OpError as error:
            advise(error, self._graph)
            raise
        finally:
            self._under_way.remove_step(step)
        if self._keeps:
            step.keep_fetched(self._fetches)
        for result in results:
            if result is None:
                results = self._without_dead(results)
                break
        if self._shared:
            results = list(results)
            for place, name in self._shared:
                results[place] = copy_of(results[place], name)
        if self._places is not None:
            both = (*results, *fed)
            results = [both[place] for place in self._places]
        return results

    def _without_dead(self, results: Sequence[Value | None]) -> list[Value]:
        if not self._allow_dead:
            place = next(place for place, result in enumerate(results) if result is None)
            raise dead_fetch_error(self._graph, place, self._fetches[place])
        return [
            np.empty(0, dtype) if result is None else result
            for result, dtype in zip(results, self._dtypes, strict=True)
        ]
