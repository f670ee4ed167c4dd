"""Readers in sessions, fed by a queue of file names; and barriers, which wait alike."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import RunOptions, Session, errors
from penstock.defs.record_file import framed
from support.sketch import sketch

READER = """
    name = Placeholder() dtype=string
    n = Placeholder() dtype=int64
    q = FIFOQueueV2() component_types=['string'] shapes=[[]]
    put = QueueEnqueueV2(q, name)
    close = QueueCloseV2(q)
    r = {maker}
    read = ReaderReadV2(r, q)
    read_many = ReaderReadUpToV2(r, q, n)
    produced = ReaderNumRecordsProducedV2(r)
    completed = ReaderNumWorkUnitsCompletedV2(r)
    reset = ReaderResetV2(r)
    state = Placeholder() dtype=string
    save = ReaderSerializeStateV2(r)
    restore = ReaderRestoreStateV2(r, state)
"""


def reader(maker: str, *paths: Path) -> Any:
    """A function that runs nodes, after these files' names went into the queue."""
    session = Session(sketch(READER.format(maker=maker)))

    def run(*fetches: str, **given: Any) -> Any:
        return session.run(list(fetches), {f"{key}:0": value for key, value in given.items()})

    for path in paths:
        run("put", name=str(path).encode())
    run("close")
    return run


def test_text_lines(tmp_path: Path) -> None:
    """Lines come file after file, keyed by name and number, until the queue is at its end."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"head\none\r\ntwo\n")
    second.write_bytes(b"head\nthree")
    run = reader("TextLineReaderV2() skip_header_lines=1", first, second)
    assert run("read:0", "read:1") == [f"{first}:2".encode(), b"one"]
    assert run("read:1") == [b"two"]
    assert run("read:1") == [b"three"]
    with pytest.raises(errors.OutOfRangeError, match="closed and has insufficient"):
        run("read:1")
    assert run("produced:0", "completed:0") == [3, 2]


def test_read_up_to_stays_in_one_file(tmp_path: Path) -> None:
    """Several records at once are of the same file."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"1\n2\n")
    second.write_bytes(b"3\n")
    run = reader("TextLineReaderV2()", first, second)
    assert run("read_many:1", n=np.int64(9))[0].tolist() == [b"1", b"2"]
    assert run("read_many:1", n=np.int64(9))[0].tolist() == [b"3"]


def test_whole_file_and_fixed_length(tmp_path: Path) -> None:
    """A file is one record, or several of one size between header and footer."""
    path = tmp_path / "a"
    path.write_bytes(b"hhaabbccf")
    assert reader("WholeFileReaderV2()", path)("read:1") == [b"hhaabbccf"]
    run = reader("FixedLengthRecordReaderV2() header_bytes=2 record_bytes=2 footer_bytes=1", path)
    assert [run("read:1")[0] for _ in range(3)] == [b"aa", b"bb", b"cc"]


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is an error of the read, and the next file is read after."""
    there = tmp_path / "b"
    there.write_bytes(b"x\n")
    run = reader("TextLineReaderV2()", tmp_path / "a", there)
    with pytest.raises(errors.NotFoundError, match="No such file"):
        run("read:1")
    assert run("read:1") == [b"x"]


def test_a_whole_file_is_done_when_it_is_read(tmp_path: Path) -> None:
    """What has one record each counts as done at once; lines only when there are no more."""
    path = tmp_path / "a"
    path.write_bytes(b"1\n")
    for maker, done in (("WholeFileReaderV2()", 1), ("TextLineReaderV2()", 0)):
        run = reader(maker, path)
        run("read:1")
        assert run("produced:0", "completed:0") == [1, done]


def test_a_state_is_restored_between_files(tmp_path: Path) -> None:
    """Counts go on from a saved state, in another session, too; the files come from the queue."""
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(path.name.encode())
    run = reader("WholeFileReaderV2()", *paths)
    assert run("read:1") == [b"a"]
    (state,) = run("save:0")
    assert state == b"\x08\x01\x10\x01\x18\x01\x22" + bytes([len(str(paths[0]))]) + bytes(paths[0])
    assert run("read:1") == [b"b"]
    run("restore", state=state)
    assert run("produced:0", "completed:0", "save:0") == [1, 1, state]
    assert run("read:1", "produced:0")[0] == b"c"

    other = reader("WholeFileReaderV2()", paths[2])
    other("restore", state=state)
    assert other("read:1") == [b"c"]
    assert other("produced:0", "completed:0") == [2, 2]


BARRIER = """
    keys = Placeholder() dtype=string
    x = Placeholder() dtype=float32
    n = Placeholder() dtype=int32
    b = Barrier() component_types=['float32','float32'] shapes=[[],[]]
    put0 = BarrierInsertMany(b, keys, x) component_index=0
    put1 = BarrierInsertMany(b, keys, x) component_index=1
    take = BarrierTakeMany(b, n) component_types=['float32','float32']
    close = BarrierClose(b)
    ready = BarrierReadySize(b)
    incomplete = BarrierIncompleteSize(b)
"""


def test_barrier_puts_tuples_together() -> None:
    """A key's tuple can be taken when all its components have come; then nothing is left."""
    session = Session(sketch(BARRIER))

    def put(node: str, keys: list[bytes], values: list[float]) -> None:
        array = np.array(keys, object)
        session.run(node, {"keys:0": array, "x:0": np.float32(values)})

    put("put0", [b"a", b"b"], [1, 2])
    put("put1", [b"b"], [20])
    assert session.run(["ready:0", "incomplete:0"]) == [1, 1]
    keys, first, second = session.run(["take:1", "take:2", "take:3"], {"n:0": np.int32(1)})
    assert (keys.tolist(), first.tolist(), second.tolist()) == ([b"b"], [2], [20])
    with pytest.raises(errors.InvalidArgumentError, match="already has a value for component 0"):
        put("put0", [b"a"], [3])
    session.run("close")
    with pytest.raises(errors.CancelledError):
        put("put0", [b"c"], [3])
    put("put1", [b"a"], [10])
    with pytest.raises(errors.OutOfRangeError, match="insufficient elements"):
        session.run("take:1", {"n:0": np.int32(2)})


def test_a_cancelled_reader_takes_no_record(tmp_path: Path) -> None:
    """Who waits for its turn at a reader ends at its deadline, and reads nothing later."""
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n")
    session = Session(sketch(READER.format(maker="TextLineReaderV2()")))
    first = session.run_async("read:1")  # waits for a file, and has the turn
    with pytest.raises(errors.DeadlineExceededError) as caught:
        session.run("read:1", options=RunOptions(timeout_in_ms=50))
    session.run("put", {"name:0": str(path).encode()})

    assert "has not called done" not in str(caught.value)
    assert first.result(30) == b"one"
    assert session.run("read:1") == b"two"


def test_many_empty_files(tmp_path: Path) -> None:
    """Files without a record are passed over, however many there are."""
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.touch()
    full.write_bytes(b"one")
    run = reader("TextLineReaderV2()", *[empty] * 500, full)

    assert run("read:1") == [b"one"]
    assert run("completed:0") == [500]


# -- records that are damaged -----------------------------------------------------------

RECORDS = [b"abc", b"", b"defgh" * 10]
PLAIN = b"".join(map(framed, RECORDS))


def packed(content: bytes) -> bytes:
    """By gzip, always alike."""
    return gzip.compress(content, mtime=0)


def flipped(content: bytes, at: int) -> bytes:
    """One bit is another."""
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


#: What is read, how many records come out, and what the error says, if one comes.
DAMAGES = [
    (flipped(PLAIN, 13), "", 0, "corrupted record at 12"),
    (flipped(PLAIN, 16), "", 0, "corrupted record at 12"),
    (flipped(PLAIN, 0), "", 0, r"corrupted record at 0 \(Is this even a TFRecord file\?\)"),
    (flipped(PLAIN, 9), "", 0, r"corrupted record at 0 \(Is this even a TFRecord file\?\)"),
    (PLAIN[:5], "", 0, ""),
    (PLAIN[:12], "", 0, "truncated record at 0"),
    (PLAIN[:17], "", 0, "truncated record at 0"),
    (PLAIN[:40], "", 2, ""),
    (PLAIN[:-1], "", 2, "truncated record at 35"),
    (PLAIN + b"x", "", 3, ""),
    (packed(PLAIN) * 2, "GZIP", 6, ""),
    (packed(PLAIN)[:-10], "GZIP", 2, "truncated record at 35"),
    (packed(PLAIN) + b"\0\0x", "GZIP", 3, "incorrect header check"),
    (PLAIN, "GZIP", 0, "incorrect header check"),
    (zlib.compress(PLAIN) * 2, "ZLIB", 3, ""),
    (zlib.compress(PLAIN)[:-6], "ZLIB", 2, "truncated record at 35"),
    (packed(PLAIN), "", 0, "corrupted record at 0"),
    (PLAIN, "OTHER", 3, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "method", "count", "says"), DAMAGES, ids=map(str, range(len(DAMAGES)))
)
def test_damaged_records_are_told_as_by_tensorflow(
    tmp_path: Path, content: bytes, method: str, count: int, says: str
) -> None:
    """As many records as TensorFlow reads, and its error; a head that is cut off is none."""
    path = tmp_path / "file"
    path.write_bytes(content)
    run = reader(f"TFRecordReaderV2() compression_type={method!r}", path)
    for _ in range(count):
        run("read:1")
    error = errors.DataLossError if says else errors.OutOfRangeError
    with pytest.raises(error, match=says or "closed and has insufficient"):
        run("read:1")
