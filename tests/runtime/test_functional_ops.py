"""Calls, If, Case, While and For: kernels that run functions of the graph's library."""

from __future__ import annotations

import dataclasses
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from penstock import Config, GraphOptions, RewriterConfig, RunOptions, Session, Tier, errors
from penstock.core import dtypes
from penstock.core.limits import Limits
from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Kernel, kernel
from penstock.passes import lower, lowerable
from penstock.passes.bodies import Bodies
from support.custom import custom_kernels
from support.functions import graph_def_with, session_with

CONFIG = Config(check_outputs=True)
CPU_0 = "/job:localhost/replica:0/task:0/device:CPU:0"

TWICE = """
Twice(x: T) -> (y: T) [T: type]
sum = Add[T=$T](x, x)
return y = sum:z
"""
ONE_OR_TWO = """
One() -> (r: float32)
c = Const[value=1]
return r = c:output

Two() -> (r: float32)
c = Const[value=2]
return r = c:output
"""
COUNT = """
Below(i: int32, n: int32) -> (go: bool)
less = Less[T=int32](i, n)
return go = less:z

Step(i: int32, n: int32) -> (j: int32, m: int32)
one = Const[value=1; dtype=int32]
next = Add[T=int32](i, one:output)
return j = next:z
return m = n

Always(i: int32, n: int32) -> (go: bool)
yes = Const[value=True; dtype=bool]
return go = yes:output
"""
ENDLESS = """
n = Placeholder[dtype=int32]
loop = While[T=int32|int32; cond=Always; body=Step](n, n)
out = Identity[T=int32](loop)
"""
BAD = """
Bad(x: float32) -> (y: float32)
two = Const[value=1|2]
three = Const[value=1|2|3]
oops = Add(two:output, three:output)
return y = oops:z

Outer(x: float32) -> (y: float32)
call = StatefulPartitionedCall[Tin=float32; Tout=float32; f=Bad](x)
return y = call:output
"""


@pytest.fixture(autouse=True, params=["called", "inlined", "opened", "lowered"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How functions run.

    They are called; or calls are inlined, and If and While called; or these are lowered, too, where
    they only compute; or all are lowered as if they asked for it.
    """
    way: str = request.param
    if way in {"called", "inlined"}:
        monkeypatch.setattr(Bodies, "pure", lambda *_: None)
    if way == "called":
        rewriter = RewriterConfig(function_optimization=RewriterConfig.OFF)
        config = Config(check_outputs=True, graph_options=GraphOptions(rewrite_options=rewriter))
        monkeypatch.setitem(globals(), "CONFIG", config)
    elif way == "lowered":
        for module in (lower, lowerable):
            monkeypatch.setattr(module, "asks", lambda _: True)
    return way


def run(
    graph: str,
    functions: str,
    fetch: Any,
    feeds: dict[str, Any] | None = None,
    config: Config = CONFIG,
) -> Any:
    """What one run of a graph with functions gives."""
    with session_with(graph, functions, config=config) as session:
        return session.run(fetch, feeds, RunOptions(timeout_in_ms=20_000))


# -- calls --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "PartitionedCall[Tin=int32; Tout=int32; f=Twice{T=int32}](x)",
        "StatefulPartitionedCall[Tin=int32; Tout=int32; f=Twice{T=int32}](x)",
        "PartitionedCall[Tin=int32; Tout=int32; f=Twice{T=int32}; executor_type=DEFAULT](x)",
        "RemoteCall[Tin=int32; Tout=int32; f=Twice{T=int32}](target, x)",
        "Twice[T=int32](x)",
    ],
)
def test_calls(call: str) -> None:
    """However a function is called, it gets the arguments and gives the results."""
    graph = f"""
        x = Placeholder[dtype=int32]
        target = Const[value={CPU_0}; dtype=string]
        r = {call}
        out = Neg[T=int32](r)
    """

    twice, negative = run(graph, TWICE, ["r:0", "out:0"], {"x:0": [1, 2]})

    assert twice.tolist() == [2, 4]
    assert negative.tolist() == [-2, -4]


def test_one_function_for_several_types() -> None:
    """Each set of attributes has a body of its own."""
    graph = """
        i = Const[value=21; dtype=int32]
        f = Const[value=0.25]
        a = Twice[T=int32](i)
        b = PartitionedCall[Tin=float32; Tout=float32; f=Twice{T=float32}](f)
    """

    assert run(graph, TWICE, ["a:0", "b:0"]) == [42, 0.5]


def test_functions_with_lists() -> None:
    """Lists of arguments and of results are spread over inputs and outputs."""
    functions = """
        Turn(a: N*int32, b: Ts*) -> (x: Ts*, y: N*int32) [N: int, Ts: list(type)]
        return x = b
        return y = a
    """
    graph = """
        i = Const[value=1; dtype=int32]
        j = Const[value=2; dtype=int32]
        s = Const[value=text; dtype=string]
        r = Turn[N=2; Ts=string|int32](i, j, s, i)
    """

    assert run(graph, functions, [f"r:{i}" for i in range(4)]) == [b"text", 1, 1, 2]


def test_functions_without_results() -> None:
    """A function may be called for its effects alone, and they happen before what waits."""
    functions = """
        Store(v: resource, x: float32) -> () stateful
        store = AssignVariableOp[dtype=float32](v, x)
    """
    graph = """
        v = VarHandleOp[dtype=float32; shape=; shared_name=v]
        x = Placeholder
        call = StatefulPartitionedCall[Tin=resource|float32; Tout=; f=Store](v, x)
        named = Store(v, x)
        after = ReadVariableOp[dtype=float32](v, ^call)
        after_named = ReadVariableOp[dtype=float32](v, ^named)
    """

    assert run(graph, functions, "after:0", {"x:0": 3.0}) == 3
    assert run(graph, functions, "after_named:0", {"x:0": 4.0}) == 4


def test_effects_that_no_result_needs(way: str) -> None:
    """Who waits for a call that was opened waits for all that has effects in its function.

    A call that stays does what its results need, and what its function names.
    """
    functions = """
        Quietly(v: resource, x: float32) -> (y: float32) stateful
        store = AssignVariableOp[dtype=float32](v, x)
        return y = x
    """
    graph = """
        v = VarHandleOp[dtype=float32; shape=; shared_name=v]
        x = Placeholder
        init = AssignVariableOp[dtype=float32](v, x)
        call = StatefulPartitionedCall[Tin=resource|float32; Tout=float32; f=Quietly](v, x)
        after = ReadVariableOp[dtype=float32](v, ^call)
    """
    with session_with(graph, functions, config=CONFIG) as session:
        session.run("init", {"x:0": 3.0})

        assert session.run("after:0", {"x:0": 5.0}) == (3 if way == "called" else 5)


def test_loops_inside_functions() -> None:
    """A body may contain a loop of Enter, Merge, Switch, NextIteration and Exit."""
    functions = """
        Double(x: float32, limit: float32) -> (y: float32)
        enter = Enter[frame_name=f](x)
        bound = Enter[frame_name=f; is_constant=true](limit)
        merge = Merge[N=2](enter:output, next:output)
        less = Less(merge:output, bound:output)
        cond = LoopCond(less:z)
        switch = Switch(merge:output, cond:output)
        double = Add(switch:output_true, switch:output_true)
        next = NextIteration(double:z)
        exit = Exit(switch:output_false)
        return y = exit:output
    """
    graph = """
        x = Placeholder
        limit = Const[value=100]
        r = PartitionedCall[Tin=float32|float32; Tout=float32; f=Double](x, limit)
    """

    assert run(graph, functions, "r:0", {"x:0": 3.0}) == 192


def test_calls_inside_a_loop() -> None:
    """Each iteration of a loop calls the function anew, also with many iterations at once."""
    graph = """
        zero = Const[value=0; dtype=int32]
        limit = Placeholder[dtype=int32]
        enter = Enter[frame_name=f; T=int32](zero)
        bound = Enter[frame_name=f; is_constant=true; T=int32](limit)
        merge = Merge[N=2; T=int32](enter, next)
        less = Less[T=int32](merge, bound)
        cond = LoopCond(less)
        switch = Switch[T=int32](merge, cond)
        call = Step(switch:1, bound)
        next = NextIteration[T=int32](call)
        exit = Exit[T=int32](switch)
    """

    assert run(graph, COUNT, "exit:0", {"limit:0": 50}) == 50


def test_calls_wait_for_each_other() -> None:
    """A function that waits does not keep another from running: they share the step."""
    functions = """
        Take(q: resource) -> (x: float32) stateful
        x = QueueDequeueV2[component_types=float32](q)
        return x = x:components

        Give(q: resource, x: float32) -> () stateful
        put = QueueEnqueueV2[Tcomponents=float32](q, x)
    """
    graph = """
        q = FIFOQueueV2[component_types=float32]
        x = Placeholder
        take = StatefulPartitionedCall[Tin=resource; Tout=float32; f=Take](q)
        give = StatefulPartitionedCall[Tin=resource|float32; Tout=; f=Give](q, x)
    """

    assert run(graph, functions, ["take:0", "give"], {"x:0": 7.0}) == [7, None]


def test_dead_calls() -> None:
    """A call with a dead argument does not run its function, and its results are dead."""
    graph = """
        x = Placeholder
        p = Placeholder[dtype=bool]
        switch = Switch(x, p)
        bad = Outer(switch:1)
        good = Identity(switch)
        out = Merge[N=2](bad, good)
    """

    assert run(graph, BAD, "out:0", {"x:0": 3.0, "p:0": False}) == 3


DEAD = """
Part(x: float32, p: bool) -> (no: float32, yes: float32)
switch = Switch(x, p)
return no = switch:output_false
return yes = switch:output_true
"""


@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall"])
def test_dead_results_of_partitioned_calls(op: str) -> None:
    """A result that is dead inside the function comes out without elements."""
    graph = f"""
        x = Placeholder
        p = Placeholder[dtype=bool]
        r = {op}[Tin=float32|bool; Tout=float32|float32; f=Part](x, p)
    """
    no, yes = run(graph, DEAD, ["r:0", "r:1"], {"x:0": 3.0, "p:0": True})

    assert (no.shape, no.dtype, yes) == ((0,), np.float32, 3)


def test_dead_results_of_other_calls() -> None:
    """Everywhere else, a function must have all of its results."""
    graph = """
        x = Placeholder
        p = Placeholder[dtype=bool]
        r = Part(x, p)
    """
    with pytest.raises(errors.InternalError, match=r"Retval\[0\] does not have value"):
        run(graph, DEAD, "r:1", {"x:0": 3.0, "p:0": True})


def test_feeds_and_fetches_around_calls() -> None:
    """Any output of a call can be fetched; one that is fed is not computed."""
    graph = """
        x = Placeholder
        r = Outer(x)
        out = Neg(r)
    """

    assert run(graph, BAD, ["out:0", "r:0"], {"r:0": 2.0}) == [-2, 2]


def test_functions_in_a_graph_that_is_extended() -> None:
    """Functions may come with an extension of the graph."""
    with session_with("x = Const[value=2]", TWICE, config=CONFIG) as session:
        session.extend(graph_def_with("y = Placeholder\nz = Thrice(y)", THRICE))

        assert session.run("z:0", {"y:0": 2.0}) == 6


THRICE = """
Thrice(x: float32) -> (y: float32)
sum = AddN[N=3](x, x, x)
return y = sum:sum
"""


# -- branches -----------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["If", "StatelessIf"])
@pytest.mark.parametrize(
    ("dtype", "value", "taken"),
    [
        ("bool", True, 1),
        ("bool", False, 2),
        ("int32", 0, 2),
        ("int32", -1, 1),
        ("uint8", 7, 1),
        ("int64", 2**40, 1),
        ("float32", 0.25, 1),
        ("float32", -0.0, 2),
        ("float64", float("nan"), 1),
        ("float16", 0.0, 2),
        ("string", b"", 2),
        ("string", b"0", 1),
        ("bool", [], 2),
        ("bool", [False], 1),
        ("int32", [[0, 0]], 1),
        ("string", [b""], 1),
        ("float32", np.zeros((3, 0)), 2),
    ],
)
def test_conditions(op: str, dtype: str, value: Any, taken: int, way: str) -> None:
    """True is what is not zero, text that is not empty, and an array with elements.

    A Switch takes a scalar and nothing else.
    """
    graph = f"""
        p = Placeholder[dtype={dtype}]
        r = {op}[Tcond={dtype}; Tin=; Tout=float32; then_branch=One; else_branch=Two](p)
    """

    if way == "lowered" and dtype == "bool" and np.ndim(value):
        with pytest.raises(errors.InvalidArgumentError, match="scalar"):
            run(graph, ONE_OR_TWO, "r:0", {"p:0": value})
    else:
        assert run(graph, ONE_OR_TWO, "r:0", {"p:0": value}) == taken


@pytest.mark.parametrize("value", [[], [False], [[True, False]]])
def test_what_asks_to_be_lowered_takes_a_scalar(value: Any) -> None:
    """An If that is meant to become Switches refuses what they refuse, though it becomes none."""
    made = graph_def_with(
        """
        p = Placeholder[dtype=bool]
        r = If[Tcond=bool; Tin=; Tout=float32; then_branch=One; else_branch=Two](p)
        w = While[T=bool; cond=Same; body=Same](p)
        """,
        ONE_OR_TWO + "\nSame(x: bool) -> (y: bool)\nreturn y = x",
    )
    for node in made.node[1:]:
        node.attr["_lower_using_switch_merge"].b = True
    with Session(made, config=Config(graph_options=GraphOptions.nothing())) as session:
        for fetch in ("r:0", "w:0"):
            with pytest.raises(errors.InvalidArgumentError, match="must be a scalar"):
                session.run(fetch, {"p:0": np.array(value, bool)})
        assert session.run("r:0", {"p:0": True}) == 1


def test_conditions_that_mean_nothing() -> None:
    """A handle is neither true nor false."""
    graph = """
        v = VarHandleOp[dtype=float32; shape=]
        r = If[Tcond=resource; Tin=; Tout=float32; then_branch=One; else_branch=Two](v)
    """
    with pytest.raises(errors.InvalidArgumentError, match="cannot be converted to a bool"):
        run(graph, ONE_OR_TWO, "r:0")


def test_only_one_branch_runs() -> None:
    """The branch that is not taken may be as wrong as it likes."""
    graph = """
        p = Placeholder[dtype=bool]
        x = Const[value=2]
        r = If[Tcond=bool; Tin=float32; Tout=float32; then_branch=Bad; else_branch=Thrice](p, x)
    """

    assert run(graph, BAD + THRICE, "r:0", {"p:0": False}) == 6
    with pytest.raises(errors.InvalidArgumentError, match="Incompatible shapes"):
        run(graph, BAD + THRICE, "r:0", {"p:0": True})


@pytest.mark.parametrize("op", ["Case", "StatelessCase"])
@pytest.mark.parametrize(("index", "taken"), [(0, 1), (1, 2), (2, 1), (3, 1), (-1, 1)])
def test_cases(op: str, index: int, taken: int) -> None:
    """An index that is out of range means the last branch."""
    graph = f"""
        i = Placeholder[dtype=int32]
        r = {op}[Tin=; Tout=float32; branches=One|Two|One](i)
    """

    assert run(graph, ONE_OR_TWO, "r:0", {"i:0": index}) == taken


# -- loops --------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["While", "StatelessWhile"])
@pytest.mark.parametrize("iterations", [0, 1, 7])
def test_while(op: str, iterations: int) -> None:
    """The body runs as long as the condition holds, maybe never."""
    graph = f"""
        i = Const[value=0; dtype=int32]
        n = Placeholder[dtype=int32]
        r = {op}[T=int32|int32; cond=Below; body=Step](i, n)
    """

    assert run(graph, COUNT, ["r:0", "r:1"], {"n:0": iterations}) == [iterations, iterations]


def test_while_with_changing_shapes_and_a_number_as_condition() -> None:
    """Loop variables may change their shapes; an empty array ends the loop."""
    functions = """
        Rest(x: float32) -> (go: float32)
        return go = x

        Drop(x: float32) -> (rest: float32)
        zero = Const[value=0; dtype=int32]
        halves = SplitV[num_split=2; Tlen=int32](x, sizes:output, zero:output)
        sizes = Const[value=1|-1; dtype=int32]
        return rest = halves:output:1
    """
    graph = """
        x = Placeholder
        r = While[T=float32; cond=Rest; body=Drop](x)
    """

    assert run(graph, functions, "r:0", {"x:0": [1.0, 2.0, 3.0]}).shape == (0,)


@pytest.mark.parametrize(
    ("start", "limit", "delta", "total"),
    [
        (0, 4, 1, 106),
        (0, 5, 2, 106),
        (5, 0, -2, 109),
        (2, 2, 1, 100),
        (2, 2, -1, 100),
        (0, 0, 0, 100),
    ],
)
def test_for(start: int, limit: int, delta: int, total: int) -> None:
    """The body gets every index from start up to, or down to, the limit."""
    assert run(FOR, PLUS, "r:0", {"a:0": start, "b:0": limit, "d:0": delta}) == total


@pytest.mark.parametrize(("start", "limit", "delta"), [(0, 3, 0), (3, 0, 1), (0, 3, -1)])
def test_for_in_the_wrong_direction(start: int, limit: int, delta: int) -> None:
    """A range that would never end is refused."""
    with pytest.raises(errors.InvalidArgumentError, match="Invalid start/limit/delta"):
        run(FOR, PLUS, "r:0", {"a:0": start, "b:0": limit, "d:0": delta})


@pytest.mark.parametrize(
    ("start", "limit", "delta", "says"),
    [
        ([0], 3, 1, r"start must be a scalar, but \[1\]"),
        (0, [3, 4], 1, r"limit must be a scalar, but \[2\]"),
        (0, 3, [[1]], r"delta must be a scalar, but \[1,1\]"),
        (0, [], [], r"limit must be a scalar, but \[0\]"),
        ([3], [3], 0, r"start must be a scalar, but \[1\]"),
    ],
)
def test_for_by_arrays(start: Any, limit: Any, delta: Any, says: str) -> None:
    """Start, limit and delta are one number each; the first that is not is named."""
    with pytest.raises(errors.InvalidArgumentError, match=says):
        run(FOR, PLUS, "r:0", {"a:0": start, "b:0": limit, "d:0": delta})


FOR = """
a = Placeholder[dtype=int32]
b = Placeholder[dtype=int32]
d = Placeholder[dtype=int32]
x = Const[value=100; dtype=int32]
r = For[T=int32; body=Plus](a, b, d, x)
"""
PLUS = """
Plus(i: int32, x: int32) -> (y: int32)
sum = Add[T=int32](i, x)
return y = sum:z
"""


@pytest.mark.slow
def test_long_loops_need_no_stack() -> None:
    """After 20,000 iterations the stack is as deep as after one."""
    depths: list[int] = []

    def depth(x: Any) -> Any:
        frame, count = sys._getframe(), 0
        while frame.f_back is not None:
            frame, count = frame.f_back, count + 1
        depths.append(count)
        return x

    functions = COUNT + "\n\nDeep(i: int32, n: int32) -> (j: int32, m: int32)"
    functions += "\nstep = Step(i, n)\nseen = Depth(step:j)\nreturn j = seen:y\nreturn m = n"
    graph = """
        i = Const[value=0; dtype=int32]
        n = Placeholder[dtype=int32]
        r = While[T=int32|int32; cond=Below; body=Deep](i, n)
    """
    with custom_kernels("Depth(x: int32) -> (y: int32)") as register:
        register("Depth", depth)

        assert run(graph, functions, "r:0", {"n:0": 20_000}) == 20_000
    assert len(depths) == 20_000
    # The first run of a kernel that nobody knows yet is on another thread, with a stack of its own.
    assert max(depths[1:]) - min(depths[1:]) < 10


def test_endless_loops_time_out() -> None:
    """A deadline ends a While between two iterations."""
    with session_with(ENDLESS, COUNT, config=CONFIG) as session:
        with pytest.raises(errors.DeadlineExceededError):
            session.run("out:0", {"n:0": 0}, RunOptions(timeout_in_ms=100))

        assert session.run("n:0", {"n:0": 3}) == 3


def test_endless_loops_are_cancelled() -> None:
    """``Run.cancel`` ends a While between two iterations."""
    with session_with(ENDLESS, COUNT, config=CONFIG) as session:
        running = session.run_async("out:0", {"n:0": 0})
        running.cancel()
        with pytest.raises(errors.CancelledError):
            running.result(timeout=10)


def test_endless_loops_end_when_something_else_fails(way: str) -> None:
    """The step's first error ends a While beside it, and is what is reported.

    A compiled loop is a step of its own, which nothing is beside of.
    """
    graph = ENDLESS + "x = Placeholder\nbad = Outer(x)"
    is_alone = way in {"opened", "lowered"}
    config = dataclasses.replace(CONFIG, tier=Tier.DATAFLOW) if is_alone else CONFIG
    with (
        session_with(graph, COUNT + "\n" + BAD, config=config) as session,
        pytest.raises(errors.InvalidArgumentError, match="Incompatible shapes"),
    ):
        session.run(["out:0", "bad:0"], {"n:0": 0, "x:0": 1.0}, RunOptions(timeout_in_ms=10_000))


# -- recursion ----------------------------------------------------------------------------

FACTORIAL = """
Factorial(n: int64) -> (y: int64)
one = Const[value=1; dtype=int64]
done = LessEqual[T=int64](n, one:output)
y = If[Tcond=bool; Tin=int64; Tout=int64; then_branch=Stop; else_branch=Again](done:z, n)
return y = y:output

Stop(n: int64) -> (y: int64)
one = Const[value=1; dtype=int64]
return y = one:output

Again(n: int64) -> (y: int64)
one = Const[value=1; dtype=int64]
less = Sub[T=int64](n, one:output)
rest = Factorial(less:z)
y = Mul[T=int64](n, rest:y)
return y = y:z
"""


def test_recursion() -> None:
    """A function may call itself; bodies are made when they are called."""
    graph = "n = Placeholder[dtype=int64]\nr = Factorial(n)"

    assert run(graph, FACTORIAL, "r:0", {"n:0": 20}) == 2432902008176640000
    assert run(graph, FACTORIAL, "r:0", {"n:0": 500}) == 0


@pytest.mark.slow
def test_endless_recursion() -> None:
    """A function that calls itself without end is an error, not a crash."""
    functions = """
        Down(x: float32) -> (y: float32)
        y = Down(x)
        return y = y:y
    """
    with pytest.raises(errors.ResourceExhaustedError, match="levels deep"):
        run("x = Const[value=1]\nr = Down(x)", functions, "r:0")


@pytest.mark.slow
def test_endless_recursion_in_two_branches() -> None:
    """A function that calls itself twice at once is stopped by the number of open calls."""
    config = dataclasses.replace(CONFIG, limits=Limits(calls_in_flight=500))
    body = """
    Both(n: int32) -> (r: int32)
    a = Both(n)
    b = Both(n)
    sum = Add[T=int32](a:r, b:r)
    return r = sum:z
    """
    with pytest.raises(errors.ResourceExhaustedError, match="500 calls are unfinished"):
        run("n = Placeholder[dtype=int32]\nf = Both(n)", body, "f:0", {"n:0": 1}, config=config)


# -- errors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "StatefulPartitionedCall[Tin=float32; Tout=float32; f=Outer](x)",
        "Outer(x)",
        "If[Tcond=bool; Tin=float32; Tout=float32; then_branch=Bad; else_branch=Outer](p, x)",
        "For[T=float32; body=Indexed](zero, one, one, x)",
    ],
)
def test_errors_name_the_inner_node(call: str) -> None:
    """An error says which node of which function failed."""
    graph = f"""
        x = Const[value=1]
        p = Const[value=False; dtype=bool]
        zero = Const[value=0; dtype=int32]
        one = Const[value=1; dtype=int32]
        r = {call}
    """
    functions = BAD + "\n\nIndexed(i: int32, x: float32) -> (y: float32)\ny = Outer(x)"
    with pytest.raises(errors.InvalidArgumentError) as caught:
        run(graph, functions + "\nreturn y = y:y", "r:0")

    assert caught.value.node_name is not None
    assert caught.value.node_name.rpartition("/")[2] == "oops"
    assert caught.value.op_type == "Add"
    assert caught.value.where is not None
    assert caught.value.where.function == "Bad"
    assert "in function Bad" in caught.value.message


def test_missing_kernels_inside_functions() -> None:
    """A body with an op that has no kernel fails when it is called, and names the node."""
    functions = """
        Strange(x: float32) -> (y: float32)
        strange = Odd(x)
        return y = strange:y
    """
    with (
        custom_kernels("Odd(x: float32) -> (y: float32)"),
        pytest.raises(errors.InvalidArgumentError, match=r"No OpKernel.*'Odd'") as caught,
    ):
        run("x = Const[value=1]\nr = Strange(x)", functions, "r:0")

    assert caught.value.node_name == "strange"
    assert "in function Strange" in caught.value.message


RESULTS = """
Nothing(x: int32) -> () [T: int = 0]
wait = NoOp(^x)

Same(x: int32) -> (y: int32)
return y = x

Pair(x: int32) -> (y: int32, z: int32)
return y = x
return z = x

ToReal(x: int32) -> (y: float32)
y = Cast[SrcT=int32; DstT=float32](x)
return y = y:y

Yes(x: int32) -> (go: bool)
yes = Const[value=True; dtype=bool]
return go = yes:output

YesYes(x: int32) -> (go: bool, too: bool)
yes = Const[value=True; dtype=bool]
return go = yes:output
return too = yes:output
"""


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            "PartitionedCall[Tin=int32; Tout=int32; f=Pair](x)",
            errors.InternalError,
            "Expect to produce 1 tensors, but get 2",
        ),
        (
            "StatefulPartitionedCall[Tin=int32; Tout=int32|int32; f=Same](x)",
            errors.InternalError,
            "Expect to produce 2 tensors, but get 1",
        ),
        (
            "PartitionedCall[Tin=int32; Tout=int32; f=ToReal](x)",
            errors.InternalError,
            "Expect 0-th output is of type int32 but get float32",
        ),
        (
            "PartitionedCall[Tin=int32|int32; Tout=int32; f=Same](x, x)",
            errors.InvalidArgumentError,
            "Expects 1 arguments, but 2 is provided",
        ),
        (
            "PartitionedCall[Tin=bool; Tout=int32; f=Same](p)",
            errors.InvalidArgumentError,
            r"Expects arg\[0\] to be int32 but bool",
        ),
        (
            "PartitionedCall[Tin=int32; Tout=int32; f=Nope](x)",
            errors.NotFoundError,
            "Function Nope is not defined",
        ),
        (
            "PartitionedCall[Tin=int32; Tout=int32; f=Same; executor_type=Nope](x)",
            errors.NotFoundError,
            "No executor factory registered for the given executor type: Nope",
        ),
        (
            "RemoteCall[Tin=int32; Tout=int32; f=Nothing](target, x)",
            errors.InternalError,
            "Expect to produce 1 tensors, but get 0",
        ),
        (
            "If[Tcond=bool; Tin=int32; Tout=int32; then_branch=Pair; else_branch=Same](p, x)",
            errors.InternalError,
            "Expect to produce 1 tensors, but get 2",
        ),
        (
            "If[Tcond=bool; Tin=int32; Tout=int32; then_branch=ToReal; else_branch=Same](p, x)",
            errors.InternalError,
            "Expect 0-th output is of type int32 but get float32",
        ),
        (
            "Case[Tin=int32; Tout=int32; branches=Same|Nothing](x, x)",
            errors.InternalError,
            "Expect to produce 1 tensors, but get 0",
        ),
        (
            "While[T=int32; cond=YesYes; body=Same](x)",
            errors.InvalidArgumentError,
            "Expected a single scalar return value from WhileOp cond, got 2 tensors",
        ),
        (
            "While[T=int32; cond=Yes; body=Pair](x)",
            errors.InvalidArgumentError,
            "While loop body returned 2 arguments. Expected: 1",
        ),
        (
            "While[T=int32; cond=Yes; body=ToReal](x)",
            errors.InvalidArgumentError,
            r"Expects arg\[0\] to be int32 but float32",
        ),
        (
            "For[T=int32; body=PairOfTwo](zero, x, x, x)",
            errors.InvalidArgumentError,
            "For loop body returned 2 arguments. Expected: 1",
        ),
    ],
)
def test_functions_that_do_not_fit(call: str, error: type[Exception], message: str) -> None:
    """Too many or too few arguments or results, or of wrong types, are told apart."""
    graph = f"""
        x = Const[value=1; dtype=int32]
        zero = Const[value=0; dtype=int32]
        p = Const[value=True; dtype=bool]
        target = Const[value={CPU_0}; dtype=string]
        r = {call}
    """
    pair = "\n\nPairOfTwo(i: int32, x: int32) -> (y: int32, z: int32)\nreturn y = x\nreturn z = i"
    with pytest.raises(error, match=message):
        run(graph, RESULTS + pair, "r:0")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("Nope", errors.NotFoundError, "Function Nope is not defined"),
        ("Broken", errors.InvalidArgumentError, "input nowhere is not found"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        "If[Tcond=bool; Tin=int32; Tout=int32; then_branch=Same; else_branch={}](p, x)",
        "Case[Tin=int32; Tout=int32; branches=Same|{}](zero, x)",
        "While[T=int32; cond=No; body={}](x)",
        "For[T=int32; body={}](zero, zero, x, x)",
    ],
)
def test_functions_that_are_not_called_must_be_right(
    call: str, function: str, error: type[Exception], message: str
) -> None:
    """All functions of a node must be there and whole, also those that do not run."""
    functions = f"""{RESULTS}

        No(x: int32) -> (go: bool)
        no = Const[value=False; dtype=bool]
        return go = no:output

        Broken(x: int32) -> (y: int32)
        y = Neg[T=int32](nowhere)
        return y = y:y
    """
    graph = f"""
        x = Const[value=1; dtype=int32]
        zero = Const[value=0; dtype=int32]
        p = Const[value=True; dtype=bool]
        r = {call.format(function)}
    """
    with pytest.raises(error, match=message):
        run(graph, functions, "r:0")


def test_bad_loops_inside_functions() -> None:
    """A loop that makes no sense is found when the function is called."""
    functions = """
        Wrong(x: float32) -> (y: float32)
        enter = Enter[frame_name=f](x)
        y = Add(enter:output, x)
        return y = y:z
    """
    graph = "x = Const[value=1]\nr = Wrong(x)"
    with pytest.raises(errors.InvalidArgumentError, match="inputs from different frames"):
        run(graph, functions, "r:0")


# -- devices, state, threads -----------------------------------------------------------------


def test_functions_on_two_devices() -> None:
    """A function runs where the node that calls it is."""
    graph = """
        x = Placeholder
        a = Thrice(x) @/device:CPU:0
        b = PartitionedCall[Tin=float32; Tout=float32; f=Thrice](a) @/device:CPU:1
        bad = Outer(b) @/device:CPU:1
    """
    config = Config(device_count={"CPU": 2}, check_outputs=True)
    with session_with(graph, THRICE + "\n" + BAD, config=config) as session:
        assert session.run("b:0", {"x:0": 2.0}) == 18
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run("bad:0", {"x:0": 2.0})

    assert caught.value.device == CPU_0.replace("CPU:0", "CPU:1")


def make_tick(_attrs: Any) -> Kernel:
    """A kernel that counts its own calls."""
    count = 0
    lock = threading.Lock()

    def tick() -> Any:
        nonlocal count
        with lock:
            count += 1
            return np.int32(count)

    return tick


TICK = """
Ticks() -> (n: int32) stateful
n = Tick
return n = n:n
"""


def test_functions_keep_their_state(way: str) -> None:
    """A stateful node of a body goes on from run to run.

    What is called goes on from call to call as well; what is inlined does so for each call.
    """
    graph = """
        a = StatefulPartitionedCall[Tin=; Tout=int32; f=Ticks]
        b = StatefulPartitionedCall[Tin=; Tout=int32; f=Ticks](^a)
        own = Tick
    """
    with custom_kernels("Tick() -> (n: int32) stateful"):
        kernel("Tick")(make_tick)
        with session_with(graph, TICK, config=CONFIG) as session:
            first, second = ([1, 2], [3, 4, 1]) if way == "called" else ([1, 1], [2, 2, 1])
            assert session.run(["a:0", "b:0"]) == first
            assert session.run(["a:0", "b:0", "own:0"]) == second
        with session_with(graph, TICK, config=CONFIG) as session:
            assert session.run("a:0") == 1


def test_variables_inside_functions() -> None:
    """A variable that is made inside a function outlives the call."""
    functions = """
        Count() -> (n: float32) stateful
        v = VarHandleOp[dtype=float32; shape=; shared_name=count]
        one = Const[value=1]
        add = AssignAddVariableOp[dtype=float32](v:resource, one:output)
        n = ReadVariableOp[dtype=float32](v:resource, ^add)
        return n = n:value
    """
    graph = """
        v = VarHandleOp[dtype=float32; shape=; shared_name=count]
        zero = Const[value=0]
        init = AssignVariableOp[dtype=float32](v, zero)
        n = Count
    """
    with session_with(graph, functions, config=CONFIG) as session:
        session.run("init")

        assert [session.run("n:0") for _ in range(3)] == [1, 2, 3]


def test_first_calls_from_several_threads() -> None:
    """Eight threads that call a function for the first time share one body and its state."""
    graph = "n = StatefulPartitionedCall[Tin=; Tout=int32; f=Ticks]"
    start = threading.Barrier(8)
    with custom_kernels("Tick() -> (n: int32) stateful"):
        kernel("Tick")(make_tick)
        with session_with(graph, TICK, config=CONFIG) as session:

            def first(_: int) -> int:
                start.wait()
                return int(session.run("n:0"))

            with ThreadPoolExecutor(8) as pool:
                seen = sorted(pool.map(first, range(8)))

    assert seen == list(range(1, 9))


def test_closed_sessions_run_no_functions() -> None:
    """What holds for graphs holds for their functions: a closed session runs nothing."""
    session: Session = session_with("x = Const[value=1]\nr = Thrice(x)", THRICE)
    session.close()
    with pytest.raises(errors.CancelledError):
        session.run("r:0")


def test_attributes_made_for_one_call_are_not_taken_for_those_of_another() -> None:
    """A kernel may make attributes anew for every call, wherever in memory they come to lie."""
    types = {np.float32: dtypes.float32, np.int64: dtypes.int64, np.complex64: dtypes.complex64}
    graph = "n = Placeholder[dtype=int32]\nout = FuTwice[Tout=$](n)"
    row = "FuTwice(i: int32) -> (o: Tout) [Tout: type]"
    with custom_kernels(row) as register:

        def compute(context: OpKernelContext, done: Done, number: np.int32) -> None:
            kind = list(types)[number % 3]

            def finished(results: Any) -> None:
                done(results if isinstance(results, Exception) else np.float32(results[0].real))

            functions = context.step.functions
            assert functions is not None
            functions.call("Twice", {"T": types[kind]}, [kind(number)], context, finished)

        register("FuTwice", compute, "async")
        with session_with(graph.replace("$", "float32"), TWICE, config=CONFIG) as session:
            answers = [session.run("out:0", {"n:0": np.int32(i)}) for i in range(60)]

    assert answers == [2 * i for i in range(60)]


def test_no_more_call_sites_are_kept_than_one_can_bear() -> None:
    """Calls from more sites than are kept give the same."""
    config = dataclasses.replace(CONFIG, limits=Limits(known_call_sites=2))
    graph = "x = Placeholder\n" + "\n".join(
        f"c{i} = PartitionedCall[Tin=float32; Tout=float32; f=Twice{{T=float32}}](x)"
        for i in range(5)
    )

    assert (
        run(graph, TWICE, [f"c{i}:0" for i in range(5)], {"x:0": np.float32(3)}, config=config)
        == [6] * 5
    )
