"""Denormal numbers are zeros where TensorFlow's threads take them for zeros.

The answers are TensorFlow 2.21's on x86-64, asked in its pool of threads; in the caller's own
thread (``inter_op_thread_pool=-1``) it computes as IEEE 754 says.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import penstock as ps
from penstock.core import denormals
from penstock.core.denormals import flushing, in_own_setting
from penstock.kernels.parallel.intra_op import parallel_for
from penstock.runtime.flushing import Flushing
from support.sketch import sketch

pytestmark = pytest.mark.skipif(not denormals.is_supported(), reason="no switch for denormals here")

#: A loop, so that the step is one that flushes; and a denormal ``t``, and ``p * q``, which is one.
TEXT = """
    t = Placeholder() dtype={type}
    p = Placeholder() dtype={type}
    q = Placeholder() dtype={type}
    low = Placeholder() dtype={type}
    zero = Sub(q, q)
    one = Div(q, q)
    two = Add(one, one)
    axis = Const() value=0
    front = Const() value=[1, -1]
    back = Const() value=[-1, 1]
    row = Reshape(p, front)
    column = Reshape(q, back)
    tiny = Reshape(t, front)
    ones = Reshape(one, back)
    Identity = Identity(t)
    Neg = Neg(t)
    Abs = Abs(t)
    Concat = ConcatV2(t, t, axis)
    Add = AddV2(t, zero)
    Mul = Mul(t, one)
    Product = Mul(p, q)
    Div = RealDiv(t, two)
    Sqrt = Sqrt(t)
    Exp = Exp(low)
    Sum = Sum(t, axis)
    Mean = Mean(t, axis)
    MatMul = MatMul(row, column)
    MatMulOfTiny = MatMul(tiny, ones)
    Equal = Equal(t, zero)
    Greater = Greater(t, zero)
    ToFloat = Cast(t) DstT=float32
    ToDouble = Cast(t) DstT=float64
    begin = Const() value=0
    enter = Enter(begin) frame_name="loop"
    merge = Merge(enter, next)
    limit = Const() value=2
    bound = Enter(limit) frame_name="loop" is_constant=True
    less = Less(merge, bound)
    cond = LoopCond(less)
    switch = Switch(merge, cond)
    step = Const(^switch) value=1
    inner = Identity(switch:1)
    by = Const(^inner) value=1
    more = Add(inner, by)
    next = NextIteration(more)
    exit = Exit(switch)
"""
#: What keeps its denormals, being no arithmetic; all else is flushed.
KEPT = {"Identity", "Neg", "Abs", "Concat"}
FLUSHED = {
    *("Add", "Mul", "Product", "Div", "Sqrt", "Exp", "Sum", "Mean", "MatMul", "MatMulOfTiny"),
    *("Equal", "Greater", "ToDouble"),
}


class Numbers:
    """A type's denormal, two numbers whose product is one, and one whose exponential is one."""

    def __init__(self, kind: Any, tiny: float, pair: tuple[float, float], low: float) -> None:
        self.kind = np.dtype(kind)
        self.feeds = {
            name: np.full(3, value, kind)
            for name, value in (("t", tiny), ("p", pair[0]), ("q", pair[1]), ("low", low))
        }


TYPES = {
    "float32": Numbers(np.float32, 1e-40, (1e-30, 1e-10), -100.0),
    "float64": Numbers(np.float64, 1e-310, (1e-300, 1e-10), -740.0),
    "bfloat16": Numbers(ml_dtypes.bfloat16, 1e-40, (1e-30, 1e-10), -100.0),
    "float16": Numbers(np.float16, 1e-7, (1e-3, 1e-4), -16.0),
}


def answers(kind: str, *, pool: int = 0, **options: Any) -> dict[str, Any]:
    """What a step with a loop makes of denormals of a type, by name."""
    names = sorted(KEPT | FLUSHED)
    config = ps.Config(**options)
    text = TEXT.format(type=kind)
    with ps.Session(sketch(text), config=config) as session:
        run = ps.RunOptions(inter_op_thread_pool=pool)
        fetches = [f"{name}:0" for name in names]
        *results, count = session.run([*fetches, "exit:0"], TYPES[kind].feeds, options=run)
    assert count == 2
    return dict(zip(names, results, strict=True))


def is_flushed(name: str, result: Any) -> bool:
    """Whether a result tells of a denormal that was taken for a zero."""
    if name == "Equal":
        return bool(np.all(result))
    if name == "Greater":
        return not np.any(result)
    return not np.any(np.asarray(result).astype(np.float64))


def flushed(found: dict[str, Any]) -> set[str]:
    """The names of the results that tell of it."""
    return {name for name, result in found.items() if is_flushed(name, result)}


@pytest.mark.parametrize("tier", list(ps.Tier), ids=lambda tier: tier.name)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
def test_arithmetic_flushes(kind: str, threads: int, tier: ps.Tier) -> None:
    """What computes takes denormals for zeros and makes none; what hands on keeps them."""
    found = answers(kind, tier=tier, inter_op_parallelism_threads=threads)
    handed_on = {"ToDouble"} if kind == "float64" else set()
    assert flushed(found) == FLUSHED - handed_on


def test_half_floats_have_denormals() -> None:
    """They are ordinary numbers of float32, in which they are computed."""
    assert flushed(answers("float16")) == set()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("how", [{"pool": -1}, {"flush_denormals": False}])
def test_the_callers_thread_and_who_wants_none_flush_nothing(
    how: dict[str, Any], kind: str
) -> None:
    """A run in the caller's own thread has the caller's arithmetic; so has a session at will."""
    # Halves and exponentials of bfloat16 are zeros in TensorFlow, too.
    assert flushed(answers(kind, **how)) == ({"Div", "Exp"} if kind == "bfloat16" else set())


def denormals_count() -> bool:
    """Whether this thread has denormals; asked of both numpy and Python."""
    by_numpy = bool(np.float32(1e-40) * np.float32(1))
    assert by_numpy == bool(5e-324 * float("1"))
    return by_numpy


def test_the_caller_has_its_own_setting_again() -> None:
    """After a step, and after one that failed."""
    answers("float32")
    assert denormals_count()
    with flushing(True):
        assert not denormals_count()
    with pytest.raises(ZeroDivisionError), flushing(True):
        raise ZeroDivisionError
    assert denormals_count()


def test_other_peoples_code_has_its_own_setting() -> None:
    """Functions and kernels of the user's, in a step that flushes, whoever runs them."""
    seen: dict[str, bool] = {}

    def note(name: str) -> Any:
        def look(x: Any) -> Any:
            seen[name] = denormals_count()
            return x

        return look

    def start(done: Any, x: Any) -> None:
        seen["asynchronous"] = denormals_count()
        threading.Thread(target=done, args=(x,)).start()

    ps.register_py_func({"denormals": note("function")})
    for op in ("TestDenormals", "TestDenormalsLater"):
        ps.register_op(f"{op}(x: float32) -> (y: float32)")
    ps.kernel("TestDenormals")(lambda _attrs: note("kernel"))
    ps.async_kernel("TestDenormalsLater")(lambda _attrs: lambda _context, done, x: start(done, x))
    text = (
        TEXT.format(type="float32")
        + """
        f = PyFunc(t) token="denormals" Tin=["float32"] Tout=["float32"]
        k = TestDenormals(f)
        a = TestDenormalsLater(k)
        y = Mul(a, one)
    """
    )
    with ps.Session(sketch(text)) as session:
        y, kept, _ = session.run(["y:0", "a:0", "exit:0"], TYPES["float32"].feeds)
    assert seen == {"function": True, "kernel": True, "asynchronous": True}
    assert kept.all()
    assert not y.any()  # though a thread of the user's went on with the step
    assert denormals_count()


def test_settings_nest() -> None:
    """The user's code may run steps, which flush, in a step that flushes."""
    with flushing(True):
        assert in_own_setting(denormals_count)
        in_own_setting(answers, "float32")
        assert not denormals_count()
        with flushing(True):
            assert not denormals_count()
        assert not denormals_count()
        with flushing(False):  # only whoever turned it on iterations it off
            assert not denormals_count()
    assert denormals_count()


def test_helpers_do_as_whoever_asks() -> None:
    """All pieces of a kernel's work flush, or none."""
    seen: list[bool] = []
    both = threading.Barrier(2)

    def piece(_: int) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):  # there is but one thread
            both.wait(timeout=0.5)
        seen.append(denormals_count())

    for is_wanted in (True, False, True):
        seen.clear()
        both.reset()
        with flushing(is_wanted):
            parallel_for(2, piece)
        assert seen == [not is_wanted] * 2


def test_folded_constants_are_flushed() -> None:
    """What is computed while the graph is prepared is computed as TensorFlow does that."""
    text = "x = Const() value=[1e-40]\ny = Const() value=[1.0]\nz = Mul(x, y)\nsame = Identity(x)"
    with ps.Session(sketch(text)) as session:
        folded, same = session.run(["z:0", "same:0"])
    assert folded.tolist() == [0.0]
    assert same.all()


COUNTING = """
    begin = Const() value=0
    enter = Enter(begin) frame_name="loop"
    merge = Merge(enter, next)
    next = NextIteration(merge)
"""
SMALL = "x = _Arg() index=0 T=float32\ny = Neg(x)\nz = _Retval(y) index=0"


def test_the_smallest_steps_are_spared() -> None:
    """By shapes alone: a few nodes flush if they get a long array, and many in any case."""
    flushes = Flushing(sketch(SMALL), is_wanted=True).on_pool(0)
    assert not flushes([np.ones(10, np.float32)])
    assert not flushes([np.float32(1)])
    assert flushes([np.ones(300_000, np.float32)])
    assert not Flushing(sketch(SMALL), is_wanted=False).on_pool(0)([np.ones(300_000, np.float32)])
    assert not Flushing(sketch(SMALL), is_wanted=True).on_pool(-1)([np.ones(300_000, np.float32)])
    rows = [f"y{n + 1} = Neg(y{n})" for n in range(5000)]
    chain = "\n".join(["y0 = _Arg() index=0 T=float32", *rows])
    assert Flushing(sketch(chain), is_wanted=True).on_pool(0)([np.float32(1)])
    assert not Flushing(sketch(COUNTING), is_wanted=True).on_pool(0)([])
    assert Flushing(sketch(COUNTING + SMALL), is_wanted=True).on_pool(0)([np.float32(1)])
    weights = f"{SMALL}\nw = VarHandleOp() dtype=float32 shape=[512,512]"
    assert Flushing(sketch(weights), is_wanted=True).on_pool(0)([np.float32(1)])
