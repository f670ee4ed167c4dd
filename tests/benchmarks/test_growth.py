"""How growth is measured: graphs whose answers are right, slopes, and an end to patience."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from benchmarks.cases import Case, agree
from benchmarks.growth import SERIES, SKIPPED, Series, exponents, points, tables
from benchmarks.growth_graphs import counting, feeding, mixing
from benchmarks.measure import Client, WorkerError
from benchmarks.worker import PenstockModel

#: A thousand nodes, iterations or feeds, or less.
_MADE = {
    "mixing": lambda folder: mixing(folder, 1000, 16),
    "counting": lambda folder: counting(folder, 1000),
    "feeding": lambda folder: feeding(folder, 1000),
    "no iteration": lambda folder: counting(folder, 0),
    "one feed": lambda folder: feeding(folder, 1),
}


def _answers(case: Case, data: bytes) -> list[np.ndarray]:
    model = PenstockModel(case, data, case.fed())
    try:
        return [np.asarray(result) for result in model.run()]
    finally:
        model.close()


@pytest.mark.parametrize("name", _MADE)
def test_graphs_of_any_size_have_right_answers(name: str, tmp_path: Path) -> None:
    """Penstock gives what numpy and Python's whole numbers gave when the graph was made."""
    case = _MADE[name](tmp_path)
    expected = case.expected()

    assert expected is not None
    assert agree(_answers(case, case.graph_bytes), expected)


@pytest.mark.parametrize("place", [0, 7, 64, 99])
def test_every_node_of_a_mixture_counts(place: int, tmp_path: Path) -> None:
    """With one op exchanged for another, wherever it stands, the answer is another."""
    case = mixing(tmp_path, 100, 4)
    graph = ps.load_graph_def(case.graph_bytes)
    (node,) = (node for node in graph.node if node.name == f"n{place}")
    node.op = "AddV2" if node.op != "AddV2" else "BitwiseXor"
    expected = case.expected()

    assert expected is not None
    assert not agree(_answers(case, graph.SerializeToString()), expected)


@pytest.mark.parametrize("iterations", [999, 1001])
def test_every_iteration_counts(iterations: int, tmp_path: Path) -> None:
    """One iteration less, or more, is another number."""
    right = counting(tmp_path / "right", 1000).expected()
    other = counting(tmp_path / "other", iterations).expected()

    assert right is not None
    assert other is not None
    assert right[1] != other[1]


def test_the_slope_of_a_power_is_its_exponent() -> None:
    """What is in proportion has the exponent 1, squares have 2, what stays the same has 0."""
    assert exponents({10: 3.0, 100: 30.0, 1000: 30.0, 2000: 120.0}) == pytest.approx(
        {100: 1.0, 1000: 0.0, 2000: 2.0}
    )


def test_points_are_measured_and_checked() -> None:
    """Each size has numbers of each engine, and a row in the table of each quantity."""
    series = Series(
        lambda folder, size: mixing(folder, size, 4), "nodes", (10, 100), ("load", "step")
    )
    found = dict(points(series, {"penstock": sys.executable}, 1, 0.01))

    assert list(found) == [10, 100]
    assert all(set(one["penstock"]) == {"load", "step"} for one in found.values())
    assert tables("iterations", found).splitlines()[-1].startswith("| 100 | — | — | ")


def test_wrong_answers_are_no_points() -> None:
    """An engine whose answer is not that of the graph has an error instead of numbers."""

    def wrong(folder: Path, size: int) -> Case:
        case = counting(folder, size)
        np.savez(folder / "expected.npz", **{"0": np.int32(size), "1": np.int32(0)})
        return case

    series = Series(wrong, "iterations", (10, 100), ("step",))
    found = dict(points(series, {"penstock": sys.executable}, 1, 0.01))

    assert found[10]["penstock"] == {"error": "WRONG RESULT"}
    assert found[100]["penstock"] == {"error": "not asked after: WRONG RESULT"}


def test_what_would_take_too_long_is_not_begun() -> None:
    """From how long a point took follows whether a larger one is tried; the table says ``—``."""
    series = Series(counting, "iterations", (100, 10_000_000_000), ("step",))
    found = dict(points(series, {"penstock": sys.executable}, 1, 0.01))

    assert found[10_000_000_000]["penstock"] == {"error": SKIPPED}


def test_patience_has_an_end(tmp_path: Path) -> None:
    """A worker that takes longer than its limit is ended, and the error says so."""
    case = counting(tmp_path, 2_000_000_000)
    start = time.monotonic()
    with pytest.raises(WorkerError, match="took more than 5 s"):
        _load(Client("penstock", sys.executable, case, limit=5.0))

    assert time.monotonic() - start < 60


def _load(client: Client) -> None:
    try:
        client.ask("load")
    finally:
        client.close()


def test_threads_side_by_side_are_measured(tmp_path: Path) -> None:
    """Several threads make steps of one session, and their results are compared."""
    client = Client("penstock", sys.executable, mixing(tmp_path, 10, 4))
    try:
        client.ask("load")
        told = client.ask("threads", 3, 0.01)
    finally:
        client.close()

    assert told["count"] >= 3
    assert told["seconds"] > 0


def test_series_go_as_far_as_they_should() -> None:
    """A thousand to a million nodes, a hundred to ten million iterations, up to 10,000 feeds."""
    ends = {name: (series.sizes[0], series.sizes[-1]) for name, series in SERIES.items()}

    assert ends == {
        "nodes": (1_000, 1_000_000),
        "iterations": (100, 10_000_000),
        "feeds": (1, 10_000),
        "threads_small": (1, 8),
        "threads_large": (1, 8),
    }
