"""Write a trace in the format that its file's name asks for.

In:   a ``Trace``, a path, and the message that files of events hold.
Out:  a file.
Not:  looks into no trace.

| name | format |
| --- | --- |
| ``*.json``, ``*.json.gz`` | Chrome's JSON |
| ``*.pftrace``, ``*.perfetto-trace`` | Perfetto's packets |
| ``*tfevents*`` | TensorBoard's events |
| a folder, or a name without an ending | a new file of events in it |
| ``*.pb`` | a RunMetadata message |
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from typing import Final, NamedTuple

from penstock.core.files import FileSystem, file_errors
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError
from penstock.tracing.chrome import chrome_trace_of
from penstock.tracing.event_files import file_of, graph_event, tagged, write_folder
from penstock.tracing.perfetto import perfetto_trace_of
from penstock.tracing.trace import Trace
from penstock.tracing.tracks import timeline_of

#: How TensorBoard names what a trace is of, if nothing else is said.
DEFAULT_TAG: Final = "step"
_PERFETTO: Final = (".pftrace", ".perfetto-trace")


class Messages(NamedTuple):
    """What makes the messages of a traced run."""

    #: RunMetadata.
    metadata: Callable[[], Message]
    #: GraphDef, of the graph as it was given.
    graph: Callable[[], Message]


def save(
    trace: Trace,
    messages: Messages,
    path: str | os.PathLike[str],
    *,
    tag: str = DEFAULT_TAG,
    step: int = 0,
) -> str:
    """Write a trace; returns the path of the file.

    Args:
        trace: what is to be written.
        messages: what files of messages hold of it.
        path: the file, whose name says the format; or a folder, for a file of events.
        tag: what TensorBoard calls it.
        step: the step that it is of, for TensorBoard.

    Raises:
        InvalidArgumentError: the name says no format.
        OpError: the file system refuses.

    """
    name = os.fsdecode(path)
    base = _base(name)
    if not os.path.splitext(base)[1] or FileSystem().is_folder(name):
        return write_folder(name, _events(messages, tag, step))
    _write(name, _content(trace, messages, base, tag, step))
    return name


def check_name(path: str | os.PathLike[str]) -> None:
    """Raise InvalidArgumentError unless the name of a file says a format; without writing it."""
    base = _base(os.fsdecode(path))
    endings = (".json", ".json.gz", ".pb", *_PERFETTO)
    if os.path.splitext(base)[1] and not base.endswith(endings) and "tfevents" not in base:
        raise _unknown(base)


def _base(name: str) -> str:
    return os.path.basename(name.rstrip("/"))


def _events(messages: Messages, tag: str, step: int) -> list[Message]:
    """The graph and what was recorded: TensorBoard shows the one on the other."""
    return [graph_event(messages.graph()), tagged(messages.metadata(), tag, step)]


def _content(trace: Trace, messages: Messages, base: str, tag: str, step: int) -> bytes:
    check_name(base)
    if "tfevents" in base:
        return file_of(_events(messages, tag, step))
    if base.endswith(".pb"):
        return bytes(messages.metadata().SerializeToString())
    timeline = timeline_of(trace)
    if base.endswith(_PERFETTO):
        return perfetto_trace_of(timeline)
    text = json.dumps(chrome_trace_of(timeline)).encode()
    return gzip.compress(text, mtime=0) if base.endswith(".gz") else text


def _unknown(base: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{base} says no format of traces",
        next_step="write .json, .pftrace, .pb or events.out.tfevents.NAME; or the name of a folder",
    )


def _write(path: str, content: bytes) -> None:
    files = FileSystem()
    folder = os.path.dirname(path)
    if folder:
        files.make_folders(folder)
    with files.draft(path) as draft, file_errors(path):
        draft.write(content)
        files.publish(path, draft)
