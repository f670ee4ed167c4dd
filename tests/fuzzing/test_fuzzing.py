"""The tiers agree on graphs that are changed at random, and the judge of that can be relied on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from fuzzing import judge as judging
from fuzzing import latitude, running, workers
from fuzzing.__main__ import summary
from fuzzing.answers import DEADLINE, Failure, Outcome, Values
from fuzzing.mutant import Mutant, Run
from fuzzing.orders import kept_back
from fuzzing.recipe import Recipe, recipe
from fuzzing.running import CHECKED, DEFINITION, Way, outcomes, ways
from fuzzing.verdict import Kind, Verdict
from fuzzing.workers import judged
from penstock.graph.export import graph_to_def
from support.functions import graph_def_with
from support.sketch import sketch

#: What is done with an account before it is judged.
Change = Callable[[list[Outcome]], list[Outcome]]


def findings(seed: int, numbers: Sequence[int]) -> list[str]:
    """What is wrong with the graphs of some numbers, each with how to run it again."""
    reports = judged([recipe(seed, number) for number in numbers], jobs=1)
    return [
        f"python -m fuzzing --seed {seed} --replay {report.recipe.number}: {report.reason}"
        for report in reports
        if report.kind == Kind.FINDING.name
    ]


def test_both_tiers_agree() -> None:
    """A sample of all graphs that there are; others than in the long run."""
    assert findings(1, range(60)) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 120, 60))
def test_both_tiers_agree_on_many(start: int) -> None:
    """The same, of more graphs."""
    assert findings(2, range(start, start + 60)) == []


def test_a_recipe_makes_the_same_graph_each_time() -> None:
    """Also when it was written down."""
    for number in range(20):
        made, again = recipe(3, number), Recipe.of(recipe(3, number).as_json())
        first, second = made.mutant(), again.mutant()
        assert made == again
        assert (first and first.graph_bytes) == (second and second.graph_bytes)
        assert (first and first.trail) == (second and second.trail)


# -- the judge ----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _few_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is a finding is one after some orders as well."""
    monkeypatch.setattr(latitude, "_OPENED", 60)
    monkeypatch.setattr(latitude, "_SHUFFLED", 24)


def judged_with(
    monkeypatch: pytest.MonkeyPatch, text: str, change: Change, name: str = "compiled", **step: Any
) -> Verdict:
    """The verdict on a graph if one way of running it gives something else."""

    def changed(mutant: Mutant, way: Way) -> list[Outcome]:
        found = outcomes(mutant, way)
        return change(found) if way.name == name else found

    run = Run(step.get("feeds", {}), step.get("fetches", []), step.get("targets", []))
    mutant = Mutant(graph_to_def(sketch(text)), [run, replace(run)], device_count=1)
    monkeypatch.setattr(judging, "outcomes", changed)
    return judging.judge(mutant, int(name == "as by default"), lambda _way: None)


PLAIN = """
    x = Const() value=[1.0, 2.0]
    y = Neg(x)
"""


def giving(*values: Any) -> Change:
    """Has the first step give other values."""
    return lambda found: [Values(tuple(map(np.asarray, values))), *found[1:]]


def failing(code: str, message: str = "") -> Change:
    """Has the first step fail."""
    return lambda _found: [Failure(code, "", message)]


@pytest.mark.parametrize(
    "change",
    [
        giving(np.float32([-1, np.nextafter(np.float32(-2), np.float32(0))])),
        giving(np.float64([-1, -2])),
        giving(np.float32([[-1, -2]])),
        failing("INVALID_ARGUMENT"),
        failing("(TypeError)"),
        failing("INTERNAL", "please report it"),
        failing("DEADLINE_EXCEEDED"),
        lambda found: found[:1],
    ],
)
def test_whatever_is_different_is_found(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """A bit, a type, a shape, an error or a missing step."""
    assert judged_with(monkeypatch, PLAIN, change, fetches=["y:0"]).kind is Kind.FINDING


def test_a_text_is_all_of_its_bytes() -> None:
    """Also the last one, if that is zero and there is but one text."""
    graph = graph_to_def(sketch("x = Const() value='a'"))
    graph.node[0].attr["value"].tensor.string_val[:] = [b"a\0"]
    mutant = Mutant(graph, [Run({}, ["x:0"], [])], device_count=1)
    [step] = outcomes(mutant, DEFINITION)
    assert isinstance(step, Values)
    assert step.arrays[0].tolist() == b"a\0"


def test_a_changed_feed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is fed belongs to the caller."""
    x = np.float32([1, 2])

    def change(found: list[Outcome]) -> list[Outcome]:
        x[0] = 7
        return found

    text = "x = Placeholder() dtype=float32"
    found = judged_with(monkeypatch, text, change, feeds={"x:0": x}, fetches=["x:0"])
    assert found.kind is Kind.FINDING


RACY = """
    v = VarHandleOp() dtype=float32 shape=[] shared_name="v"
    one = Const() value=1.0
    two = Const() value=2.0
    sum = Add(one, two)
    first = AssignVariableOp(v, one)
    then = AssignVariableOp(v, sum)
    read = ReadVariableOp(v, ^first, ^then) dtype=float32
    sure = Neg(one)
"""


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((3, -1), Kind.AGREED),
        ((1, -1), Kind.RACY),
        ((2, -1), Kind.FINDING),
        ((1, 1), Kind.FINDING),
    ],
)
def test_an_order_that_is_open_excuses_what_it_can_give(
    monkeypatch: pytest.MonkeyPatch, values: tuple[float, float], kind: Kind
) -> None:
    """The last of two writes counts; but no third value, and nothing beside it, is excused."""
    change = giving(*map(np.float32, values))
    fetches = ["read:0", "sure:0"]
    found = judged_with(monkeypatch, RACY, change, fetches=fetches, targets=["then"])
    assert found.kind is kind, found


MERGE = """
    x = Placeholder() dtype=float32
    y = Neg(x)
    merge = Merge(x, y)
"""


@pytest.mark.parametrize(("value", "kind"), [(-1, Kind.RACY), (2, Kind.FINDING)])
def test_a_merge_may_take_what_comes_later(
    monkeypatch: pytest.MonkeyPatch, value: float, kind: Kind
) -> None:
    """Of two live values either one, though one is computed from the other; but no third one."""
    feeds = {"x:0": np.float32(1)}
    change = giving(np.float32(value))
    found = judged_with(monkeypatch, MERGE, change, feeds=feeds, fetches=["merge:0"])
    assert found.kind is kind, found


#: With the later value of the Merge a step fails.
MERGE_OR_FAIL = (
    MERGE
    + """
    log = Log(merge)
    checked = CheckNumerics(log) message="no logarithm"
"""
)


@pytest.mark.parametrize(
    ("code", "kind"), [("INVALID_ARGUMENT", Kind.RACY), ("INTERNAL", Kind.FINDING)]
)
def test_each_step_may_have_an_order_of_its_own(
    monkeypatch: pytest.MonkeyPatch, code: str, kind: Kind
) -> None:
    """The second may fail though the first did not, but only as it can."""
    zero = Values((np.asarray(np.float32(0)),))
    found = judged_with(
        monkeypatch,
        MERGE_OR_FAIL,
        lambda _: [zero, Failure(code, "checked", "no logarithm")],
        feeds={"x:0": np.float32(1)},
        fetches=["checked:0"],
    )
    assert found.kind is kind, found


READS_A_FILE = """
    name = Const() value="/nowhere/at/all"
    x = Const() value="x"
    read = ReadFile(name)
    merge = Merge(x, read)
    fails = DecodeRaw(merge) out_type=int32
    sure = Identity(x)
"""


def test_what_a_file_holds_depends_on_when_it_is_read() -> None:
    """So nodes that touch files may be taken last."""
    mutant = Mutant(graph_to_def(sketch(READS_A_FILE)), [Run({}, ["sure:0"], [])], 1)
    assert frozenset({"read"}) in set(kept_back(mutant))
    assert frozenset({"sure"}) not in set(kept_back(mutant))


#: The Exit is live in each iteration, and not only after the last one.
EXITS = """
    n = Placeholder() dtype=int32
    one = Const() value=1
    start = Const() value=0
    limit = Enter(n) frame_name="loop" is_constant=True
    more = Enter(one) frame_name="loop" is_constant=True
    enter = Enter(start) frame_name="loop"
    merge = Merge(enter, next)
    less = Less(merge, limit)
    go = LoopCond(less)
    switch = Switch(merge, go)
    sum = Add(switch:1, more)
    next = NextIteration(sum)
    {exits}
    y = Neg(exit)
"""
ONCE = "exit = Exit(switch)"
OFTEN = """
    either = Merge(sum, switch)
    exit = Exit(either)
"""


@pytest.mark.parametrize(("exits", "kind"), [(OFTEN, Kind.RACY), (ONCE, Kind.FINDING)])
def test_what_comes_again_and_again_means_nothing(
    monkeypatch: pytest.MonkeyPatch, exits: str, kind: Kind
) -> None:
    """Behind an Exit that is live in several iterations anything goes, and nowhere else."""
    text, feeds = EXITS.replace("{exits}", exits), {"n:0": np.int32(3)}
    change = giving(np.int32(-7))
    found = judged_with(monkeypatch, text, change, feeds=feeds, fetches=["y:0"])
    assert found.kind is kind, found


#: What enters the loop as a constant, and what comes round, meet in a Merge.
ROUND = """
    n = Placeholder() dtype=int32
    one = Const() value=1
    start = Const() value=0
    limit = Enter(n) frame_name="loop" is_constant=True
    more = Enter(one) frame_name="loop" is_constant=True
    enter = Enter(start) frame_name="loop" is_constant=True
    way = Identity(enter)
    merge = Merge(way, next)
    less = Less(merge, limit)
    go = LoopCond(less)
    switch = Switch(merge, go)
    sum = Add(switch:1, more)
    next = NextIteration(sum)
    exit = Exit(switch)
"""


@pytest.mark.parametrize(("code", "kind"), [(DEADLINE, Kind.RACY), ("INTERNAL", Kind.FINDING)])
def test_a_loop_may_never_end_if_a_constant_comes_before_what_comes_round(
    monkeypatch: pytest.MonkeyPatch, code: str, kind: Kind
) -> None:
    """It does where the Identity between them is gone; but nothing else is excused by that."""
    feeds = {"n:0": np.int32(3)}
    endless: list[Outcome] = [Failure(code, "", "no end")]
    monkeypatch.setattr(judging, "_PATIENCE", ())
    monkeypatch.setattr(running, "TIMEOUT_MS", 50)
    found = judged_with(monkeypatch, ROUND, lambda _: endless, feeds=feeds, fetches=["exit:0"])
    assert found.kind is kind, found


READ = """
    v = VariableV2() dtype=float32 shape=[]
    one = Const() value=1.0
    init = Assign(v, one)
    read = Identity(v, ^init)
    more = AssignAdd(v, one, ^read)
"""


@pytest.mark.parametrize(("value", "kind"), [(2, Kind.RACY), (3, Kind.FINDING)])
def test_what_is_read_of_a_reference_may_be_looked_at_later(
    monkeypatch: pytest.MonkeyPatch, value: float, kind: Kind
) -> None:
    """Then it has changed, but only as it does change."""
    change = giving(np.float32(value))
    found = judged_with(monkeypatch, READ, change, fetches=["read:0"], targets=["more"])
    assert found.kind is kind, found


RANDOM = """
    shape = Const() value=[2]
    x = RandomUniform(shape) dtype=float32
    y = Neg(shape)
"""


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda found: found, Kind.RACY),
        (giving(np.float64([0, 1]), np.int32([-2])), Kind.FINDING),
        (giving(np.float32([0, 1]), np.int32([2])), Kind.FINDING),
    ],
)
def test_random_numbers_may_be_others(
    monkeypatch: pytest.MonkeyPatch, change: Change, kind: Kind
) -> None:
    """Of the same type; what stands beside them may not."""
    found = judged_with(monkeypatch, RANDOM, change, fetches=["x:0", "y:0"])
    assert found.kind is kind, found


CANCELLING = """
    x = Placeholder() dtype=float32
    many = Const() value=1e8
    as_many = Const() value=1e8
    sum = Add(x, many)
    y = Sub(sum, as_many)
"""


@pytest.mark.parametrize(("value", "kind"), [(16, Kind.SENSITIVE), (1000, Kind.FINDING)])
def test_rounding_excuses_what_rounding_can_do(
    monkeypatch: pytest.MonkeyPatch, value: float, kind: Kind
) -> None:
    """The last bit of a hundred million is 8: an answer of 0 may be 16, but not 1000."""
    change, feeds = giving(np.float32(value)), {"x:0": np.float32(0)}
    found = judged_with(
        monkeypatch, CANCELLING, change, "as by default", feeds=feeds, fetches=["y:0"]
    )
    assert found.kind is kind, found


RACING_LOOP = """
    zero = Const() value=0
    one = Const() value=1
    ten = Const() value=10
    i0 = Enter(zero) frame_name="f"
    x0 = Enter(one) frame_name="f"
    limit = Enter(ten) frame_name="f" is_constant=True
    step = Enter(one) frame_name="f" is_constant=True
    i = Merge(i0, i2)
    x = Merge(x0, x2)
    less = Less(i, limit)
    go = LoopCond(less)
    is_ = Switch(i, go)
    xs = Switch(x, go)
    i1 = Add(is_:1, step)
    twice = Add(xs:1, xs:1)
    either = Merge(xs:1, twice)
    x1 = Add(either, step)
    i2 = NextIteration(i1)
    x2 = NextIteration(x1)
    out = Exit(xs)
    count = Exit(is_)
"""


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ((77, 10), Kind.RACY),
        (([77], 10), Kind.FINDING),
        ((77, 11), Kind.FINDING),
    ],
)
def test_a_race_in_each_iteration_has_more_ends_than_can_be_tried(
    monkeypatch: pytest.MonkeyPatch, values: Any, kind: Kind
) -> None:
    """A number among a thousand may be another one; but no array, and nothing beside it."""
    change = giving(*map(np.int32, values))
    found = judged_with(monkeypatch, RACING_LOOP, change, fetches=["out:0", "count:0"])
    assert found.kind is kind, found


FAILING = """
    x = Placeholder() dtype=int32
    zero = Placeholder() dtype=int32
    bad = FloorDiv(x, zero)
    v = VarHandleOp() dtype=int32 shape=[] shared_name="v"
    empty = ReadVariableOp(v) dtype=int32
    y = Neg(x, ^bad)
"""


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "FAILED_PRECONDITION", "INTERNAL"])
def test_of_several_errors_any_may_be_the_first(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """A division by zero, or a variable without a value; but no error that no node gives."""
    feeds = {"x:0": np.int32(7), "zero:0": np.int32(0)}
    fetches = ["bad:0", "empty:0"]
    found = judged_with(monkeypatch, FAILING, failing(code), feeds=feeds, fetches=fetches)
    assert (found.kind is Kind.FINDING) == (code == "INTERNAL"), found
    assert found.kind in (Kind.AGREED, Kind.RACY, Kind.FINDING)


@pytest.mark.parametrize(
    ("value", "name", "kind"),
    [
        (-7, "optimised", Kind.UNREAD),
        (7, "optimised", Kind.FINDING),
        (-7, "compiled", Kind.FINDING),
    ],
)
def test_only_who_optimises_may_leave_errors_out(
    monkeypatch: pytest.MonkeyPatch, value: int, name: str, kind: Kind
) -> None:
    """The error of what is only waited for; what is given instead must be right."""
    feeds = {"x:0": np.int32(7), "zero:0": np.int32(0)}
    answers: list[Outcome] = [Values((np.asarray(np.int32(value)),))] * 2
    found = judged_with(
        monkeypatch, FAILING, lambda _: answers, name=name, feeds=feeds, fetches=["y:0"]
    )
    assert found.kind is kind, found


def carrying(other: str, dtype: str) -> Mutant:
    """A loop that carries ``other``, in which nobody looks."""
    graph = graph_def_with(
        f"""
        n = Const[value=0; dtype=int32]
        scalar = Const[value=-1; dtype=int32]
        list = EmptyTensorList[element_dtype=float; shape_type=int32](scalar, scalar)
        {other}
        loop = While[T=int32|{dtype}; cond=IsSmall; body=Next](n, other)
        """,
        f"""
        IsSmall(x: int32, o: {dtype}) -> (go: bool)
        two = Const[value=2; dtype=int32]
        less = Less[T=int32](x, two:output)
        return go = less:z

        Next(x: int32, o: {dtype}) -> (y: int32, p: {dtype})
        one = Const[value=1; dtype=int32]
        sum = Add[T=int32](x, one:output)
        return y = sum:z
        return p = o
        """,
    )
    return Mutant(graph, [Run({}, ["loop:0"], [])], 1)


def unread_constant(shape: int) -> Mutant:
    """The shape of what is carried may be absurd."""
    made = carrying("other = Const[value=5; dtype=int32]", "int32")
    made.node("other").attr["value"].tensor.tensor_shape.dim.add(size=shape)
    return made


def unread_variant(op: str) -> Mutant:
    """There may be no kernel that makes what is carried."""
    return carrying(f"other = {op}[T=variant](list)", "variant")


@pytest.mark.parametrize(("value", "kind"), [(2, Kind.UNREAD), (3, Kind.FINDING)])
@pytest.mark.parametrize(
    ("sound", "mutant"),
    [
        (unread_constant(1), unread_constant(-2)),
        (unread_variant("Identity"), unread_variant("Snapshot")),
    ],
)
def test_what_nobody_reads_need_not_be_made(
    monkeypatch: pytest.MonkeyPatch, sound: Mutant, mutant: Mutant, value: int, kind: Kind
) -> None:
    """Who leaves it out gives what anything else in its place would give, and nothing else."""
    answers: list[Outcome] = [Values((np.asarray(np.int32(value)),))]

    def outcomes_of(mutant: Mutant, way: Way) -> list[Outcome]:
        return answers if way.name == "optimised" else outcomes(mutant, way)

    monkeypatch.setattr(judging, "outcomes", outcomes_of)
    monkeypatch.setattr(
        judging, "ways", lambda _seed: [w for w in ways(0) if w.name == "optimised"]
    )
    assert judging.judge(sound, 0, lambda _way: None).kind is (
        Kind.AGREED if kind is Kind.UNREAD else kind
    )
    assert judging.judge(mutant, 0, lambda _way: None).kind is kind


def unrun_function(shape: int, fetch: str = "both:0") -> Mutant:
    """A call on the side of a Switch that is dead; the function's constant may be absurd."""
    graph = graph_def_with(
        """
        x = Const[value=3; dtype=int32]
        no = Const[value=False; dtype=bool]
        sides = Switch[T=int32](x, no)
        call = PartitionedCall[Tin=int32; Tout=int32; f=Plus](sides:1)
        both = Merge[T=int32; N=2](call, sides)
        zero = Sub[T=int32](x, x)
        bad = FloorDiv[T=int32](both, zero)
        """,
        """
        Plus(x: int32) -> (y: int32)
        one = Const[value=1; dtype=int32]
        sum = Add[T=int32](x, one:output)
        return y = sum:z
        """,
    )
    function = graph.library.function[0]
    function.node_def[0].attr["value"].tensor.tensor_shape.dim.add(size=shape)
    return Mutant(graph, [Run({}, [fetch], [])], 1)


FAILED: Final = Failure("INVALID_ARGUMENT", "call/one", "no such shape")


@pytest.mark.parametrize(
    ("found", "of_others", "kind"),
    [
        (FAILED, 3, Kind.UNREAD),
        (Failure("INVALID_ARGUMENT", "call/sum", "no such sum"), 3, Kind.FINDING),
        (FAILED, 4, Kind.FINDING),
    ],
)
def test_a_function_that_is_opened_may_have_a_node_that_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, found: Failure, of_others: int, kind: Kind
) -> None:
    """Its error is right if that node cannot be made, and with any other all agree."""
    mutant = unrun_function(-2)

    def outcomes_of(given: Mutant, way: Way) -> list[Outcome]:
        if way.name != "optimised":
            return outcomes(given, way)
        is_other = given.graph_bytes != mutant.graph_bytes
        return [Values((np.asarray(np.int32(of_others)),))] if is_other else [found]

    monkeypatch.setattr(judging, "outcomes", outcomes_of)
    monkeypatch.setattr(
        judging, "ways", lambda _seed: [w for w in ways(0) if w.name == "optimised"]
    )
    assert judging.judge(mutant, 0, lambda _way: None).kind is kind


@pytest.mark.parametrize(("name", "kind"), [("optimised", Kind.AGREED), ("compiled", Kind.FINDING)])
def test_who_compares_types_sees_a_mistake_earlier(
    monkeypatch: pytest.MonkeyPatch, name: str, kind: Kind
) -> None:
    """What only such a way of running finds is right there, and nowhere else."""

    def outcomes_of(mutant: Mutant, way: Way) -> list[Outcome]:
        if way.name in (CHECKED.name, name):
            return [Failure("INTERNAL", "x", "no such type")]
        return outcomes(mutant, way)

    monkeypatch.setattr(judging, "outcomes", outcomes_of)
    monkeypatch.setattr(judging, "ways", lambda _seed: [w for w in ways(0) if w.name == name])
    mutant = Mutant(graph_to_def(sketch(PLAIN)), [Run({}, ["y:0"], [])], 1)
    assert judging.judge(mutant, 0, lambda _way: None).kind is kind


#: A call reads a variable and writes it later; another one adds to it at any time.
LOST_UPDATE = (
    """
    v = VarHandleOp[dtype=int32; shape=(); shared_name=v]
    one = Const[value=1; dtype=int32]
    init = AssignVariableOp[dtype=int32](v, one)
    double = StatefulPartitionedCall[Tin=resource; Tout=int32; f=Double](v)
    more = StatefulPartitionedCall[Tin=resource; Tout=int32; f=More](v)
    both = NoOp(^double, ^more)
    read = ReadVariableOp[dtype=int32](v, ^both)
    """,
    """
    Double(v: resource) -> (y: int32)
    two = Const[value=2; dtype=int32]
    read = ReadVariableOp[dtype=int32](v)
    product = Mul[T=int32](read:value, two:output)
    write = AssignVariableOp[dtype=int32](v, product:z)
    y = Identity[T=int32](product:z, ^write)
    return y = y:output

    More(v: resource) -> (y: int32)
    ten = Const[value=10; dtype=int32]
    add = AssignAddVariableOp[dtype=int32](v, ten:output)
    y = Identity[T=int32](ten:output, ^add)
    return y = y:output
    """,
)


@pytest.mark.parametrize(
    ("value", "name", "kind"),
    [
        (2, "optimised", Kind.RACY),  # what was added is lost, between reading and writing
        (12, "optimised", Kind.RACY),
        (5, "optimised", Kind.FINDING),
        (2, "compiled", Kind.FINDING),
    ],
)
def test_functions_that_are_opened_mix(
    monkeypatch: pytest.MonkeyPatch, value: int, name: str, kind: Kind
) -> None:
    """Between the nodes of one there may be those of another, though not if calls stay calls."""

    def outcomes_of(mutant: Mutant, way: Way) -> list[Outcome]:
        found = outcomes(mutant, way)
        return [found[0], Values((np.asarray(np.int32(value)),))] if way.name == name else found

    monkeypatch.setattr(judging, "outcomes", outcomes_of)
    monkeypatch.setattr(judging, "ways", lambda _seed: [w for w in ways(0) if w.name == name])
    mutant = Mutant(
        graph_def_with(*LOST_UPDATE), [Run({}, [], ["init"]), Run({}, ["read:0"], [])], 1
    )
    found = judging.judge(mutant, 0, lambda _way: None).kind
    assert found in ({kind, Kind.AGREED} if kind is Kind.RACY else {kind})


# -- limits and sums ----------------------------------------------------------------------------


@pytest.mark.parametrize(("is_made", "kind"), [(True, Kind.UNREAD), (False, Kind.FINDING)])
def test_a_node_that_cannot_be_made_fails_before_others_do(
    monkeypatch: pytest.MonkeyPatch, is_made: bool, kind: Kind
) -> None:
    """Its error is right instead of another one, which all have if it can be made."""
    mutant = unrun_function(-2, "bad:0")

    def outcomes_of(given: Mutant, way: Way) -> list[Outcome]:
        if way.name != "optimised" or (is_made and given.graph_bytes != mutant.graph_bytes):
            return outcomes(given, way)
        return [Failure("RESOURCE_EXHAUSTED", "call/one", "no such shape")]

    monkeypatch.setattr(judging, "outcomes", outcomes_of)
    monkeypatch.setattr(
        judging, "ways", lambda _seed: [w for w in ways(0) if w.name == "optimised"]
    )
    assert judging.judge(mutant, 0, lambda _way: None).kind is kind


@pytest.mark.parametrize("is_slow_of_definition", [True, False])
@pytest.mark.parametrize(("patience", "kind"), [(64, Kind.AGREED), (65, Kind.FINDING)])
def test_a_deadline_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, is_slow_of_definition: bool, patience: int, kind: Kind
) -> None:
    """Who meets it while others have an answer gets more time, but not for ever."""

    def outcomes_of(mutant: Mutant, way: Way) -> list[Outcome]:
        is_slow = (way.tier is DEFINITION.tier) == is_slow_of_definition
        if is_slow and way.patience < patience:
            return [Failure(DEADLINE, "", "no time")]
        return outcomes(mutant, way)

    monkeypatch.setattr(judging, "outcomes", outcomes_of)
    monkeypatch.setattr(judging, "ways", lambda _seed: ways(0)[:1])
    mutant = Mutant(graph_to_def(sketch(PLAIN)), [Run({}, ["y:0"], [])], 1)
    assert judging.judge(mutant, 0, lambda _way: None).kind is kind


def test_who_takes_too_long_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has had its time is ended, and its recipe is told."""
    monkeypatch.setattr(workers, "SECONDS", -1.0)  # the first look is too late
    [report] = judged([recipe(1, 0)], jobs=1)
    assert report.kind == Kind.FINDING.name
    assert "processor seconds" in report.reason


def test_the_summary_counts() -> None:
    """Answers, errors by kind, findings."""
    [report] = judged([recipe(1, 1)], jobs=1)
    reports = [
        replace(report, kind="AGREED", ending="OK"),
        replace(report, kind="RACY", ending="INTERNAL"),
        replace(report, kind="FINDING", ending="INTERNAL"),
    ]
    assert summary(reports).splitlines()[:3] == [
        "3 graphs: 1 gave answers, 2 errors; 1 findings",
        "  errors: 2 INTERNAL",
        "  otherwise: 1 AGREED, 1 RACY",
    ]
