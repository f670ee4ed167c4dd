"""``penstock show --python``: the generated text, and what is not in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli import main
from penstock.graph.export import graph_to_def
from support.loops import counting_loop
from support.sketch import sketch

EXAMPLES = Path(__file__).parents[2] / "examples"
ADDER = """
    x = Placeholder() dtype=float32
    y = Placeholder() dtype=float32
    sum = Add(x, y)
    half = Mul(sum, sum)
    other = Sub(x, y)
    note = Print(other, x)
    group = NoOp(^note)
"""
QUEUE = """
    x = Placeholder() dtype=float32
    queue = FIFOQueueV2() component_types=["float32"]
    a = Exp(x)
    b = Mul(a, a)
    put = QueueEnqueueV2(queue, b)
    got = QueueDequeueV2(queue, ^put) component_types=["float32"]
    last = Neg(got)
"""


def saved(folder: Path, text: str) -> Path:
    """A graph as a file."""
    path = folder / "graph.pb"
    path.write_bytes(graph_to_def(sketch(text)).SerializeToString())
    return path


def shown(path: Path, *args: str) -> str:
    """What the command prints; it is Python that compiles."""
    result = CliRunner().invoke(main, ["show", str(path), "--python", *args])
    assert result.exit_code == 0, result.output
    compile(result.stdout, "shown", "exec")
    return result.stdout


def test_a_request_is_shown(tmp_path: Path) -> None:
    """The text of what is needed for a fetch, and nothing else."""
    text = shown(
        saved(tmp_path, ADDER), "--fetch", "half", "--feed-names", "y", "--feed-names", "x"
    )
    assert text.startswith("# /job:localhost/replica:0/task:0/device:CPU:0\n")
    assert " + " in text
    assert "# half (Mul)" in text
    assert "other" not in text


def test_a_fed_value_is_not_computed(tmp_path: Path) -> None:
    """What is fed is a parameter, whatever would compute it."""
    text = shown(saved(tmp_path, ADDER), "--fetch", "half:0", "--feed-names", "sum")
    assert "(Add)" not in text
    assert "# half (Mul)" in text


def test_without_names_everything_is_shown(tmp_path: Path) -> None:
    """All that nobody uses is fetched or run, and placeholders are fed."""
    text = shown(saved(tmp_path, ADDER))
    for part in ("# half (Mul)", "# other (Sub)", "# note (Print)"):
        assert part in text


def test_what_the_executor_runs_is_named(tmp_path: Path) -> None:
    """Nodes that wait are left out, with the reason; the rest is a region."""
    text = shown(saved(tmp_path, QUEUE), "--fetch", "put", "--fetch", "last")
    assert "# b (Mul)" in text
    assert "run by the executor:\n" in text
    waiting = "#     put (QueueEnqueueV2)\n#     got (QueueDequeueV2)\n"
    assert f"#   it may wait for something else\n{waiting}" in text
    assert "is not worth a function\n#     last (Neg)\n" in text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "sum = Add(body, one)",
            "queue = FIFOQueueV2() component_types=['int32']\n"
            "into = Enter(queue) frame_name='loop' is_constant=True\n"
            "put = QueueEnqueueV2(into, body)\nsum = Add(body, one, ^put)",
            "the loop 'loop' is irregular: put cannot be compiled",
        ),
        (
            "sum = Add(body, one)",
            "sum = Add(body, one)\nonce = Neg(enter, ^body)\nuse = Add(once, sum)",
            "the loop 'loop' is irregular: enter is used in the first iteration only",
        ),
    ],
)
def test_irregular_loops_are_explained(tmp_path: Path, old: str, new: str, reason: str) -> None:
    """For each node of such a loop the reason is why its loop is irregular."""
    text = counting_loop().replace(old, new).replace("'", '"')
    wanted = "use" if "use =" in text else "exit"
    shown_text = shown(saved(tmp_path, text), "--fetch", wanted, "--fetch", "exit")
    assert f"#   {reason}\n" in shown_text
    assert "#     cond (LoopCond)" in shown_text.partition(reason)[2]


@pytest.mark.parametrize("model", ["rnn", "cnn"])
def test_the_examples(model: str) -> None:
    """Both examples are one function each; the loop of the recurrent one is a program."""
    text = shown(EXAMPLES / f"digits_{model}.pb", "--fetch", "digit:0", "--feed-names", "images:0")
    assert text.count("def region") == 1 + (model == "rnn")
    assert ("_NativeRegion" in text) == ("# Where there is no program" in text) == (model == "rnn")
    assert "executor" not in text
    assert ("in count():" in text) == (model == "rnn")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--fetch", "half"], "go with --python"),
        (["--feed-names", "x"], "go with --python"),
        (["--python", "--fetch", "nobody"], "nobody"),
        (["--python", "--fetch", "half", "--feed-names", "nobody"], "nobody"),
        (["--python", "--fetch", "half:7"], "half"),
    ],
)
def test_mistakes(tmp_path: Path, args: list[Any], message: str) -> None:
    """Names that mean nothing, and options without ``--python``, are refused in one line."""
    result = CliRunner().invoke(main, ["show", str(saved(tmp_path, ADDER)), *args])
    assert result.exit_code != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
