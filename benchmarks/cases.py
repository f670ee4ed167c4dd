"""The benchmark graphs on disk: a GraphDef, feeds, fetches, and TensorFlow's answers.

In:   folders with ``graph.pb``, ``feeds.npz``, ``case.json`` and perhaps ``expected.npz``.
Out:  ``Case``.
Not:  knows no engine, and is read by interpreters that have only numpy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
#: Where graphs are: those that come with the source, and the large ones that
#: ``benchmarks.make_graphs`` writes.
FOLDERS = (ROOT / "benchmarks" / "graphs", ROOT / "build" / "benchmark_graphs")
#: Answers agree if they differ by less than this, relative to each value, and by a tenth of
#: it relative to the largest: engines add up in different orders.
TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class Case:
    """One graph, and what to ask of it."""

    folder: Path
    group: str
    #: What a step's time is divided by: nodes of a chain, iterations of a loop.
    units: int
    devices: int
    #: Names in ``feeds.npz``, by the tensor that is fed.
    feeds: dict[str, str]
    fetches: list[str]
    #: What initialises the variables; empty if there are none.
    init_op: str
    #: How far answers of two engines may be apart; ``agree`` says of what.
    tolerance: float = TOLERANCE

    @classmethod
    def read(cls, folder: Path) -> Case:
        """The case of a folder."""
        meta: dict[str, Any] = json.loads((folder / "case.json").read_text("utf-8"))
        return cls(
            folder=folder,
            group=meta["group"],
            units=meta["units"],
            devices=meta["devices"],
            feeds=meta["feeds"],
            fetches=meta["fetches"],
            init_op=meta.get("init_op", ""),
            tolerance=meta.get("tolerance", TOLERANCE),
        )

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    @property
    def steps(self) -> int:
        """How many first steps are compared: what one does to variables shows in the next."""
        return 2 if self.init_op else 1

    @property
    def graph_bytes(self) -> bytes:
        """The GraphDef as it is stored."""
        return (self.folder / "graph.pb").read_bytes()

    @property
    def onnx_path(self) -> Path:
        """Where ``benchmarks.make_onnx`` writes the same graph as a model of ONNX."""
        return ROOT / "build" / "onnx" / f"{self.name}.onnx"

    def fed(self) -> list[Any]:
        """What to feed, in the order of ``feeds``."""
        with np.load(self.folder / "feeds.npz") as file:
            return [file[key] for key in self.feeds.values()]

    def expected(self) -> list[Any] | None:
        """TensorFlow's answers to the first steps; None if they are too large to be kept."""
        path = self.folder / "expected.npz"
        return read_arrays(path) if path.is_file() else None


def all_cases(names: Sequence[str] = ()) -> Iterator[Case]:
    """The cases that are on this machine, or those of some names."""
    paths = [path.parent for root in reversed(FOLDERS) for path in root.glob("*/case.json")]
    folders = {path.name: path for path in paths}  # what comes with the source goes first
    for name in sorted(folders):
        if not names or name in names:
            yield Case.read(folders[name])


def write_arrays(path: Path, arrays: Sequence[Any]) -> None:
    """Store results in order."""
    np.savez_compressed(path, **{str(index): stored(array) for index, array in enumerate(arrays)})


def stored(value: Any) -> Any:
    """An array that a file may have: of texts, one of bytes."""
    array = np.asarray(value)
    return array.astype(np.bytes_) if array.dtype == object else array


def read_arrays(path: Path) -> list[Any]:
    """Results as ``write_arrays`` stored them."""
    with np.load(path) as file:
        return [file[str(index)] for index in range(len(file.files))]


def agree(got: Sequence[Any], wanted: Sequence[Any], tolerance: float = TOLERANCE) -> bool:
    """Whether results have the same types and shapes, and nearly the same values."""
    return len(got) == len(wanted) and all(
        _is_near(one, other, tolerance) for one, other in zip(got, wanted, strict=True)
    )


def _is_near(got: Any, wanted: Any, tolerance: float) -> bool:
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return False
    if wanted.dtype.kind in "biuS":
        return bool(np.array_equal(got, wanted))
    scale = float(np.max(np.abs(wanted), where=np.isfinite(wanted), initial=0.0))
    near = tolerance / 10 * scale
    return bool(np.allclose(got, wanted, rtol=tolerance, atol=near, equal_nan=True))
