"""TensorFlow's MasterService: a master, as clients call it.

In:   requests of the protocol.
Out:  its answers.
Not:  runs nothing itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any, Final

from penstock.cluster.answering import in_thread, noted_in
from penstock.cluster.brief import BriefRequests
from penstock.cluster.master import Client, Master
from penstock.cluster.master_session import MAX_NAMES, Asked, MasterSession
from penstock.cluster.services import response_class
from penstock.cluster.short_way import Ran, ShortWay
from penstock.cluster.task import device_to_proto
from penstock.config import RunMetadata, RunOptions
from penstock.core.values import Value
from penstock.defs.schema import Message
from penstock.defs.tensors import from_proto, to_proto
from penstock.errors import InvalidArgumentError
from penstock.session.run import Call

_RunStepResponse: Final = response_class("RunStep")
_RunCallableResponse: Final = response_class("RunCallable")


class MasterService:
    """One coroutine for each method; raises OpError."""

    def __init__(self, master: Master, threads: ThreadPoolExecutor) -> None:
        self._master: Final = master
        self._threads: Final = threads
        self._brief: Final = BriefRequests()

    async def create_session(self, request: Any) -> Any:
        """Open a session."""
        client = await in_thread(
            self._threads,
            self._create,
            request,
            unwanted=lambda client: self._threads.submit(self._master.discard, client),
        )
        return response_class("CreateSession")(
            session_handle=client.handle, graph_version=client.session.graph_version
        )

    def _create(self, request: Any, call: Call) -> Client:
        return self._master.create_session(request.graph_def, request.config, call)

    async def extend_session(self, request: Any) -> Any:
        """Extend a session's graph."""
        version = await in_thread(self._threads, self._extend, request)
        return response_class("ExtendSession")(new_graph_version=version)

    def _extend(self, request: Any, _call: Call) -> int:
        client = self._master.client(request.session_handle)
        return client.session.extend_to(request.graph_def, request.current_graph_version)

    async def partial_run_setup(self, request: Any) -> Any:
        """Start a run over several calls."""
        self._master.request_ids.track(request.request_id, "PartialRunSetup")
        handle = await in_thread(self._threads, self._set_up, request)
        return response_class("PartialRunSetup")(partial_run_handle=handle)

    def _set_up(self, request: Any, _call: Call) -> str:
        client = self._master.client(request.session_handle)
        feeds = dict.fromkeys(request.feed)
        return client.session.set_up_partial(Asked(feeds, request.fetch, request.target))

    async def run_step(self, request: Any) -> Any:
        """Run a step; errors stand in the answer if the client can read them there."""
        try:
            self._master.request_ids.track(request.request_id, "RunStep")
            kind, size = _kind(request), request.ByteSize()
            if self._brief.include(kind, size):
                return await self._run_on_loop(request, kind, size)
            return await in_thread(self._threads, self._run, request)
        except Exception as error:
            if not request.store_errors_in_response_body:
                raise
            return noted_in(_RunStepResponse(), error)

    def _run(self, request: Any, call: Call) -> Any:
        start = perf_counter()
        client = self._master.begin(request.session_handle, call)
        metadata = RunMetadata()
        try:
            asked = _asked(request)
            if request.partial_run_handle:
                handle = request.partial_run_handle
                ran = Ran(client.session.go_on_with(handle, asked), is_straight=False, elsewhere=0)
            else:
                options = RunOptions.of(request.options)
                ran = client.session.run_named(asked, options, call, metadata)
        finally:
            self._master.end(client, call)
        answer = _answer(request, ran)
        _note(metadata, answer)
        seconds = perf_counter() - start - ran.elsewhere
        # Whatever options ask for, it takes the long way.
        is_straight = ran.is_straight and not request.options.ByteSize()
        self._brief.note(_kind(request), request.ByteSize(), seconds, is_straight=is_straight)
        return answer

    async def _run_on_loop(self, request: Any, kind: Hashable, size: int) -> Any:
        start = perf_counter()
        session = self._master.client(request.session_handle).session
        short = session.short_ways.get(kind, partial(_asked_short_way, session, request))
        if short is not None:
            ran = short.run([from_proto(item.tensor) for item in request.feed])
        else:
            ran = await self._run_with_others(request)
        answer = _answer(request, ran)
        seconds = perf_counter() - start - ran.elsewhere
        self._brief.note(kind, size, seconds, is_straight=ran.is_straight)
        return answer

    async def _run_with_others(self, request: Any) -> Ran:
        call = Call()
        client = self._master.begin(request.session_handle, call)
        try:
            return await client.session.run_on_loop(_asked(request), call)
        finally:
            self._master.end(client, call)

    async def close_session(self, request: Any) -> Any:
        """End a session, and what goes on in it."""
        await in_thread(
            self._threads, lambda r, _call: self._master.close_session(r.session_handle), request
        )
        return response_class("CloseSession")()

    async def list_devices(self, request: Any) -> Any:
        """All devices of a session; like TensorFlow's, they all count as local."""
        client = self._master.client(request.session_handle)
        return response_class("ListDevices")(
            local_device=map(device_to_proto, client.session.devices())
        )

    async def reset(self, request: Any) -> Any:
        """End all sessions, and drop what is in some containers."""
        await in_thread(self._threads, lambda r, _call: self._master.reset(r.container), request)
        return response_class("Reset")()

    async def make_callable(self, request: Any) -> Any:
        """Note what a callable does."""
        self._master.request_ids.track(request.request_id, "MakeCallable")
        handle = self._master.make_callable(request.session_handle, request.options)
        return response_class("MakeCallable")(handle=handle)

    async def run_callable(self, request: Any) -> Any:
        """Run a callable."""
        self._master.request_ids.track(request.request_id, "RunCallable")
        return await in_thread(self._threads, self._run_callable, request)

    def _run_callable(self, request: Any, call: Call) -> Any:
        client = self._master.begin(request.session_handle, call)
        metadata = RunMetadata()
        try:
            options = self._master.callable_options(client, request.handle)
            asked = Asked(_in_order(options.feed, request.feed), options.fetch, options.target)
            run_options = RunOptions.of(options.run_options)
            ran = client.session.run_named(asked, run_options, call, metadata, allow_dead=True)
        finally:
            self._master.end(client, call)
        answer = _RunCallableResponse(
            fetch=[to_proto(value, dtype) for value, dtype in ran.fetched]
        )
        _note(metadata, answer)
        return answer

    async def release_callable(self, request: Any) -> Any:
        """Forget a callable."""
        self._master.release_callable(request.session_handle, request.handle)
        return response_class("ReleaseCallable")()


def _kind(request: Any) -> Hashable:
    """What makes steps alike; None for parts of a run, and if that is too much to remember."""
    # Each look at a field of a message makes a new object of Python's.
    feed, fetch, target = request.feed, request.fetch, request.target
    if len(feed) + len(fetch) + len(target) > MAX_NAMES or request.partial_run_handle:
        return None
    options = request.options.ByteSize() if request.HasField("options") else 0
    # Numbers stand between the names of each sort, so that no two kinds look alike.
    names = [item.name for item in feed]
    return request.session_handle, len(names), *names, *fetch, options, *target


def _asked(request: Any) -> Asked:
    return Asked(_feeds(request.feed), request.fetch, request.target)


def _asked_short_way(session: MasterSession, request: Any) -> ShortWay | None:
    """That of steps like one which was run before, so that its names are known to be good."""
    names = [item.name for item in request.feed]
    return session.short_way(Asked(dict.fromkeys(names, b""), request.fetch, request.target))


def _answer(request: Any, ran: Ran) -> Any:
    answer = _RunStepResponse()
    for name, (value, dtype) in zip(request.fetch, ran.fetched, strict=True):
        answer.tensor.add(name=name, tensor=to_proto(value, dtype))
    return answer


def _feeds(named: Iterable[Any]) -> dict[str, Value]:
    """Fed values by name; raises InvalidArgumentError if a name comes twice."""
    feeds: dict[str, Value] = {}
    for item in named:
        if item.name in feeds:
            raise InvalidArgumentError(f"Duplicated feeds: {item.name}")
        feeds[item.name] = from_proto(item.tensor)
    return feeds


def _in_order(names: Sequence[str], tensors: Sequence[Any]) -> dict[str, Value]:
    if len(names) != len(tensors):
        raise InvalidArgumentError(f"Expected {len(names)} feed tensors, but got {len(tensors)}")
    return {name: from_proto(proto) for name, proto in zip(names, tensors, strict=True)}


def _note(metadata: RunMetadata, answer: Message) -> None:
    """Put what a run recorded into its answer."""
    if metadata.step_stats.dev_stats or metadata.partition_graphs:
        answer.metadata.CopyFrom(metadata.to_proto())
