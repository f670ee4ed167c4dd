"""SavedModels on the command line, by the options of TensorFlow's own tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.cli.expressions import evaluate
from penstock.errors import InvalidArgumentError
from support.commands import penstock, printed, refused
from support.saved_models import FOLDER, assert_same, recorded


def at(name: str) -> Path:
    return FOLDER / name / "model"


# -- show ------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [["--dir"], []])
def test_show_says_what_it_found(given: list[str]) -> None:
    """A folder is a SavedModel whether --dir says so or not; signatures have types and shapes."""
    text = printed("show", *given, at("keras_two_inputs"))

    assert "a SavedModel, written by TensorFlow 2.21.0" in text
    assert "signature serve  (tensorflow/serving/predict)" in text
    assert "input   left      float32[?,4]" in text
    assert "output  output_0  float32[?,1]" in text
    assert "__saved_model_init_op" not in text
    assert "every op has a kernel" in text


def test_show_all_lists_functions_and_variables() -> None:
    """Every trace of a function with its arguments; every variable by its path; ops."""
    text = printed("show", "--dir", at("polymorphic"), "--all")

    assert "double(x: float32[2], 3)" in text
    assert "inner.call(x: float32[1,2], transpose=True)" in text
    assert "layers.1.w  float32[2,2]" in text
    assert "ReadVariableOp" in text


def test_show_takes_tags_and_a_signature() -> None:
    """One graph of several, one signature of it; what is not there is answered by what is."""
    assert printed("show", "--dir", at("tags_and_assets")).count("signature serving_default") == 3
    text = printed("show", "--dir", at("tags_and_assets"), "--tag_set", "gpu,serve")
    assert text.count("signature serving_default") == 1
    assert "words.txt" in text
    arguments = ["show", "--dir", at("keras_two_inputs"), "--tag_set", "serve"]
    text = printed(*arguments, "--signature_def", "serve")
    assert "serving_default" not in text
    wrong = penstock(*arguments, "--signature_def", "x")
    assert wrong.exit_code == 1
    assert "has no signature 'x'; it has serve, serving_default" in wrong.stderr


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """Those of graphs for models and the reverse; no model, or two."""
    graph = tmp_path / "graph.pbtxt"
    graph.write_text('node { name: "x" op: "NoOp" }')
    assert "give either GRAPH or --dir" in refused(2, "show")
    assert "give either GRAPH or --dir" in refused(2, "run", graph, "--dir", at("keras_mlp"))
    assert "is a folder, not a GraphDef" in refused(2, "show", "--dir", tmp_path)
    assert "--all does not go with a graph" in refused(2, "show", graph, "--all")
    assert "no parts of a graph" in refused(1, "run", at("keras_mlp"), "--fetch", "x")
    assert "--checkpoint does not go with a model" in refused(
        2, "run", at("keras_mlp"), "--checkpoint", "x"
    )
    assert "--inputs does not go with" in refused(2, "run", graph, "--inputs", "x=y.npy")


# -- run -------------------------------------------------------------------------------------


def test_run_reads_inputs_and_writes_outputs(tmp_path: Path) -> None:
    """Files by --inputs, also those of an archive; a .npy per output in --outdir."""
    call = recorded("keras_two_inputs").calls[0]
    np.savez(tmp_path / "in.npz", first=call.kwargs["left"], second=np.zeros(3))
    np.save(tmp_path / "right.npy", call.kwargs["right"])
    inputs = f"left={tmp_path}/in.npz[first];right={tmp_path}/right.npy"
    arguments = ["run", "--dir", at("keras_two_inputs"), "--tag_set", "serve"]
    arguments += ["--signature_def", "serving_default", "--inputs", inputs]

    penstock(*arguments, "--outdir", tmp_path / "out")

    given = np.load(tmp_path / "out" / "output_0.npy")
    np.testing.assert_allclose(given, call.result["output_0"], rtol=1e-5, atol=1e-5)
    assert "--overwrite replaces" in refused(1, *arguments, "--outdir", tmp_path / "out")
    assert penstock(*arguments, "--outdir", tmp_path / "out", "--overwrite").exit_code == 0


def test_run_evaluates_expressions() -> None:
    """As TensorFlow's tool prints them for the same options: [4. 5.] and 1."""
    text = printed(
        "run", "--dir", at("several_signatures"), "--tag_set", "serve", "--signature_def",
        "combine", "--input_exprs", "a=[1,2];b=3.0",
    )  # fmt: skip

    assert "output_0  float32[2]  [4 5]" in text
    assert "output_1  int64  1" in text


def test_run_makes_examples() -> None:
    """Features become a tf.Example; TensorFlow's tool prints 0.18632375 0.5064804 0.30719587."""
    text = printed("run", at("estimator"), "--input_examples",
                   'inputs=[{"x": [1.0, 2.0], "word": ["moon"]}]')  # fmt: skip

    assert "[[b'a' b'b' b'c']]" in text
    assert "[[0.18632 0.50648  0.3072]]" in text


def test_run_takes_feeds_of_signatures(tmp_path: Path) -> None:
    """--feed names an input of the signature; --out writes all outputs, --repeat runs again."""
    result = penstock(
        "run", at("several_signatures"), "--signature_def", "combine", "--feed", "a=[1,2]",
        "--feed", "b=1", "--repeat", 3, "--out", tmp_path / "out.npz",
    )  # fmt: skip

    assert result.exit_code == 0
    assert "3 runs" in result.stderr
    with np.load(tmp_path / "out.npz") as out:
        assert out["output_0"].tolist() == [2.0, 3.0]
        assert out["output_1"] == 3


def test_run_without_inputs_says_what_to_give() -> None:
    """The signature, and a command to begin with."""
    text = refused(2, "run", "--dir", at("several_signatures"))

    assert "--feed x=VALUE" in text
    assert "serving_default(x: float32[?]) -> {factor: float32[], scaled: float32[?]}" in text


def test_run_prints_the_parts_of_composite_values() -> None:
    """A ragged output is its values and its splits."""
    text = printed("run", at("composites"), "--feed", "rows=[1.,2.,3.]", "--feed",
                   "rows_1=[0,2,3]")  # fmt: skip

    assert "doubled.values  float32[3]  [2 4 6]" in text
    assert "doubled.row_splits_0  int64[3]  [0 2 3]" in text


def test_what_cannot_be_an_input_is_refused(tmp_path: Path) -> None:
    """Unknown names, pickles, and what is no pair."""
    model = at("several_signatures")
    assert "has no input 'y'" in refused(1, "run", model, "--input_exprs", "y=1")
    assert "is not NAME=VALUE" in refused(1, "run", model, "--inputs", "x")
    assert "is a pickle" in refused(1, "run", model, "--inputs", f"x={tmp_path}/x.pkl")
    assert "is no list of dictionaries" in refused(1, "run", model, "--input_examples", "x=3")


# -- expressions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, -2.5]", [1, -2.5]),
        ("np.ones((2, 2), np.float32) * 3", [[3, 3], [3, 3]]),
        ("np.arange(6).reshape(2, 3)", [[0, 1, 2], [3, 4, 5]]),
        ("numpy.full((1,), 7, dtype=np.int64)", [7]),
        ("np.array(['a', 'b'])", ["a", "b"]),
        ("np.float32(1) / 2", 0.5),
    ],
)
def test_expressions_have_the_values_of_numpy(text: str, value: Any) -> None:
    """Literals, arithmetic, and what makes arrays."""
    assert np.asarray(evaluate(text)).tolist() == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "open('/etc/passwd')", "np.load('x.npy')", "x",
        "().__class__", "np.ones.__globals__", "[x for x in (1,)]", "lambda: 1", "'a'.format(1)",
        "np.random.seed.__self__", "1 if True else 2", "f'{1}'", "2 **", "np.ones(**{'shape': 1})",
        "(1).tolist()", "9 ** 9 ** 9",
    ],
)  # fmt: skip
def test_expressions_are_no_python(text: str) -> None:
    """Whatever is not listed is refused, and not run."""
    with pytest.raises(InvalidArgumentError):
        evaluate(text)


# -- convert ---------------------------------------------------------------------------------


def test_convert_writes_a_frozen_graph(tmp_path: Path) -> None:
    """What is printed says how to run it, and does."""
    call = recorded("keras_two_inputs").calls[0]
    for name, value in call.kwargs.items():
        np.save(tmp_path / f"{name}.npy", value)
    for out in ("model.pb", "model.pbtxt"):
        text = printed("convert", at("keras_two_inputs"), tmp_path / out)
        assert "feed   left      left:0" in text
        assert "fetch  output_0  output_0:0" in text
        feeds = [word for n in call.kwargs for word in ("--feed", f"{n}:0={tmp_path}/{n}.npy")]
        printed("run", tmp_path / out, *feeds, "--fetch", "output_0:0", "--out", tmp_path / "y.npy")
        np.testing.assert_allclose(
            np.load(tmp_path / "y.npy"), call.result["output_0"], rtol=1e-5, atol=1e-5
        )
        assert "--overwrite replaces it" in refused(2, "convert", at("keras_mlp"), tmp_path / out)


def test_convert_puts_functions_where_they_are_called(tmp_path: Path) -> None:
    """Without --inline there is a library, with it there is none."""
    for words, count in (([], True), (["--inline"], False)):
        printed("convert", at("keras_mlp"), tmp_path / "model.pb", "--overwrite", *words)
        library = ps.load_graph_def(tmp_path / "model.pb").library
        assert bool(library.function) is count


@pytest.mark.parametrize("name", ["table_from_asset", "tags_and_assets_serve"])
def test_convert_writes_a_saved_model(tmp_path: Path, name: str) -> None:
    """A frozen one, with its tables and their files."""
    model = recorded(name)
    call = model.calls[0]
    options = ["--tag_set", ",".join(model.tags)] if model.tags else []

    penstock("convert", *options, at(name), tmp_path / "out")

    assert list((tmp_path / "out" / "assets").iterdir()) != []
    assert not (tmp_path / "out" / "variables").exists()
    with ps.saved_model.load(tmp_path / "out") as loaded:
        assert_same(loaded.signatures[call.signature](**call.kwargs), call.result)


def test_convert_turns_graphs_into_text_and_back(tmp_path: Path) -> None:
    """The same graph; options of SavedModels are refused."""
    graph = tmp_path / "graph.pbtxt"
    graph.write_text('node { name: "x" op: "NoOp" } versions { producer: 1 }')
    penstock("convert", graph, tmp_path / "graph.pb")
    penstock("convert", tmp_path / "graph.pb", tmp_path / "again.pbtxt")

    assert ps.load_graph_def(tmp_path / "again.pbtxt") == ps.load_graph_def(graph)
    assert "--tag_set does not go with a graph" in refused(
        2, "convert", graph, "x.pb", "--tag_set", "serve"
    )
    assert "say by --fetch what is computed, or have OUT end in .pb" in refused(
        2, "convert", graph, tmp_path / "folder"
    )


def test_every_command_that_runs_a_step_takes_signatures(tmp_path: Path) -> None:
    """Of functions, and of a graph; a trace has what the functions compute."""
    out = tmp_path / "step.json"
    for name, feeds in (
        ("keras_two_inputs", ["left=[[1,2,3,4]]", "right=[[1,2]]"]),
        ("simple_save", ["x=[[1,2]]"]),
    ):
        signature = next(iter(ps.load_model(at(name)).signatures.values()))
        shapes = {key: [n or 1 for n in spec.shape.dims] for key, spec in signature.inputs.items()}
        feeds = [f"{key}={np.ones(shape).tolist()}" for key, shape in shapes.items()]
        words = [word for feed in feeds for word in ("--feed", feed)]
        asked = ["--dir", at(name), "--signature_def", signature.name, *words]
        printed("trace", *asked, "-o", out, "--detail", "nodes")
        assert "MatMul" in out.read_text("utf-8"), name
        assert "at the peak" in printed("memory", *asked)
    text = refused(
        2, "trace", "--dir", at("keras_two_inputs"), "--signature_def", "serve", "-o", out
    )
    assert "wants inputs" in text
