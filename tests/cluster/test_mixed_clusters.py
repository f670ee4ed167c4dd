"""Clusters of TensorFlow's tasks and ours, with clients of either kind, give the same answers.

``mixed/answers.jsonl`` is what TensorFlow's client got from three of TensorFlow's servers.  Tests
with TensorFlow run where ``PENSTOCK_TENSORFLOW`` names a Python that has it, in a network namespace
of their own, since its servers listen at every address.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")

MIXED = Path(__file__).parent / "mixed"
TENSORFLOW = os.environ.get("PENSTOCK_TENSORFLOW", "")
STEPS: list[dict[str, Any]] = json.loads((MIXED / "steps.json").read_text())
WANTED = [json.loads(line) for line in (MIXED / "answers.jsonl").read_text().splitlines()]
#: TensorFlow's masters say INTERNAL where a fetch is dead; ours what sessions of one process say.
DEAD = next(i for i, step in enumerate(STEPS) if step.get("fetch") == ["only_if_large:0"])
INTERNAL, INVALID_ARGUMENT = 13, 3


def play(tasks: str, client: str) -> list[Any]:
    """What a client of some kind gets from three tasks of some kinds."""
    command = [sys.executable, str(MIXED / "play.py"), "--tensorflow", TENSORFLOW or sys.executable]
    command += ["--tasks", tasks, "--client", client]
    if "tf" in tasks:
        command = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$0" "$@"', *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(got: list[Any], *, tensorflow_is_master: bool) -> None:
    """The answers are TensorFlow's, values bit for bit, errors by code and node."""
    assert len(got) == len(WANTED)
    for number, (have, want) in enumerate(zip(got, WANTED, strict=True)):
        if number == DEAD:
            code = INTERNAL if tensorflow_is_master else INVALID_ARGUMENT
            assert have["error"][0] == code
        elif "error" in want:
            assert have["error"][0] == want["error"][0], STEPS[number]
            assert want["error"][1] in (None, have["error"][1]), STEPS[number]
        else:
            assert have == want, STEPS[number]


def test_penstock_alone() -> None:
    """Our client, our master, our workers: three processes, TensorFlow's answers."""
    check(play("ps,ps,ps", "ps"), tensorflow_is_master=False)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.skipif(not TENSORFLOW, reason="PENSTOCK_TENSORFLOW names no Python with TensorFlow")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs a network namespace")
@pytest.mark.parametrize("client", ["tf", "ps"])
@pytest.mark.parametrize(
    "tasks", ["ps,ps,ps", "tf,ps,ps", "ps,tf,tf", "tf,tf,tf", "tf,ps,tf", "ps,tf,ps"]
)
def test_with_tensorflow(tasks: str, client: str) -> None:
    """Whoever is client, master and worker."""
    check(play(tasks, client), tensorflow_is_master=tasks.startswith("tf"))
