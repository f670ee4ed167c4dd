"""``Session``: runs parts of one graph, any number of times, from any number of threads.

In:   a graph in any form; then feeds and fetches by name.
Out:  values in the nesting that was asked for.
Not:  does no work of its own: it keeps what the runtime prepared, and the session's state.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np

from penstock.config import Config, RunMetadata, RunOptions
from penstock.core.dtypes import DType
from penstock.core.names import parse_endpoint
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, as_value
from penstock.defs.codec import load_graph_def
from penstock.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from penstock.graph.export import graph_to_def
from penstock.graph.graph import Graph, Node
from penstock.graph.import_graph_def import ImportOptions, graph_from_def, import_graph_def
from penstock.graph.stages import Placed
from penstock.passes.place import PlacerOptions
from penstock.passes.prune import Medium, Request
from penstock.passes.split import colocate_loop_nodes
from penstock.runtime.explain_dead import dead_fetch_error
from penstock.runtime.partial_run import PartialRun
from penstock.runtime.prepare import (
    Environment,
    PreparedStep,
    place_for,
    place_whole,
    prepare,
    prune_for,
)
from penstock.runtime.step import Step
from penstock.runtime.thread_pool import new_pool, scheduler, shared_pool, thread_count
from penstock.session.feeds import as_fed, declared_shape, feed_endpoint, kept
from penstock.session.fetches import FetchPlan, plan_fetches
from penstock.state.devices import Device, local_devices
from penstock.state.session_state import SessionState


class Session:
    """Runs one graph; see ``run``.  Use it as a context manager, or ``close`` it."""

    def __init__(self, graph: Any, *, config: Any = None) -> None:
        """Open a graph.

        Args:
            graph: a ``Graph``, a GraphDef message, its bytes, or the path of a file in binary
                or text format, gzip or not.
            config: a ``Config``, or a ConfigProto as message or bytes.

        Raises:
            OpError: the graph or the configuration is not acceptable.

        """
        self._config = Config.of(config)
        self.graph = graph if isinstance(graph, Graph) else graph_from_def(load_graph_def(graph))
        self._own_pool = self._make_own_pool()
        pool = scheduler(self._own_pool) if self._own_pool else self._shared_pool()
        devices = local_devices(self._config.device_count)
        self._environment = Environment(self.graph, self._config, devices, pool)
        self._session_state = SessionState()
        #: Guards what follows.  Not held while a request is prepared or run.
        self._lock = threading.Lock()
        #: What was prepared, by request.  The loser of a race throws its work away.
        self._prepared: dict[Request, PreparedStep] = {}
        #: The whole graph, placed, and its length then; None until it is needed.
        self._placed: tuple[int, Placed] | None = None
        #: Devices of nodes with state, by name: they stay where they are.
        self._stateful_devices: dict[str, str] = {}
        #: Runs under way, to be cancelled when the session closes.
        self._steps: set[Step] = set()
        self._partial_runs: dict[str, PartialRun] = {}
        self._partial_run_count = 0
        self._is_closed = False
        self._has_warned = False

    # -- running ---------------------------------------------------------------------

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run what ``fetches`` need, and return their values in the same nesting.

        Args:
            fetches: a name, a Tensor or Operation, or a list, tuple, dict or nesting of them.
                ``x:0`` is a tensor; ``x`` is an operation, which is run and gives None.
            feed_dict: values by name or Tensor; they stand in for what the graph would compute.
            options: ``RunOptions``, or TensorFlow's message.
            run_metadata: filled with what was recorded.

        Returns:
            Arrays, or numpy scalars for rank 0; ``bytes`` and object arrays for strings.

        Raises:
            OpError: of the canonical kind; it says what, where and what next.
            KeyboardInterrupt: Ctrl-C ended the step; session and state stay usable.

        """
        plan = plan_fetches(fetches)
        job = self._start(plan, feed_dict or {}, RunOptions.of(options))
        return plan.rebuild(self._finish(job, run_metadata))

    def run_async(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: RunMetadata | None = None,
    ) -> Run:
        """Like ``run``, on a thread of its own; the ``Run`` can be waited for or cancelled."""
        plan = plan_fetches(fetches)
        job = self._start(plan, feed_dict or {}, RunOptions.of(options))
        job.fed = kept(job.fed)
        return Run(job.step, lambda: plan.rebuild(self._finish(job, run_metadata)))

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, options: Any = None
    ) -> Callable[..., Any]:
        """A function of the values of ``feed_list``, in order, that runs ``fetches``.

        A dead fetch gives an empty array, where ``run`` would raise.
        """
        self._check_open()
        plan, run_options = plan_fetches(fetches), RunOptions.of(options)
        keys = list(feed_list or ())

        def call(*values: Any) -> Any:
            if len(values) != len(keys):
                raise InvalidArgumentError(
                    f"Expected {len(keys)} feed tensors, but got {len(values)}"
                )
            feeds = dict(zip(keys, values, strict=True))
            job = self._start(plan, feeds, run_options)
            return plan.rebuild(self._finish(job, None, allow_dead=True))

        self._prepare_for(plan, tuple(sorted(map(feed_endpoint, keys))))
        return call

    def _start(self, plan: FetchPlan, feed_dict: Mapping[Any, Any], options: RunOptions) -> _Job:
        self._check_open()
        if options.output_partition_graphs and self._config.disable_output_partition_graphs:
            raise InvalidArgumentError(
                "RunOptions.output_partition_graphs() is not supported when "
                "disable_output_partition_graphs is true."
            )
        fed = self._fed_values(feed_dict)
        prepared = self._prepare_for(plan, tuple(sorted(fed)))
        return _Job(plan, fed, prepared, Step(prepared, options, self._session_state), options)

    def _finish(
        self, job: _Job, metadata: RunMetadata | None, *, allow_dead: bool = False
    ) -> list[Any]:
        """Run a job's step, and put fed, fetched and dead values in their places."""
        request = job.prepared.request
        values: dict[str, Any] = dict(job.fed)
        if request.fetches or request.targets:
            self._add_step(job.step)
            try:
                feeds = [job.fed[name] for name in request.feeds]
                results = job.step.run(feeds, self._timeout_of(job.options))
            finally:
                with self._lock:
                    self._steps.discard(job.step)
                self._record(job, metadata)
            for index, (name, value) in enumerate(zip(request.fetches, results, strict=True)):
                if value is None and not allow_dead:
                    raise dead_fetch_error(self.graph, index, name)
                dtype = job.prepared.fetch_types[index]
                values[name] = np.empty(0, dtype.numpy) if value is None else value
            job.step.tensor_store.save_tensors(request.fetches, self._session_state)
        return _handed_out([values[name] for name in job.plan.endpoints])

    def _timeout_of(self, options: RunOptions) -> int:
        timeout = options.timeout_in_ms
        return timeout if timeout > 0 else self._config.operation_timeout_in_ms

    def _add_step(self, step: Step) -> None:
        with self._lock:
            self._check_open()
            self._steps.add(step)

    def _record(self, job: _Job, metadata: RunMetadata | None) -> None:
        if metadata is None:
            return
        partitions = job.prepared.partitions
        if job.step.stats is not None:
            metadata.step_stats = job.step.stats.step_stats()
            graphs = {part.device: part.graph for part in partitions}
            metadata.cost_graph = job.step.stats.cost_graph(graphs)
        if job.options.output_partition_graphs:
            metadata.partition_graphs = [
                graph_to_def(part.graph, dict.fromkeys((n.id for n in part.graph), part.device))
                for part in partitions
            ]

    # -- preparing ---------------------------------------------------------------------

    def _prepare_for(self, plan: FetchPlan, fed: tuple[str, ...]) -> PreparedStep:
        """What a plan needs of the runtime; fed tensors that are fetched need nothing."""
        if not plan.endpoints and not plan.targets:
            return PreparedStep(Request(), (), (), (), ())
        fetches = tuple(name for name in plan.endpoints if name not in fed)
        request = Request(fed, fetches, plan.targets)
        known = self._prepared.get(request)
        if known is not None:
            return known
        if not fetches and not plan.targets:
            return PreparedStep(Request(), (), (), (), ())
        made = prepare(self._placed_for(request), request, self._environment)
        with self._lock:
            return self._prepared.setdefault(request, made)

    def _placed_for(self, request: Request) -> Placed:
        """The graph with devices: all of it, unless the configuration says otherwise."""
        self._check_not_empty()
        devices, options = self._environment.devices, self._placer_options()
        if self._config.place_pruned_graph:
            return place_for(self.graph, request, devices, options)
        placed, size = self._placed, self.graph.next_id
        if placed is None or placed[0] != size:
            made = place_whole(self.graph, devices, options)
            placed = self._placed = (size, made)
            for node in self.graph:
                if node.op.is_stateful and node.id in made.device_of:
                    self._stateful_devices[node.name] = made.device_of[node.id]
        return placed[1]

    def _check_not_empty(self) -> None:
        if not len(self.graph):
            raise InvalidArgumentError("The Session graph is empty.")

    def _placer_options(self) -> PlacerOptions:
        return PlacerOptions(
            allow_soft_placement=self._config.allow_soft_placement,
            assigned=dict(self._stateful_devices),
            log=print if self._config.log_device_placement else None,
            on_fallback=self._warn_of_fallback,
        )

    def _warn_of_fallback(self, node: Node, wanted: str, got: str) -> None:
        """Say once that the graph was made for devices that this host lacks."""
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"Node '{node.name}' and perhaps others ask for device '{wanted}', which is not "
                f"here; they run on '{got}'. Config(allow_soft_placement=False) refuses instead.",
                stacklevel=2,
            )

    def placement(self, fetches: Any) -> dict[str, str]:
        """The device of every node that ``fetches`` need, by name, before any optimisation."""
        plan = plan_fetches(fetches)
        request = Request((), plan.endpoints, plan.targets)
        pruned = colocate_loop_nodes(
            prune_for(self._placed_for(request), request, self._environment)
        )
        return {
            node.name: pruned.device_of[node.id]
            for node in pruned.graph
            if not node.op.name.startswith("_")
        }

    # -- feeding -----------------------------------------------------------------------

    def _fed_values(self, feed_dict: Mapping[Any, Any]) -> dict[str, Value]:
        """Feeds by canonical endpoint, as values of the right type."""
        fed: dict[str, Value] = {}
        for key, value in feed_dict.items():
            name = feed_endpoint(key)
            if name in fed:
                raise InvalidArgumentError(f'Endpoint "{name}" fed more than once.')
            dtype, shape = self._signature_of(name)
            fed[name] = as_fed(value, dtype, shape, name)
        return fed

    def _signature_of(self, endpoint: str) -> tuple[DType, TensorShape]:
        name, slot = parse_endpoint(endpoint)
        node = self.graph.find(name)
        if node is None or slot >= len(node.output_types):
            raise InvalidArgumentError(
                f"Cannot interpret feed_dict key as Tensor: the graph has no tensor '{endpoint}'",
                next_step=self.graph.hint(name),
            )
        return node.output_types[slot].base, declared_shape(self.graph, node)

    # -- partial runs --------------------------------------------------------------------

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """Start a step whose feeds come, and fetches go, over several calls; see ``partial_run``.

        Raises:
            InvalidArgumentError: no fetches, or names that mean nothing.

        """
        self._check_open()
        plan = plan_fetches(fetches)
        fed = tuple(map(feed_endpoint, feeds or ()))
        for name in fed:
            self._signature_of(name)
        request = Request(fed, plan.endpoints, plan.targets, Medium.RENDEZVOUS)
        prepared = prepare(self._placed_for(request), request, self._environment)
        run = PartialRun(self.graph, prepared, self._session_state)
        with self._lock:
            self._partial_run_count += 1
            handle = f"partial_run;{self._partial_run_count}"
            self._partial_runs[handle] = run
        run.start()
        return handle

    def partial_run(
        self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Any:
        """Go on with a partial run: feed some of its feeds, fetch some of its fetches.

        Raises:
            InvalidArgumentError: a feed or fetch was not set up, came before, or a fetch
                depends on a feed that is still to come.

        """
        self._check_open()
        run = self._partial_runs.get(handle)
        if run is None:
            raise InvalidArgumentError("Must run 'setup' before performing partial runs!")
        plan = plan_fetches(fetches)
        if plan.targets:
            raise InvalidArgumentError("partial_run() requires empty target_list.")
        fed = kept(self._fed_values(feed_dict or {}))
        fetches = [name for name in plan.endpoints if name not in fed]
        try:
            results = run.step(fed, fetches, self._config.operation_timeout_in_ms)
        finally:
            if run.is_done:
                with self._lock:
                    self._partial_runs.pop(handle, None)
        values = fed | dict(zip(fetches, results, strict=True))
        return plan.rebuild(_handed_out([values[name] for name in plan.endpoints]))

    # -- life --------------------------------------------------------------------------

    def extend(self, graph_def: Any) -> None:
        """Add nodes to the graph.

        Raises:
            InvalidArgumentError: a node is there already, or the versions differ.
            FailedPreconditionError: the configuration says that the graph is final.

        """
        self._check_open()
        if self._config.optimize_for_static_graph:
            raise FailedPreconditionError(
                "Extending the graph is not supported when optimize_for_static_graph is true."
            )
        proto = load_graph_def(graph_def)
        producer = self.graph.versions.producer
        if len(self.graph) and proto.versions.producer != producer:
            raise InvalidArgumentError(
                f"Can't extend GraphDef at version {producer} with graph at version "
                f"{proto.versions.producer}"
            )
        for node in proto.node:
            if node.name in self.graph:
                raise InvalidArgumentError(
                    f"GraphDef argument to Extend includes node '{node.name}', which was created "
                    "by a previous call to Create or Extend in this session."
                )
        names = {name: name for name in self.graph.names()}
        import_graph_def(self.graph, proto, _extending(proto, names))

    def list_devices(self) -> list[Device]:
        """The session's devices: name, type, memory limit in bytes, incarnation."""
        return list(self._environment.devices)

    def close(self) -> None:
        """Cancel what runs, and give up variables, queues and tables.  May be called twice."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            steps, runs = list(self._steps), list(self._partial_runs.values())
            self._partial_runs.clear()
        for step in steps:
            step.cancel(CancelledError("Session has been closed."))
        for run in runs:
            run.cancel(CancelledError("PRun cancellation"))
        self._environment.resources.close()
        if self._own_pool is not None:
            self._own_pool.shutdown(wait=False)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError("Session has been closed.")

    def _make_own_pool(self) -> ThreadPoolExecutor | None:
        count = thread_count(self._config.inter_op_parallelism_threads)
        return new_pool(count) if self._config.use_per_session_threads and count > 1 else None

    def _shared_pool(self) -> Any:
        return shared_pool(self._config.inter_op_parallelism_threads)


class _Job:
    """Everything about one call of ``run``."""

    __slots__ = ("fed", "options", "plan", "prepared", "step")

    def __init__(
        self,
        plan: FetchPlan,
        fed: dict[str, Value],
        prepared: PreparedStep,
        step: Step,
        options: RunOptions,
    ) -> None:
        self.plan = plan
        self.fed = fed
        self.prepared = prepared
        self.step = step
        self.options = options


class Run:
    """A run under way on a thread of its own."""

    def __init__(self, step: Step, finish: Callable[[], Any]) -> None:
        self._step = step
        self._finish = finish
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="penstock-run", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._result = self._finish()
        except BaseException as error:  # noqa: BLE001  (raised again by ``result``)
            self._error = error

    def cancel(self) -> None:
        """End the run early: ``result`` raises CancelledError, unless it is done already."""
        self._step.cancel()

    def is_done(self) -> bool:
        """Whether ``result`` returns at once."""
        return not self._thread.is_alive()

    def dump_state(self) -> str:
        """What every unfinished node waits for."""
        return self._step.dump_state()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the values; raises the run's error, or TimeoutError after so many seconds."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the run is not done after {timeout} seconds")
        if self._error is not None:
            raise self._error
        return self._result


def _handed_out(values: Sequence[Value]) -> list[Any]:
    """Values that the caller may keep and change: arrays that others hold are copied."""
    given: list[Any] = []
    #: Identities of arrays that are given: an array may have come under two names.
    own: set[int] = set()
    for value in values:
        if isinstance(value, np.ndarray) and value.ndim:
            if not value.flags.writeable or value.base is not None or id(value) in own:
                value = value.copy()
            own.add(id(value))
        given.append(as_value(value))
    return given


def _extending(proto: Any, names: Mapping[str, str]) -> ImportOptions:
    """Options that let new nodes take inputs from those that are there already."""
    input_map: dict[str, str] = {}
    for node in proto.node:
        for text in node.input:
            name, slot = parse_endpoint(text)
            if name in names:
                input_map[text] = text if slot < 0 else f"{name}:{slot}"
    return ImportOptions(input_map=input_map, validate_colocation=False)
