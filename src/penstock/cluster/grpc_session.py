"""``GrpcSession``: a session whose graph is run by a server somewhere else.

In:   what a ``Session`` takes, and the server's target.
Out:  what a ``Session`` gives.
Not:  runs nothing here: names, feeds and fetches are read here, all else is asked of the master.

The graph goes there when something is first run, and what was added since before each further run.
Whoever waits for an answer asks now and then whether the server is still there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any, Final, NoReturn

from penstock.cluster.peers import new_request_id
from penstock.cluster.remote_master import RemoteMaster
from penstock.cluster.security import Security
from penstock.cluster.services import request_class
from penstock.cluster.step_messages import feed_messages, fetched_values, fill
from penstock.cluster.task import device_from_proto
from penstock.cluster.wire_config import config_to_proto, options_to_proto
from penstock.cluster.wire_errors import from_wire
from penstock.config import Config, RunMetadata, RunOptions
from penstock.core.values import Value
from penstock.defs.schema import GraphDef, Message
from penstock.defs.tensors import from_proto
from penstock.errors import (
    CancelledError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from penstock.graph.export import graph_to_def, node_to_def
from penstock.passes.prune import ClientDevice, Request, prune
from penstock.passes.split import colocate_loop_nodes
from penstock.runtime.placement import Placement
from penstock.session.advise import advise
from penstock.session.extend import extend
from penstock.session.feeds import Feeds, output_of
from penstock.session.fetches import FetchPlan, handed_out, plan_fetches
from penstock.session.graphs import DEFAULT, graph_of
from penstock.session.run import Call, Run
from penstock.session.session import Session
from penstock.state.devices import Device, DeviceSet

#: Milliseconds that a server may take to end a session.
_CLOSING: Final = 10_000


class GrpcSession(Session):
    """A session at a server; made by ``ps.Session(graph, target='grpc://host:port')``."""

    # What a session of this process has, such as devices and threads, is not needed.
    def __init__(
        self,
        graph: Any = DEFAULT,
        *,
        target: str,
        config: Any = None,
        security: Security | None = None,
    ) -> None:
        """Open a graph; the server is called when something is first run.

        Args:
            graph: like ``Session``'s.
            target: the server's, ``grpc://host:port``.
            config: like ``Session``'s.  Options that TensorFlow's messages have no words for are
                the server's own.
            security: TLS and a token, if the server asks for them.

        Raises:
            OpError: the graph, the target or the configuration is not acceptable.

        """
        self.target = target
        self.config = Config.of(config)
        self.config_proto: Final = config_to_proto(config)
        self._graph = graph_of(graph)
        self._feeds = Feeds(self._graph, _not_here)
        self._plans: dict[str, FetchPlan] = {}
        self._server: Final = RemoteMaster(target, security or Security())
        #: Held while the server's graph is brought up to date.  Taken before the graph's.
        self._lock = RLock()
        #: The session's handle at the server; empty before there is one.
        self._handle = ""
        #: The version of the server's graph, and what ``next_id`` was when it got it.
        self._version = 0
        self._sent = 0
        self._is_closed = False

    # -- running ---------------------------------------------------------------------------

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run what ``fetches`` need, and return their values in the same nesting."""
        plan = self._plan(fetches)
        feeds = feed_messages(self._feeds, feed_dict or {})
        return self._run(plan, feeds, RunOptions.of(options), run_metadata, Call())

    def run_async(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: RunMetadata | None = None,
    ) -> Run:
        """Like ``run``, on a thread of its own; the ``Run`` can be waited for or cancelled."""
        self._check_open()
        plan = plan_fetches(fetches, self._graph)
        run_options = RunOptions.of(options)
        feeds = feed_messages(self._feeds, feed_dict or {})
        return Run(lambda run: self._run(plan, feeds, run_options, run_metadata, run))

    def _run(
        self,
        plan: FetchPlan,
        feeds: Mapping[str, Message],
        options: RunOptions,
        metadata: RunMetadata | None,
        call: Call,
        partial_run: str = "",
    ) -> Any:
        if not plan.endpoints and not plan.targets:
            self._check_open()
            return plan.rebuild([])
        timeout = options.timeout_in_ms or self.config.operation_timeout_in_ms
        self._bring_up_to_date(call, timeout)
        known = set(feeds)
        request = request_class("RunStep")(
            session_handle=self._handle,
            fetch=[name for name in plan.endpoints if name not in known],
            target=plan.targets,
            options=options_to_proto(options),
            partial_run_handle=partial_run,
            store_errors_in_response_body=True,
            request_id=new_request_id(),
        )
        request.options.timeout_in_ms = max(timeout, 0)
        for name, proto in feeds.items():
            request.feed.add(name=name, tensor=proto)
        values = {name: from_proto(proto) for name, proto in feeds.items()}
        if request.fetch or request.target:
            answer = self._asked("RunStep", request, call, timeout)
            fill(metadata, answer)
            values.update(fetched_values(answer, request.fetch))
        names = plan.endpoints
        return plan.rebuild(handed_out([values[name] for name in names], names))

    def _asked(self, method: str, request: Message, call: Call, timeout: int) -> Any:
        """The answer to a step's request.

        Raises:
            OpError: the step's error.

        """
        try:
            answer = self._server.wait(method, request, call, timeout)
            if getattr(answer, "status_code", 0):
                raise from_wire(answer.status_code, answer.status_error_message)
        except OpError as error:
            advise(error, self._graph)
            raise
        return answer

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, options: Any = None
    ) -> Callable[..., Any]:
        """A function of the values of ``feed_list``, in order, that runs ``fetches``."""
        plan, run_options = plan_fetches(fetches, self._graph), RunOptions.of(options)
        keys = [self._feeds.endpoint(key) for key in feed_list or ()]
        timeout = run_options.timeout_in_ms or self.config.operation_timeout_in_ms
        self._bring_up_to_date(Call(), timeout)
        request = request_class("MakeCallable")(
            session_handle=self._handle, request_id=new_request_id()
        )
        request.options.feed.extend(keys)
        request.options.fetch.extend(name for name in plan.endpoints if name not in keys)
        request.options.target.extend(plan.targets)
        request.options.run_options.CopyFrom(options_to_proto(run_options))
        handle = self._server.call("MakeCallable", request, timeout).handle

        def call(*values: Any) -> Any:
            if len(values) != len(keys):
                raise InvalidArgumentError(
                    f"Expected {len(keys)} feed tensors, but got {len(values)}"
                )
            fed = feed_messages(self._feeds, dict(zip(keys, values, strict=True)))
            return self._call_callable(plan, handle, [fed[key] for key in keys], keys, timeout)

        release = request_class("ReleaseCallable")(session_handle=self._handle, handle=handle)
        weakref.finalize(call, self._server.tell, "ReleaseCallable", release)
        return call

    def _call_callable(
        self,
        plan: FetchPlan,
        handle: int,
        fed: Sequence[Message],
        keys: Sequence[str],
        timeout: int,
    ) -> Any:
        self._check_open()
        request = request_class("RunCallable")(
            session_handle=self._handle, handle=handle, feed=fed, request_id=new_request_id()
        )
        answer = self._asked("RunCallable", request, Call(), timeout)
        fetched = [name for name in plan.endpoints if name not in keys]
        values = dict(zip(fetched, map(from_proto, answer.fetch), strict=True))
        values.update(zip(keys, map(from_proto, fed), strict=True))
        names = plan.endpoints
        return plan.rebuild(handed_out([values[name] for name in names], names))

    def placement(self, fetches: Any) -> dict[str, str]:
        """The device of every node that ``fetches`` need, by name, before any optimisation."""
        plan = plan_fetches(fetches, self._graph)
        devices = DeviceSet(self.list_devices())
        request = Request((), plan.endpoints, plan.targets)
        client = ClientDevice(devices.devices[0].name)
        with self._graph.lock:
            placed = Placement(self._graph, devices, self.config).placed_for(request)
            pruned = colocate_loop_nodes(prune(placed, request, client))
        return {
            node.name: pruned.device_of[node.id]
            for node in pruned.graph
            if not node.op.name.startswith("_")
        }

    # -- partial runs ------------------------------------------------------------------------

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """Start a step whose feeds come, and fetches go, over several calls."""
        plan = plan_fetches(fetches, self._graph)
        fed = [self._feeds.endpoint(key) for key in feeds or ()]
        for name in fed:
            output_of(self._graph, name)
        timeout = self.config.operation_timeout_in_ms
        self._bring_up_to_date(Call(), timeout)
        request = request_class("PartialRunSetup")(
            session_handle=self._handle,
            feed=fed,
            fetch=plan.endpoints,
            target=plan.targets,
            request_id=new_request_id(),
        )
        handle: str = self._server.call("PartialRunSetup", request, timeout).partial_run_handle
        return handle

    def partial_run(
        self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None
    ) -> Any:
        """Go on with a partial run: feed some of its feeds, fetch some of its fetches."""
        self._check_open()
        plan = plan_fetches(fetches, self._graph)
        if plan.targets:
            raise InvalidArgumentError("partial_run() requires empty target_list.")
        feeds = feed_messages(self._feeds, feed_dict or {})
        return self._run(plan, feeds, RunOptions(), None, Call(), handle)

    # -- life --------------------------------------------------------------------------------

    def extend(self, graph_def: Any) -> None:
        """Add nodes and functions to the graph; the server gets them before the next run."""
        self._check_open()
        extend(self._graph, graph_def, is_final=False)

    def list_devices(self) -> list[Device]:
        """The devices of the whole cluster: name, type, memory limit in bytes, incarnation."""
        self._bring_up_to_date(Call(), self.config.operation_timeout_in_ms)
        request = request_class("ListDevices")(session_handle=self._handle)
        answer = self._server.call("ListDevices", request, self.config.operation_timeout_in_ms)
        found = [*answer.local_device, *answer.remote_device]
        return [device_from_proto(proto) for proto in found]

    @staticmethod
    def reset(
        target: str = "", containers: Sequence[str] | None = None, config: Any = None
    ) -> None:
        """End all sessions of a server, and drop what is in some containers of its cluster."""
        server = RemoteMaster(target, Security())
        try:
            request = request_class("Reset")(
                container=containers or (), device_filters=config_to_proto(config).device_filters
            )
            server.call("Reset", request, Config.of(config).operation_timeout_in_ms)
        finally:
            server.close()

    def close(self) -> None:
        """End the session at the server, and what goes on in it.  May be called twice."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            handle = self._handle
        try:
            if handle:
                request = request_class("CloseSession")(session_handle=handle)
                self._server.call("CloseSession", request, _CLOSING)
        except OpError:
            pass  # the server, or the session, is gone already
        finally:
            self._server.close()

    @property
    def resources(self) -> Any:
        """Variables, queues and tables are at the server."""
        raise self._elsewhere("fetch what you want to see")

    def snapshot(self, *, skip_unsupported: bool = False) -> NoReturn:  # noqa: ARG002
        """The state is at the server."""
        raise self._elsewhere("save what is to be kept as a checkpoint")

    def restore(self, snapshot: Any) -> NoReturn:  # noqa: ARG002
        """The state is at the server."""
        raise self._elsewhere("restore a checkpoint")

    def _elsewhere(self, next_step: str) -> UnimplementedError:
        return UnimplementedError(
            f"The resources of a session at {self.target} are in other processes",
            next_step=next_step,
        )

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"<Session at {self.target} on {self._graph!r}, {state}>"

    # -- the server's graph --------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError("Session has been closed.")

    def _bring_up_to_date(self, call: Call, timeout: int) -> None:
        """Have the server know all of the graph; raises OpError if it cannot or will not."""
        if self._handle and self._sent == self._graph.next_id and not self._is_closed:
            return
        with self._lock:
            self._check_open()
            if not self._handle:
                self._create(call, timeout)
            else:
                self._extend(call, timeout)

    def _create(self, call: Call, timeout: int) -> None:
        with self._graph.lock:
            graph_def, size = graph_to_def(self._graph), self._graph.next_id
        request = request_class("CreateSession")(
            graph_def=graph_def, config=self.config_proto, target=self.target
        )
        answer = self._server.first_call("CreateSession", request, call, timeout)
        self._version, self._sent = answer.graph_version, size
        self._handle = answer.session_handle

    def _extend(self, call: Call, timeout: int) -> None:
        with self._graph.lock:
            size = self._graph.next_id
            new = GraphDef(
                node=[
                    node_to_def(n, n.requested_device) for n in self._graph.nodes_from(self._sent)
                ]
            )
            if len(self._graph.library):
                new.library.CopyFrom(self._graph.library.to_proto())
            new.versions.producer = self._graph.versions.producer
        request = request_class("ExtendSession")(
            session_handle=self._handle, graph_def=new, current_graph_version=self._version
        )
        answer = self._server.wait("ExtendSession", request, call, timeout)
        self._version, self._sent = answer.new_graph_version, size

    def forget_threads(self) -> bool:
        """No channel works in the child of a fork."""
        return False


def _not_here(handle: str) -> Value:
    raise NotFoundError(f"The tensor of the handle '{handle}' is at the server")
