"""The benchmark graphs, untimed: what is measured must be right."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import cases
from benchmarks.cases import FOLDERS, Case, agree, all_cases
from benchmarks.compare import geometric_mean
from benchmarks.training import differences
from benchmarks.worker import PenstockModel, answers_of

#: They take seconds to load, and have no op that others do not have.
SLOW = ("big_graph", "wide_scalar")
CASES = [
    case
    for case in all_cases()
    if case.folder.parent == FOLDERS[0] and case.name not in SLOW and case.expected() is not None
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_benchmarks_give_tensorflows_answers(case: Case) -> None:
    """The first steps of every benchmark graph give what TensorFlow's gave."""
    model = PenstockModel(case, case.graph_bytes, case.fed())
    try:
        results = answers_of(model, case.steps)
    finally:
        model.close()

    expected = case.expected()
    assert expected is not None
    assert agree([np.asarray(result) for result in results], expected)


def test_every_group_has_cases() -> None:
    """Each group of the table in docs/performance.md that fits into the source is measured."""
    assert {case.group for case in all_cases()} >= {
        *("latency", "control_flow", "scheduler", "training", "kernels", "load"),
    }


def test_wrong_answers_do_not_agree() -> None:
    """Another value, type, shape or number of results is noticed."""
    right = np.array([1.0, 2.0], np.float32)

    assert agree([right], [right * np.float32(1.00001)])
    assert not agree([right], [right * np.float32(1.01)])
    assert not agree([right], [right.astype(np.float64)])
    assert not agree([right], [right[:1]])
    assert not agree([right, right], [right])


def test_infinity_hides_no_difference() -> None:
    """What is infinite must be so on both sides, and the rest is compared as ever."""
    right = np.array([1.0, np.inf, np.nan, -np.inf], np.float32)

    assert agree([right], [right.copy()])
    for place, wrong in enumerate((2.0, 1.0, 0.0, np.inf)):
        other = right.copy()
        other[place] = wrong
        assert not agree([other], [right])


def test_ratios_have_a_geometric_mean() -> None:
    """Twice as fast and half as fast cancel."""
    assert geometric_mean([2.0, 0.5, 1.0]) == pytest.approx(1.0)


def test_differences_are_relative_and_by_step() -> None:
    """Each step has its largest difference, of an array to its largest element."""
    loss, other = np.float32([2.0, 2.5]), np.float32([4.0, -8.0])
    near = [loss[:1] * np.float32(1.25), other]

    assert differences([[loss, other]] * 2, [[loss, other], [loss, other + 1]]) == [0.0, 0.125]
    assert differences([[loss[:1], other]], [near]) == [pytest.approx(0.25)]


@pytest.mark.parametrize("wrong", [[np.nan, 1.0], [np.inf, 1.0], [1.0]])
def test_what_is_no_number_is_infinitely_wrong(wrong: list[float]) -> None:
    """A result without numbers, or of another shape, is not near."""
    right = np.float32([1.0, 1.0])

    assert differences([[right]], [[np.float32(wrong)]]) == [np.inf]


def test_a_graph_that_is_there_twice_is_measured_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that comes with the source counts, and not what was made of the same name."""
    roots = tmp_path / "source", tmp_path / "made"
    for units, root in enumerate(roots):
        (root / "chain").mkdir(parents=True)
        facts = {"group": "g", "units": units, "devices": 1, "feeds": {}, "fetches": []}
        (root / "chain" / "case.json").write_text(json.dumps(facts), "utf-8")
    monkeypatch.setattr(cases, "FOLDERS", roots)

    assert [case.units for case in cases.all_cases()] == [0]
