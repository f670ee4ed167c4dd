"""How many cores a process may use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.core import cores
from penstock.core.cores import usable_cores


def with_quotas(
    monkeypatch: pytest.MonkeyPatch, folder: Path, allowed: int, *files: dict[str, str]
) -> int:
    """The number where so many cores are allowed, and control groups say this of their time."""
    folders = []
    for number, texts in enumerate(files):
        group = folder / str(number)
        group.mkdir()
        folders.append(group)
        for name, text in texts.items():
            (group / name).write_text(text)
    monkeypatch.setattr(cores, "_allowed", lambda: allowed)
    monkeypatch.setattr(cores, "control_group_folders", lambda _controller: iter(folders))
    return usable_cores()


@pytest.mark.parametrize(
    ("files", "number"),
    [
        ([], 8),
        ([{}], 8),
        ([{"cpu.max": "max 100000\n"}], 8),
        ([{"cpu.max": "200000 100000\n"}], 2),
        ([{"cpu.max": "250000 100000\n"}], 3),
        ([{"cpu.max": "1000 100000\n"}], 1),
        ([{"cpu.max": "400000 100000\n"}, {"cpu.max": "300000 100000\n"}], 3),
        ([{"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}], 8),
        ([{"cpu.cfs_quota_us": "150000\n", "cpu.cfs_period_us": "50000\n"}], 3),
        ([{"cpu.cfs_quota_us": "150000\n"}], 8),
        ([{"cpu.max": "nonsense"}], 8),
        ([{"cpu.max": "100000 0"}], 8),
    ],
)
def test_the_least_share_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: list[dict[str, str]], number: int
) -> None:
    """Of all control groups, of both of Linux's kinds; a part of a core is one."""
    assert with_quotas(monkeypatch, tmp_path, 8, *files) == number


def test_the_affinity_mask_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where fewer cores are allowed than their time would be enough for."""
    assert with_quotas(monkeypatch, tmp_path, 2, {"cpu.max": "600000 100000"}) == 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no such mask")
def test_all_numbers_of_threads_follow() -> None:
    """A process that is kept to one core starts no helper, and pools of one thread."""
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from penstock.core.cores import CORES\n"
        "from penstock.kernels.parallel.intra_op import HELPERS\n"
        "from penstock.runtime.thread_pool import thread_count\n"
        "print(CORES, HELPERS, thread_count(0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "0", "1"]
