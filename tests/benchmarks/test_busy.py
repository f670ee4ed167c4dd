"""The comparison on a busy machine, without its times."""

from __future__ import annotations

import os
import subprocess

import pytest

from benchmarks.burning import burning
from benchmarks.busy import KEPT, busy_cores, row, worst_kept
from benchmarks.cases import Case, all_cases


@pytest.fixture
def case() -> Case:
    """Any."""
    return next(case for case in all_cases() if case.name == "single_add")


def test_other_work_is_there_meanwhile_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many processes run, and none is left."""
    begun: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def noted(*args: object, **more: object) -> subprocess.Popen[bytes]:
        begun.append(start(*args, **more))  # type: ignore[call-overload]
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    with burning(2):
        assert [process.poll() for process in begun] == [None, None]
    assert all(process.returncode for process in begun)
    assert not any(os.path.exists(f"/proc/{process.pid}") for process in begun)


def test_what_is_left_of_a_ratio(case: Case) -> None:
    """The least of the busy machine's, as a part of the idle machine's; too little is marked."""
    assert worst_kept([2.0, 3.0, 1.5]) == KEPT
    assert row(case, [2.0, 3.0, 1.5]).endswith("| 2.00 | 3.00 | 1.50 | 0.75 |")
    assert "←" in row(case, [2.0, 1.4, 1.5])


def test_how_many_cores_are_kept_busy() -> None:
    """None, one, and all."""
    assert busy_cores(1) == [0, 1]
    assert busy_cores(8) == [0, 1, 8]
