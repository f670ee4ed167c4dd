"""``penstock debug`` at a real terminal."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from support.debugged import doubling, logarithm

pytest.importorskip("prompt_toolkit")
pytest.importorskip("pty", reason="there are no terminals of this kind")

from support.terminal import Terminal

CTRL_C = "\x03"
PROMPT = r"\(penstock\)"


def saved(graph: ps.Graph, folder: Path) -> None:
    (folder / "model.pb").write_bytes(ps.graph_to_def(graph).SerializeToString())


def telling_when(condition: str, folder: Path) -> list[str]:
    """The option for a filter that says when a step has come so far, and lets it go on."""
    (folder / "checks.py").write_text(
        "def is_there(datum, value):\n"
        f"    if {condition}:\n"
        "        print('under way', flush=True)\n"
        "    return False\n"
    )
    return ["--filter", "checks.py:is_there"]


def test_a_conversation(tmp_path: Path) -> None:
    """Tfdbg's commands, completion by Tab, a mistake, and the end."""
    saved(logarithm(), tmp_path)
    command = ["debug", "model.pb", "--feed", "x:0=[3,0]", "--fetch", "y:0"]
    with Terminal(command, tmp_path) as terminal:
        terminal.expect(PROMPT)
        terminal.type("run -f has_inf_or\t")  # of which there is one
        terminal.expect("has_inf_or_nan")
        terminal.type("\r")
        terminal.expect(r"after log \(Log\): passes has_inf_or_nan")
        terminal.expect(r"log:0 float32\[2\] \(Log\) = \[0\.69\d+ +nan\]")
        terminal.expect(PROMPT)
        terminal.type("pt les\t")
        terminal.expect("less")
        terminal.type(":0\r")
        terminal.expect(r"\[ 2\., -1\.\]")
        terminal.expect(PROMPT)
        terminal.type("ni -t\r")
        terminal.expect("GraphDefs hold no tracebacks")
        terminal.expect(PROMPT)
        terminal.type("lt\r")
        terminal.expect(r"tensors; 0 were forgotten[\s\S]*less:0 float32\[2\] \(Sub\)")
        terminal.expect(PROMPT)
        terminal.type("pt nothing\r")
        terminal.expect("NOT_FOUND: nothing has no value yet")
        terminal.expect(PROMPT)
        terminal.type(f"half a line{CTRL_C}")
        terminal.expect(f"half a line[\\s\\S]*{PROMPT}")
        terminal.type("inject_value log:0 [0,0]\r")
        terminal.expect("changed log:0 for all who read it")
        terminal.expect(PROMPT)
        terminal.type("run\r")
        terminal.expect("the step has ended: all is computed")
        terminal.expect(PROMPT)
        terminal.type("exit\r")
        assert terminal.ends() == 0
        assert "Traceback" not in terminal.written


def test_ctrl_c_stops_a_step_at_its_next_node(tmp_path: Path) -> None:
    """And the step goes on afterwards; Ctrl-D leaves."""
    saved(doubling(10**9), tmp_path)
    telling = telling_when("datum.iterations == (50,) and datum.op == 'Mul'", tmp_path)
    command = ["debug", "model.pb", "--feed", "x:0=0", "--fetch", "z:0", *telling]
    with Terminal(command, tmp_path) as terminal:
        terminal.expect(PROMPT)
        terminal.type("run -f is_there\r")
        terminal.expect("under way")
        terminal.type(CTRL_C)
        terminal.expect(r"\w+ loop/.* in loop/while_context\[\d+\]: interrupted")
        terminal.expect(PROMPT)
        terminal.type("s\r")
        terminal.expect(r"after loop/.*: step")
        terminal.expect(PROMPT)
        terminal.type("\x04")
        assert terminal.ends() == 0


@pytest.mark.slow
def test_a_step_that_waits_is_cancelled_by_another_ctrl_c(tmp_path: Path) -> None:
    """It is said what it waits for, and that it has ended."""
    graph = ps.Graph()
    with graph.as_default():
        queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.float32], name="queue")
        ps.ops.QueueDequeueV2(handle=queue, component_types=[ps.dtypes.float32], name="take")
    saved(graph, tmp_path)
    telling = telling_when("datum.node == 'queue'", tmp_path)
    with Terminal(["debug", "model.pb", "--fetch", "take:0", *telling], tmp_path) as terminal:
        terminal.expect(PROMPT)
        terminal.type("run -f is_there\r")
        terminal.expect("under way")
        terminal.type(CTRL_C)
        while "interrupted" in terminal.expect("interrupted|The step is not at a node")[0]:
            terminal.expect(PROMPT)  # It had not come to the node that waits.
            terminal.type("run\r")
            time.sleep(1)
            terminal.type(CTRL_C)
        assert "take (QueueDequeueV2)" in terminal.written
        terminal.type(CTRL_C)
        terminal.expect("the step has ended: CancelledError")
        terminal.expect(PROMPT)
        terminal.type("quit\r")
        assert terminal.ends() == 0


def test_without_prompt_toolkit_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name of the extra; a pipe needs none."""
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    with (
        ps.debug(doubling(1), "z:0", {"x": 3.0}) as debugger,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys.stdin, "isatty", lambda: True)
        with pytest.raises(ps.errors.FailedPreconditionError, match=r"penstock\[debug\]"):
            debugger.interact()


def test_names_of_strangers_are_escaped(tmp_path: Path) -> None:
    """In values and attributes of a model, wherever they are shown."""
    graph = ps.Graph()
    with graph.as_default():
        evil = ps.constant(b"\x1b]0;owned\x07\x1b[2J", name="evil")
        ps.ops.identity(evil, name="y")
    saved(graph, tmp_path)
    lines = ["run", "pt evil", "ni -a evil", "li y", "lt", "where", "s", "watch evil", "pt -s evil"]
    commands = [word for line in lines for word in ("-c", line)]
    done = CliRunner().invoke(
        main, ["debug", str(tmp_path / "model.pb"), "--fetch", "y:0", "--batch", *commands]
    )
    assert done.exit_code == 0, done.output
    assert "owned" in done.output
    assert "\x1b" not in done.output
    assert "\x07" not in done.output


def test_what_cannot_be_done_is_an_exit_status(tmp_path: Path) -> None:
    """For whoever runs it in a program; functions are loaded from files that are named."""
    saved(doubling(3), tmp_path)
    (tmp_path / "fixes.py").write_text("def half(y, two):\n    return y / two\n")
    start = ["debug", str(tmp_path / "model.pb"), "--feed", "x:0=8", "--fetch", "z:0", "--batch"]
    override = f"override loop/mul {tmp_path}/fixes.py:half"
    done = CliRunner().invoke(main, [*start, "-c", override, "-c", "run", "-c", "eval `z:0`"])
    assert done.exit_code == 0, done.output
    assert done.output.endswith("\n-1.\n")
    for wrong in ("pt z", "override z nothing.py:half", f"override z {tmp_path}/fixes.py:no"):
        assert CliRunner().invoke(main, [*start, "-c", wrong]).exit_code == 1
    (tmp_path / "broken.py").write_text("1 / 0\n")
    broken = CliRunner().invoke(main, [*start, "--filter", f"{tmp_path}/broken.py:f"])
    assert broken.exit_code == 1
    assert "division by zero" in broken.output
    assert CliRunner().invoke(main, start[:-3]).exit_code == 2
