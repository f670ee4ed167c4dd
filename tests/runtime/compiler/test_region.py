"""Whatever happens in compiled code happens where the executor would say that it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.config import GraphOptions
from penstock.runtime.compiler import compile_regions
from support.compiled import leaving_out
from support.custom import custom_kernels
from support.functions import graph_def_with
from support.loops import NESTED_LOOPS, counting_loop
from support.sketch import sketch

FAIL = "ExFail(x: int32) -> (y: int32)"
WHERE = "ExWhere(x: int32) -> (y: int32)"


def fail_at(value: int) -> Callable[[Any], Any]:
    """A kernel that hands on whatever is not ``value``."""

    def fail(x: Any) -> Any:
        if x == value:
            raise ValueError("no good")
        return x

    return fail


def failure(graph: Any, fetch: str, feeds: Any, tier: ps.Tier) -> errors.OpError:
    """The error of one run, in which nothing is optimised."""
    config = ps.Config(tier=tier, graph_options=GraphOptions.nothing())
    with (
        ps.Session(sketch(graph) if isinstance(graph, str) else graph, config=config) as session,
        pytest.raises(errors.OpError) as caught,
    ):
        session.run(fetch, feeds)
    return caught.value


STRAIGHT = "x = Placeholder() dtype=int32\na = Neg(x)\nbad = ExFail(a)\nb = Neg(bad)"
BRANCH = """
    x = Placeholder() dtype=int32
    p = Const() value=True
    s = Switch(x, p)
    bad = ExFail(s:1)
    other = Neg(s)
    m = Merge(other, bad)
    b = Neg(m)
"""
COUNT = counting_loop().replace("sum = Add(body", "bad = ExFail(body)\nsum = Add(bad")
NESTED = NESTED_LOOPS.replace("s_sum = Add(s_body", "bad = ExFail(j_body)\ns_sum = Add(bad")
CONDITION = counting_loop().replace("less = Less(merge", "bad = ExFail(merge)\nless = Less(bad")
#: Graphs with a node ``bad``, the value that it fails at, and the frame and iteration of that.
PLACES: dict[str, tuple[str, str, dict[str, int], int, str, int]] = {
    "straight": (STRAIGHT, "b:0", {"x": 3}, -3, "", 0),
    "branch": (BRANCH, "b:0", {"x": 3}, 3, "", 0),
    "loop": (COUNT, "exit:0", {"limit": 9}, 5, "loop", 5),
    "condition": (CONDITION, "exit:0", {"limit": 4}, 4, "loop", 4),
    # The inner loop of iteration 3 has six iterations, numbers 0 to 5.
    "nested": (NESTED, "total:0", {"outer": 9, "inner": 2}, 5, "outer[3]/inner", 5),
}


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("place", PLACES)
def test_an_error_names_node_frame_and_iteration(place: str, tier: ps.Tier) -> None:
    """Node, op, device, frame and iteration are the same on both tiers."""
    text, fetch, feeds, value, frame, iteration = PLACES[place]
    with custom_kernels(FAIL) as register:
        register("ExFail", fail_at(value))
        error = failure(text, fetch, feeds, tier)
    assert type(error) is errors.InvalidArgumentError
    assert (error.node_name, error.op_type) == ("bad", "ExFail")
    assert error.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert error.where is not None
    assert (error.where.frame, error.where.iteration) == (frame, iteration)
    assert isinstance(error.__cause__, ValueError)


@pytest.mark.parametrize("odd", ["i_sum", "bound", "t_next"])
def test_regions_in_a_loop_of_the_executor_know_their_iteration(
    odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compiled within an irregular loop names that loop's iteration in errors, too."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out(odd))
    text, fetch, feeds, value, frame, iteration = PLACES["nested"]
    with custom_kernels(FAIL) as register:
        register("ExFail", fail_at(value))
        where = failure(text, fetch, feeds, ps.Tier.COMPILED).where
    assert where is not None
    assert (where.node, where.frame, where.iteration) == ("bad", frame, iteration)


@pytest.mark.parametrize("odd", ["", "one", "i_sum", "j_sum", "j_one"])
@pytest.mark.parametrize("tier", ps.Tier)
def test_kernels_are_told_their_frame(
    odd: str, tier: ps.Tier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel with a context sees the same frame and iteration, whoever calls it."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out(odd))
    seen: set[tuple[str, str, int]] = set()

    def where(context: Any, x: Any) -> Any:
        seen.add((context.frame.name, context.frame.label, context.iteration))
        return x

    text = NESTED_LOOPS.replace("s_sum = Add(s_body", "at = ExWhere(j_body)\ns_sum = Add(at")
    with custom_kernels(WHERE) as register:
        register("ExWhere", where, "context")
        config = ps.Config(tier=tier, graph_options=GraphOptions.nothing())
        with ps.Session(sketch(text), config=config) as session:
            session.run("total:0", {"outer": 3, "inner": 2})
    assert seen == {
        (f";0;outer;{i};inner", f"outer[{i}]/inner", j) for i in range(3) for j in range(2 * i)
    }


@pytest.mark.parametrize("odd", ["", "one", "i_sum", "j_one"])
@pytest.mark.parametrize("tier", ps.Tier)
def test_temporary_variables_of_iterations_do_not_meet(
    odd: str, tier: ps.Tier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each iteration of each loop has a temporary variable of its own."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out(odd))
    text = NESTED_LOOPS.replace(
        "s_sum = Add(s_body, j_one)",
        """
        temporary = TemporaryVariable(^j_body) dtype=int32 shape=[]
        set = Assign(temporary, s_body)
        got = DestroyTemporaryVariable(set) var_name="temporary"
        s_sum = Add(got, j_one)
        """,
    )
    config = ps.Config(tier=tier, graph_options=GraphOptions.nothing())
    with ps.Session(sketch(text), config=config) as session:
        for _ in range(2):
            total = session.run("total:0", {"outer": 4, "inner": 3})
            assert total == sum(3 * i for i in range(4))


CALLER = "x = Const[value=3; dtype=int32]\ny = PartitionedCall[Tin=int32; Tout=int32; f=Body](x)"
BODY = """
    Body(x: int32) -> (y: int32)
    a = Neg[T=int32](x)
    bad = FloorDiv[T=int32](a:y, zero:output)
    zero = Const[value=0; dtype=int32]()
    return y = bad:z
"""


@pytest.mark.parametrize("tier", ps.Tier)
def test_an_error_in_a_function_names_the_function(tier: ps.Tier) -> None:
    """The innermost node is named, and the function whose body it is in."""
    error = failure(graph_def_with(CALLER, BODY), "y:0", {}, tier)
    assert (error.node_name, error.op_type) == ("bad", "FloorDiv")
    assert error.where is not None
    assert error.where.function == "Body"


def test_what_comes_after_an_error_is_not_run() -> None:
    """A region ends with its first error; the executor would let independent nodes go on."""
    text = "x = Placeholder() dtype=int32\nbad = ExFail(x)\nnote = ExWhere(x)\nb = Add(bad, note)"
    ran: list[str] = []

    def fail(_x: Any) -> None:
        ran.append("bad")
        raise ValueError("no good")

    def note(x: Any) -> Any:
        ran.append("note")
        return x

    with custom_kernels(FAIL, WHERE) as register:
        register("ExFail", fail)
        register("ExWhere", note)
        for tier, want in ((ps.Tier.DATAFLOW, ["bad", "note"]), (ps.Tier.COMPILED, ["bad"])):
            ran.clear()
            assert failure(text, "b:0", {"x": 1}, tier).node_name == "bad"
            assert sorted(ran) == want


def test_the_error_of_a_kernel_is_not_changed() -> None:
    """An error object that a kernel raises twice is told its place in copies only."""
    shared = errors.DataLossError("shared")

    def fail(_x: Any) -> None:
        raise shared

    with custom_kernels(FAIL) as register:
        register("ExFail", fail)
        found = [failure(STRAIGHT, "b:0", {"x": 1}, tier) for tier in ps.Tier]
    assert [error.node_name for error in found] == ["bad", "bad"]
    assert shared.where is None


@pytest.mark.parametrize("tier", ps.Tier)
def test_an_output_of_a_users_kernel_is_checked(tier: ps.Tier) -> None:
    """A kernel that is not Penstock's own is caught at a wrong type."""
    with custom_kernels(FAIL) as register:
        register("ExFail", lambda _x: np.float64(1))
        error = failure(STRAIGHT, "b:0", {"x": 3}, tier)
    assert isinstance(error, errors.InternalError)
    assert error.node_name == "bad"
    assert "does not match declared output type int32" in error.message


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_switch_by_a_tensor_is_refused(tier: ps.Tier) -> None:
    """The predicate of a Switch is one boolean; the Switch is named."""
    text = """
        p = Placeholder() dtype=bool
        x = Const() value=1
        s = Switch(x, p)
        m = Merge(s, s:1)
        y = Neg(m)
    """
    error = failure(text, "y:0", {"p": [True, False]}, tier)
    assert isinstance(error, errors.InvalidArgumentError)
    assert error.node_name == "s"


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(
    ("reader", "node"), [("y = Neg(v)", "y"), ("read = Identity(v)\ny = Neg(read)", "read")]
)
def test_a_variable_without_a_value(reader: str, node: str, tier: ps.Tier) -> None:
    """Who reads a variable before it has a value is named, and so is the variable."""
    error = failure(f"v = VariableV2() dtype=float32 shape=[]\n{reader}", "y:0", {}, tier)
    assert isinstance(error, errors.FailedPreconditionError)
    assert error.node_name == node
    assert "Attempting to use uninitialized value v" in error.message
