"""What the text looks like: a graph above, its Python below, and what that computes.

The graphs have arguments and results, as a partition has.  Answers are worked out by hand.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core.limits import Limits
from penstock.runtime.compiler import compile_regions
from support.compiled import Bare, compiled, expected, leaving_out, regions_of, text_of, whole
from support.custom import custom_kernels
from support.graphs import lines
from support.loops import NESTED_LOOPS, counting_loop
from support.sketch import value_of

F = np.float32
X = "x = _Arg() T=float32 index=0\n"
XP = X + "p = _Arg() T=bool index=1\n"
XPQ = XP + "q = _Arg() T=bool index=2\n"


def check(graph: str, text: str, *runs: tuple[Any, Any]) -> None:
    """A graph has this text, and gives these results for these arguments."""
    region = whole(graph)
    assert text_of(region) == expected(text)
    for args, results in runs:
        given = [arg if isinstance(arg, np.bool_) else value_of(arg) for arg in args]
        got = region.run(Bare(), *given)
        assert len(got) == len(results)
        for value, result in zip(got, results, strict=True):
            if result is None:
                assert value is None
            else:
                np.testing.assert_allclose(value, result, rtol=1e-6)


def parts(graph: str, most: int) -> str:
    """The text of a graph, if a function may have so few statements."""
    return text_of(whole(graph, limits=Limits(statements=most)))


YES, NO = np.True_, np.False_

# -- straight lines --------------------------------------------------------------------------


def test_a_chain() -> None:
    """One line per node, named for it; operators where a kernel is one; dropped after use."""
    check(
        X
        + """
        w = Const() value=[2.0, 3.0]
        scope/prod = Mul(x, w)
        scope/act = Relu(scope/prod)
        sum = Add(scope/act, x)
        result = _Retval(sum) index=0
        """,
        """
        def region(run, x, *_):
            prod = x * w  # scope/prod (Mul)
            act = k_act(prod)  # scope/act (Relu)
            del prod
            sum_1 = act + x  # sum (Add)
            del act
            return (sum_1,)
        """,
        ([[1.0, -1.0]], [[3.0, -1.0]]),
    )


def test_the_region_says_what_it_is_of() -> None:
    """The first line is the device, or the function whose body it is."""
    text = whole(X + "y = Neg(x)\nr = _Retval(y) index=0").source.listing
    assert text.startswith("# /job:localhost/replica:0/task:0/device:CPU:0\n\ndef region(")


def test_several_outputs() -> None:
    """A kernel of several outputs is unpacked; what nobody uses has no name."""
    check(
        X
        + """
        k = Const() value=1
        top = TopKV2(x, k)
        a = Neg(top)
        rest = Unpack(x) num=3
        sum = Add(a, rest:1)
        result = _Retval(sum) index=0
        """,
        """
        def region(run, x, *_):
            top_0, _ = k_top(x, k)  # top (TopKV2)
            a = -top_0  # a (Neg)
            del top_0
            _, rest_1, _ = k_rest(x)  # rest (Unpack)
            sum_1 = a + rest_1  # sum (Add)
            del a, rest_1
            return (sum_1,)
        """,
        ([[5.0, 7.0, 6.0]], [[0.0]]),
    )


def test_nodes_that_move_values_have_no_line() -> None:
    """Identity, NoOp and constants are names and order, nothing else."""
    check(
        X
        + """
        first = Print(x, x)
        group = NoOp(^first)
        same = Identity(x, ^group)
        c = Const(^group) value=2.0
        y = Mul(same, c)
        result = _Retval(y) index=0
        """,
        """
        def region(run, x, *_):
            k_first(x, x)  # first (Print)
            y = x * c  # y (Mul)
            return (y,)
        """,
        ([3.0], [6.0]),
    )


def test_control_edges_order_what_is_not_used() -> None:
    """A check is a line of its own, before what waits for it."""
    check(
        XP
        + """
        y = Neg(x, ^check)
        check = Assert(p, x)
        result = _Retval(y) index=0
        """,
        """
        def region(run, x, p, *_):
            k_check(p, x)  # check (Assert)
            y = -x  # y (Neg)
            return (y,)
        """,
        ([1.0, YES], [-1.0]),
    )


def test_results_may_be_arguments_constants_and_the_same() -> None:
    """What needs no computing is returned as it is, also twice."""
    check(
        X
        + """
        c = Const() value=2.0
        a = _Retval(x) index=0
        b = _Retval(c) index=1
        d = _Retval(x) index=2
        """,
        """
        def region(run, x, *_):
            return (x, c, x)
        """,
        ([1.0], [1.0, 2.0, 1.0]),
    )


def test_a_partition_without_results() -> None:
    """Only effects: the function returns an empty tuple."""
    check(
        X + "note = Print(x, x)",
        """
        def region(run, x, *_):
            k_note(x, x)  # note (Print)
            return ()
        """,
        ([1.0], []),
    )


def test_arguments_that_nobody_uses() -> None:
    """Arguments are positional: one that is missing in the graph is passed over."""
    check(
        "x = _Arg() T=float32 index=2\ny = Neg(x)\nr = _Retval(y) index=0",
        """
        def region(run, unused, unused_1, x, *_):
            y = -x  # y (Neg)
            return (y,)
        """,
        ([9.0, 9.0, 1.0, 9.0], [-1.0]),
    )


# -- branches --------------------------------------------------------------------------------


def test_a_cond() -> None:
    """Switch becomes if, Merge a move in each branch."""
    check(
        XP
        + """
        s = Switch(x, p)
        a = Neg(s:1)
        b = Exp(s)
        m = Merge(b, a)
        y = Sqrt(m)
        result = _Retval(y) index=0
        """,
        """
        def region(run, x, p, *_):
            p_is_true = p  # s (Switch)
            if p_is_true is not true and p_is_true is not false:
                p_is_true = as_pred(p_is_true)  # s (Switch)
            if p_is_true is true:
                a = -x  # a (Neg)
                m = a  # m (Merge)
                del a
            else:
                b = k_b(x)  # b (Exp)
                m = b  # m (Merge)
                del b
            y = k_y(m)  # y (Sqrt)
            m = None
            return (y,)
        """,
        ([-4.0, YES], [2.0]),
        ([0.0, NO], [1.0]),
    )


def test_a_cond_in_a_cond() -> None:
    """A predicate that itself is switched is asked only where it is live."""
    check(
        XPQ
        + """
        qs = Switch(q, p)
        s = Switch(x, p)
        r = Switch(s:1, qs:1)
        a = Neg(r:1)
        b = Exp(r)
        i = Merge(b, a)
        c = Sqrt(s)
        m = Merge(c, i)
        result = _Retval(m) index=0
        """,
        """
        def region(run, x, p, q, *_):
            p_is_true = p  # qs (Switch)
            if p_is_true is not true and p_is_true is not false:
                p_is_true = as_pred(p_is_true)  # qs (Switch)
            if p_is_true is true:
                if q is not true and q is not false:
                    q = as_pred(q)  # r (Switch)
                if q is true:
                    a = -x  # a (Neg)
                    i = a  # i (Merge)
                    del a
                else:
                    b = k_b(x)  # b (Exp)
                    i = b  # i (Merge)
                    del b
                m = i  # m (Merge)
                i = None
            else:
                c = k_c(x)  # c (Sqrt)
                m = c  # m (Merge)
                del c
            return (m,)
        """,
        ([4.0, YES, YES], [-4.0]),
        ([0.0, YES, NO], [1.0]),
        ([4.0, NO, YES], [2.0]),
    )


def test_a_merge_of_two_conditions() -> None:
    """Of what may be live together the executor takes what comes first; the rest is compiled."""
    graph = (
        XPQ
        + """
        s = Switch(x, p)
        r = Switch(x, q)
        a = Neg(s:1)
        b = Exp(r:1)
        m = Merge(a, b)
        y = Abs(m)
        result = _Retval(y) index=0
        """
    )
    made = compiled(graph)
    assert made is not None
    assert {"a", "b", "m"} <= {node.name for node in made.graph}
    [region] = made.regions.values()
    assert text_of(region) == expected(
        """
        def region(run, x, p, q):
            s_result = None
            r_result = None
            p_is_true = p  # s (Switch)
            if p_is_true is not true and p_is_true is not false:
                p_is_true = as_pred(p_is_true)  # s (Switch)
            q_is_true = q  # r (Switch)
            if q_is_true is not true and q_is_true is not false:
                q_is_true = as_pred(q_is_true)  # r (Switch)
            if p_is_true is true:
                s_result = x  # s (Switch)
            if q_is_true is true:
                r_result = x  # r (Switch)
            return (s_result, r_result)
        """
    )


def test_the_index_of_a_merge() -> None:
    """``value_index`` is a constant in each branch."""
    check(
        XP
        + """
        s = Switch(x, p)
        m = Merge(s, s:1)
        y = Neg(m:1)
        result = _Retval(y) index=0
        """,
        """
        def region(run, x, p, *_):
            p_is_true = p  # s (Switch)
            if p_is_true is not true and p_is_true is not false:
                p_is_true = as_pred(p_is_true)  # s (Switch)
            if p_is_true is not true:
                m_1 = m_index  # m (Merge)
            else:
                m_1 = m_index_1  # m (Merge)
            y = -m_1  # y (Neg)
            m_1 = None
            return (y,)
        """,
        ([1.0, NO], [0]),
        ([1.0, YES], [-1]),
    )


def test_a_switched_constant() -> None:
    """A constant is no less one behind a Switch."""
    check(
        XP
        + """
        c = Const() value=1.0
        s = Switch(c, p)
        y = Neg(s:1)
        m = Merge(s, y)
        result = _Retval(m) index=0
        """,
        """
        def region(run, x, p, *_):
            p_is_true = p  # s (Switch)
            if p_is_true is not true and p_is_true is not false:
                p_is_true = as_pred(p_is_true)  # s (Switch)
            if p_is_true is true:
                y = -c  # y (Neg)
                m = y  # m (Merge)
                del y
            else:
                m = c  # m (Merge)
            return (m,)
        """,
        ([0.0, YES], [-1.0]),
        ([0.0, NO], [1.0]),
    )


def test_a_result_that_may_be_dead() -> None:
    """A dead result is None; each result is there under its own name."""
    check(
        XP
        + """
        s = Switch(x, p)
        y = Neg(s:1)
        first = _Retval(y) index=0
        second = _Retval(x) index=1
        """,
        """
        def region(run, x, p, *_):
            first_result = None
            p_is_true = p  # s (Switch)
            if p_is_true is not true and p_is_true is not false:
                p_is_true = as_pred(p_is_true)  # s (Switch)
            if p_is_true is true:
                y = -x  # y (Neg)
                first_result = y  # first (_Retval)
                del y
            return (first_result, x)
        """,
        ([1.0, YES], [-1.0, 1.0]),
        ([1.0, NO], [None, 1.0]),
    )


def test_deadness_along_control_edges() -> None:
    """A constant that waits for a branch is live only if the branch was taken."""
    check(
        XP
        + """
        s = Switch(x, p)
        y = Neg(s:1)
        group = NoOp(^y)
        c = Const(^group) value=7
        result = _Retval(c) index=0
        """,
        """
        def region(run, x, p, *_):
            result_result = None
            p_is_true = p  # s (Switch)
            if p_is_true is not true and p_is_true is not false:
                p_is_true = as_pred(p_is_true)  # s (Switch)
            if p_is_true is true:
                -x  # y (Neg)
                result_result = c  # result (_Retval)
            return (result_result,)
        """,
        ([1.0, YES], [7]),
        ([1.0, NO], [None]),
    )


def test_a_control_trigger() -> None:
    """What waits for a ControlTrigger waits for a branch, and is live all the same."""
    check(
        XP
        + """
        s = Switch(x, p)
        y = Neg(s:1)
        t = ControlTrigger(^y)
        z = Exp(x, ^t)
        result = _Retval(z) index=0
        """,
        """
        def region(run, x, p, *_):
            p_is_true = p  # s (Switch)
            if p_is_true is not true and p_is_true is not false:
                p_is_true = as_pred(p_is_true)  # s (Switch)
            if p_is_true is true:
                -x  # y (Neg)
            z = k_z(x)  # z (Exp)
            return (z,)
        """,
        ([0.0, NO], [1.0]),
    )


# -- loops -----------------------------------------------------------------------------------


def test_a_while() -> None:
    """A loop is a for without end, which asks for interrupts; its constants are free names."""
    check(
        counting_loop(limit="_Arg() T=int32 index=0") + "result = _Retval(exit) index=0",
        """
        def region(run, limit, *_):
            interrupt = run.interrupt
            merge = zero  # cond (LoopCond)
            for iteration_number in count():  # loop
                if interrupt.loops_end:
                    end_loop(interrupt)  # cond (LoopCond)
                less = merge < limit  # less (Less)
                if less is not true and less is not false:
                    less = as_pred(less)  # switch (Switch)
                if less is not true:
                    break
                sum_1 = merge + one  # sum (Add)
                merge = sum_1  # cond (LoopCond)
            return (merge,)
        """,
        ([0], [0]),
        ([5], [5]),
    )


def test_a_while_in_a_while() -> None:
    """Loops nest; what iterations hand on changes all at once, and is dropped when it is over."""
    graph = NESTED_LOOPS.replace("Placeholder() dtype=int32", "_Arg() T=int32 index=0", 1)
    graph = graph.replace("Placeholder() dtype=int32", "_Arg() T=int32 index=1")
    check(
        graph + "result = _Retval(total) index=0",
        """
        def region(run, outer, inner, *_):
            interrupt = run.interrupt
            i = zero  # i_cond (LoopCond)
            t = zero  # i_cond (LoopCond)
            for iteration_number in count():  # outer
                if interrupt.loops_end:
                    end_loop(interrupt)  # i_cond (LoopCond)
                i_less = i < outer  # i_less (Less)
                if i_less is not true and i_less is not false:
                    i_less = as_pred(i_less)  # i_switch (Switch)
                if i_less is not true:
                    break
                i_sum = i + one  # i_sum (Add)
                bound = i * inner  # bound (Mul)
                j = null  # j_cond (LoopCond)
                s = t  # j_cond (LoopCond)
                for iteration_number_1 in count():  # inner
                    if interrupt.loops_end:
                        end_loop(interrupt)  # j_cond (LoopCond)
                    j_less = j < bound  # j_less (Less)
                    if j_less is not true and j_less is not false:
                        j_less = as_pred(j_less)  # j_switch (Switch)
                    if j_less is not true:
                        break
                    j_sum = j + j_one  # j_sum (Add)
                    s_sum = s + j_one  # s_sum (Add)
                    j, s = j_sum, s_sum  # j_cond (LoopCond)
                del j
                del bound
                i, t = i_sum, s  # i_cond (LoopCond)
            del i
            return (t,)
        """,
        ([4, 3], [3 * (0 + 1 + 2 + 3)]),
    )


def test_a_context_in_a_loop() -> None:
    """A kernel that asks for its place is told frame and iteration, in a context made once."""
    text = """
        zero = Const() value=0
        limit = _Arg() T=int32 index=0
        enter = Enter(zero) frame_name="loop"
        bound = Enter(limit) frame_name="loop" is_constant=True
        merge = Merge(enter, next)
        less = Less(merge, bound)
        cond = LoopCond(less)
        switch = Switch(merge, cond)
        body = Identity(switch:1)
        one = Const(^body) value=1
        var = TemporaryVariable(^body) dtype=int32 shape=[]
        set = Assign(var, body)
        got = DestroyTemporaryVariable(set) var_name="var"
        sum = Add(got, one)
        next = NextIteration(sum)
        exit = Exit(switch)
        result = _Retval(exit) index=0
    """
    region = whole(text)
    assert region.needs_context
    assert text_of(region) == expected(
        """
        def region(run, limit, *_):
            interrupt = run.interrupt
            c_var = context_of(run, s_var, s_TemporaryVariable, root_frame, 0, False)
            c_got = context_of(run, s_got, s_DestroyTemporaryVariable, root_frame, 0, False)
            merge = zero  # cond (LoopCond)
            tag = frame_tag(root_frame, 0, s_loop)
            for iteration_number in count():  # loop
                if interrupt.loops_end:
                    end_loop(interrupt)  # cond (LoopCond)
                less = merge < limit  # less (Less)
                if less is not true and less is not false:
                    less = as_pred(less)  # switch (Switch)
                if less is not true:
                    break
                c_var.frame, c_var.iteration = tag, iteration_number
                var = k_var(c_var)  # var (TemporaryVariable)
                set_1 = k_set(var, merge)  # set (Assign)
                del var
                c_got.frame, c_got.iteration = tag, iteration_number
                got = k_got(c_got, initialized(set_1, s_set))  # got (DestroyTemporaryVariable)
                del set_1
                sum_1 = got + one  # sum (Add)
                del got
                merge = sum_1  # cond (LoopCond)
            return (merge,)
        """
    )


# -- references, and kernels of one's own ------------------------------------------------------


def test_references() -> None:
    """A variable is read when it is used, and must have a value by then."""
    region = whole(
        X
        + """
        v = VariableV2() dtype=float32 shape=[]
        read = Identity(v)
        y = Mul(read, x)
        set = AssignAdd(v, y)
        after = Identity(set)
        result = _Retval(after) index=0
        """
    )
    assert text_of(region) == expected(
        """
        def region(run, x, *_):
            c_v = context_of(run, s_v, s_VariableV2, root_frame, 0, False)
            v = k_v(c_v)  # v (VariableV2)
            read_1 = initialized(v, s_v)  # read (Identity)
            y = read(read_1, s_read) * x  # y (Mul)
            del read_1
            set_1 = k_set(initialized(v, s_v), y)  # set (AssignAdd)
            del v, y
            after = initialized(set_1, s_set)  # after (Identity)
            del set_1
            result_result = read(after, s_after)  # result (_Retval)
            del after
            return (result_result,)
        """
    )


def test_kernels_of_ones_own_are_checked() -> None:
    """Penstock's own kernels are called as they are; others through a check of their outputs."""
    text = X + "a = ExOne(x)\nb = ExCtx(a)\nc = Relu(b)\nr = _Retval(c) index=0"
    with custom_kernels(
        "ExOne(x: float32) -> (y: float32)", "ExCtx(x: float32) -> (y: float32)"
    ) as r:
        r("ExOne", lambda x: x)
        r("ExCtx", lambda _context, x: x, "context")
        region = whole(text)
    assert text_of(region) == expected(
        """
        def region(run, x, *_):
            c_b = context_of(run, s_b, s_ExCtx, root_frame, 0, False)
            a = k_a(x)  # a (ExOne)
            b = k_b(c_b, a)  # b (ExCtx)
            del a
            c = k_c(b)  # c (Relu)
            del b
            return (c,)
        """
    )
    objects = region.source.function.__globals__
    assert [objects[name].__name__ == "checked" for name in ("k_a", "k_b", "k_c")] == [
        True,
        True,
        False,
    ]


def test_with_checks_nothing_is_an_operator() -> None:
    """If every output is to be checked, a kernel is called even where it is an operator."""
    region = whole(X + "y = Neg(x)\nr = _Retval(y) index=0", checks_outputs=True)
    assert "y = k_y(x)  # y (Neg)" in region.source.listing


# -- parts -------------------------------------------------------------------------------------


def test_a_long_text_is_cut_into_parts() -> None:
    """Each part takes what it uses and gives what others use; what is over is dropped."""
    graph = (
        X
        + """
        a = Neg(x)
        b = Exp(a)
        c = Add(a, b)
        d = Sqrt(c)
        e = Add(d, x)
        f = Mul(e, b)
        r = _Retval(f) index=0
    """
    )
    assert parts(graph, 2) == expected(
        """
        def part(run, x):
            interrupt = run.interrupt
            if interrupt.loops_end:
                end_loop(interrupt)
            a = None
            b = None
            a = -x  # a (Neg)
            b = k_b(a)  # b (Exp)
            return (a, b, )

        def part_1(run, a, b):
            interrupt = run.interrupt
            if interrupt.loops_end:
                end_loop(interrupt)
            d = None
            c = a + b  # c (Add)
            d = k_d(c, c) if type(c) is ndarray else k_d(c)  # d (Sqrt)
            del c
            return (d, )

        def part_2(run, x, b, d):
            interrupt = run.interrupt
            if interrupt.loops_end:
                end_loop(interrupt)
            f = None
            e = d + x  # e (Add)
            f = e * b  # f (Mul)
            del e
            return (f, )

        def region(run, x, *_):
            a, b = part(run, x)
            d, = part_1(run, a, b)
            del a
            f, = part_2(run, x, b, d)
            del b, d
            return (f,)
        """
    )


def test_parts_end_outside_of_branches() -> None:
    """A branch is not cut; what it may leave without a value is passed in as None."""
    graph = (
        XP
        + """
        a = Neg(x)
        s = Switch(a, p)
        b = Exp(s:1)
        c = Sqrt(b)
        d = Exp(c)
        f = Sqrt(d)
        e = Exp(a)
        r = _Retval(f) index=0
        r2 = _Retval(e) index=1
    """
    )
    text = parts(graph, 2)
    inside = text.partition("if p_is_true is true:")[2].partition("return")[0]
    assert [name in inside for name in ("b = k", "c = k", "d = k", "f = k")] == [True] * 4
    assert "r_result = None\n" in text
    region = whole(graph)
    assert region.run(Bare(), F(0), NO) == (None, F(1))
    taken = region.run(Bare(), F(0), YES)
    np.testing.assert_allclose(taken, (math.exp(0.5 * math.exp(0.5 * 0)), 1), rtol=1e-6)


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_parts_do_not_change_the_answer(most: int) -> None:
    """However finely a text is cut, loops and branches included, it computes the same."""
    graph = (
        counting_loop(limit="_Arg() T=int32 index=0")
        + """
        p = Less(exit, limit)
        s = Switch(exit, p)
        a = Neg(s)
        b = Add(s:1, limit)
        m = Merge(a, b)
        c = Mul(m, m:1)
        d = Add(c, m)
        r = _Retval(d) index=0
    """
    )
    region = whole(graph, limits=Limits(statements=most))
    assert "part_1(" in region.source.listing
    assert region.run(Bare(), np.int32(6)) == (-6,)


def test_a_part_asks_for_interrupts() -> None:
    """A long text without any loop can be ended between its parts."""
    rows = X + "a = Neg(x)\nb = Exp(a)\nr = _Retval(b) index=0"
    region = whole(rows, limits=Limits(statements=1))
    step = Bare()
    step.interrupt.end(errors.CancelledError("enough"))
    with pytest.raises(errors.CancelledError, match="enough"):
        region.run(step, F(1))


# -- what Python cannot express ----------------------------------------------------------------


def chain_of_conds(depth: int) -> str:
    """A cond in a cond in a cond …; ``r`` is how many were true, from outside in."""
    rows = ["x0 = _Arg() T=int32 index=0", "one = Const() value=1"]
    for i in range(depth):
        rows += [
            f"limit{i} = Const() value={depth - i}",
            f"p{i} = Less(x{i}, limit{i})",
            f"s{i} = Switch(x{i}, p{i})",
            f"x{i + 1} = Identity(s{i}:1)",
        ]
    rows.append(f"m{depth} = Neg(x{depth})")
    rows += [f"m{i} = Merge(s{i}, m{i + 1})" for i in reversed(range(depth))]
    return "\n".join([*rows, "r = _Retval(m0) index=0"])


def test_conds_as_deep_as_python_allows() -> None:
    """Eighty levels of indentation are text; a hundred are left to the executor."""
    region = whole(chain_of_conds(80))
    assert "    " * 80 in region.source.listing
    assert region.run(Bare(), np.int32(0)) == (0,)
    assert region.run(Bare(), np.int32(-5)) == (5,)
    assert region.run(Bare(), np.int32(40)) == (40,)
    assert compiled(chain_of_conds(100)) is None


# -- regions beside the executor -----------------------------------------------------------------


def test_regions_around_a_node_of_the_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs the odd node is one region, what does not is another."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out("mid"))
    graph = (
        X
        + """
        a = Neg(x)
        b = Exp(a)
        mid = Sqrt(b)
        c = Add(mid, a)
        d = Mul(c, mid)
        r = _Retval(d) index=0
    """
    )
    made = compiled(graph)
    assert made is not None
    assert lines(made.graph) == [
        "x = _Arg",
        "mid = Sqrt(region_0:1)",
        "r = _Retval(region_1)",
        "region_0 = _Region(x)",
        "region_1 = _Region(mid, region_0)",
    ]
    texts = {name: text_of(region) for name, region in regions_of(graph).items()}
    assert texts["region_0"] == expected(
        """
        def region(run, x):
            a = -x  # a (Neg)
            b = k_b(a)  # b (Exp)
            return (a, b)
        """
    )
    assert texts["region_1"] == expected(
        """
        def region(run, mid, a):
            c = mid + a  # c (Add)
            d = c * mid  # d (Mul)
            del c
            return (d,)
        """
    )


def test_what_may_not_arrive_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that may be dead is None then; what depends on it is in a branch."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out("mid"))
    graph = (
        XP
        + """
        s = Switch(x, p)
        a = Neg(s:1)
        b = Exp(s)
        mid = Identity(a)
        e = Neg(mid)
        r = Switch(e, p)
        f = Exp(r:1)
        m = Merge(r, f)
        d = Mul(m, m)
        r0 = _Retval(d) index=0
        r1 = _Retval(e) index=1
    """
    )
    region = regions_of(graph)["region_1"]
    assert text_of(region) == expected(
        """
        def region(run, mid, p):
            e_result = None
            d_result = None
            if mid is not None:
                e = -mid  # e (Neg)
                p_is_true = p  # r (Switch)
                if p_is_true is not true and p_is_true is not false:
                    p_is_true = as_pred(p_is_true)  # r (Switch)
                e_result = e  # e (Neg)
                if p_is_true is true:
                    f = k_f(e)  # f (Exp)
                    m = f  # m (Merge)
                    del f
                else:
                    m = e  # m (Merge)
                del e
                d = m * m  # d (Mul)
                m = None
                d_result = d  # d (Mul)
                del d
            return (e_result, d_result)
        """
    )
    assert region.run(Bare(), F(3), NO) == (-3, 9)
    assert region.run(Bare(), F(0), YES) == (0, 1)
    assert region.run(Bare(), None, YES) == (None, None)


def test_deadness_crosses_control_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control edge into a region, or out of one, carries a token if its source may be dead."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out("mid", "last"))
    graph = (
        XP
        + """
        s = Switch(x, p)
        mid = Neg(s:1)
        a = Exp(x, ^mid)
        b = Sqrt(a)
        c = NoOp(^b)
        last = Neg(x, ^c)
        r = _Retval(last) index=0
    """
    )
    made = compiled(graph)
    assert made is not None
    assert lines(made.graph)[3:] == [
        "mid = Neg(s:1)",
        "last = Neg(x, ^c/done)",
        "r = _Retval(last)",
        "region_0 = _Region(x, mid/done)",
        "c/done = Identity(region_0)",
        "mid/done = Const(^mid)",
    ]
    [region] = regions_of(graph).values()
    assert text_of(region) == expected(
        """
        def region(run, x, mid):
            c_result = None
            if mid is not None:
                a = k_a(x)  # a (Exp)
                k_b(a, a) if type(a) is ndarray else k_b(a)  # b (Sqrt)
                del a
                c_result = done  # c (NoOp)
            return (c_result,)
        """
    )


def test_a_single_node_is_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a function costs more than one node saves."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out("b", "d"))
    text = X + "a = Neg(x)\nb = Exp(a)\nc = Neg(b)\nd = Exp(c)\ne = Neg(d)\nr = _Retval(e) index=0"
    assert compiled(text) is None


@pytest.mark.parametrize(("op", "every"), [("Atan2", 15), ("Add", 128)])
def test_the_end_of_a_step_is_asked_for_now_and_then(op: str, every: int) -> None:
    """After so many calls of kernels, and eight times as many lines of other kinds.

    A call counts 1 and a line 1/8; it is asked at 16.
    """
    rows = [f"a0 = {op}(x, x)", *(f"a{i} = {op}(a{i - 1}, x)" for i in range(1, 3 * every))]
    text = text_of(whole(X + "\n".join(rows) + f"\nr = _Retval(a{3 * every - 1}) index=0"))
    counts, asked = 0, []
    for line in text.splitlines():
        counts += f"({op})" in line
        if "if interrupt.loops_end:" in line:
            asked.append(counts)
    assert asked == [every, 2 * every, 3 * every]
