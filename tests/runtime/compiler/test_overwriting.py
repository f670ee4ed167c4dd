"""A function of one number may use its input's memory again, and nobody ever notices.

Answers are worked out by numpy, each from the inputs alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.config import GraphOptions
from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.core.values import Array
from support.compiled import Bare, text_of, whole
from support.sketch import sketch

X = "x = _Arg() T=float32 index=0\n"
XP = X + "p = _Arg() T=bool index=1\n"
V = np.array([0.5, -1.0, 2.0, 3.0], np.float32)


def results(rows: str, *args: Any, limits: Limits = DEFAULT_LIMITS) -> Sequence[Any]:
    """What a graph that is one region makes of arguments, which may not be written to."""
    given = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    for arg in given:
        if isinstance(arg, np.ndarray):
            arg.flags.writeable = False
    return whole(rows, limits=limits).run(Bare(), *given)


def check(rows: str, args: Sequence[Any], *want: Any) -> None:
    """A graph gives these results, also when it is written as several functions."""
    for most in (DEFAULT_LIMITS.statements, 1):
        got = results(rows, *args, limits=Limits(statements=most))
        for value, wanted in zip(got, want, strict=True):
            np.testing.assert_array_equal(value, wanted, strict=True)


def overwrites(rows: str) -> bool:
    """Whether some line of a graph's text puts a result where its input was."""
    return "is ndarray" in text_of(whole(rows))


CHAIN = """
    a = Add(x, x)
    e = Exp(a)
    r = _Retval(e) index=0
"""


def test_a_sum_that_nobody_else_wants_is_overwritten() -> None:
    """The saving is there where it is safe; arrays, numbers and empty arrays all work."""
    assert overwrites(X + CHAIN)
    for x in (V, np.float32(0.5), np.empty((0, 3), np.float32), V.reshape(2, 2)[:, ::-1]):
        check(X + CHAIN, [x], np.exp(x + x))


@pytest.mark.parametrize(
    ("op", "function"), [("IsNan", np.isnan), ("IsInf", np.isinf), ("IsFinite", np.isfinite)]
)
def test_a_result_of_another_type_has_memory_of_its_own(op: str, function: Any) -> None:
    """Truths are not written over the numbers that they are about."""
    rows = X + f"a = Add(x, x)\nb = {op}(a)\nr = _Retval(b) T=bool index=0"
    assert not overwrites(rows)
    x = np.float32([np.nan, 1.0, np.inf])
    with np.errstate(all="ignore"):
        check(rows, [x], function(x))


FUNCTIONS = {
    "Exp": np.exp,
    "Log": np.log,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tanh": np.tanh,
    "Floor": np.floor,
    "Sqrt": np.sqrt,
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_the_bits_are_the_same(op: str) -> None:
    """A function gives the same bits wherever its result is put."""
    x = np.random.default_rng(5).uniform(0, 9, 1003).astype(np.float32)
    rows = X + f"a = Add(x, x)\nf = {op}(a)\nr = _Retval(f) index=0"
    function = FUNCTIONS[op]
    with np.errstate(all="ignore"):
        [got] = results(rows, x)
        again = whole(X + f"f = {op}(x)\nr = _Retval(f) index=0").run(Bare(), x + x)[0]
        np.testing.assert_allclose(got, function((x + x).astype(np.float64)), rtol=1e-5)
    assert got.tobytes() == again.tobytes()


VIEWS = {
    "Reshape": "k = Const() value=[2, 2]\nv = Reshape(a, k)",
    "ExpandDims": "k = Const() value=0\nv = ExpandDims(a, k)",
    "Squeeze": "v = Squeeze(a) squeeze_dims=[]",
    "Slice": "k = Const() value=[1]\nm = Const() value=[2]\nv = Slice(a, k, m)",
    "Split": "k = Const() value=0\nv = Split(k, a) num_split=2",
    "Unpack": "k = Const() value=[2, 2]\nw = Reshape(a, k)\nv = Unpack(w) num=2",
    "Bitcast": "v = Bitcast(a) T=float32 type=int32",
    "BroadcastTo": "k = Const() value=[4]\nv = BroadcastTo(a, k)",
    "Identity": "v = Identity(a)",
    "Snapshot": "v = Snapshot(a)",
    "StopGradient": "v = StopGradient(a)",
    "EnsureShape": "v = EnsureShape(a) shape=[4]",
    "DebugGradientIdentity": "v = DebugGradientIdentity(a)",
    "Transpose": (
        "k = Const() value=[2, 2]\nw = Reshape(a, k)\nm = Const() value=[1, 0]\nv = Transpose(w, m)"
    ),
    "Cast": "v = Cast(a) SrcT=float32 DstT=float32",
}
VIEWED = {
    "Reshape": lambda a: a.reshape(2, 2),
    "ExpandDims": lambda a: a[None],
    "Slice": lambda a: a[1:3],
    "Split": lambda a: a[:2],
    "Unpack": lambda a: a[:2],
    "Bitcast": lambda a: a.view(np.int32),
    "Transpose": lambda a: a.reshape(2, 2).T,
}


@pytest.mark.parametrize("op", VIEWS)
def test_a_view_of_what_was_used_before_stays(op: str) -> None:
    """A kernel that was given the array before may have handed out a view of it."""
    rows = (
        X
        + f"""
        a = Add(x, x)
        {VIEWS[op].replace(chr(10), chr(10) + "        ")}
        e = Exp(a)
        r0 = _Retval(v) index=0
        r1 = _Retval(e) index=1
    """
    )
    seen = VIEWED.get(op, lambda a: a)(V + V)
    check(rows, [V], seen, np.exp(V + V))


@pytest.mark.parametrize("p", [np.True_, np.False_])
def test_a_merge_is_another_name(p: np.bool_) -> None:
    """What a Merge lets through is the array itself, so its source is not overwritten."""
    rows = (
        XP
        + """
        a = Add(x, x)
        s = Switch(a, p)
        b = Sub(x, x)
        t = Switch(b, p)
        m = Merge(s:1, t)
        e = Exp(a, ^m)
        f = Exp(b, ^m)
        r0 = _Retval(m) index=0
        r1 = _Retval(e) index=1
        r2 = _Retval(f) index=2
    """
    )
    check(rows, [V, p], V + V if p else V - V, np.exp(V + V), np.exp(V - V))


@pytest.mark.parametrize("p", [np.True_, np.False_])
def test_both_branches_may_overwrite(p: np.bool_) -> None:
    """Of two branches that use a value only one is run; what follows sees the right one."""
    rows = (
        XP
        + """
        a = Add(x, x)
        s = Switch(a, p)
        e = Exp(s:1)
        f = Tanh(s:0)
        m = Merge(f, e)
        n = Sqrt(m)
        r0 = _Retval(m) index=0
        r1 = _Retval(n) index=1
    """
    )
    want = np.exp(V + V) if p else np.tanh(V + V)
    with np.errstate(invalid="ignore"):
        check(rows, [V, p], want, np.sqrt(want))


def test_values_used_twice_and_results_stay() -> None:
    """Whoever comes later, in a statement or as the caller, sees the value as it was made."""
    rows = (
        X
        + """
        a = Add(x, x)
        e = Exp(a)
        f = Exp(a)
        g = Mul(e, a)
        h = Tanh(f)
        i = Mul(f, h)
        r0 = _Retval(g) index=0
        r1 = _Retval(i) index=1
        r2 = _Retval(e) index=2
        j = Tanh(e)
        r3 = _Retval(j) index=3
    """
    )
    e = np.exp(V + V)
    check(rows, [V], e * (V + V), e * np.tanh(e), e, np.tanh(e))


def test_arguments_and_constants_stay() -> None:
    """Only what a statement has made is overwritten, never what was there before."""
    rows = (
        X
        + """
        c = Const() value=[0.5, 1.0]
        e = Exp(x)
        f = Exp(c)
        r0 = _Retval(e) index=0
        r1 = _Retval(f) index=1
    """
    )
    region = whole(rows)
    x, c = V.copy(), np.array([0.5, 1.0], np.float32)
    for _ in range(2):
        e, f = region.run(Bare(), x)
        np.testing.assert_array_equal(x, V)
        np.testing.assert_array_equal(e, np.exp(V))
        np.testing.assert_array_equal(f, np.exp(c))


TURNS = """
    n = Placeholder() dtype=int32
    x = Placeholder()
    zero = Const() value=0
    i_enter = Enter(zero) frame_name="loop"
    x_enter = Enter(x) frame_name="loop"
    y_enter = Enter(x) frame_name="loop"
    limit = Enter(n) frame_name="loop" is_constant=True
    same = Enter(x) frame_name="loop" is_constant=True
    i = Merge(i_enter, i_next)
    a = Merge(x_enter, x_next)
    b = Merge(y_enter, y_next)
    less = Less(i, limit)
    go = LoopCond(less)
    i_switch = Switch(i, go)
    a_switch = Switch(a, go)
    b_switch = Switch(b, go)
    i_body = Identity(i_switch:1)
    one = Const(^i_body) value=1
    i_sum = Add(i_body, one)
    i_next = NextIteration(i_sum)
    t = Tanh(a_switch:1)
    sum = Add(t, same)
    c = Cos(sum)
    x_next = NextIteration(c)
    swap = Add(b_switch:1, a_switch:1)
    s = Sin(swap)
    y_next = NextIteration(s)
    a_exit = Exit(a_switch)
    b_exit = Exit(b_switch)
    e = Exp(a_exit)
    f = Add(e, x)
"""


@pytest.mark.parametrize("tier", list(ps.Tier))
def test_values_of_loops_stay(tier: ps.Tier) -> None:
    """In a loop nothing is overwritten that another iteration, or what follows, still looks at."""
    a = b = V
    want = []
    for _ in range(4):
        want.append((a, b, np.exp(a) + V))
        a, b = np.cos(np.tanh(a) + V), np.sin(b + a)
    config = ps.Config(tier=tier, graph_options=GraphOptions.nothing(), accelerate=False)
    with ps.Session(sketch(TURNS), config=config) as session:
        for iterations, wanted in enumerate(want):
            got = session.run(["a_exit:0", "b_exit:0", "f:0"], {"n": iterations, "x": V})
            for value, one in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(value, one)


def frozen(array: Array) -> Array:
    """A copy that must not be written to."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("fetched", ["s:0", "c:0", "r:0", "all:0"])
def test_what_a_session_hands_out_stays(fetched: str) -> None:
    """Feeds, constants, variables and results of earlier steps are as they were."""
    text = """
        x = Placeholder()
        c = Const() value=[0.5, 0.25, 1.0, 2.0]
        v = VarHandleOp() dtype=float32 shape=[4] shared_name="v"
        init = AssignVariableOp(v, c)
        r = ReadVariableOp(v) dtype=float32
        s = Add(x, r)
        set = AssignVariableOp(v, s)
        e = Exp(s, ^set)
        g = Exp(r)
        h = Exp(x)
        k = Exp(c)
        all = AddN(e, g, h, k)
    """
    c = np.array([0.5, 0.25, 1.0, 2.0], np.float32)
    config = ps.Config(graph_options=GraphOptions.nothing(), accelerate=False)
    with ps.Session(sketch(text), config=config) as session:
        session.run("init")
        handed: list[tuple[Array, Array]] = []
        state = c
        for x in (frozen(V), V.copy(), frozen(V[::-1])):
            before = x.copy()
            total, other = session.run(["all:0", fetched], {"x": x})
            new = x + state
            want = np.exp(new) + np.exp(state) + np.exp(x) + np.exp(c)
            np.testing.assert_allclose(total, want, rtol=1e-6)
            np.testing.assert_array_equal(x, before)
            state = new
            np.testing.assert_array_equal(session.run("r:0"), state)
            np.testing.assert_array_equal(session.run("c:0"), c)
            handed += [(total, total.copy()), (other, other.copy())]
        for array, copy in handed:
            np.testing.assert_array_equal(array, copy)


def test_what_a_kernel_keeps_stays() -> None:
    """A variable that was given the array has it, and not what was made of it later."""
    text = """
        x = Placeholder()
        v = VarHandleOp() dtype=float32 shape=[4] shared_name="v"
        a = Add(x, x)
        set = AssignVariableOp(v, a)
        e = Exp(a, ^set)
        r = ReadVariableOp(v, ^e) dtype=float32
    """
    config = ps.Config(graph_options=GraphOptions.nothing(), accelerate=False)
    with ps.Session(sketch(text), config=config) as session:
        e, r = session.run(["e:0", "r:0"], {"x": V})
        np.testing.assert_array_equal(r, V + V)
        np.testing.assert_array_equal(e, np.exp(V + V))
