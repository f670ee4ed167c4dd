"""Modules of TensorFlow 1 Hub: graphs that neither restore nor fill tables themselves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.defs.schema import SavedModel

FOLDER = Path(__file__).parent / "hub_module"


@pytest.mark.parametrize(("tags", "factor"), [([], 1), (["train"], 2)])
def test_each_graph_has_its_values(tags: list[str], factor: int) -> None:
    """Variables of both kinds, one saved in parts; all were doubled before they were exported."""
    with ps.saved_model.load(FOLDER, tags) as model:
        y = model.signatures["default"](default=[[1, 1], [0, 2]])["default"]
        assert model.tags == tuple(tags)

    # x times doubled [[1, 2], [3, 4]], the sum of four twos, and twice ten.
    assert y.tolist() == [
        [(8 + 28) * factor, (12 + 28) * factor],
        [(12 + 28) * factor, (16 + 28) * factor],
    ]


def test_each_part_gets_its_own_values(tmp_path: Path) -> None:
    """Of a variable that was saved in parts, with other values than the module's."""
    folder = damaged(tmp_path, lambda _: None)
    values = {"p": [1, 20, 300, 4000], "r": [0], "w": [[0, 0], [0, 0]]}
    floats = {name: np.float32(value) for name, value in values.items()}
    ps.checkpoint.save(folder / "variables" / "variables", floats)

    with ps.saved_model.load(folder, []) as model:
        assert model.signatures["default"](default=[[1, 1]])["default"].tolist() == [[4321, 4321]]


def test_tables_are_filled() -> None:
    """From an asset, by the nodes that a collection names."""
    with ps.saved_model.load(FOLDER, []) as model:
        found = model.signatures["tokens"](default=["b", "c", "a"])["default"]

    assert found.tolist() == [1, -1, 0]


def test_tags_must_be_told() -> None:
    """The empty set is one of them."""
    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)2 graphs.*\[\], \['train'\]"):
        ps.saved_model.load(FOLDER)


def damaged(tmp_path: Path, change: Any) -> Path:
    """The module, changed in its first graph."""
    folder = tmp_path / "module"
    shutil.copytree(FOLDER, folder)
    model = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    change(model.meta_graphs[0])
    (folder / "saved_model.pb").write_bytes(model.SerializeToString())
    return folder


def test_a_damaged_collection_is_told(tmp_path: Path) -> None:
    """What is no description of a variable, or one without an initializer."""

    def spoil(graph: Any) -> None:
        graph.collection_def["variables"].bytes_list.value[0] = b"\xff\xff"

    def rename(graph: Any) -> None:
        values = graph.collection_def["variables"].bytes_list.value
        values[0] = values[0].replace(b"w/Assign", b"x/Assign")

    with pytest.raises(errors.DataLossError, match="collection of variables is damaged"):
        ps.saved_model.load(damaged(tmp_path / "1", spoil), [])
    with pytest.raises(errors.DataLossError, match="has no initializer"):
        ps.saved_model.load(damaged(tmp_path / "2", rename), [])


def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    """The checkpoint lacks it."""
    folder = damaged(tmp_path, lambda _: None)
    ps.checkpoint.save(folder / "variables" / "variables", {"r": [1.0], "w": [[1.0]]})

    with pytest.raises(errors.NotFoundError, match="Key p not found"):
        ps.saved_model.load(folder, [])
