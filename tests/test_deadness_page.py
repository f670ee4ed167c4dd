"""docs/deadness.md names every place that knows a rule of deadness, and its test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import penstock as ps
from support.sketch import sketch

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "penstock"
PAGE = (ROOT / "docs" / "deadness.md").read_text("utf-8")
#: What is written where something depends on whether a node or a value is dead.
SIGNS = re.compile(
    r"\bDEAD\b|\b(is|may_be|takes|allow)_(input_)?dead\b|ONE_DEAD|\.live\b|SurelyLive|dead_exits"
    r"|\.gated\(|Role\.SWITCH, Role\.RECV"
)
FOLDERS = (
    "checks|cluster|comparison|core|debugger|explanations|graph|kernels|passes|replays|reporting|runtime"
    "|session|state"
    "|tracing"
)
NAMED = set(re.findall(rf"`((?:{FOLDERS})/[\w/]+\.py)`", PAGE))


def test_every_place_is_named() -> None:
    """A module that looks at deadness stands on the page, and what stands there exists."""
    knowing = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if SIGNS.search(path.read_text("utf-8"))
    }

    assert len(knowing) > 20
    assert knowing - NAMED == set()
    assert [name for name in NAMED if not (SOURCE / name).is_file()] == []


@pytest.mark.parametrize("row", [row for row in PAGE.splitlines() if row.startswith("| `")])
def test_every_rule_has_its_test(row: str) -> None:
    """Each row ends with a test that is there."""
    found = re.search(r"\| `(tests/[\w/]+\.py)::(\w+)` \|$", row)

    assert found, row
    assert f"def {found[2]}(" in (ROOT / found[1]).read_text("utf-8")


def test_records_have_live_outputs_only() -> None:
    """A traced Switch has one output in its record, and a dead node has no record."""
    graph = sketch("""
        x = Placeholder() dtype=float32
        p = Const() value=True
        s = Switch(x, p)
        on = Neg(s:1)
        off = Neg(s:0)
        m = Merge(on, off)
    """)
    metadata = ps.RunMetadata()
    config = ps.Config(graph_options=ps.GraphOptions.nothing())
    with ps.Session(graph, config=config) as session:
        options = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE)
        assert session.run("m:0", {"x:0": 2.0}, options, metadata) == -2.0
    [device] = metadata.step_stats.dev_stats
    records = {stats.node_name: stats for stats in device.node_stats}

    assert [output.slot for output in records["s"].output] == [1]
    assert "on" in records
    assert "off" not in records
