"""A run that names nothing to run is told what could be run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli import main
from penstock.cli.sample_value import sample_value
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.graph.endpoints import likely_outputs
from support.graphs import graph, graph_def

EXAMPLES = Path(__file__).parents[2] / "examples"
TRAINING = """
x = Placeholder
v = VariableV2[shape=]
zero = Const[value=0]
init/assign = Assign[T=float32](v, zero)
init = NoOp(^init/assign)
name = Const[value=model; dtype=string]
save/Const = PlaceholderWithDefault[dtype=string; shape=](name)
save/restored = Identity[T=string](save/Const)
logits = Mul(x, v)
loss = Neg(logits)
tag = Const[value=loss; dtype=string]
loss/summary = ScalarSummary[T=float32](tag, loss)
train = ApplyGradientDescent[T=float32](v, zero, loss)
probabilities = Sigmoid(logits)
"""


def said(*args: str) -> str:
    """What a run without anything to run says on stderr."""
    done = CliRunner().invoke(main, ["run", *args])
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.parametrize("kind", ["rnn", "cnn"])
def test_the_example_can_be_typed_in(kind: str) -> None:
    """What is offered is an output, and the command fetches it once the feeds are filled in."""
    path = EXAMPLES / f"digits_{kind}.pb"
    text = said(str(path))
    command = shlex.split(text.rstrip().splitlines()[-1])
    done = CliRunner().invoke(
        main,
        [word.replace("FILE.npy", f"{EXAMPLES}/digits_test.npz:images") for word in command[1:]],
    )

    assert "likely outputs\n  probabilities:0  float32  Softmax\n" in text
    assert command[:3] == ["penstock", "run", str(path)]
    assert done.exit_code == 0
    assert done.stdout.startswith("probabilities:0  float32[397,10]")


def test_chores_are_not_outputs() -> None:
    """Of a graph that is trained, saved and watched, the results are offered."""
    assert [node.name for node in likely_outputs(graph(TRAINING))] == ["probabilities"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = Const\nb = Neg(a)\nc = Const", ["b"]),
        ("a = Const\nb = Const", ["a", "b"]),
        ("x = Placeholder", ["x"]),
        ("x = Placeholder\ntag = Const[value=t; dtype=string]\ns = ScalarSummary(tag, x)", ["s"]),
        ("x = Placeholder\na = Neg(x)\nb = Const\nc = Neg(b)", ["a"]),
        ("a = NoOp", []),
    ],
)
def test_something_is_offered_if_there_is_something(text: str, names: list[str]) -> None:
    """Outputs that depend on no input, or are chores, are better than none."""
    assert [node.name for node in likely_outputs(graph(text))] == names


def test_a_graph_without_outputs(tmp_path: Path) -> None:
    """It has nothing to offer, and says so."""
    path = tmp_path / "g.pb"
    path.write_bytes(graph_def("a = NoOp").SerializeToString())

    assert "the graph has no outputs" in said(str(path))


def test_many_outputs(tmp_path: Path) -> None:
    """Twenty are shown, and how many there are more."""
    path = tmp_path / "g.pb"
    path.write_bytes(graph_def("\n".join(f"x{i} = Const" for i in range(30))).SerializeToString())
    text = said(str(path))

    assert "  x19:0  float32  Const\n  … and 10 more, which penstock show lists\n" in text
    assert "x20" not in text


@pytest.mark.parametrize(
    ("dtype", "sizes", "value"),
    [
        (dtypes.float32, [], "1"),
        (dtypes.int64, [], "1"),
        (dtypes.bool_, [], "true"),
        (dtypes.string, [], "TEXT"),
        (dtypes.float32, [None, 224, 224, 3], "FILE.png"),
        (dtypes.uint8, [1, 28, 28, 1], "FILE.png"),
        (dtypes.float32, [None, 224, 224, 64], "FILE.npy"),
        (dtypes.float32, None, "FILE.npy"),
    ],
)
def test_sample_values(dtype: DType, sizes: list[int | None] | None, value: str) -> None:
    """The example shows the kind of value that a placeholder takes."""
    assert sample_value(dtype, TensorShape.of(sizes)) == value


def test_names_are_quoted(tmp_path: Path) -> None:
    """A name or a path that a shell would take apart is put in quotes."""
    path = tmp_path / "my graph.pb"
    path.write_bytes(graph_def("x>y = Placeholder").SerializeToString())
    words = shlex.split(said(str(path)).rstrip().splitlines()[-1])

    assert words == ["penstock", "run", str(path), "--feed", "x>y:0=FILE.npy", "--fetch", "x>y:0"]
