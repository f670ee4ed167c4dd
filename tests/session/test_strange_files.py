"""What has a name and is no regular file: no op that reads waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core import dtypes
from support.file_ops import GIVEN, USES
from support.ops import run_op
from support.sketch import sketch

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")

#: Ops that read the file whose name they are given.
READING = [
    op
    for op in USES
    if "Func" not in op
    and not op.startswith(("Write", "Save", "Merge", "Create", "Print", "Matching"))
]


@pytest.mark.parametrize("op", READING)
def test_reading_a_fifo(op: str, tmp_path: Path) -> None:
    """A FIFO that nobody writes to is refused at once, by name."""
    for name in ("file", "file.index"):
        os.mkfifo(tmp_path / name)
    graph = sketch((GIVEN + USES[op]).replace("$", str(tmp_path)))
    with ps.Session(graph) as session, pytest.raises(errors.FailedPreconditionError) as caught:
        session.run("y", options=ps.RunOptions(timeout_in_ms=20_000))

    assert f"{tmp_path}/file" in caught.value.reason
    assert "Not a regular file, but a FIFO" in caught.value.reason


def test_devices_without_an_end() -> None:
    """A device that gives zeros for ever is not read for ever."""
    for path in (b"/dev/zero", b"/dev/urandom", b"file:///dev/zero"):
        with pytest.raises(errors.FailedPreconditionError, match="but a character device"):
            run_op("ReadFile", path)


def test_a_checkpoint_whose_data_is_a_fifo(tmp_path: Path) -> None:
    """The index is a file, and what it leads to need not be one."""
    prefix, name = bytes(tmp_path / "m"), np.array([b"a"], object)
    whole = np.array([b""], object)
    run_op("SaveV2", prefix, name, whole, [np.float32([1, 2])])
    data = tmp_path / "m.data-00000-of-00001"
    data.unlink()
    os.mkfifo(data)

    with pytest.raises(errors.FailedPreconditionError, match="Not a regular file, but a FIFO"):
        run_op("RestoreV2", prefix, name, whole, dtypes=(dtypes.float32,))


def test_listing_opens_nothing(tmp_path: Path) -> None:
    """The name of a FIFO is a name like any other."""
    os.mkfifo(tmp_path / "fifo")

    assert run_op("MatchingFiles", bytes(tmp_path / "f*")) == [bytes(tmp_path / "fifo")]


def test_the_command_line(tmp_path: Path) -> None:
    """A graph that is a FIFO is a sentence, not a wait."""
    os.mkfifo(tmp_path / "graph.pb")
    command = [sys.executable, "-m", "penstock", "show", str(tmp_path / "graph.pb")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode != 0
    assert "Not a regular file, but a FIFO" in done.stderr
    assert "Traceback" not in done.stderr
