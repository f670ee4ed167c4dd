"""What one side of the protocol asked and the other answered: recorded, read, compared.

A file has one line for each request and one for each answer, in the order in which they came, so
that it can be seen which of them waited for which.  Two messages have equal meaning if they differ
in numbers and handles alone that each life of a process makes up, and if equal ones stand for
equal ones.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from penstock.cluster.services import request_class, response_class
from penstock.defs.tensors import from_proto
from support.relay import Relay

#: What each process, or each client, makes up.
_MADE_UP = {"session_handle", "graph_handle", "step_id", "handle", "partial_run_handle"}
#: What says nothing of what is asked or answered; when it was sent, what the machine is like.
_IDLE = {
    "request_id", "send_start_micros", "incarnation", "step_stats", "metadata", "locality",
    "memory_limit", "master_incarnation", "xla_global_id", "physical_device_desc", "target",
    "status_error_message", "physical_device_id",
}  # fmt: skip
_INCARNATION = re.compile(r"(?<=;)[0-9a-f]{16}(?=;)")


@dataclass(frozen=True)
class Event:
    """A request, or the answer of one."""

    #: Requests and their answers have equal numbers.
    number: int
    #: Which task was asked.
    task: int
    path: str
    #: The code of an answer that is an error; 0 otherwise.
    code: int
    content: bytes
    is_answer: bool

    @property
    def method(self) -> str:
        """The method's name."""
        return self.path.rpartition("/")[2]

    @property
    def message(self) -> Any:
        """The request, or the answer."""
        kind = response_class if self.is_answer else request_class
        return kind(self.method).FromString(self.content)


class Recording:
    """Events as they happen, from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self.events: list[Event] = []

    def asked(self, task: int, path: str, content: bytes) -> int:
        """Note a request; returns its number."""
        with self._lock:
            self._count += 1
            self.events.append(Event(self._count, task, path, 0, content, is_answer=False))
            return self._count

    def answered(self, number: int, task: int, path: str, code: int, content: bytes) -> None:
        """Note an answer."""
        with self._lock:
            self.events.append(Event(number, task, path, code, content, is_answer=True))

    def write(self, path: Path) -> None:
        """One line for each event."""
        path.write_text("".join(_line(event) + "\n" for event in self.events), "utf-8")


def _line(event: Event) -> str:
    content = base64.b64encode(event.content).decode()
    kind = "answer" if event.is_answer else "request"
    return json.dumps([kind, event.number, event.task, event.path, event.code, content])


def read(path: Path) -> list[Event]:
    """The events of a file."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        kind, number, task, called, code, content = json.loads(line)
        given = base64.b64decode(content)
        found.append(Event(number, task, called, code, given, is_answer=kind == "answer"))
    return found


class RecordingRelay(Relay):
    """Notes what goes through."""

    def __init__(self, port: int, to: int, task: int, recording: Recording) -> None:
        super().__init__(port, to)
        self._task, self._recording = task, recording

    def handle(self, path: str, request: bytes, context: Any) -> bytes:
        """Pass a request on, and note it and its answer."""
        number = self._recording.asked(self._task, path, request)
        code, content = 0, b""
        try:
            content = super().handle(path, request, context)
        finally:
            if context.code() is not None:
                code = int(context.code().value[0])
            self._recording.answered(number, self._task, path, code, content)
        return content


# -- meaning ---------------------------------------------------------------------------------


class Names:
    """Names for what processes make up, by when it was first met."""

    def __init__(self) -> None:
        #: By field, as requests of different kinds may come in another order.
        self._known: dict[str, dict[Any, str]] = {}

    def of(self, field: str, value: Any) -> str:
        """The name of a handle or a number."""
        known = self._known.setdefault(field, {})
        return known.setdefault(value, f"{field} {len(known)}")


def meaning(message: Any, names: Names) -> Any:
    """What a message says, as plain values that can be compared."""
    kind = message.DESCRIPTOR.name
    if kind == "TensorProto":
        value = np.asarray(from_proto(message))
        return (
            str(value.dtype),
            value.shape,
            value.tolist() if value.dtype.hasobject else (np.ascontiguousarray(value).tobytes()),
        )
    said = {}
    for field, value in message.ListFields():
        if field.name not in _IDLE and not (kind == "NodeDef" and field.name == "attr"):
            said[field.name] = _of_field(field, value, names)
    if kind == "NodeDef":
        said["attr"] = {
            key: meaning(attr, names)
            for key, attr in sorted(message.attr.items())
            if not key.endswith("_incarnation")
        }
    if kind == "GraphDef":
        said["node"] = sorted(said.get("node", []), key=lambda node: node["name"])
    return said


def _of_field(field: Any, value: Any, names: Names) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {str(key): _of_value(field.name, value[key], names) for key in sorted(value)}
    if field.is_repeated:
        return [_of_value(field.name, one, names) for one in value]
    return _of_value(field.name, value, names)


def _of_value(name: str, value: Any, names: Names) -> Any:
    if hasattr(value, "DESCRIPTOR"):
        return meaning(value, names)
    if name in _MADE_UP:
        return names.of(name, value)
    if isinstance(value, str):
        return _INCARNATION.sub("*", value)
    return value


# -- playing -----------------------------------------------------------------------------------


class StandIn:
    """A server that answers as one was recorded to, by what requests mean."""

    def __init__(self, events: Iterable[Event], task: int) -> None:
        self._lock = threading.Lock()
        asked, names = {}, Names()
        #: What is to be answered to requests of a meaning, in order.
        self._answers: dict[Any, list[Event]] = {}
        for event in events:
            if event.task != task:
                continue
            if event.is_answer:
                self._answers.setdefault(asked[event.number], []).append(event)
                _name(event, names)
            else:
                asked[event.number] = _key(event.method, event.message, names)
        self._names = Names()
        #: Requests that nobody had recorded.
        self.strange: list[Any] = []
        self._threads = ThreadPoolExecutor(64)
        self._server = grpc.server(self._threads, options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers((_StandInHandler(self),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def left(self) -> list[str]:
        """The methods of recorded requests that have not come."""
        return [one.method for answers in self._answers.values() for one in answers]

    def handle(self, path: str, request: bytes, context: Any) -> bytes:
        """Answer as was recorded."""
        method = path.rpartition("/")[2]
        with self._lock:
            key = _key(method, request_class(method).FromString(request), self._names)
            answers = self._answers.get(key)
            if not answers:
                self.strange.append(key)
                context.abort(grpc.StatusCode.DATA_LOSS, f"nobody had recorded {key[:2000]}")
            event = answers.pop(0)
            _name(event, self._names)
        if event.code:
            status = {one.value[0]: one for one in grpc.StatusCode}[event.code]
            context.abort(status, "as recorded")
        return event.content

    def close(self) -> None:
        """Answer no more."""
        self._server.stop(0).wait()
        self._threads.shutdown(wait=True)


def _name(answer: Event, names: Names) -> None:
    """Name what an answer hands out, whether or not somebody asks for it."""
    if not answer.code:
        meaning(answer.message, names)


def _key(method: str, message: Any, names: Names) -> str:
    return f"{method} {meaning(message, names)!r}"


class _StandInHandler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpcio has no types
    def __init__(self, server: StandIn) -> None:
        self._server = server

    def service(self, details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._server.handle(details.method, request, context)
        )


class Player:
    """Asks a server what was asked once, as soon as what it waited for is answered."""

    def __init__(self, events: Iterable[Event], task: int, port: int) -> None:
        self._events = [event for event in events if event.task == task]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        #: What stands for what was recorded: handles and incarnations, as they are now.
        self._now: dict[str, str] = {}
        self._numbers: dict[int, int] = {}
        self._recorded, self._live = Names(), Names()

    def play(self) -> int:
        """Ask all; fail unless the answers mean what they meant.  Returns how many there were."""
        waiting: dict[int, Any] = {}
        for event in self._events:
            if not event.is_answer:
                request = event.message
                self._replace(request)
                call = self._channel.unary_unary(event.path)
                waiting[event.number] = call.future(request.SerializeToString(), timeout=60)
            else:
                self._compare(event, waiting.pop(event.number))
        self._channel.close()
        return sum(event.is_answer for event in self._events)

    def _compare(self, event: Event, call: Any) -> None:
        try:
            content, code = call.result(), 0
        except grpc.RpcError as error:
            content, code = b"", int(error.code().value[0])
        except grpc.FutureCancelledError:
            content, code = b"", 1
        assert code == event.code, (event.method, code, event.code)
        if code:
            return
        recorded, live = event.message, response_class(event.method).FromString(content)
        self._learn(recorded, live)
        have, want = meaning(live, self._live), meaning(recorded, self._recorded)
        assert have == want, (event.method, have, want)

    def _learn(self, recorded: Any, live: Any) -> None:
        for field in ("session_handle", "graph_handle", "partial_run_handle"):
            if hasattr(recorded, field) and getattr(recorded, field):
                self._now[getattr(recorded, field)] = getattr(live, field)
        if hasattr(recorded, "device_attributes"):
            for was, now in zip(recorded.device_attributes, live.device_attributes, strict=True):
                self._now[f"{was.incarnation:016x}"] = f"{now.incarnation:016x}"
                self._numbers[_signed(was.incarnation)] = _signed(now.incarnation)

    def _replace(self, message: Any) -> None:
        """Put what is there now for what was there when it was recorded."""
        for field, value in message.ListFields():
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                for key in value:
                    if hasattr(value[key], "DESCRIPTOR"):
                        self._replace(value[key])
            elif field.message_type is not None:
                for one in value if field.is_repeated else [value]:
                    self._replace(one)
            elif field.type == field.TYPE_STRING:
                if field.is_repeated:
                    value[:] = [self._text(one) for one in value]
                else:
                    setattr(message, field.name, self._text(value))
            elif field.name == "i" and value in self._numbers:
                message.i = self._numbers[value]

    def _text(self, text: str) -> str:
        for was, now in self._now.items():
            text = text.replace(was, now)
        return text


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits
