"""``Session``: runs parts of one graph, any number of times, from any number of threads.

In:   a graph in any form; then feeds and fetches by name.
Out:  values in the nesting that was asked for.
Not:  does no work of its own: it keeps what the runtime prepared, and the session's state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from time import monotonic
from typing import TYPE_CHECKING, Any

from penstock.config import Config, RunMetadata, RunOptions
from penstock.core.forks import is_free
from penstock.core.memory import keep_freed_memory
from penstock.core.values import Value
from penstock.errors import CancelledError, InvalidArgumentError, OpError
from penstock.habits import add_hints
from penstock.passes.prune import Medium, Request
from penstock.runtime.environment import Environment
from penstock.runtime.optimize_request import UNWATCHED, Watch
from penstock.runtime.partial_run import PartialRun
from penstock.runtime.prepare import PreparedRequest
from penstock.runtime.step_factory import StepFactory
from penstock.runtime.thread_pool import SessionPools
from penstock.session import registry
from penstock.session.claims import Claims
from penstock.session.compiled_callable import CompiledCallable
from penstock.session.extend import extend
from penstock.session.factories import session_class
from penstock.session.feeds import Feeds, kept, output_of
from penstock.session.fetches import FetchPlan, handed_out, plan_fetches
from penstock.session.graphs import DEFAULT, graph_of, opened
from penstock.session.instruments import Instruments
from penstock.session.job import Job
from penstock.session.metadata import watched
from penstock.session.requests import Requests
from penstock.session.run import Call, Run
from penstock.session.scoped import Scoped
from penstock.session.under_way import UnderWay
from penstock.state.device_resources import DeviceResources
from penstock.state.devices import Device, local_devices
from penstock.state.session_state import SessionState

if TYPE_CHECKING:
    from penstock.builder.graph import Graph as BuiltGraph
    from penstock.graph.graph import Node
    from penstock.state.resources import ResourceManager


class Session(Instruments, Scoped):
    """Runs one graph; see ``run``.  Use it as a context manager, or ``close`` it."""

    def __new__(cls, *_args: Any, target: str = "", **_options: Any) -> Session:
        """A session of the kind that the target asks for."""
        kind: type[Session] = session_class(target) if target and cls is Session else cls
        return super().__new__(kind)

    def __init__(self, graph: Any = DEFAULT, *, target: str = "", config: Any = None) -> None:
        """Open a graph.

        Args:
            graph: a ``Graph``, a GraphDef message, its bytes, or the path of a file in binary
                or text format, gzip or not; the default graph if none is given.
            target: where to run: this process, or ``grpc://host:port``, a server's.
            config: a ``Config``, or a ConfigProto as message or bytes.

        Raises:
            OpError: the graph or the configuration is not acceptable.

        """
        self.target = target
        #: What it was opened with.
        self.config = Config.of(config)
        if self.config.keep_freed_memory:
            keep_freed_memory()
        self._graph = graph_of(graph)
        self._pools = SessionPools(self.config)
        #: What goes on, to be ended when the session closes.
        self._under_way = UnderWay()
        self._requests = Requests(self._graph, self._new_environment(), self._under_way)
        self._environment = self._requests.environment
        self._session_state = SessionState()
        self._feeds = Feeds(self._graph, self._session_state.get)
        #: What single names mean as fetches.  Only grows; lost updates do no harm.
        self._plans: dict[str, FetchPlan] = {}
        self._claims = Claims(self, self.config)
        registry.remember(self, self._under_way)

    def _new_environment(self) -> Environment:
        """Devices, what lives in them, and kernels."""
        return Environment(self._graph, self.config, local_devices(self.config.device_count))

    @property
    def graph(self) -> BuiltGraph:
        """The graph that it runs; one that was read from a file can be built upon as well."""
        return opened(self._graph)

    @property
    def resources(self) -> DeviceResources:
        """Its variables, queues and tables, seen across devices; ``.on(device)`` has one's own."""
        return self._environment.resources

    def resources_of(self, node: Node) -> ResourceManager:
        """The resources of the device that a node of its graph lies on.

        Raises:
            InvalidArgumentError: the graph cannot be placed.

        """
        with self._graph.lock:
            return self._environment.resources.on(self._environment.placement.device_of(node))

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
                The fetched handle of a kept tensor (GetSessionHandle) stands for that tensor.
            options: ``RunOptions``, or TensorFlow's message.
            run_metadata: filled with what was recorded.

        Returns:
            Arrays, or numpy scalars for rank 0; ``bytes`` and object arrays for strings, plain
            integers for quantised types, the bytes of a ResourceHandleProto for resources.

        Raises:
            OpError: of the canonical kind; it says what, where and what next.
            KeyboardInterrupt: Ctrl-C ended the step; session and state stay usable.

        """
        plan = self._plan(fetches)
        job = self._job(plan, feed_dict or {}, RunOptions.of(options))
        self._set_step(job, self._prepared_for(job))
        return plan.rebuild(job.run(self._graph, self._under_way, run_metadata))

    def _plan(self, fetches: Any) -> FetchPlan:
        """What is fetched; that of a single name is made once."""
        if type(fetches) is not str:
            return plan_fetches(fetches, self._graph)
        plan = self._plans.get(fetches)
        if plan is None:
            plan = self._plans[fetches] = plan_fetches(fetches, self._graph)
        return plan

    def run_async(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: RunMetadata | None = None,
    ) -> Run:
        """Like ``run``, on a thread of its own; the ``Run`` can be waited for or cancelled.

        Feeds and options that are wrong are refused at once, all else by ``Run.result``.
        """
        plan = plan_fetches(fetches, self._graph)
        job = self._job(plan, feed_dict or {}, RunOptions.of(options))
        job.fed = kept(job.fed, job.fed)

        def work(run: Run) -> Any:
            self._set_step(job, self._prepared_for(job, run), run)
            job.step.is_async = True
            run.turn_to(job.step)
            return plan.rebuild(job.run(self._graph, self._under_way, run_metadata))

        return Run(work)

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, options: Any = None
    ) -> Callable[..., Any]:
        """A function of the values of ``feed_list``, in order, that runs ``fetches``.

        A dead fetch gives an empty array, where ``run`` would raise.
        """
        self._under_way.check_open()
        plan, run_options = plan_fetches(fetches, self._graph), RunOptions.of(options)
        keys = list(feed_list or ())
        # However long that takes: a deadline is one of each call.
        fed = tuple(sorted(map(self._feeds.endpoint, keys)))
        prepared = self._requests.prepared_for(plan, fed)
        whole = self._whole_call(plan, prepared, keys, run_options)

        def call(*values: Any) -> Any:
            nonlocal whole
            if len(values) != len(keys):
                raise InvalidArgumentError(
                    f"Expected {len(keys)} feed tensors, but got {len(values)}"
                )
            if whole is not None:
                return whole(values)
            job = self._job(plan, dict(zip(keys, values, strict=True)), run_options)
            if self._set_step(job, prepared):
                whole = self._whole_call(plan, prepared, keys, run_options)
            return plan.rebuild(job.run(self._graph, self._under_way, None, allow_dead=True))

        return call

    def _whole_call(
        self,
        plan: FetchPlan,
        prepared: PreparedRequest,
        keys: Sequence[Any],
        options: RunOptions,
        *,
        allow_dead: bool = True,
    ) -> CompiledCallable | None:
        """The short way, for what is one compiled function; None if that does not suit."""
        if prepared.runnable.whole is None:
            return None
        fed = [self._feeds.feeder(key, shared=prepared.shared_feeds) for key in keys]
        if len(dict(fed)) < len(fed):
            return None
        pool = self._pools.runner(options.inter_op_thread_pool)
        maker = StepFactory(prepared, options, self._session_state, pool)
        return CompiledCallable(
            plan, prepared, fed, maker, self._under_way, self._graph, self._timeout_of(options),
            allow_dead=allow_dead,
        )  # fmt: skip

    def _job(self, plan: FetchPlan, feed_dict: Mapping[Any, Any], options: RunOptions) -> Job:
        """What a call wants; its time begins now."""
        self._under_way.check_open()
        if options.output_partition_graphs and self.config.disable_output_partition_graphs:
            raise InvalidArgumentError(
                "RunOptions.output_partition_graphs() is not supported when "
                "disable_output_partition_graphs is true."
            )
        timeout = self._timeout_of(options)
        deadline = monotonic() + timeout / 1000 if timeout > 0 else math.inf
        return Job(plan, self._feeds.values(feed_dict), options, deadline)

    def prepared(
        self, fetches: Any, feed_dict: Mapping[Any, Any], watch: Watch = UNWATCHED
    ) -> PreparedRequest:
        """What a request is made into before it is first run, and kept as."""
        job = self._job(self._plan(fetches), feed_dict, RunOptions())
        prepared = self._requests.prepared_for(job.plan, tuple(sorted(job.fed)), watch=watch)
        prepared.is_lent = True
        self._requests.compile(prepared)
        return prepared

    def _prepared_for(self, job: Job, run: Call | None = None) -> PreparedRequest:
        return self._requests.prepared_for(job.plan, tuple(sorted(job.fed)), job.deadline, run)

    def _set_step(self, job: Job, prepared: PreparedRequest, run: Call | None = None) -> bool:
        """Make the step of a job that is about to run; whether the request was compiled for it."""
        is_new = not prepared.takes_step(job.fed.values())
        if is_new:
            self._requests.compile(prepared, job.deadline, run)
        if prepared.costs.every > 0:
            job.options = watched(job.options, prepared.costs)
        if prepared.shared_feeds:
            job.fed = kept(job.fed, prepared.shared_feeds)
        pool = self._pools.runner(job.options.inter_op_thread_pool)
        job.prepared = prepared
        job.step = StepFactory(prepared, job.options, self._session_state, pool).new()
        return is_new

    def _timeout_of(self, options: RunOptions) -> int:
        timeout = options.timeout_in_ms
        return timeout if timeout > 0 else self.config.operation_timeout_in_ms

    def placement(self, fetches: Any) -> dict[str, str]:
        """The device of every node that ``fetches`` need, by name, before any optimisation."""
        return self._requests.placement(plan_fetches(fetches, self._graph))

    # -- partial runs --------------------------------------------------------------------

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """Start a step whose feeds come, and fetches go, over several calls; see ``partial_run``.

        Raises:
            InvalidArgumentError: no fetches, or names that mean nothing.

        """
        self._under_way.check_open()
        plan = plan_fetches(fetches, self._graph)
        fed = tuple(map(self._feeds.endpoint, feeds or ()))
        for name in fed:
            output_of(self._graph, name)
        request = Request(fed, plan.endpoints, plan.targets, Medium.RENDEZVOUS)
        prepared = self._requests.prepare(request)
        factory = StepFactory(prepared, RunOptions(), self._session_state, self._pools.runner(0))
        run = factory.new_partial(self._graph)
        handle = self._under_way.add_partial_run(run)
        self._under_way.partial_runs.start(handle, run)
        return handle

    def partial_run(
        self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Any:
        """Go on with a partial run: feed some of its feeds, fetch some of its fetches.

        Raises:
            InvalidArgumentError: a feed or fetch was not set up, came before, or a fetch
                depends on a feed that is still to come.

        """
        run = self._under_way.partial_run(handle)  # before what is fed and fetched is looked at
        plan = plan_fetches(fetches, self._graph)
        if plan.targets:
            raise InvalidArgumentError("partial_run() requires empty target_list.")
        fed = self._feeds.values(feed_dict or {})
        values = self._partial_values(handle, run, plan, kept(fed, fed))
        names = plan.endpoints
        return plan.rebuild(handed_out([values[name] for name in names], names))

    def _partial_values(
        self, handle: str, run: PartialRun, plan: FetchPlan, fed: Mapping[str, Value]
    ) -> dict[str, Value]:
        """What is fed and fetched in one call of a partial run, by endpoint."""
        timeout, runs = self.config.operation_timeout_in_ms, self._under_way.partial_runs
        return runs.values(handle, run, fed, plan.endpoints, timeout, self._graph)

    # -- life --------------------------------------------------------------------------

    def extend(self, graph_def: Any) -> None:
        """Add nodes and functions to the graph; see ``session/extend.py``.

        Raises:
            InvalidArgumentError: a node is there already, or the definition is wrong.
            NotFoundError: an op is neither in the catalogue nor in the library.
            FailedPreconditionError: the configuration says that the graph is final.

        """
        self._under_way.check_open()
        extend(self._graph, graph_def, is_final=self.config.optimize_for_static_graph)

    def list_devices(self) -> list[Device]:
        """The session's devices: name, type, memory limit in bytes, incarnation."""
        return list(self._environment.devices)

    @staticmethod
    def reset(
        target: str = "", containers: Sequence[str] | None = None, config: Any = None
    ) -> None:
        """Drop resources of all sessions of this process, and close the sessions.

        Args:
            target: which process: this one, or ``grpc://host:port``, with all others of its
                cluster.
            containers: whose variables, queues and tables to drop; the default container's if
                none are named.
            config: checked, and not needed otherwise.

        """
        Config.of(config)
        if target:
            session_class(target).reset(target, containers, config)
        else:
            registry.reset(containers)

    def close(self) -> None:
        """Cancel what runs; give up variables, queues, tables and what was made of the graph.

        May be called twice.
        """
        if self._end(CancelledError("Session has been closed.")):
            self._environment.resources.close()

    def _end(self, reason: OpError) -> bool:
        """Begin nothing more, and end what goes on; whether that had yet to be done."""
        if not self._under_way.close(reason):
            return False
        self._claims.give_up()
        self._pools.close()
        if not self._under_way.was_busy:
            self._requests.give_up()
        return True

    def __repr__(self) -> str:
        return f"<Session on {self._graph!r}, {'closed' if self._under_way.is_closed else 'open'}>"

    def forget_threads(self) -> bool:
        """Start anew in the child of a fork; whether the session can be used there."""
        if self._under_way.is_closed:
            return False
        locks = self._graph.lock, *self._environment.resources.locks, self._session_state.lock
        is_usable = all(map(is_free, locks))
        if not is_free(self._graph.lock):
            self._graph.lock = RLock()  # for sessions that the child opens
        return self._under_way.forget_threads(is_usable=is_usable)


add_hints(Session)
