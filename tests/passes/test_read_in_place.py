"""Whoever comes after an in-place op reads what it wrote; nobody else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.passes.graph_rewriter import GraphRewriter
from penstock.passes.read_in_place import read_in_place
from support.drafts import after, unchanged
from support.sketch import sketch

BEGIN = """
    a = Placeholder() dtype=float32
    i = Placeholder() dtype=int32
    v = Placeholder() dtype=float32
    x = Neg(a)
    y = InplaceAdd(x, i, v)
"""


def rewrite(draft: GraphRewriter) -> int:
    return read_in_place(draft.graph, draft.device_of)


def changed(text: str) -> list[str]:
    """The rows that a pass makes of what follows ``BEGIN``."""
    begin = {line.split(" = ")[0].strip() for line in BEGIN.strip().splitlines()}
    return [line for line in after(rewrite, BEGIN + text) if line.split(" = ")[0] not in begin]


def test_later_readers_read_the_output() -> None:
    """By data or by control, at once or after others; earlier and unordered ones do not."""
    text = """
        later = Exp(x, ^y)
        far = Add(later, x)
        free = Sqrt(x)
    """
    assert changed(text) == [
        "far = Add(later, y)",
        "free = Sqrt(x)",
        "later = Exp(y, ^y)",
    ]


def test_of_several_the_last_one_counts() -> None:
    """Each reads what the one before it wrote, in whatever order they stand in the graph."""
    text = """
        last = Exp(x, ^z)
        z = InplaceSub(x, i, v, ^y)
        mid = Sqrt(x, ^y)
    """
    assert changed(text) == [
        "last = Exp(z, ^z)",
        "mid = Sqrt(y, ^y)",
        "z = InplaceSub(y, i, v, ^y)",
    ]


def test_what_is_fetched_is_what_there_is_in_the_end() -> None:
    """Also through several ops, if they run in any case."""
    text = """
        z = InplaceUpdate(y, i, v)
        rx = _Retval(x) index=0
        ry = _Retval(y) index=1
    """
    assert changed(text) == ["rx = _Retval(z)", "ry = _Retval(z)", "z = InplaceUpdate(y, i, v)"]


def test_behind_a_merge_nobody_knows_whether_it_was_written() -> None:
    """What may run though the op does not, or is on another device, reads the input."""
    begin = """
        a = Placeholder() dtype=float32
        i = Placeholder() dtype=int32
        p = Placeholder() dtype=bool
        x = Neg(a)
        s = Switch(a, p)
        y = InplaceAdd(x, i, s:1)
        m = Merge(y, s:0)
    """
    assert unchanged(rewrite, begin + "z = Exp(x, ^m)\nr = _Retval(x) index=0")
    assert unchanged(rewrite, BEGIN + "z = Exp(x, ^y) device='/device:CPU:1'")


@pytest.mark.parametrize("options", [None, ps.GraphOptions.nothing()], ids=["passes", "none"])
@pytest.mark.parametrize("tier", list(ps.Tier))
def test_nothing_else_changes(tier: Any, options: Any) -> None:
    """The caller's array, constants and variables are as they were, in each of several runs."""
    text = """
        fed = Placeholder() dtype=float32
        i = Const() value=[0]
        v = Const() value=[[5.0]]
        c = Const() value=[[1.0],[2.0]]
        var = VarHandleOp() dtype=float32 shape=[2,1]
        set = AssignVariableOp(var, c)
        value = ReadVariableOp(var) dtype=float32
        of_fed = InplaceAdd(fed, i, v)
        of_const = InplaceAdd(c, i, v)
        of_var = InplaceAdd(value, i, v)
        seen = Identity(fed, ^of_fed)
        now = ReadVariableOp(var, ^of_var) dtype=float32
    """
    given = np.array([[1], [2]], np.float32)
    settings = {} if options is None else {"graph_options": options}
    with ps.Session(sketch(text), config=ps.Config(tier=tier, **settings)) as session:
        session.run("set")
        for _ in range(3):
            names = ["of_fed:0", "of_const:0", "of_var:0", "seen:0", "now:0"]
            *written, now = session.run(names, {"fed": given})
            assert all(array.tolist() == [[6], [2]] for array in written)
            assert now.tolist() == given.tolist() == [[1], [2]]
            assert session.run("c:0").tolist() == [[1], [2]]
