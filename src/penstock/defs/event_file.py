"""Files of events, as TensorBoard reads them: records, each a serialized ``Event``.

In:   a folder, events.
Out:  a file in the folder, whose name says when, where and by whom it was begun.
Not:  reads no files; knows no nodes.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from contextlib import suppress
from threading import Lock
from typing import Final

from penstock.core.files import FileSystem, file_errors
from penstock.defs.record_file import framed
from penstock.defs.schema import Event, Message
from penstock.errors import OpError

_numbers: Final = itertools.count()


class EventFile:
    """One file that grows by events."""

    def __init__(self, files: FileSystem, folder: str, suffix: str, most_waiting: int) -> None:
        files.make_folders(folder)
        now = time.time()
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        self.path: Final = os.path.join(folder, f"{name}.{next(_numbers)}{suffix}")
        self._most_waiting: Final = most_waiting
        #: Held while a record is written; nothing else is taken under it.
        self._lock = Lock()
        self._file = files.append(self.path)  # closed by dispose
        #: Events since the file was last flushed.
        self._waiting = 0
        first = Event(wall_time=now, file_version="brain.Event:2")
        first.source_metadata.writer = "tensorflow.core.util.events_writer"
        try:
            self.add(first)
            self.flush()
        except OpError:
            with suppress(OpError):
                self.dispose()
            raise

    def add(self, event: Message) -> None:
        """Write an event; one without a time gets the present one."""
        if not event.wall_time:
            event.wall_time = time.time()
        with self._lock, file_errors(self.path):
            self._file.write(framed(event.SerializeToString()))
            self._waiting += 1
            if self._waiting > self._most_waiting:
                self._file.flush()
                self._waiting = 0

    def flush(self) -> None:
        """Let other processes see what was written."""
        with self._lock, file_errors(self.path):
            self._file.flush()
            self._waiting = 0

    def dispose(self) -> None:
        """Close the file; raises OpError if what was added last could not be written."""
        with self._lock, file_errors(self.path):
            self._file.close()
