"""Damaged files of models and data end in a clear error or in the right answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from penstock.errors import DataLossError, InternalError
from security.damage import KINDS, damaged
from security.damaged_files import (
    SUBJECTS,
    Subject,
    anything,
    beginning_or_refused,
    right_or_refused,
    run,
)

#: Those that each kind of file has to bear; everyday runs try some of them.
COUNT, FEW, SEED = 500, 50, 7


def attacked(subject: str, count: int) -> str:
    """What a process says that damages files; its memory is bounded, so it is one of its own."""
    command = [sys.executable, "-m", "security.damaged_files", subject]
    done = subprocess.run(
        [*command, "--count", str(count), "--seed", str(SEED)],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("subject", SUBJECTS)
def test_some_damages(subject: str) -> None:
    """No bare exception, no mistake of ours, no wrong answer, within 5 seconds and 1 GB."""
    assert attacked(subject, FEW) == f"{subject}: {FEW} damages, 0 findings\n"


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_many_damages(subject: str) -> None:
    """The same, 500 times."""
    assert attacked(subject, COUNT) == f"{subject}: {COUNT} damages, 0 findings\n"


# -- the judge itself ------------------------------------------------------------------


def found_of(read: Any, accepts: Any = right_or_refused) -> list[str]:
    """What is found in a reader that damages are tried on."""
    subject = Subject(lambda: [{"file": b"0123456789"}], read, accepts)
    return list(run(subject, 3, range(20)))


def whole_or(then: Any) -> Any:
    """A reader that does something with a file that is damaged."""

    def read(folder: Path) -> dict[str, Any]:
        content = (folder / "file").read_bytes()
        return {"content": content if content == b"0123456789" else then(content)}

    return read


def fails(error: Exception) -> Any:
    """Something that raises."""

    def act(_: bytes) -> None:
        raise error

    return act


def test_what_is_wrong_is_found() -> None:
    """Another answer, a bare exception, a mistake of ours, something without an end."""
    assert found_of(whole_or(lambda content: content))
    assert "KeyError" in found_of(whole_or(fails(KeyError("x"))))[0]
    assert "please report" in found_of(whole_or(fails(InternalError("please report it"))))[0]
    assert "MemoryError" in found_of(whole_or(lambda _: np.ones(1 << 28)), anything)[0]


def test_what_is_right_is_not_found() -> None:
    """An error that says what is the matter, and the right answer."""
    assert found_of(whole_or(fails(DataLossError("damaged")))) == []
    assert found_of(lambda _: {"always": 1}) == []


def test_a_beginning_is_right_records_and_an_error() -> None:
    """Records may be missing at the end, and nowhere else."""
    whole = {"0": b"a", "1": b"b", "2": b"c"}
    error = DataLossError("cut off")

    assert beginning_or_refused({"0": b"a", "1": b"b"}, whole)
    assert beginning_or_refused({"0": b"a", "": error}, whole)
    assert not beginning_or_refused({"0": b"a", "1": b"c"}, whole)
    assert not beginning_or_refused({**whole, "3": b"d"}, whole)


@pytest.mark.parametrize("kind", KINDS)
def test_every_damage_does_something(kind: Any) -> None:
    """Of a hundred files nearly all are other ones, and none raises, the empty one neither."""
    content = bytes(range(200))
    others = [kind(bytearray(content), [content, b"other"], Random(n)) for n in range(100)]
    kind(bytearray(), [b"", b""], Random(0))

    assert sum(other != content for other in others) > 80


def test_damage_is_told_by_its_number() -> None:
    """The same number gives the same damage, and another one another."""
    files = {"a": bytes(1000), "b": b"x" * 50}

    assert damaged(files, Random(5)) == damaged(files, Random(5))
    assert len({str(damaged(files, Random(n))) for n in range(50)}) > 45
