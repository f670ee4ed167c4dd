"""A network gets as many images as one asks for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import penstock as ps
from benchmarks.cases import Case
from benchmarks.more_images import with_images
from support.graphs import graph_def


def test_images_are_many_and_all_different(tmp_path: Path) -> None:
    """The graph takes them, and gives an answer for each."""
    folder, other = tmp_path / "tiny", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    meta = {"group": "models", "units": 1, "devices": 1, "feeds": {"x:0": "x"}, "fetches": ["y:0"]}
    (folder / "case.json").write_text(json.dumps(meta), "utf-8")
    graph = graph_def("x = Placeholder[shape=1|5]\n y = Neg(x)")
    (folder / "graph.pb").write_bytes(graph.SerializeToString())
    np.savez(folder / "feeds.npz", x=np.arange(5, dtype=np.float32).reshape(1, 5))

    case = with_images(Case.read(folder), 3, other)

    assert (case.name, case.fetches) == ("tiny", ["y:0"])
    [images] = case.fed()
    assert len(np.unique(images, axis=0)) == 3
    with ps.Session(case.graph_bytes) as session:
        np.testing.assert_array_equal(session.run("y:0", {"x:0": images}), -images)
