"""What docs/models.md shows is right, as far as it needs no TensorFlow."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.defs.schema import MetaGraphDef

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "models.md").read_text("utf-8")
BLOCKS: Final = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def write_model() -> None:
    """A graph as TensorFlow 1 saves it, ``y = x · w``, and a checkpoint in which w is [3, 4]."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [2], name="x")
        w = ps.Variable([0.0, 0.0], name="w")
        ps.identity(x * w, name="y")
        prefix = ps.constant("model", name="save/Const")
        names = ps.constant(["w"]), ps.constant([""])
        ps.ops.save_v2(prefix, *names, [w.value()], name="save/SaveV2")
        [value] = ps.ops.restore_v2(prefix, *names, dtypes=["float32"], name="save/RestoreV2")
        restored = ps.ops.assign_variable_op(w.handle, value, name="save/Assign")
        ps.group(restored, name="save/restore_all")
        assigned = w.assign([3.0, 4.0])
    Path("graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with ps.Session(graph) as session:
        session.run(assigned)
        session.run("save/SaveV2", {"save/Const:0": "model.ckpt-7"})


def test_the_blocks_are_python() -> None:
    """Those that need TensorFlow at least parse, and import what they use."""
    assert len(BLOCKS) == 8
    for block in BLOCKS:
        tree = ast.parse(block)
        imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert {"ps", "tf", "keras"} & used <= imported


def test_a_checkpoint_is_restored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command and the program of the page give the saved values."""
    monkeypatch.chdir(tmp_path)
    write_model()
    meta = MetaGraphDef(graph_def=ps.load_graph_def("graph.pb"))
    Path("model.ckpt-7.meta").write_bytes(meta.SerializeToString())
    for ending in (".index", ".data-00000-of-00001"):
        shutil.copy(f"model.ckpt-7{ending}", f"model.ckpt-8{ending}")
    (command,) = re.findall(r"^    penstock (run graph.pb .*)$", PAGE, re.MULTILINE)
    done = CliRunner().invoke(main, shlex.split(command), catch_exceptions=False)
    exec(BLOCKS[1], {})
    exec(BLOCKS[2], {})

    assert done.stdout == "y:0  float32[2]  [3 8]\n"
    assert capsys.readouterr().out == "[3. 8.]\n[3. 4.]\n"
    (command,) = re.findall(r"^    penstock (convert graph.pb .*)$", PAGE, re.MULTILINE)
    done = CliRunner().invoke(main, shlex.split(command), catch_exceptions=False)
    with ps.Session("frozen.pb") as session:
        assert session.run("y:0", {"x:0": [1, 2]}).tolist() == [3, 8]


def test_whatever_one_has_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first program and the commands beside it, on a model of Keras."""
    monkeypatch.chdir(tmp_path)
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None, 2], name="x")
        y = x * 2.0
    ps.saved_model.save("model.keras", {"serving_default": ({"x": x}, {"y": y})}, graph=graph)
    exec(BLOCKS[0], {})
    assert "[[2., 4.]]" in capsys.readouterr().out
    Path("model.keras").rename("MODEL")
    for command in re.findall(r"^    penstock (.* MODEL.*)$", PAGE, re.MULTILINE):
        done = CliRunner().invoke(main, shlex.split(command), catch_exceptions=False)
        assert done.exit_code == 0, done.output


def test_a_saved_model_is_saved_loaded_and_frozen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The three programs of the section, and its commands, give x times [[1, 2], [3, 4]]."""
    monkeypatch.chdir(tmp_path)
    load, freeze, save = BLOCKS[3:6]
    exec(save, {})
    Path("saved").rename("model")
    exec(load, {})
    exec(freeze, {})

    signatures, answer, frozen = capsys.readouterr().out.splitlines()
    assert "serving_default(x: float32[?,2]) -> {y: float32[?,2]}" in signatures
    assert answer == frozen == "[[ 7. 10.]]"
    done = CliRunner().invoke(main, ["run", "--dir", "model", "--feed", "x=[[1,2]]"])
    assert done.stdout == "y  float32[1,2]  [[ 7 10]]\n"
    (command,) = re.findall(r"^    penstock (convert model .*)$", PAGE, re.MULTILINE)
    done = CliRunner().invoke(main, shlex.split(command), catch_exceptions=False)
    assert "fetch  y  MatMul:0" in done.stdout


def test_the_names_of_a_graph(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last program lists operations with their tensors."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "digits_cnn.pb", "model.pb")
    exec(BLOCKS[-1], {})

    assert "ArgMax digit:0\n" in capsys.readouterr().out


def test_links_lead_somewhere() -> None:
    """Every section that is linked to is there."""
    headings = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    }
    links = set(re.findall(r"\]\(#([a-z0-9-]+)\)", PAGE))

    assert len(links) >= 4
    assert links <= headings
