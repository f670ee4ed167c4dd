"""Memory: how much there is, and that freed memory is kept."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from penstock.core import memory
from penstock.core.memory import PHYSICAL_MEMORY, fits_memory, gives_back, keep_freed_memory


def test_a_machine_has_some_memory() -> None:
    """The bound is a plausible number of bytes."""
    assert PHYSICAL_MEMORY > 1 << 27


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_glibc_accepts_the_thresholds() -> None:
    """Both values are in the range that glibc takes, and asking twice does no harm."""
    assert keep_freed_memory()
    assert keep_freed_memory()


#: Prints how many pages the system had to clear, each time that a thread makes six arrays of 22 MB,
#: none of which is needed when the next six are made.
_ARRAYS_OF_A_THREAD = """
import resource, threading
import numpy as np
from penstock.core.memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work():
    for _ in range(20):
        before = faults()
        arrays = [np.ones(22 << 18, np.float32) for _ in range(6)]
        del arrays
        print(faults() - before)

keep_freed_memory()
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_threads_keep_what_they_freed() -> None:
    """All but their first arrays are in memory that is there."""
    command = [sys.executable, "-c", _ARRAYS_OF_A_THREAD]
    pages = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert max(int(count) for count in pages[3:]) < 100, pages


def test_what_is_kept_goes_back_before_something_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not before that."""
    left, given = [1 << 30], []

    def give() -> None:
        given.append(left[0])
        left[0] = 4 << 30

    monkeypatch.setattr(memory, "available_memory", lambda: left[0])
    monkeypatch.setattr(memory, "_givers", [])
    gives_back(give)
    gives_back(give)
    assert fits_memory(1 << 29)
    assert not given
    assert fits_memory(1 << 31)
    assert given == [1 << 30]
    assert not fits_memory(1 << 32)


@pytest.mark.parametrize(
    ("controller", "folders"),
    [
        ("memory", ["memory/docker/abc", "memory/docker", "memory", "system.slice", ""]),
        ("cpu", ["cpu/docker/abc", "cpu/docker", "cpu", "system.slice", ""]),
        ("pids", ["system.slice", ""]),
    ],
)
def test_what_bounds_a_process_are_its_groups_and_those_around(
    monkeypatch: pytest.MonkeyPatch, controller: str, folders: list[str]
) -> None:
    """Of both of Linux's kinds: one that has a controller, and one for all."""
    told = "7:cpu:/docker/abc\n4:memory:/docker/abc\n0::/system.slice\n"
    monkeypatch.setattr(memory, "text_of", {"/proc/self/cgroup": told}.get)
    found = list(memory.control_group_folders(controller))
    assert found == [f"/sys/fs/cgroup/{folder}".rstrip("/") for folder in folders]


def test_what_a_group_leaves_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limit less what it uses, but for what would be given back at once."""
    group = "/sys/fs/cgroup/abc"
    files = {
        "/proc/self/cgroup": "0::/abc\n",
        f"{group}/memory.max": "1000000\n",
        f"{group}/memory.current": "300000\n",
        f"{group}/memory.stat": "anon 7\ninactive_file 50000\n",
    }
    monkeypatch.setattr(memory, "text_of", lambda path: files.get(path, ""))
    memory._groups.cache_clear()
    try:
        assert memory.available_memory() == 750_000
    finally:
        memory._groups.cache_clear()
