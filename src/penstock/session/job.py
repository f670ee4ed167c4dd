"""One call of ``run``, on its way from what the caller gave to the step.

In:   what is fetched and fed, and until when; then the step.
Out:  what the caller gets, but for its nesting.
Not:  prepares nothing.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from penstock.config import RunMetadata, RunOptions
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import OpError
from penstock.graph.graph import Graph
from penstock.runtime.deadline import milliseconds_to
from penstock.runtime.explain_dead import dead_fetch_error
from penstock.runtime.prepare import PreparedRequest
from penstock.runtime.step_factory import AnyStep
from penstock.session.advise import advise
from penstock.session.fetches import FetchPlan, copies, handed_out
from penstock.session.metadata import record
from penstock.session.under_way import UnderWay


@dataclass(frozen=False, slots=True)
class Job:
    """Everything about one call of ``run``."""

    plan: FetchPlan
    fed: dict[str, Value]
    options: RunOptions
    #: The ``monotonic`` time at which it must be done.
    deadline: float
    #: Set when it is known what the call needs.
    prepared: PreparedRequest = field(init=False)
    step: AnyStep = field(init=False)

    def run(
        self,
        graph: Graph,
        under_way: UnderWay,
        metadata: RunMetadata | None,
        *,
        allow_dead: bool = False,
    ) -> list[Any]:
        """Run the step, and hand out fed, fetched and dead values in their places; see ``values``.

        Raises:
            OpError: the step's error.

        """
        names = self.plan.endpoints
        values = self.values(graph, under_way, metadata, allow_dead=allow_dead)
        return handed_out([values[name] for name in names], names)

    def values(
        self,
        graph: Graph,
        under_way: UnderWay,
        metadata: RunMetadata | None,
        *,
        allow_dead: bool = False,
    ) -> dict[str, Value]:
        """Run the step; what is fed and fetched by endpoint, as the runtime has it.

        Args:
            graph: the session's, which errors speak of.
            under_way: where the step is noted as long as it runs.
            metadata: filled with what was recorded; None if nobody wants to know.
            allow_dead: whether a dead value is an empty array, and not an error.

        Raises:
            OpError: the step's error.

        """
        request, step = self.prepared.request, self.step
        values: dict[str, Any] = dict(self.fed)
        if request.fetches or request.targets:
            under_way.add_step(step)
            try:
                feeds = [self.fed[name] for name in request.feeds]
                results = step.run(feeds, milliseconds_to(self.deadline))
            except OpError as error:
                advise(error, graph)
                raise
            finally:
                record(self.prepared, step.stats, self.options, metadata)
                under_way.remove_step(step)
            for index, (name, value) in enumerate(zip(request.fetches, results, strict=True)):
                if value is None and not allow_dead:
                    raise dead_fetch_error(graph, index, name)
                dtype = self.prepared.fetch_types[index]
                values[name] = np.empty(0, dtype.numpy) if value is None else value
            step.keep_fetched(request.fetches)
        if self.prepared.shared_fetches:
            values = copies(values, self.prepared.shared_fetches)
        return values
