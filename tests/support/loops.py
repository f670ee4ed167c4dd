"""Loops as text, for ``support.sketch``."""

from __future__ import annotations


def counting_loop(parallel: int = 10, *, limit: str = "Placeholder() dtype=int32") -> str:
    """Count from 0 to ``limit``; ``exit`` is the count."""
    return f"""
        zero = Const() value=0
        limit = {limit}
        enter = Enter(zero) frame_name="loop" parallel_iterations={parallel}
        bound = Enter(limit) frame_name="loop" is_constant=True parallel_iterations={parallel}
        merge = Merge(enter, next)
        less = Less(merge, bound)
        cond = LoopCond(less)
        switch = Switch(merge, cond)
        body = Identity(switch:1)
        one = Const(^body) value=1
        sum = Add(body, one)
        next = NextIteration(sum)
        exit = Exit(switch)
    """


#: For each i below ``outer``, count i * ``inner`` things; ``total`` is how many.
NESTED_LOOPS = """
    outer = Placeholder() dtype=int32
    inner = Placeholder() dtype=int32
    zero = Const() value=0
    i_enter = Enter(zero) frame_name="outer"
    t_enter = Enter(zero) frame_name="outer"
    outer_bound = Enter(outer) frame_name="outer" is_constant=True
    inner_value = Enter(inner) frame_name="outer" is_constant=True
    i = Merge(i_enter, i_next)
    t = Merge(t_enter, t_next)
    i_less = Less(i, outer_bound)
    i_cond = LoopCond(i_less)
    i_switch = Switch(i, i_cond)
    t_switch = Switch(t, i_cond)
    i_body = Identity(i_switch:1)
    t_body = Identity(t_switch:1)
    one = Const(^i_body) value=1
    i_sum = Add(i_body, one)
    i_next = NextIteration(i_sum)
    i_exit = Exit(i_switch)
    bound = Mul(i_body, inner_value)
    null = Const(^i_body) value=0
    j_enter = Enter(null) frame_name="inner"
    s_enter = Enter(t_body) frame_name="inner"
    j_bound = Enter(bound) frame_name="inner" is_constant=True
    j = Merge(j_enter, j_next)
    s = Merge(s_enter, s_next)
    j_less = Less(j, j_bound)
    j_cond = LoopCond(j_less)
    j_switch = Switch(j, j_cond)
    s_switch = Switch(s, j_cond)
    j_body = Identity(j_switch:1)
    s_body = Identity(s_switch:1)
    j_one = Const(^j_body) value=1
    j_sum = Add(j_body, j_one)
    s_sum = Add(s_body, j_one)
    j_next = NextIteration(j_sum)
    s_next = NextIteration(s_sum)
    s_exit = Exit(s_switch)
    t_next = NextIteration(s_exit)
    total = Exit(t_switch)
"""
