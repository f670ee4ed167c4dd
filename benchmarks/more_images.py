"""Networks that get several images at once, where their graphs were made for one.

In:   a case, and how many images.
Out:  a case in another folder: its graph takes any number of them, and its feeds have so many.
Not:  changes no graph whose shapes inside say one image: engines refuse it, and say why.
"""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np

from benchmarks.cases import Case
from penstock.defs.schema import GraphDef


def with_images(case: Case, count: int, folder: Path) -> Case:
    """A case with so many images, of which no two are the same, written to a folder."""
    target = folder / case.name
    target.mkdir()
    shutil.copy(case.folder / "case.json", target)
    graph = GraphDef()
    graph.ParseFromString(case.graph_bytes)
    for node in graph.node:
        if node.op == "Placeholder" and node.attr["shape"].shape.dim:
            node.attr["shape"].shape.dim[0].size = -1
    (target / "graph.pb").write_bytes(graph.SerializeToString())
    feeds = {
        key: np.concatenate([np.roll(images, number, 1) for number in range(count)])
        for key, images in zip(case.feeds.values(), case.fed(), strict=True)
    }
    np.savez(target / "feeds.npz", **feeds)
    return dataclasses.replace(case, folder=target)
