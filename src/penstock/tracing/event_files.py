"""What a run recorded as a file of events, which TensorBoard reads.

In:   a StepStats message or a RunMetadata message, and under which tag and step it is shown.
Out:  a file of records.
Not:  knows no ``Trace``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from penstock.core.files import FileSystem
from penstock.defs.event_file import EventFile
from penstock.defs.record_file import framed
from penstock.defs.schema import Event, Message, TaggedRunMetadata

#: What the first event of a file says of its format.
_VERSION = "brain.Event:2"


def tagged(metadata: Message, tag: str, step: int = 0) -> Message:
    """The event that holds a RunMetadata message."""
    # Its own message within: readers of files take apart only what they show.
    found = TaggedRunMetadata(tag=tag, run_metadata=metadata.SerializeToString())
    return Event(wall_time=time.time(), step=step, tagged_run_metadata=found)


def graph_event(graph: Message) -> Message:
    """The event that holds a GraphDef message."""
    return Event(wall_time=time.time(), graph_def=graph.SerializeToString())


def write_folder(folder: str, events: Sequence[Message]) -> str:
    """Write a new file of events into a folder; returns its path."""
    file = EventFile(FileSystem(), folder, "", 0)
    try:
        for event in events:
            file.add(event)
        file.flush()
    finally:
        file.dispose()
    return file.path


def file_of(events: Sequence[Message]) -> bytes:
    """The content of a file that holds some events."""
    first = Event(wall_time=events[0].wall_time, file_version=_VERSION)
    return b"".join(framed(event.SerializeToString()) for event in (first, *events))
