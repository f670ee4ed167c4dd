"""Loops and branches as no front end makes them, and fetches from inside of loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cases_src.casebook import Case, b1, f32, i32, rows
from support.loops import NESTED_LOOPS, counting_loop

COUNT = counting_loop()
#: What runs once per iteration, the condition's last one included.
_CONDITION = ["merge:0", "merge:1", "less:0", "cond:0"]
#: What runs once per iteration that goes on.
_BODY = ["switch:1", "body:0", "one:0", "sum:0"]
#: What is there once, however often the loop goes on.
_ONCE = ["enter:0", "bound:0", "switch:0", "exit:0"]
_SET = "has already been set"
_DEAD = "does not have value"


def counts(limits: Iterable[int], *wanted: Sequence[str]) -> list[Any]:
    """A run of the counting loop for each limit and each list of what is asked for."""
    return [({"limit": i32(limit)}, list(names)) for limit in limits for names in wanted]


def nests(pairs: Iterable[tuple[int, int]], names: Iterable[str]) -> list[Any]:
    """A run of the nested loops for each pair of limits and each endpoint."""
    return [
        ({"outer": i32(outer), "inner": i32(inner)}, [name])
        for outer, inner in pairs
        for name in names
    ]


def singly(names: Iterable[str]) -> list[list[str]]:
    """Each alone."""
    return [[name] for name in names]


def count_with(
    name: str, old: str, new: str, *wanted: str, limits: Iterable[int] = (0, 1, 3), says: str = ""
) -> Case:
    """The counting loop with one row changed, for some limits."""
    assert old in COUNT
    return rows(name, COUNT.replace(old, new), *counts(limits, list(wanted)), says=says)


FETCHED = [
    rows("fetched_in_a_body_once", COUNT, *counts([1], *singly([*_BODY, "next:0"]))),
    rows("fetched_in_a_body_never", COUNT, *counts([0], *singly([*_BODY, "next:0"])), says=_DEAD),
    rows("fetched_in_a_body_often", COUNT, *counts([2, 5], *singly([*_BODY, "next:0"])), says=_SET),
    rows("fetched_in_a_condition_once", COUNT, *counts([0], *singly(_CONDITION))),
    rows("fetched_in_a_condition_often", COUNT, *counts([1, 5], *singly(_CONDITION)), says=_SET),
    rows("fetched_where_it_is_once", COUNT, *counts([0, 1, 5], *singly(_ONCE), _ONCE)),
    rows("run_in_a_loop", COUNT, *counts([0, 1, 5], ["exit:0", "merge", "body", "next", "less"])),
    rows("fetched_and_run", COUNT, *counts([1], ["exit:0", "sum:0", "less", "body:0", "switch"])),
    rows(
        "fetched_in_an_inner_body_once",
        NESTED_LOOPS,
        *nests([(2, 1)], ["j_body:0", "j_switch:1", "s_sum:0", "j_one:0"]),
        *nests([(1, 1), (1, 4)], ["i_body:0", "t_body:0", "bound:0", "s_exit:0", "null:0"]),
        *nests([(1, 1), (1, 4)], ["j:0", "j_enter:0", "j_bound:0", "s_switch:0"]),
    ),
    rows(
        "fetched_in_an_inner_body_never",
        NESTED_LOOPS,
        *nests([(0, 3)], ["i_body:0", "j:0", "j_body:0", "s_exit:0", "j_bound:0"]),
        *nests([(1, 3), (4, 0)], ["j_body:0", "s_sum:0", "j_next:0"]),
        says=_DEAD,
    ),
    rows(
        "fetched_in_an_inner_body_often",
        NESTED_LOOPS,
        *nests([(2, 2), (3, 1)], ["j_body:0", "s_sum:0", "j_less:0", "s_switch:1"]),
        *nests([(2, 0), (2, 2)], ["s_exit:0", "s_switch:0", "i:0", "t_body:0", "j_enter:0"]),
        says=_SET,
    ),
    rows(
        "fetched_in_a_loop_of_a_branch",
        COUNT.replace("Enter(zero)", "Enter(side:1)").replace(
            "zero = Const() value=0",
            "p = Placeholder() dtype=bool\nstart = Const() value=0\nside = Switch(start, p)",
        ),
        *(({"limit": i32(1), "p": b1(True)}, [name]) for name in ("body:0", "sum:0", "exit:0")),
        *(({"limit": i32(1), "p": b1(False)}, [name]) for name in ("body:0", "merge:0", "exit:0")),
        says=_DEAD,
    ),
]

FED = [
    rows(
        "a_condition_that_is_fed",
        COUNT,
        ({"limit": i32(3), "less": b1(False)}, ["exit:0"]),
        says="has inputs from different frames",
    ),
    rows(
        "a_body_that_is_fed",
        COUNT,
        ({"limit": i32(3), "body": i32(7)}, ["exit:0"]),
        says="has inputs from different frames",
    ),
    rows(
        "a_loop_of_which_all_is_fed",
        COUNT,
        ({"enter": i32(0), "bound": i32(3)}, ["exit:0"]),
        says="Cannot find a corresponding Enter op",
    ),
    rows(
        "fed_around_a_loop",
        COUNT,
        ({"exit": i32(3)}, ["exit:0"]),
        ({"zero": i32(2), "limit": i32(4)}, ["exit:0"]),
    ),
]

#: A loop that counts, with a second variable that counts from 10.
PAIR = """
    limit = Placeholder() dtype=int32
    zero = Const() value=0
    ten = Const() value=10
    enter = Enter(zero) frame_name="loop" parallel_iterations={parallel}
    other = Enter(ten) frame_name="loop" parallel_iterations={parallel} is_constant={constant}
    bound = Enter(limit) frame_name="loop" is_constant=True
    merge = Merge(enter, next)
    kept = Merge(other, other_next)
    less = Less(merge, bound)
    cond = LoopCond(less)
    switch = Switch(merge, cond)
    side = Switch(kept, cond)
    body = Identity(switch:1)
    one = Const(^body) value=1
    sum = Add(body, one)
    next = NextIteration(sum)
    more = Add(side:1, one)
    other_next = NextIteration(more)
    exit = Exit(switch)
    other_exit = Exit(side)
"""


def pair(name: str, old: str, new: str, *, says: str = "") -> Case:
    """The loop of two variables with one row changed."""
    text = PAIR.format(parallel=10, constant=False)
    assert old in text
    return rows(
        name, text.replace(old, new), *counts([0, 1, 3], ["exit:0", "other_exit:0"]), says=says
    )


LOOPS = [
    *(
        rows(
            f"a_variable_that_comes_anew_{parallel}",
            PAIR.format(parallel=parallel, constant=True),
            *counts([0, 1, 5], ["exit:0", "other_exit:0"]),
        )
        for parallel in (1, 2, 10)
    ),
    count_with("a_body_after_an_enter_once", "one)", "one, ^enter)", "exit:0", limits=[0, 1]),
    count_with(
        "a_body_after_an_enter_often", "one)", "one, ^enter)", "exit:0", limits=[3], says=_DEAD
    ),
    count_with(
        "a_condition_after_an_enter",
        "bound)",
        "bound, ^enter)",
        "exit:0",
        limits=[0, 3],
        says=_DEAD,
    ),
    pair(
        "a_body_after_a_next_iteration", "Add(side:1, one)", "Add(side:1, one, ^next)", says=_DEAD
    ),
    rows(
        "an_exit_that_never_comes",
        PAIR.format(parallel=10, constant=False).replace("Switch(kept, cond)", "Switch(kept, no)")
        + """
        no = LogicalNot(cond)
        third = Enter(ten) frame_name="loop"
        starved = Merge(third, third_next)
        last = Switch(starved, cond)
        never = Add(last:1, side:1)
        third_next = NextIteration(never)
        third_exit = Exit(last)
        a = Neg(other_exit)
        b = Add(a, ten)
        c = Neg(third_exit)
        d = Sub(c, b)
        e = Add(c, ten)
        """,
        *counts([1, 3], ["exit:0", "b:0", "d", "e"]),
    ),
    count_with(
        "an_enter_after_an_exit",
        "exit = Exit(switch)",
        """exit = Exit(switch)
        seven = Const() value=7
        late = Enter(seven, ^exit) frame_name="loop"
        after = Exit(late)""",
        "exit:0",
        "after:0",
    ),
    count_with(
        "a_constant_after_an_exit",
        "exit = Exit(switch)",
        """exit = Exit(switch)
        seven = Const() value=7
        late = Enter(seven, ^exit) frame_name="loop" is_constant=True
        after = Add(late, body)""",
        "exit:0",
        "after:0",
        limits=[1, 3],
        says=_SET,
    ),
]

FRAMES = [
    # Whoever leaves the product by 1 out must not forget that it was a mistake.
    rows(
        "a_product_of_two_frames",
        """
        x = Placeholder() dtype=float32
        enter = Enter(x) frame_name="loop"
        one = Const() value=1.0
        product = Mul(enter, one)
        exit = Exit(product)
        """,
        ({"x": f32(2)}, ["exit:0"]),
        says="has inputs from different frames",
    ),
]

CASES = [*FRAMES, *FETCHED, *FED, *LOOPS]
