"""How far a step is can be seen while it runs."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.tracing.counting import CountingRecorder, FrameProgress

TURNS = 40


def loop_and_queue() -> ps.Graph:
    """A loop of 40 turns with a branch that is never taken; and a queue that nobody fills."""
    graph = ps.Graph()
    with graph.as_default():
        out = ps.while_loop(
            lambda i: i < TURNS,
            lambda i: [ps.cond(i < 0, lambda: ps.ops.neg(i), lambda: i + 1)],
            [ps.constant(np.int32(0))],
            name="loop",
        )
        ps.ops.identity(out[0], name="out")
        queue = ps.ops.fifo_queue_v2(component_types=["float"], name="queue")
        ps.ops.queue_dequeue_v2(queue, component_types=["float"], name="get")
    return graph


def by_frame(recorder: CountingRecorder) -> dict[str, FrameProgress]:
    """The rows, of one device, by frame."""
    return {row.now.frame: row for row in recorder.progress()}


def test_activations_are_counted_by_frame() -> None:
    """As a full trace counts them, dead ones apart."""
    recorder = CountingRecorder()
    with ps.Session(loop_and_queue()) as session:
        session.run("out:0", options=ps.RunOptions(recorder=recorder))
        traced = ps.trace(session, "out:0", detail="nodes").trace
    rows = by_frame(recorder)
    (loop,) = (frame for frame in rows if frame)
    for frame, row in rows.items():
        ran = [a for a in traced.activations if a.place.frame == frame]
        dead = [d for d in traced.dead if d.place.frame == frame]
        assert (row.ran, row.dead) == (len(ran), len(dead))
    assert rows[loop].dead > TURNS
    assert len(recorder.steps) == 1


def test_what_waits_is_seen_from_another_thread() -> None:
    """A dequeue of an empty queue waits; nothing is ready, and nothing computes."""
    recorder = CountingRecorder()
    with ps.Session(loop_and_queue()) as session:
        run = session.run_async("get:0", options=ps.RunOptions(recorder=recorder))
        end = time.monotonic() + 30
        while not (rows := by_frame(recorder)) or not rows[""].now.waiting:
            assert time.monotonic() < end
            time.sleep(0.01)
        now = rows[""].now
        assert (now.ready, now.running, now.waiting) == (0, 0, 1)
        run.cancel()
        with pytest.raises(ps.errors.CancelledError):
            run.result()
    assert by_frame(recorder)[""].now.waiting == 0


def test_the_command_ends_with_the_counts(tmp_path: Path) -> None:
    """Names of the model cannot command the terminal."""
    path = tmp_path / "model.pb"
    graph = loop_and_queue().as_graph_def()
    for node in graph.node:
        if "frame_name" in node.attr:
            node.attr["frame_name"].s = b"fr\x1b[2Jame"
    path.write_bytes(graph.SerializeToString())
    done = CliRunner().invoke(
        main, ["run", str(path), "--fetch", "out:0", "--repeat", "3", "--live"]
    )
    assert done.exit_code == 0, done.output
    assert "3 steps done" in done.stderr
    assert re.search(r"graph\s+0\s+0\s+0\s+0\s+\d+", done.stderr)
    assert "\x1b[2J" not in done.stderr
    assert r"fr\x1b[2Jame" in done.stderr


@pytest.mark.slow
def test_a_terminal_shows_what_waits(tmp_path: Path) -> None:
    """While the step waits, its node is on the screen; and what it waits for, when it stalls."""
    path = tmp_path / "model.pb"
    path.write_bytes(loop_and_queue().as_graph_def().SerializeToString())
    main_end, other_end = pty.openpty()
    asked = ["run", str(path), "--fetch", "get:0", "--live", "--stalls", "0.5", "--timeout", "60"]
    program = subprocess.Popen(
        [sys.executable, "-m", "penstock", *asked],
        stdin=other_end, stdout=other_end, stderr=other_end,
        env={**os.environ, "COLUMNS": "150", "TERM": "xterm"},
    )  # fmt: skip
    os.close(other_end)
    screen, end = b"", time.monotonic() + 50
    wanted = (b"running  get (QueueDequeueV2)", b"A step has not moved for")
    try:
        while not all(text in screen for text in wanted):
            assert time.monotonic() < end, screen
            if select.select([main_end], [], [], 1)[0]:
                screen += os.read(main_end, 4096)
    finally:
        program.kill()
        program.wait()
        os.close(main_end)
