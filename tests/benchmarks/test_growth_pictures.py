"""Pictures of growth: drawn from what was measured, and the same each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

matplotlib = pytest.importorskip("matplotlib")

from benchmarks.growth_pictures import draw  # noqa: E402  (asks for matplotlib itself)


def _found(*engines: str) -> dict[int, Any]:
    """Of a series in which all is in proportion."""
    return {
        size: {
            engine: {"load": size * 1e-5, "step": size * 1e-6, "bytes": size} for engine in engines
        }
        for size in (1000, 10_000, 100_000)
    }


def test_each_quantity_has_a_small_picture(tmp_path: Path) -> None:
    """Load, step and memory of nodes are three files, each with a name for every engine."""
    paths = draw("nodes", _found("penstock", "tensorflow"), tmp_path)

    assert [path.name for path in paths] == [
        "growth_nodes_load.svg",
        "growth_nodes_step.svg",
        "growth_nodes_bytes.svg",
    ]
    for path in paths:
        text = path.read_text("utf-8")
        assert "Penstock" in text
        assert "TensorFlow" in text
        assert len(text) < 40_000


def test_the_same_numbers_give_the_same_picture(tmp_path: Path) -> None:
    """Drawn twice it is the same file, so that a changed picture is a changed number."""
    found = _found("penstock")
    first = [path.read_bytes() for path in draw("nodes", found, tmp_path)]
    again = [path.read_bytes() for path in draw("nodes", found, tmp_path)]
    found[1000]["penstock"]["load"] *= 2
    other = [path.read_bytes() for path in draw("nodes", found, tmp_path)]

    assert first == again
    assert first[0] != other[0]
    assert first[1:] == other[1:]


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    """Points that an engine has not got are left out, and the others are drawn."""
    found = _found("penstock")
    found[100_000]["penstock"] = {"error": "would take more than a minute"}

    assert all(path.stat().st_size > 1000 for path in draw("nodes", found, tmp_path))
