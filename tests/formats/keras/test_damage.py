"""Damaged files of Keras end in clear errors, soon and in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
FILES = [
    "nested.2.h5.gz",
    "nested.3.h5.gz",
    "text.2.keras",
    "nested.3.keras",
    "learned_texts.3.keras",
]


def ends(name: str, count: int, seed: int) -> tuple[dict[str, object], str]:
    """How many damaged forms of a file came to which end, and what was said of wrong ones."""
    command = [sys.executable, "-W", "error", "-m", "formats.keras.damage", f"keras_models/{name}"]
    path = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    done = subprocess.run(
        [*command, str(count), str(seed)],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)["ends"]
    return found, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
@pytest.mark.parametrize("name", FILES)
def test_damage_is_an_error_or_an_answer(name: str) -> None:
    """60 damaged forms of a file run or end in an OpError, within 5 s and 1 GB each."""
    found, said = ends(name, 60, 7)

    assert not {"wrong", "late", "changed"} & set(found), said
    assert sum(int(str(count)) for count in found.values()) == 60


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
@pytest.mark.parametrize("name", FILES)
def test_much_damage_is_an_error_or_an_answer(name: str) -> None:
    """The same of 400 forms, which are 2,000 of all files."""
    found, said = ends(name, 400, 11)

    assert not {"wrong", "late", "changed"} & set(found), said
