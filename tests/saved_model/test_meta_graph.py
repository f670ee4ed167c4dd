"""A ``.meta`` file and its checkpoint run with one call."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import penstock as ps
from penstock import errors
from penstock.defs.schema import MetaGraphDef
from support.checkpoint_values import table

FOLDER = Path(__file__).parents[1] / "checkpoint" / "files" / "meta"
#: What TensorFlow's program multiplied by, and added.
WEIGHTS, BIAS = table(), np.float32([0, 0, 1])


@pytest.mark.parametrize("path", [FOLDER, FOLDER / "model.ckpt-7", FOLDER / "model.ckpt-7.meta"])
def test_a_saver_s_files_run(path: Path) -> None:
    """Variables in parts and whole are restored, and tables are filled."""
    x = np.random.default_rng(3).standard_normal((4, 10)).astype(np.float32)
    with ps.load_model(path) as model:
        y, ids = model.session.run(["y:0", "ids:0"], {"x:0": x, "words:0": ["b", "z", "a"]})

    np.testing.assert_allclose(y, x @ WEIGHTS + BIAS, rtol=1e-5)
    assert ids.tolist() == [2, -1, 1]


def test_a_graph_may_be_text(tmp_path: Path) -> None:
    """``export_meta_graph(as_text=True)`` writes protobuf's text format."""
    meta = MetaGraphDef.FromString((FOLDER / "model.ckpt-7.meta").read_bytes())
    (tmp_path / "text.meta").write_text(text_format.MessageToString(meta))
    with ps.load_model(tmp_path / "text.meta", checkpoint=FOLDER) as model:
        assert model.session.run("ids:0", {"words:0": ["a"]}).tolist() == [1]


def test_another_checkpoint_can_be_restored(tmp_path: Path) -> None:
    """The graph is that of the file, the values are others."""
    old = ps.checkpoint.load(FOLDER)
    ps.checkpoint.save(tmp_path / "ck", {**old, "b": np.float32([9, 9, 9]), "w": table() * 0})
    with ps.load_model(FOLDER, checkpoint=tmp_path / "ck") as model:
        y = model.session.run("y:0", {"x:0": np.ones((1, 10))})

    assert y.tolist() == [[9, 9, 9]]


def test_a_checkpoint_of_another_graph_is_refused(tmp_path: Path) -> None:
    """The error names the variable that is missing."""
    ps.checkpoint.save(tmp_path / "ck", {"w": table()})

    with pytest.raises(errors.NotFoundError, match="Key b not found in checkpoint"):
        ps.load_model(FOLDER, checkpoint=tmp_path / "ck")


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """No graph beside the checkpoint, no checkpoint beside the graph, no graph at all."""
    ps.checkpoint.save(tmp_path / "ck", {"a": 1})
    with pytest.raises(errors.NotFoundError, match=r"ck\.meta"):
        ps.load_model(tmp_path / "ck")
    shutil.copy(FOLDER / "model.ckpt-7.meta", tmp_path / "alone.meta")
    with ps.load_model(tmp_path / "alone") as model:
        assert model.session.run("ids:0", {"words:0": ["a"]}).tolist() == [1]
        with pytest.raises(errors.FailedPreconditionError, match="uninitialized"):
            model.session.run("y:0", {"x:0": np.ones((1, 10))})
    with pytest.raises(errors.NotFoundError, match=r"There is no checkpoint .*nowhere"):
        ps.load_model(tmp_path / "alone", checkpoint=tmp_path / "nowhere")
    (tmp_path / "ck.meta").write_bytes((tmp_path / "ck.index").read_bytes())
    with pytest.raises(errors.InvalidArgumentError, match="part of a checkpoint, not a MetaGraph"):
        ps.load_model(tmp_path / "ck")


def test_the_graph_itself_needs_no_files() -> None:
    """What only assigns is restored without running it, also where graphs may use no files."""
    with ps.load_model(FOLDER, config=ps.Config(allow_files=False)) as model:
        assert model.session.run("y:0", {"x:0": np.zeros((1, 10))}).tolist() == [BIAS.tolist()]
