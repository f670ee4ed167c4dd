"""Names that resemble a wrong one."""

from __future__ import annotations

from penstock.core.similar import similar


def test_the_nearest_comes_first() -> None:
    """And what resembles it no more than by chance is not named."""
    assert similar("MatMull", ["Add", "BatchMatMul", "MatMul"]) == ["MatMul", "BatchMatMul"]
    assert similar("MatMull", ["Add", "BatchMatMul", "MatMul"], n=1) == ["MatMul"]
    assert similar("zzz", ["Add", "MatMul"]) == []
    assert similar("zzz", ["Add"], cutoff=0) == ["Add"]


def test_only_so_many_are_compared() -> None:
    """Of a graph of a million nodes, the first; names may come one by one."""
    assert similar("word", iter(["a"] * 9_999 + ["words"])) == ["words"]
    assert similar("word", iter(["a"] * 10_000 + ["words"])) == []
