"""``penstock trace``: what it prints, what it writes, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import penstock as ps
from penstock.defs import perfetto_schema
from support.commands import penstock
from support.graphs import graph_def

TEXT = "x = Placeholder\ny = Neg(x)\nz = Exp(y)\nbad = MatMul(y, y)"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A graph in a file."""
    path = tmp_path / "model.pb"
    path.write_bytes(graph_def(TEXT).SerializeToString())
    return path


@pytest.mark.parametrize("detail", [detail.value for detail in ps.TraceDetail])
def test_a_trace_is_written_and_summed_up(model: Path, tmp_path: Path, detail: str) -> None:
    """For each detail; the nodes that took most time are printed, and where the file is."""
    out = tmp_path / "step.json"
    done = penstock(
        "trace", model, "--feed", "x:0=[1,2]", "--fetch", "z:0", "-o", out, "--detail", detail,
        "--steps", 3, "--warm-up", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    first, *nodes, last = done.stdout.splitlines()
    assert first.startswith("3 steps, ")
    assert last == f"wrote {out}"
    assert any("z" in line and "ms" in line for line in nodes)
    names = {event["name"] for event in json.loads(out.read_text("utf-8"))["traceEvents"]}
    assert {"step 0", "step 1", "step 2"} <= names
    assert ("y" in names) is (detail in ("nodes", "inside"))


def test_other_formats(model: Path, tmp_path: Path) -> None:
    """Perfetto's packets, and a folder for TensorBoard."""
    asked = ["trace", model, "--feed", "x:0=1.0", "--target", "z", "-o"]
    assert penstock(*asked, tmp_path / "a.pftrace").exit_code == 0
    assert perfetto_schema.Trace.FromString((tmp_path / "a.pftrace").read_bytes()).packet
    assert penstock(*asked, tmp_path / "logs", "--tag", "train").exit_code == 0
    (events,) = (tmp_path / "logs").iterdir()
    assert events.name.startswith("events.out.tfevents.")


def test_a_step_that_fails_is_written_as_well(model: Path, tmp_path: Path) -> None:
    """The file is there, the error is told, and the exit status is 1."""
    out = tmp_path / "bad.json"
    done = penstock(
        "trace", model, "--feed", "x:0=[[1,2]]", "--fetch", "bad", "-o", out, "--detail", "nodes"
    )
    assert done.exit_code == 1
    assert "INVALID_ARGUMENT" in done.stderr
    failed = [e for e in json.loads(out.read_text("utf-8"))["traceEvents"] if e["name"] == "bad"]
    assert failed[0]["args"]["error"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--fetch", "z:0", "-o", "a.txt"], 1, "no format"),
        (["--fetch", "z:0"], 2, "--out"),
        (["-o", "a.json"], 2, "z"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    model: Path, args: list[str], code: int, words: str
) -> None:
    """A name without a format, no name, nothing to fetch."""
    done = penstock("trace", model, *args)
    assert done.exit_code == code
    assert words in done.stderr
