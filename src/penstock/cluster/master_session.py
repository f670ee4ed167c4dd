"""A session of a master: one graph, run on the devices of a whole cluster.

In:   a graph, and requests by name, as clients send them.
Out:  values as the runtime has them, with their types.
Not:  speaks no protocol; how parts of a graph get to other tasks, ``session_workers`` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from penstock.cluster.bounds import check_room
from penstock.cluster.exchanged_step import ExchangedStep
from penstock.cluster.short_way import Ran, ShortWay, ShortWays
from penstock.cluster.task import Task, device_set
from penstock.config import NO_OPTIONS, RunMetadata, RunOptions
from penstock.core.dtypes import DType
from penstock.core.names import parse_endpoint
from penstock.core.values import Value, dtype_of
from penstock.dataclass import dataclass
from penstock.errors import AbortedError, CancelledError, OpError
from penstock.runtime.deadline import milliseconds_to
from penstock.runtime.environment import Environment
from penstock.runtime.step_factory import AnyStep
from penstock.runtime.workers import Workers
from penstock.session.advise import advise
from penstock.session.fetches import FetchPlan
from penstock.session.job import Job
from penstock.session.run import Call
from penstock.session.session import Session
from penstock.state.device_resources import DeviceResources
from penstock.state.devices import Device

#: So many plans are remembered, and then none; those of more names never.
_MAX_PLANS: Final = 1_000
MAX_NAMES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What one run is to do, by names."""

    feeds: Mapping[str, Value]
    fetches: Sequence[str]
    targets: Sequence[str] = ()


class MasterSession(Session):
    """A session on the devices of a cluster; its state lives in the tasks, not in it."""

    def __init__(
        self,
        graph_def: Any,
        config: Any,
        task: Task,
        handle: str,
        *,
        others: Sequence[Device] = (),
        workers: Workers | None = None,
        isolated: bool = False,
    ) -> None:
        """Open it.

        Args:
            graph_def: the graph to begin with.
            config: a ConfigProto.
            task: the master's own.
            handle: the session's.
            others: the devices of other tasks.
            workers: who runs what lies on these; None if there are none.
            isolated: whether it has variables and queues of its own.

        Raises:
            OpError: the graph or the configuration is not acceptable.

        """
        self._task: Final = task
        self._others: Final = list(others)
        self._workers: Final = workers
        self._kept: Final = DeviceResources() if isolated else task.resources
        self._is_isolated: Final = isolated
        self._prefix: Final = f"_{handle}_"
        #: Plans by fetches and targets.  Any thread adds to it: a lost one is made again.
        self._known_plans: Final[dict[Any, tuple[FetchPlan, list[str]]]] = {}
        #: By what makes requests alike.
        self.short_ways: Final = ShortWays()
        #: How often the graph was extended.  Changed under the graph's lock.
        self.graph_version = 0
        super().__init__(graph_def, target=task.name, config=config)

    def _new_environment(self) -> Environment:
        devices = device_set(self._task.devices, self._others)
        return Environment(
            self._graph, self.config, devices, self._kept, self._workers,
            session=self._prefix, new_container=self._task.new_container,
        )  # fmt: skip

    def extend_to(self, graph_def: Any, known_version: int) -> int:
        """Extend the graph, if the client knows all of it; returns the new version.

        Raises:
            AbortedError: somebody else has extended the graph since.
            OpError: like ``extend``.

        """
        with self._graph.lock:
            if known_version != self.graph_version:
                raise AbortedError(
                    f"Current version is {self.graph_version} but caller expected {known_version}."
                )
            self.extend(graph_def)
            self.graph_version += 1
            return self.graph_version

    def devices(self) -> list[Device]:
        """All devices of the cluster."""
        return [*self._task.devices, *self._others]

    # -- running ---------------------------------------------------------------------------

    def run_named(
        self,
        asked: Asked,
        options: RunOptions,
        call: Call,
        metadata: RunMetadata | None = None,
        *,
        allow_dead: bool = False,
    ) -> Ran:
        """Run what is asked for.

        Raises:
            OpError: the step's error, or why ``call`` was ended.

        """
        job = self._begun(asked, options, call)
        return self._ended(asked, job, metadata, allow_dead=allow_dead)

    async def run_on_loop(self, asked: Asked, call: Call) -> Ran:
        """Run what is brief, on the event loop: wait for nobody but other tasks.

        Raises:
            OpError: like ``run_named``.

        """
        job = self._begun(asked, NO_OPTIONS, call)
        if isinstance(job.step, ExchangedStep):
            self._under_way.add_step(job.step)
            try:
                feeds = [job.fed[name] for name in job.prepared.request.feeds]
                await job.step.ask(feeds, milliseconds_to(job.deadline))
            except OpError as error:
                advise(error, self._graph)
                raise
            finally:
                self._under_way.remove_step(job.step)
        return self._ended(asked, job, None)

    def short_way(self, asked: Asked) -> ShortWay | None:
        """The short way of steps that ask for the same, if they have one.

        Raises:
            OpError: there is no such step.

        """
        plan, names = self._plan_of(asked)
        fed = tuple(sorted(map(self._feeds.endpoint, asked.feeds)))
        prepared = self._requests.prepared_for(plan, fed)
        if prepared.is_exchanged or not prepared.is_straight or prepared.costs.every > 0:
            return None
        call = self._whole_call(plan, prepared, list(asked.feeds), NO_OPTIONS, allow_dead=False)
        return ShortWay(call, prepared, plan.endpoints, names) if call is not None else None

    def _plan_of(self, asked: Asked) -> tuple[FetchPlan, list[str]]:
        """See ``_plan``; what was asked before is not looked at again."""
        if len(asked.fetches) + len(asked.targets) > MAX_NAMES:
            return _plan(asked)
        key = tuple(asked.fetches), tuple(asked.targets)
        found = self._known_plans.get(key)
        if found is None:
            if len(self._known_plans) >= _MAX_PLANS:
                self._known_plans.clear()
            found = self._known_plans[key] = _plan(asked)
        return found

    def _begun(self, asked: Asked, options: RunOptions, call: Call) -> Job:
        plan, _ = self._plan_of(asked)
        job = self._job(plan, asked.feeds, options)
        self._set_step(job, self._prepared_for(job, call), call)
        call.turn_to(job.step)
        return job

    def _ended(
        self, asked: Asked, job: Job, metadata: RunMetadata | None, *, allow_dead: bool = False
    ) -> Ran:
        values = job.values(self._graph, self._under_way, metadata, allow_dead=allow_dead)
        _, names = self._plan_of(asked)
        types = dict(zip(job.prepared.request.fetches, job.prepared.fetch_types, strict=True))
        fetched = [(values[name], types.get(name) or dtype_of(values[name])) for name in names]
        return Ran(fetched, job.prepared.is_straight, _seconds_elsewhere(job.step))

    def set_up_partial(self, asked: Asked) -> str:
        """Start a run whose feeds come, and fetches go, over several calls; returns its handle.

        Raises:
            ResourceExhaustedError: too many such runs wait for their feeds.
            OpError: there cannot be such a run.

        """
        advice = "go on with those that have begun, or close the session"
        under_way, bound = len(self._under_way.partial_runs), self._task.bounds.kept
        check_room("partial runs", under_way, bound, advice)
        return self.partial_run_setup([*asked.fetches, *asked.targets], list(asked.feeds))

    def go_on_with(self, handle: str, asked: Asked) -> list[tuple[Value, DType]]:
        """Go on with such a run; raises OpError like ``partial_run``."""
        run = self._under_way.partial_run(handle)
        plan, names = self._plan_of(asked)
        values = self._partial_values(handle, run, plan, self._feeds.values(asked.feeds))
        return [(values[name], dtype_of(values[name])) for name in names]

    def close(self) -> None:
        """End what goes on; what lives in the tasks stays."""
        reason = "Step was cancelled by an explicit call to `Session::Close()`."
        if self._end(CancelledError(reason)):
            self._kept.drop_named(self._prefix)
            if self._is_isolated:
                self._kept.close()


def _seconds_elsewhere(step: AnyStep) -> float:
    return step.seconds if isinstance(step, ExchangedStep) else 0.0


def _plan(asked: Asked) -> tuple[FetchPlan, list[str]]:
    """A plan of names alone, and the endpoint that each fetch means."""
    names = [_endpoint(text) for text in asked.fetches]
    rebuild: Callable[[Sequence[Any]], Any] = list
    return FetchPlan(
        tuple(dict.fromkeys(names)), tuple(dict.fromkeys(asked.targets)), rebuild
    ), names


def _endpoint(text: str) -> str:
    """``x:0`` for ``x``, as TensorFlow's masters read it."""
    found = parse_endpoint(text)
    return f"{found.node}:{max(found.slot, 0)}"
