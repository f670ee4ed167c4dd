"""Files of records: TensorFlow's, our own, and damaged ones."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock import errors
from penstock.defs.record_file import framed
from support.record_values import RECORDS

FILES = Path(__file__).parent / "files"
PLAIN = b"".join(map(framed, RECORDS))


def stored(tmp_path: Path, content: bytes) -> Path:
    """A file."""
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("method", ["", "GZIP", "ZLIB"])
def test_reads_what_tensorflow_wrote(method: str) -> None:
    """Packed in all ways; how is told by the file itself, or by the caller."""
    path = FILES / f"records{method.lower()}"

    assert list(ps.records.read(path)) == list(RECORDS)
    assert list(ps.records.read(path, method)) == list(RECORDS)


def test_writes_what_tensorflow_writes(tmp_path: Path) -> None:
    """Byte for byte; what is packed unpacks to the same."""
    assert ps.records.write(tmp_path / "plain", RECORDS) == len(RECORDS)
    assert (tmp_path / "plain").read_bytes() == (FILES / "records").read_bytes() == PLAIN
    ps.records.write(tmp_path / "gzip", RECORDS, "GZIP")
    assert gzip.decompress((tmp_path / "gzip").read_bytes()) == PLAIN
    ps.records.write(tmp_path / "zlib", RECORDS, "ZLIB")
    assert zlib.decompress((tmp_path / "zlib").read_bytes()) == PLAIN


def test_many_members_are_one_file(tmp_path: Path) -> None:
    """Files of gzip may be put behind each other, also in the middle of a record, and padded."""
    content = packed(PLAIN[:40]) + packed(b"") + packed(PLAIN[40:]) + bytes(600)

    assert list(ps.records.read(stored(tmp_path, content))) == list(RECORDS)


def test_long_records_in_small_pieces(tmp_path: Path) -> None:
    """Records longer than what is unpacked at once, and many short ones."""
    records = [b"x" * (3 << 20), *(b"%d" % n for n in range(20_000)), b"y" * (40 << 20)]
    ps.records.write(tmp_path / "file", records, "GZIP")

    assert list(ps.records.read(tmp_path / "file")) == records


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """What was there stays, and there is no other file."""
    path = stored(tmp_path, b"old")

    def records() -> Any:
        yield b"first"
        raise KeyError("x")

    with pytest.raises(KeyError):
        ps.records.write(path, records())
    with pytest.raises(errors.InvalidArgumentError, match="bytes, not a str"):
        ps.records.write(path, ["text"])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_writer_is_open_in_its_block(tmp_path: Path) -> None:
    """Neither before nor behind; it counts."""
    writer = ps.records.Writer(tmp_path / "file")
    with pytest.raises(errors.FailedPreconditionError):
        writer.write(b"a")
    with writer:
        writer.write(b"a")
        writer.write(memoryview(b"bc"))
    with pytest.raises(errors.FailedPreconditionError):
        writer.write(b"a")
    assert writer.count == 2
    assert list(ps.records.read(tmp_path / "file")) == [b"a", b"bc"]


def packed(content: bytes) -> bytes:
    """By gzip, always alike."""
    return gzip.compress(content, mtime=0)


def flipped(content: bytes, at: int) -> bytes:
    """One bit is another."""
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


#: What is read, how many records come out, and what the error says, if one comes.
DAMAGES = [
    (flipped(PLAIN, 0), 0, r"corrupted record at 0 \(Is this even a TFRecord file\?\)"),
    (flipped(PLAIN, 9), 0, r"corrupted record at 0 \(Is this even"),
    (flipped(PLAIN, 13), 0, "corrupted record at 12"),
    (flipped(PLAIN, 16), 0, "corrupted record at 12"),
    (PLAIN[:14], 0, "truncated record at 0"),
    (PLAIN[:19], 1, ""),
    (PLAIN[:25], 1, "truncated record at 19"),
    (PLAIN[:-1], 3, "truncated record at 101"),
    (PLAIN + b"x", 4, "truncated record at 5237"),
    (framed(b"")[:8] + b"\xff" * 8, 0, "corrupted record at 0"),
    (packed(PLAIN)[:-6], 4, "the file is cut off"),
    (packed(PLAIN[:-2]), 3, "truncated record at 101"),
    (packed(PLAIN) + b"more", 4, r"inflate\(\) failed with .*incorrect header check"),
    (flipped(packed(PLAIN), -6), 0, r"inflate\(\) failed with .*incorrect data check"),
    (zlib.compress(PLAIN) + b"more", 4, "something else"),
    (b"nonsense-nonsense", 0, "corrupted record at 0"),
    (b"", 0, ""),
    (b"x", 0, "truncated record at 0"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "count", "says"), DAMAGES, ids=map(str, range(len(DAMAGES))))
def test_damage_is_told_where_it_is(tmp_path: Path, content: bytes, count: int, says: str) -> None:
    """Records before it are given; the error names the file and the place."""
    found = []
    try:
        for record in ps.records.read(stored(tmp_path, content)):
            found.append(record)  # noqa: PERF402  (they are wanted although an error comes)
    except errors.DataLossError as error:
        assert says
        assert str(tmp_path / "file") in error.reason
        with pytest.raises(errors.DataLossError, match=says):
            raise
    else:
        assert not says

    assert found == list(RECORDS[:count])


def test_a_length_that_is_a_lie_takes_no_memory(tmp_path: Path) -> None:
    """A head with a right checksum may claim any length."""
    from penstock.defs.crc32c import crc32c, mask

    head = (2**62).to_bytes(8, "little")
    head += mask(crc32c(head)).to_bytes(4, "little")

    with pytest.raises(errors.DataLossError, match="truncated record at 0"):
        list(ps.records.read(stored(tmp_path, head + bytes(1000))))


def test_other_compressions_are_refused(tmp_path: Path) -> None:
    """The error says which there are."""
    for act in (lambda: ps.records.write(tmp_path / "x", [], "SNAPPY"),
                lambda: list(ps.records.read(stored(tmp_path, b""), "gzip"))):  # fmt: skip
        with pytest.raises(errors.InvalidArgumentError, match="GZIP, ZLIB"):
            act()
