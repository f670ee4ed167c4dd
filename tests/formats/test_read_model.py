"""A model is found by what it is: whatever its format and its name, it opens in the same way."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from support.checkpoint_values import table
from support.commands import penstock
from support.graphs import graph_def
from support.tfjs_models import all_kinds

TESTS: Final = Path(__file__).parents[1]
META: Final = TESTS / "checkpoint" / "files" / "meta" / "model.ckpt-7.meta"
KERAS: Final = TESTS / "keras_models"


@dataclass(frozen=True)
class Example:
    """A stored model, one call of it, and what the call gives."""

    #: Puts it into a folder that is empty, and says where it is.
    put: Callable[[Path], Path]
    what: str
    given: Mapping[str, Any]
    results: Mapping[str, Any]


def _saved_model(folder: Path) -> Path:
    return Path(shutil.copytree(TESTS / "saved_models" / "simple_save" / "model", folder / "m"))


def _renamed_saved_model(folder: Path) -> Path:
    return (_saved_model(folder) / "saved_model.pb").rename(folder / "m" / "graph.bin")


def _keras(folder: Path) -> Path:
    return Path(shutil.copy(KERAS / "dense.3.keras", folder / "weights.dat"))


def _keras_example() -> Example:
    with np.load(KERAS / "dense.3.npz") as arrays:
        given = {key[3:]: arrays[key] for key in arrays.files if key.startswith("in_")}
        outputs = [arrays[f"out_{place}"] for place in range(len(arrays.files) - len(given))]
    names = ps.formats.keras.read(KERAS / "dense.3.keras").outputs
    return Example(_keras, "a model of Keras 3", given, dict(zip(names, outputs, strict=True)))


X: Final = np.float32([[1, 0]])
EXAMPLES: Final = {
    "saved_model": Example(_saved_model, "a SavedModel", {"x": X}, {"y": [[1.5, 1.5]]}),
    "renamed": Example(_renamed_saved_model, "a SavedModel", {"x": X}, {"y": [[1.5, 1.5]]}),
    "tfjs": Example(
        all_kinds,
        "a graph model of TensorFlow.js",
        {"x": X, "words": np.array(["b", "c"])},
        {"y": 3 * X, "ids": [20, -1]},
    ),
    "keras": _keras_example(),
}


def assert_answers(outputs: Mapping[str, Any], example: Example) -> None:
    """The outputs are those of the example."""
    assert outputs.keys() == example.results.keys()
    for name, result in example.results.items():
        np.testing.assert_allclose(outputs[name], result, rtol=1e-5, atol=1e-6)


def feeds(folder: Path, given: Mapping[str, Any]) -> list[str]:
    """Options that feed arrays."""
    np.savez(folder / "given.npz", **given)
    return [f"--feed={name}={folder / 'given.npz'}:{name}" for name in given]


@pytest.mark.parametrize("name", EXAMPLES)
def test_show_says_what_it_found(tmp_path: Path, name: str) -> None:
    """By content, whatever the file is called."""
    done = penstock("show", EXAMPLES[name].put(tmp_path))

    assert done.exit_code == 0
    assert f"  {EXAMPLES[name].what}" in done.stdout
    assert "signature serving_default" in done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_model_answers(tmp_path: Path, name: str) -> None:
    """In Python and on the command line, by its only signature."""
    example = EXAMPLES[name]
    path = example.put(tmp_path)
    with ps.load_model(path) as model:
        assert_answers(model(**example.given), example)
        assert model.what.startswith(example.what)
    out = tmp_path / "out.npz"
    done = penstock("run", path, *feeds(tmp_path, example.given), "--out", out)

    assert done.exit_code == 0, done.stderr
    with np.load(out) as found:
        assert_answers(found, example)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_model_is_converted(tmp_path: Path, name: str) -> None:
    """To a SavedModel, with its signature; to a graph without variables."""
    example = EXAMPLES[name]
    path = example.put(tmp_path)

    assert penstock("convert", path, tmp_path / "converted").exit_code == 0
    assert penstock("convert", path, tmp_path / "frozen.pb").exit_code == 0

    with ps.load_model(tmp_path / "converted") as model:
        assert model.what == "a SavedModel"
        assert_answers(model(**example.given), example)
    frozen = ps.saved_model.freeze(path)
    with ps.Session(tmp_path / "frozen.pb") as session:
        if frozen.init:
            session.run(frozen.init)
        given = {frozen.inputs[name]: value for name, value in example.given.items()}
        outputs = {name: session.run(tensor, given) for name, tensor in frozen.outputs.items()}
    assert_answers(outputs, example)


def test_a_tensor_inside_of_a_model_can_be_fetched(tmp_path: Path) -> None:
    """Models that are one graph may be run as such."""
    path = all_kinds(tmp_path)

    done = penstock("run", path, "--fetch", "plain")

    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("plain:0  float32")


def test_a_model_comes_from_stdin() -> None:
    """What is one file needs no name."""
    content = (KERAS / "dense.3.keras").read_bytes()

    assert "stdin  a model of Keras 3" in penstock("show", "-", input=content).stdout
    assert (
        "stdin  a MetaGraphDef: 101 nodes" in penstock("show", "-", input=META.read_bytes()).stdout
    )


def test_a_model_pickles_if_its_file_stays(tmp_path: Path) -> None:
    """As its path; another file at that path is refused."""
    example = EXAMPLES["keras"]
    path = example.put(tmp_path)
    with ps.load_model(path) as model:
        content = pickle.dumps(model)
    with pickle.loads(content) as again:
        assert_answers(again(**example.given), example)
    shutil.copy(KERAS / "pooling.3.keras", path)
    with pytest.raises(errors.FailedPreconditionError, match="another model"):
        pickle.loads(content)


# -- graphs and checkpoints ----------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A graph with a variable and nothing else, and its checkpoint."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [2], name="x")
        w = ps.Variable(np.float32([0, 0]), name="w")
        ps.ops.mul(x, w.value(), name="y")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    ps.checkpoint.save(tmp_path / "ck", {"w": np.float32([2, 3])})
    return tmp_path


def test_a_graph_takes_a_checkpoint(bare: Path) -> None:
    """Variables have the values that were saved under their own names, if nothing restores them."""
    with ps.load_model(bare / "graph.pb", checkpoint=bare / "ck") as model:
        assert model.session.run("y:0", {"x:0": [1, 10]}).tolist() == [2, 30]
        assert model.variables["w"].tolist() == [2, 3]
    options = ["--feed", "x:0=[1,10]", "--fetch", "y"]
    done = penstock("run", bare / "graph.pb", "--checkpoint", bare / "ck", *options)
    assert done.stdout.split() == ["y:0", "float32[2]", "[", "2", "30]"]

    without = penstock("run", bare / "graph.pb", *options)
    assert without.exit_code == 1
    assert "restore a checkpoint: --checkpoint PREFIX" in without.stderr


def test_a_graph_and_its_checkpoint_are_frozen(bare: Path) -> None:
    """What TensorFlow's freeze_graph did: variables become constants."""
    options = ["--checkpoint", bare / "ck", "--fetch", "y"]
    done = penstock("convert", bare / "graph.pb", bare / "frozen.pb", *options)
    assert done.exit_code == 0, done.stderr

    with ps.Session(bare / "frozen.pb") as session:
        assert session.run("y:0", {"x:0": [1, 10]}).tolist() == [2, 30]
    assert "VarHandleOp" not in {node.op for node in ps.load_graph_def(bare / "frozen.pb").node}


def test_a_meta_graph_is_frozen(tmp_path: Path) -> None:
    """With its parts of variables, and the table that a collection's node fills."""
    for out in ("frozen.pb", "folder"):
        fetches = ["--fetch", "y", "--fetch", "ids:0"]
        assert penstock("convert", META, tmp_path / out, *fetches).exit_code == 0
    x = np.random.default_rng(3).standard_normal((4, 10)).astype(np.float32)

    with ps.load_model(tmp_path / "folder") as model:
        found = model(x=x, words=["b", "z", "a"])

    np.testing.assert_allclose(found["y"], x @ table() + np.float32([0, 0, 1]), rtol=1e-5)
    assert found["ids"].tolist() == [2, -1, 1]


def test_models_with_objects_have_their_own_checkpoint(bare: Path) -> None:
    """Another one, or a tensor by its name, is refused with a reason."""
    path = TESTS / "saved_models" / "keras_mlp" / "model"
    with pytest.raises(errors.InvalidArgumentError, match="from its own checkpoint"):
        ps.load_model(path, checkpoint=bare / "ck")
    with pytest.raises(errors.InvalidArgumentError, match="no parts of a graph"):
        ps.saved_model.freeze_tensors(path, ["y"])


def test_what_cannot_be_called_says_what_can(bare: Path) -> None:
    """A graph without signatures has tensors to fetch."""
    with ps.load_model(bare / "graph.pb") as model:
        with pytest.raises(errors.NotFoundError, match="cannot be called itself") as caught:
            model(x=1)
        assert "session.run fetches any tensor" in caught.value.next_step


def test_what_is_no_model_is_named(tmp_path: Path) -> None:
    """The error for a path says what is there."""
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(errors.InvalidArgumentError, match="is an image"):
        ps.load_model(tmp_path / "x.png")
    with pytest.raises(errors.NotFoundError, match="There is no file"):
        ps.load_model(tmp_path / "nothing")
    with pytest.raises(errors.InvalidArgumentError, match="the content is an image"):
        ps.load_model(b"\x89PNG\r\n")
    graph = graph_def("c = Const[value=4]").SerializeToString()
    with ps.load_model(graph) as model:
        assert model.session.run("c:0") == 4
