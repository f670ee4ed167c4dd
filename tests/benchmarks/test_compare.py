"""The table of engines: columns of those that are measured, and why others are not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cases import Case
from benchmarks.compare import head, row
from benchmarks.growth_graphs import counting
from benchmarks.measure import Client, Measurement, WorkerError, measure, verdict


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A loop that counts to ten."""
    return counting(tmp_path / "count_to_ten", 10)


def _measured(case: Case, step: float, load: float) -> Measurement:
    answers = case.expected()
    assert answers is not None
    return Measurement(loads=[load], rounds=[step], bytes=1000, results=answers)


def test_a_row_has_a_ratio_for_each_engine(case: Case) -> None:
    """TensorFlow's time, Penstock's, and each peer's, divided by Penstock's."""
    found = {
        "tensorflow": _measured(case, 4e-3, 0.3),
        "penstock": _measured(case, 2e-3, 0.1),
        "onnxruntime": _measured(case, 1e-3, 0.2),
    }

    assert row(case, found) == (
        "| count_to_ten | growth | 4,000 | 2,000 | 2.00 | 3.00 | 1.0 | 1,000 | 0.50 | 2.00 |"
    )
    assert all(
        len(line.split("|")) == len(row(case, found).split("|"))
        for line in head(["onnxruntime"]).splitlines()
    )


def test_a_peer_that_cannot_run_a_graph_says_so(case: Case) -> None:
    """Its cell has the reason, and the row of the others stands."""
    found = {
        "tensorflow": _measured(case, 4e-3, 0.3),
        "penstock": _measured(case, 2e-3, 0.1),
        "openvino": Measurement(error="no | such op"),
    }

    assert row(case, found).endswith("| 1.0 | no / such op | — | — |")


def test_a_peer_that_is_wrong_says_so(case: Case) -> None:
    """A fast wrong answer has no time."""
    wrong = _measured(case, 1e-3, 0.2)
    wrong.results = [wrong.results[0] + np.int32(1), wrong.results[1]]
    found = {
        "tensorflow": _measured(case, 4e-3, 0.3),
        "penstock": _measured(case, 2e-3, 0.1),
        "onnxruntime": wrong,
    }

    assert verdict(case, [wrong]) == "WRONG RESULT"
    assert row(case, found).endswith("| WRONG RESULT | — | — |")


def test_an_engine_that_is_not_installed_is_an_answer(case: Case) -> None:
    """A Python without the engine says what is missing, and the others are measured."""
    pytest.importorskip("onnxruntime")
    with pytest.raises(WorkerError, match="No module named 'openvino'"):
        Client("openvino", sys.executable, case)
    found = measure(case, dict.fromkeys(["penstock", "onnxruntime"], sys.executable), 1, 0.01)

    assert not verdict(case, [found["penstock"]])
    assert found["onnxruntime"].error == "no model of ONNX: see benchmarks.make_onnx"
