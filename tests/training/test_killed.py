"""A process that is killed while it saves; the next one goes on from a checkpoint that is whole.

A child process forks for each place at which it is to be killed: a line of the modules that save,
counted by Python's own tracing.  So a kill falls between any two calls of the system.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the child forks")

#: argv: folder, first place, distance of places, the most.  Prints a record for each child.
_PROGRAM = """
import json, logging, os, signal, sys
import numpy as np
import penstock as ps
from penstock.training import MonitoredSession, Saver, Scaffold

MODULES = ("core/files.py", "defs/bundle_writer.py", "checkpoint/save.py",
           "checkpoint/state_file.py", "training/saver.py")

def train(folder, last, kill_at=0):
    graph = ps.Graph()
    with graph.as_default():
        step = ps.Variable(np.int64(0), name="global_step")
        w = ps.Variable(np.ones(1000), name="w")
        moved = w.assign(w.value() * 1.5 + ps.ops.cast(step.value(), "float64"))
        with ps.control_dependencies([moved]):
            move = step.assign_add(np.int64(1))
        scaffold = Scaffold(saver=Saver(max_to_keep=2))
    lines = [0]

    def local(frame, event, arg):
        if event == "line":
            lines[0] += 1
            if lines[0] == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
        return local

    def called(frame, event, arg):
        if frame.f_code.co_filename.endswith(MODULES) and event == "call":
            return local
        return None

    with MonitoredSession(graph, checkpoint_dir=folder, scaffold=scaffold,
                          save_checkpoint_steps=1) as session:
        if kill_at:
            sys.settrace(called)
        while int(session.run(step)) < last:
            session.run(move)
        result = int(session.run(step)), float(session.run(w)[7])
    sys.settrace(None)
    return result

def forked(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return status

base, first, distance, most = sys.argv[1], *map(int, sys.argv[2:])
place = first
while True:
    folder = os.path.join(base, str(place))
    status = forked(lambda: train(folder, 4, place))
    was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    saved = ps.checkpoint.latest(folder)
    record = {"place": place, "killed": was_killed, "left": sorted(os.listdir(folder))}
    if saved is not None:
        values = ps.checkpoint.load(saved)
        record["step"], record["w"] = int(values["global_step"]), float(values["w"][7])
        record["files"] = sorted({len(values["w"])})
    record["ok"] = was_killed or status == 0
    record["again"] = forked(lambda: train(folder, 6)) == 0
    values = ps.checkpoint.load(ps.checkpoint.latest(folder))
    record["end"] = [int(values["global_step"]), float(values["w"][7])]
    print(json.dumps(record), flush=True)
    place += distance
    if not was_killed or place > most:
        break
"""


def after(steps: int) -> float:
    """What ``w`` is after so many steps."""
    value = 1.0
    for number in range(steps):
        value = value * 1.5 + number
    return value


def check(folder: Path, first: int, distance: int, most: int = 1_000_000) -> list[int]:
    """Kill at every so many lines; returns the steps that were saved each time."""
    arguments = [str(folder), *map(str, (first, distance, most))]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, check=True, text=True
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    for record in records:
        assert record["ok"], record
        # The first checkpoint was complete before anybody was killed.
        assert "w" in record, record
        assert record["w"] == after(record["step"]), record
        assert record["again"], record
        assert record["end"] == [6, after(6)], record
    assert [record["killed"] for record in records[:-1]] == [True] * (len(records) - 1)
    return [record["step"] for record in records]


@pytest.mark.parametrize(
    ("distance", "saved"),
    [pytest.param(61, {0, 1, 2, 3, 4}, marks=pytest.mark.slow), (401, {0, 4})],
    ids=["many", "few"],
)
def test_some_places(tmp_path: Path, distance: int, saved: set[int]) -> None:
    """Places in each of four saves: what is there is whole, and no step is lost or doubled."""
    steps = check(tmp_path, 7, distance)
    assert steps == sorted(steps)
    assert set(range(5)) >= set(steps) >= saved


@pytest.mark.slow
def test_all_places_of_the_first_saves(tmp_path: Path) -> None:
    """One line in nine of one save after another, the removal of an old checkpoint included."""
    steps = check(tmp_path, 1, 9, most=900)
    assert steps == sorted(steps)
    assert len(set(steps)) > 2


def test_what_a_killed_process_left_is_no_trouble(tmp_path: Path) -> None:
    """Drafts, and a checkpoint that nobody names, are neither restored nor in the way."""
    (tmp_path / "model.ckpt-9.index.tempstate0123456789abcdef").write_bytes(b"half")
    ps.checkpoint.save(tmp_path / "model.ckpt-9", {"w": [1.0]})
    graph = ps.Graph()
    with graph.as_default():
        step = ps.Variable(0, name="global_step")
        move = step.assign_add(1)
    options = {"checkpoint_dir": tmp_path, "save_checkpoint_steps": 1}
    with ps.MonitoredSession(graph, **options) as session:
        assert [int(session.run(move)) for _ in range(10)] == list(range(1, 11))
    assert ps.checkpoint.latest(tmp_path) == str(tmp_path / "model.ckpt-10")
    assert list(ps.checkpoint.load(tmp_path / "model.ckpt-9")) == ["global_step"]
