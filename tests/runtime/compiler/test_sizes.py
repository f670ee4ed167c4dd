"""Numbers beside arrays become arrays of rank 0 when a profile says so."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.core.limits import Limits
from support.native import WITHOUT
from support.sketch import sketch

#: Every request is tuned.
TUNED = ps.Config(limits=Limits(slow_step=0.0), graph_options=WITHOUT)
GRAPH = """
    x = Placeholder() dtype=float32
    half = Const() value=0.5
    a = Mul(x, half)
    b = Sub(half, a)
    n = Less(b, half)
    y = AddN(b, a)
"""


@pytest.mark.parametrize("fed", [[1.0, 2.0], [[3.0]], [], 4.0], ids=str)
@pytest.mark.parametrize("then", [[5.0, 6.0, 7.0], 8.0], ids=str)
def test_values_and_types_stay(fed: object, then: object) -> None:
    """What was written for arrays is right for numbers as well, and the other way round."""
    with ps.Session(sketch(GRAPH), config=TUNED) as session:
        call = session.make_callable(["y:0", "n:0"], ["x:0"])
        for value in [fed] * 8 + [then, fed]:
            y, n = call(np.asarray(value, np.float32))
            x = np.asarray(value, np.float32)
            assert (y.dtype, n.dtype) == (np.float32, np.bool_)
            np.testing.assert_array_equal(y, (0.5 - x * 0.5) + x * 0.5)
            np.testing.assert_array_equal(n, 0.5 - x * 0.5 < 0.5)
            assert np.shape(y) == np.shape(x)


def test_numbers_are_spread_where_arrays_were() -> None:
    """The number has rank 0 and cannot be written to."""
    with ps.Session(sketch(GRAPH), config=TUNED) as session:
        call = session.make_callable(["y:0", "n:0"], ["x:0"])  # y alone would be one program in C
        for _ in range(8):
            call(np.ones(4, np.float32))
        [prepared] = session._requests._prepared.values()
        assert prepared.runnable.whole is not None
        objects = dict(prepared.runnable.whole.source.function.__globals__)
    spread = [v for v in objects.values() if isinstance(v, np.ndarray) and v.shape == ()]
    assert spread
    assert not any(array.flags.writeable for array in spread)


def test_numbers_are_spread_in_loops() -> None:
    """Most work is done there; of a loop inside a loop, too."""
    text = """
        x = Placeholder() dtype=float32
        half = Const() value=0.5
        four = Const() value=4
        zero = Const() value=0
        one = Const() value=1
        i_enter = Enter(zero) frame_name="loop"
        v_enter = Enter(x) frame_name="loop"
        limit = Enter(four) frame_name="loop" is_constant=True
        step = Enter(one) frame_name="loop" is_constant=True
        factor = Enter(half) frame_name="loop" is_constant=True
        i = Merge(i_enter, i_next) T=int32
        v = Merge(v_enter, v_next)
        less = Less(i, limit) T=int32
        go = LoopCond(less)
        i_switch = Switch(i, go) T=int32
        v_switch = Switch(v, go)
        sum = Add(i_switch:1, step) T=int32
        i_next = NextIteration(sum) T=int32
        part = Mul(v_switch:1, factor)
        v_next = NextIteration(part)
        y = Exit(v_switch)
    """
    with ps.Session(sketch(text), config=TUNED) as session:
        call = session.make_callable("y:0", ["x:0"])
        for _ in range(8):
            np.testing.assert_array_equal(call(np.ones(4, np.float32)), np.full(4, 1 / 16))
        [prepared] = session._requests._prepared.values()
        assert prepared.runnable.whole is not None
        objects = dict(prepared.runnable.whole.source.function.__globals__)
    assert [v for v in objects.values() if isinstance(v, np.ndarray) and v.shape == ()] == [0.5]
