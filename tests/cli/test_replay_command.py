"""``penstock record`` and ``penstock replay``: a step in a file, and out of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import penstock as ps
from penstock.cli import main


def invoke(*args: object) -> Result:
    return CliRunner().invoke(main, list(map(str, args)), catch_exceptions=False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """``out`` is 7, or 12 if the addition comes first."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(np.float64(1), name="v")
        ps.global_variables_initializer(name="init")
        changes = [v.assign(v.read_value() * 2.0), v.assign_add(5.0)]
        with ps.control_dependencies(changes):
            ps.identity(v.read_value(), name="out")
    path = tmp_path / "model.pb"
    path.write_bytes(ps.graph_to_def(graph).SerializeToString())
    return path


def recorded(model: Path, wanted: int) -> Path:
    """A recording in which ``out`` is so much."""
    step = model.with_name("step")
    asked = ("record", model, "--init", "init", "--fetch", "out", "-o", step)
    for seed in range(100):
        done = invoke(*asked, "--seed", seed)
        assert done.exit_code == 0, done.output
        if f"float64  {wanted}" in done.output:
            return step
    raise AssertionError(f"no order gives {wanted}")


def test_a_step_is_recorded_and_replayed(model: Path) -> None:
    """Both print what was fetched, and how large the step was."""
    done = invoke("replay", recorded(model, 12), "--times", 20)
    assert done.exit_code == 0
    assert "out:0  float64  12" in done.output
    assert "20 of 20 replays as recorded" in done.output


def test_shrinking_names_the_exchange(model: Path) -> None:
    """As text and as JSON; what is written can be replayed."""
    step, smallest = recorded(model, 12), model.with_name("smallest")
    done = invoke("replay", step, "--shrink", "-o", smallest)
    assert "`v/AssignAdd` before `v/Read` instead of after" in done.output
    assert "float64  12" in invoke("replay", smallest).output
    found = json.loads(invoke("replay", step, "--shrink", "--format", "json").output)
    [row] = found["exchanges"]
    assert (row["first"], row["second"]) == ("v/AssignAdd", "v/Read")
    assert found["is_minimal"] is True


def test_what_fails_is_recorded_and_told(model: Path) -> None:
    """The file is there; to fail again as the step failed is what a replay is to do."""
    step = model.with_name("failing")
    done = invoke("record", model, "--fetch", "out", "-o", step)
    assert done.exit_code == 1
    assert "wrote" in done.output
    done = invoke("replay", step)
    assert done.exit_code == 0
    assert "which ended with" in done.output
    assert "ended with OK" not in done.output


def test_what_makes_no_sense_is_refused(model: Path) -> None:
    """With a word about what to do."""
    done = invoke("record", model, "--init", "init", "-o", model.with_name("none"))
    assert done.exit_code == 2
    assert "give --fetch or --target" in done.output
    done = invoke("replay", model)
    assert done.exit_code == 1
    assert "model.pb is damaged" in done.output
    assert invoke("replay", recorded(model, 7), "-o", "x").exit_code == 2
