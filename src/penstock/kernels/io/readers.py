"""Readers: the records of files whose names come out of a queue.

In:   the name of one file after the other.
Out:  records, each with a key that says where it is from.
Not:  registers no kernel; knows no queue.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any, Final, TypeAlias

from google.protobuf.message import DecodeError

from penstock.core.files import FileSystem, file_errors
from penstock.core.memory import available_memory
from penstock.core.unpacking import GZIP, ZLIB, unpack
from penstock.defs.record_file import METHODS, records_in
from penstock.defs.schema import ReaderBaseState
from penstock.errors import DataLossError, InvalidArgumentError, OpError, UnimplementedError
from penstock.exceptions import from_exception
from penstock.kernels.api.context import Done
from penstock.kernels.api.turns import Turns
from penstock.state.cancellation import CancellationManager

#: Key and value.
Record: TypeAlias = tuple[bytes, bytes]
#: All records of a file, given its path; keys without the path.
Format: TypeAlias = Callable[[str], Iterator[Record]]
#: Asks for the next file's name; calls back with it, or with an exception.
NextName: TypeAlias = Callable[[Done], None]


class Reader:
    """The records of all files, in turn; requests are served one after the other."""

    def __init__(self, name: str, read_records: Format, *, is_one_each: bool = False) -> None:
        """Make a reader.

        Args:
            name: what errors call it.
            read_records: the format of the files.
            is_one_each: whether a file is one record.  Then the reader is always between two
                files, and its state can be saved.

        """
        self._name: Final = name
        self._format: Final = read_records
        self._is_one_each: Final = is_one_each
        self._turns: Final = Turns()
        # The rest belongs to whoever has the turn.
        self._records: Iterator[Record] | None = None
        self.produced = 0
        self.completed = 0
        #: How many files were begun, and the last one's name.
        self._started = 0
        self._current = b""

    def reset(self) -> None:
        """Forget the current file and all counts."""
        self._records, self.produced, self.completed = None, 0, 0
        self._started, self._current = 0, b""

    def state(self) -> bytes:
        """Counts and the last file's name, as a ReaderBaseState.

        Raises:
            UnimplementedError: the reader may be in the middle of a file.

        """
        if not self._is_one_each:
            raise UnimplementedError("Reader SerializeState")
        message = ReaderBaseState(
            work_started=self._started,
            work_finished=self.completed,
            num_records_produced=self.produced,
            current_work=self._current,
        )
        return bytes(message.SerializeToString())

    def restore(self, state: bytes) -> None:
        """Take a state over.

        Raises:
            InvalidArgumentError: it is no state of such a reader, which is as new then.
            UnimplementedError: the reader may have been in the middle of a file.

        """
        self.reset()
        if not self._is_one_each:
            raise UnimplementedError("Reader RestoreState")
        try:
            message = ReaderBaseState.FromString(state)
        except DecodeError:
            text = state.decode("utf-8", "replace")
            raise InvalidArgumentError(f"Could not parse state for {self._name}: {text}") from None
        counts = message.work_started, message.work_finished, message.num_records_produced
        if min(counts) < 0:
            raise InvalidArgumentError(
                f"Unexpected negative value when restoring in {self._name}: {counts}"
            )
        if message.work_started > message.work_finished:
            raise InvalidArgumentError(
                f"Inconsistent work started vs. finished when restoring in {self._name}: "
                f"{message.work_started} and {message.work_finished}"
            )
        self._started, self.completed, self.produced = counts
        self._current = message.current_work

    def read(
        self, count: int, next_name: NextName, manager: CancellationManager, done: Done
    ) -> None:
        """Get up to so many records of one file, at least one; ``done`` gets them as a list."""

        def begin(error: OpError | None) -> None:
            if error is None:
                self._serve(count, next_name, finish)
            else:
                done(error)

        def finish(outcome: object) -> None:
            try:
                done(outcome)
            finally:
                self._turns.give_back()

        self._turns.take(manager, begin)

    def _serve(self, count: int, next_name: NextName, finish: Done) -> None:
        """Give records of the current file, or of the first one after it that has some."""

        def go_on(outcome: Any) -> None:
            if self._begin(outcome, finish):
                self._serve(count, next_name, finish)

        while True:
            try:
                records = self._take(count)
            except Exception as error:  # noqa: BLE001  (whoever asked is told)
                finish(from_exception(error))
                return
            if records:
                finish(records)
                return
            answer = _Answer(go_on)
            next_name(answer)
            if not answer.is_here() or not self._begin(answer.outcome, finish):
                return

    def _take(self, count: int) -> list[Record]:
        """Records of the current file; none at its end, or if there is no file."""
        if self._records is None:
            return []
        records: list[Record] = []
        for record in self._records:
            records.append(record)
            if self._is_one_each or len(records) == count:
                break
        if self._is_one_each or len(records) < count:
            self._records = None
            # All that were begun, also those that could not be read.
            self.completed = self._started
        self.produced += len(records)
        return records

    def _begin(self, outcome: Any, finish: Done) -> bool:
        """Open the file whose name has come; False if that, or getting the name, has failed."""
        if isinstance(outcome, BaseException):
            finish(outcome)
            return False
        name: bytes = outcome
        self._started, self._current = self._started + 1, name
        try:
            self._records = _with_path(name, self._format(os.fsdecode(name)))
        except Exception as error:  # noqa: BLE001  (whoever asked is told)
            finish(from_exception(error))
            return False
        return True


class _Answer:
    """An answer that is here when the question returns, or goes on by itself when it comes.

    So thousands of files that have nothing are passed over in a loop, and not on the stack.
    """

    def __init__(self, go_on: Done) -> None:
        self._go_on: Final = go_on
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        #: Whether the question has returned.  Set once.
        self._is_late = False
        self._is_here = False
        #: Of interest if it was here in time.
        self.outcome: object = None

    def __call__(self, outcome: object) -> None:
        """Take the answer."""
        with self._lock:
            if not self._is_late:
                self.outcome, self._is_here = outcome, True
                return
        self._go_on(outcome)

    def is_here(self) -> bool:
        """Whether it has come already, now that the question has returned."""
        with self._lock:
            self._is_late = True
            return self._is_here


def _with_path(name: bytes, records: Iterator[Record]) -> Iterator[Record]:
    for key, value in records:
        yield (name + b":" + key if key else name), value


# -- formats ---------------------------------------------------------------------------


def text_lines(files: FileSystem, skip: int) -> Format:
    """Lines without their ends, keyed by their number."""

    def read(path: str) -> Iterator[Record]:
        lines = files.read(path).split(b"\n")
        if not lines[-1]:
            lines.pop()
        for at, line in enumerate(lines):
            if at >= skip:
                yield str(at + 1).encode(), line.removesuffix(b"\r")

    return read


def whole_file(files: FileSystem) -> Format:
    """Everything that is in the file."""

    def read(path: str) -> Iterator[Record]:
        yield b"", files.read(path)

    return read


def only_name(path: str) -> Iterator[Record]:
    """The file's name itself; no file is read."""
    yield b"", os.fsencode(path)


def fixed_records(
    files: FileSystem, header: int, size: int, footer: int, hop: int, encoding: str
) -> Format:
    """Records of so many bytes between a header and a footer, one ``hop`` behind another."""

    def read(path: str) -> Iterator[Record]:
        data = files.read(path)
        if encoding:
            data = _unpacked(data, encoding, path)
        end = len(data) - footer
        for number, at in enumerate(range(header, end - size + 1, hop or size)):
            yield str(number).encode(), data[at : at + size]

    return read


def tf_records(files: FileSystem, compression: str) -> Format:
    """Records with their lengths in front, keyed by where they begin.

    Files that are packed in another way than those known are read as they are, as in TensorFlow.
    """
    method = compression if compression in METHODS else ""

    def read(path: str) -> Iterator[Record]:
        with files.open(path) as file, file_errors(path):
            for at, record in records_in(file, method, path, is_strict=False):
                yield str(at).encode(), record

    return read


def _unpacked(data: bytes, method: str, path: str) -> bytes:
    try:
        found = unpack(data, GZIP if method == "GZIP" else ZLIB, available_memory() // 4, path)
    except zlib.error as cause:
        raise DataLossError(f"{path}: cannot unpack {method}: {cause}") from cause
    if not found.is_complete:
        raise DataLossError(f"{path}: cannot unpack {method}: the file is cut off")
    if method == "GZIP" and any(found.rest):
        raise DataLossError(f"{path}: cannot unpack {method}: something else is behind it")
    return bytes(found.data)


def check_count(count: int) -> None:
    """Raise unless at least one record is asked for."""
    if count < 1:
        raise InvalidArgumentError(f"num_records must be at least 1, got {count}")
