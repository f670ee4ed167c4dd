"""What commands say, and what they do to a debugger."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.debugger.command import words_of
from penstock.debugger.commands import BY_NAME, COMMANDS
from penstock.debugger.debug import InteractiveDebugger
from penstock.debugger.look_commands import split_part
from penstock.debugger.prompt import completions
from support.debugged import LOOP, branches, doubling, logarithm
from support.functions import graph_def_with


@pytest.fixture
def loop() -> Iterator[InteractiveDebugger]:
    """The loop that doubles, of which no step has begun."""
    with ps.debug(doubling(), ["z:0"], {"x:0": 3.0}) as debugger:
        yield debugger


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pt x:0[0, :] -s", ["pt", "x:0[0, :]", "-s"]),
        ("pf 'a b' -r [[0, 1], [2, 3]]", ["pf", "a b", "-r", "[[0, 1], [2, 3]]"]),
        ("eval `x:0` + 1", ["eval", "`x:0`", "+", "1"]),
        ("it's", ["it's"]),
        ("", []),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    """Blanks in quotes, brackets and backticks part nothing."""
    assert words_of(line) == words


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x:0", ("x:0", "")),
        ("x:0[0, :]", ("x:0", "[0, :]")),
        ("x:0@loop[3]", ("x:0@loop[3]", "")),
        ("x:0@loop[3][1]", ("x:0@loop[3]", "[1]")),
        ("x:0@out[3]/in/ner[2][:, 1]", ("x:0@out[3]/in/ner[2]", "[:, 1]")),
    ],
)
def test_a_part_of_a_tensor(text: str, parts: tuple[str, str]) -> None:
    """What stands last in brackets, but for the iteration of a loop."""
    assert split_part(text) == parts


def test_every_command_has_help(loop: InteractiveDebugger) -> None:
    """One line in the list, and more under its names."""
    listed = loop.command("help")
    for command in COMMANDS:
        assert f"  {command.name} " in listed
        for name in (command.name, *command.aliases):
            assert command.help.split("\n")[0] in loop.command(f"help {name}")
    assert {"run", "lt", "pt", "ni", "li", "lo", "ls", "ps", "eval", "pf", "ri"} <= set(BY_NAME)
    assert {"s", "cont", "inject_value", "exit", "quit", "help"} <= set(BY_NAME)


def test_tensors_are_listed(loop: InteractiveDebugger) -> None:
    """By names and ops that match, by a filter, in several orders."""
    loop.command("run")
    rows = loop.command("lt -n loop/mul$").split("\n")[2:]
    values = [row for row in rows if "float32" in row]
    assert len(values) == 20
    assert all(f"loop/mul:0 float32[] (Mul) in {LOOP}[{i}]" in values[i] for i in range(20))
    assert "dead" in rows[20]
    by_size = loop.command("lt -t Less|Mul -s dump_size -r").split("\n")[2:]
    sizes = [int(row.split()[1]) for row in by_size]
    assert sizes == sorted(sizes, reverse=True)
    assert loop.command("lt -f has_inf_or_nan").startswith("0 tensors")
    names = [row.split()[2] for row in loop.command("lt -s tensor_name").split("\n")[2:]]
    assert names == sorted(names)


def test_a_tensor_is_printed(loop: InteractiveDebugger, tmp_path: Path) -> None:
    """Whole, in part, of an iteration, by number; and written to a file."""
    loop.command("break loop/mul if iteration == 5")
    loop.command("run")
    assert loop.command("pt loop/mul:0").endswith("\n192.")
    assert loop.command(f"pt loop/mul:0@{LOOP}[2]").endswith("\n24.")
    assert loop.command("pt loop/mul -n 0").endswith("\n6.")
    assert loop.command("pt -r [0,200] loop/mul").endswith("in [0.0, 200.0]\n*192.0*")
    assert "min 192" in loop.command("pt -s loop/mul")
    assert loop.command(f"pt loop/mul -w {tmp_path}/x.npy").endswith("x.npy")
    assert np.load(tmp_path / "x.npy") == 192
    assert loop.command("eval `loop/mul:0` / 2").endswith("96.")
    assert loop.command("eval iteration + 1") == "6"
    assert loop.command("pf x") == "x\n3."
    for wrong in ("pt nothing", "pt", "pt -z x", "pt loop/mul -r nonsense", "eval", "pf z"):
        with pytest.raises(errors.OpError):
            loop.command(wrong)


def test_text_is_shown_and_not_written(tmp_path: Path) -> None:
    """A .npy file with text in it would be one that runs programs when it is read."""
    graph = ps.Graph()
    with graph.as_default():
        ps.ops.identity(ps.constant([b"a", b"b"], name="text"), name="y")
    with ps.debug(graph, "y:0") as debugger:
        debugger.command("run")
        assert debugger.command("pt text").endswith("[b'a', b'b']")
        with pytest.raises(errors.InvalidArgumentError, match="no place"):
            debugger.command(f"pt text -w {tmp_path}/x.npy")
        with pytest.raises(errors.OpError):
            debugger.command(f"dump {tmp_path}/\0/x")


def test_parts_are_numpys() -> None:
    """A slice as it is written in Python."""
    with ps.debug(logarithm(), "y:0", {"x": [3.0, 2.0]}) as debugger:
        debugger.command("run")
        assert debugger.command("pt less:0[0]").endswith("\n2.")
        assert debugger.command("pt less:0[::-1]").endswith("\n[1., 2.]")


def test_a_watched_tensor_is_shown_at_each_stop(loop: InteractiveDebugger) -> None:
    """Its latest value; and alone, those of all iterations."""
    loop.command("watch loop/mul:0")
    loop.command("cont loop/mul")
    assert f"watched  loop/mul:0 float32[] (Mul) in {LOOP}[0] = 6." in loop.command("iterate")
    loop.command("cont loop/mul")
    lines = loop.command("watch").split("\n")
    assert [line.split() for line in lines] == [["loop/mul:0"], ["0", "6."], ["1", "12."]]
    assert loop.command("watch -d loop/mul:0") == ""
    assert loop.command("watch") == "nothing is watched"


def test_nodes_and_their_neighbours(loop: InteractiveDebugger) -> None:
    """What a node reads, with values; who reads it; and that nobody knows who made it."""
    loop.command("cont loop/mul")
    about = loop.command("ni -a -t")
    assert about.startswith("loop/mul (Mul)\n")
    assert "T = float32" in about
    assert "GraphDefs hold no tracebacks" in about
    assert "has not run" in loop.command("ni -d z")
    inputs = loop.command("li loop/mul").split("\n")[1:]
    assert inputs == ["  loop/Identity_1:0 float32 (Identity) = 3.",
                      "  loop/mul/y:0 float32 (Const) = 2."]  # fmt: skip
    tree = loop.command("li -r -d 2 z").split("\n")[1:]
    assert [len(line) - len(line.lstrip()) for line in tree] == [2, 4]
    assert "x:0 float32 (fed) = 3." in loop.command("li loop/Enter_1")
    assert "loop/NextIteration_1 (NextIteration)" in loop.command("lo loop/mul")
    assert "^" in loop.command("li -c loop/mul/y")
    assert "GraphDefs hold no tracebacks" in loop.command("ps model.py")
    assert "step 1, not ended" in loop.command("ri")
    with pytest.raises(errors.NotFoundError):
        loop.command("ni nothing")


def test_a_dead_node_is_explained() -> None:
    """By the same words as ``penstock explain``."""
    with ps.debug(branches(), ["out:0"], {"x": 3.0, "flag": False}) as debugger:
        assert debugger.command("cont minus").startswith("dead minus (Neg)")
        assert "it is dead" in debugger.command("pt minus")
        assert "it runs only if 'flag:0' is true" in debugger.command("explain")


def test_nodes_of_functions() -> None:
    """Those that are put where they are called are nodes like others."""
    proto = graph_def_with(
        "x = Placeholder[dtype=float32]()\nc = Cube[T=float32](x)\ny = Neg(c)",
        """
        Cube(x: T) -> (y: T) [T: type]
        square = Mul[T=$T](x, x)
        cube = Mul[T=$T](square:z, x)
        return y = cube:z
        """,
    )
    with ps.debug(proto, "y:0", {"x": 3.0}) as debugger:
        debugger.command("break c/cube")
        assert debugger.command("run").startswith("after c/cube (Mul), function Cube")
        assert "c/square:0 float32 (Mul) = 9." in debugger.command("li")
        assert "y (Neg)" in debugger.command("lo")
        with pytest.raises(errors.NotFoundError, match="from a function"):
            debugger.command("explain")


def test_changes_by_words(loop: InteractiveDebugger) -> None:
    """A tensor, then a node; and breakpoints come and go."""
    assert loop.command('break loop/mul if iteration == 4 and op == "Mul"') == (
        'breakpoint 1 loop/mul if iteration == 4 and op == "Mul"'
    )
    loop.command("run")
    assert loop.command("inject_value loop/mul:0 1.0") == "changed loop/mul:0 for all who read it"
    assert loop.command("delete") == "there are no breakpoints"
    loop.command("run")
    assert loop.result == [-(2.0**15)]
    assert loop.command("override z 7") == "z gives 7"
    assert "z gives 7" in loop.command("override")
    loop.command("run")
    assert loop.result == [7]
    loop.command("override -d z")
    loop.command("run -t 2")
    assert loop.result == [-3 * 2.0**20]
    assert loop.run_count == 4
    with pytest.raises(errors.FailedPreconditionError, match="command line"):
        loop.command("override z file.py:function")
    for wrong in (
        "override z [1",
        "break nowhere",
        "delete 9",
        "break z if (",
        "break if froth > 1",
        "s -t 0",
    ):
        with pytest.raises(errors.OpError):
            loop.command(wrong)


def test_run_without_stops(loop: InteractiveDebugger) -> None:
    """``run -n`` heeds no breakpoint; ``run -f`` stops where one is, too."""
    loop.command("break loop/mul")
    assert loop.command("run -n").startswith("the step has ended")
    assert loop.command("run").startswith("after loop/mul")
    assert loop.command("run -f has_nan").startswith("after loop/mul")
    assert f"{LOOP}[1]" in loop.command("where")
    assert f"{LOOP}[0]" in loop.command("back")
    assert "an earlier place" in loop.command("where")


def test_the_hunt_for_a_nan_and_a_dump(tmp_path: Path) -> None:
    """Both run a step of their own, whatever step there was."""
    with ps.debug(logarithm(), ["y:0"], {"x": [3.0, 0.0]}) as debugger:
        debugger.command("s")
        said = debugger.command(f"find_nan {tmp_path}/nan")
        assert said.startswith("log:0 (Log) made 1 NaN and 0 infinite of 2 elements")
        with np.load(tmp_path / "nan" / "inputs.npz") as inputs:
            assert inputs["input_0"].tolist() == [2, -1]
        assert debugger.command(f"dump {tmp_path}/values").startswith("wrote 5 values")
        store = ps.checkpoint.load(tmp_path / "values")
        assert store["less:0"].tolist() == [2, -1]
        assert store["x:0"].tolist() == [3, 0]


def test_names_cannot_reach_the_terminal() -> None:
    """A filter's error, a tensor that is asked for: whatever is typed or named is escaped."""
    with ps.debug(doubling(1), "z:0", {"x": 3.0}) as debugger:
        debugger.break_at("z\x1b[31m*", "iteration == 0")
        assert "\x1b" not in debugger.command("break")
        debugger.add_tensor_filter("evil", lambda *_: 1 / 0)  # type: ignore[arg-type, return-value]
        debugger.break_at("z", passes="evil")
        assert "division by zero" in debugger.command("run")


def test_completion() -> None:
    """Commands first, then nodes, filters after -f; nothing that could not be shown."""
    with ps.debug(doubling(1), "z:0", {"x": 3.0}) as debugger:
        assert list(completions(debugger, "inj")) == ["inject", "inject_value"]
        assert list(completions(debugger, "pt loop/m")) == ["loop/mul", "loop/mul/y"]
        assert list(completions(debugger, "run -f has_inf")) == ["has_inf", "has_inf_or_nan"]
        assert list(completions(debugger, "help wh")) == ["where"]
        assert list(completions(debugger, "eval mean(`loop/mul")) == ["loop/mul", "loop/mul/y"]
