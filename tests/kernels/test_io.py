"""Files: reading, writing and finding them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import errors
from support.ops import run_op


def test_written_file_is_read(tmp_path: Path) -> None:
    """Contents come back as they were; folders are made on the way."""
    path = bytes(tmp_path / "sub" / "folder" / "file")
    run_op("WriteFile", path, b"a\0\xff")

    assert run_op("ReadFile", path) == b"a\0\xff"


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("missing", errors.NotFoundError, "missing; No such file or directory"),
        ("", errors.FailedPreconditionError, "Is a directory"),
        ("file/below", errors.FailedPreconditionError, "Not a directory"),
        ("a\0b", errors.InvalidArgumentError, "null byte"),
    ],
)
def test_unreadable(tmp_path: Path, name: str, error: type[Exception], text: str) -> None:
    """Each reason has its code, and the message names the file."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(error, match=text):
        run_op("ReadFile", os.fsencode(f"{tmp_path}/{name}"))


def test_names_are_scalars() -> None:
    """One op reads one file."""
    with pytest.raises(errors.InvalidArgumentError, match=r"must be scalar, but had shape: \[1\]"):
        run_op("ReadFile", np.array([b"a"], object))


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["a*.txt"], ["a1.txt", "a2.txt"]),
        (["b*", "a*"], ["a1.txt", "a2.txt", "b.txt"]),
        (["a?.txt"], ["a1.txt", "a2.txt"]),
        (["a[^1].txt"], ["a2.txt"]),
        (["a[!1].txt"], ["a2.txt"]),
        (["*"], [".hidden", "a1.txt", "a2.txt", "b.txt", "sub"]),
        (["*/*"], ["sub/c.txt"]),
        (["b.txt", "b*"], ["b.txt", "b.txt"]),
        (["{a1,b}.txt"], []),
        (["none/*"], []),
        (["none"], []),
    ],
)
def test_matching_files(tmp_path: Path, patterns: list[str], found: list[str]) -> None:
    """Patterns as TensorFlow has them: hidden files count, braces mean nothing."""
    (tmp_path / "sub").mkdir()
    for name in ("a1.txt", "a2.txt", "b.txt", ".hidden", "sub/c.txt"):
        (tmp_path / name).write_bytes(b"")

    given: Any = np.array([os.fsencode(tmp_path / pattern) for pattern in patterns], object)
    names = run_op("MatchingFiles", given)

    assert [os.path.relpath(os.fsdecode(name), tmp_path) for name in names] == found


def test_sharded_names() -> None:
    """Numbers have five digits, or as many as they need."""
    assert run_op("ShardedFilename", b"a/b", np.int32(3), np.int32(100)) == b"a/b-00003-of-00100"
    assert run_op("ShardedFilename", b"a", np.int32(3), np.int32(123456)) == b"a-00003-of-123456"
    assert run_op("ShardedFilespec", b"a", np.int32(12)) == b"a-?????-of-00012"
    with pytest.raises(errors.InvalidArgumentError, match=r"basename must be a scalar"):
        run_op("ShardedFilename", np.array([b"a", b"b"], object), np.int32(3), np.int32(100))
