"""An error says what happened, where, and of which kind."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from support.custom import custom_kernels
from support.loops import counting_loop
from support.sketch import sketch


def failure(text: str, fetch: str, feeds: Any = None, **config: Any) -> errors.OpError:
    """The error of one run."""
    with ps.Session(sketch(text), config=ps.Config(**config)) as session:
        with pytest.raises(errors.OpError) as caught:
            session.run(fetch, feeds)
        return caught.value


def test_an_error_names_the_node() -> None:
    """Code, node, op and device are fields, and all of them are in the text."""
    text = "a = Const() value=[1.0, 2.0]\nb = Const() value=[1.0, 2.0, 3.0]\nscope/sum = Add(a, b)"
    error = failure(text, "scope/sum:0")
    assert type(error) is errors.InvalidArgumentError
    assert error.code is errors.Code.INVALID_ARGUMENT
    assert error.node_name == "scope/sum"
    assert error.op_type == "Add"
    assert error.device == "/job:localhost/replica:0/task:0/device:CPU:0"
    for part in ("[[{{node scope/sum}}]]", "(Add)", "CPU:0", "Incompatible shapes: [2] vs. [3]"):
        assert part in str(error)
    assert isinstance(error.__cause__, ValueError)


def test_errors_can_be_pickled() -> None:
    """An error can be sent to another process with all its facts."""
    error = failure("x = Placeholder() dtype=float32\ny = Neg(x)", "y:0")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.node_name, again.message) == (error.node_name, error.message)


def test_an_error_in_a_loop_names_the_iteration() -> None:
    """Frame and iteration are part of the place."""

    def fail_at_three(x: Any) -> Any:
        if x == 3:
            raise ValueError("three")
        return x

    with custom_kernels("ExThree(x: int32) -> (y: int32)") as register:
        register("ExThree", fail_at_three)
        text = counting_loop().replace("sum = Add(body", "bad = ExThree(body)\nsum = Add(bad")
        error = failure(text, "exit:0", {"limit": 10})
    assert error.where is not None
    assert (error.where.frame, error.where.iteration) == ("loop", 3)


def test_the_same_error_object_is_not_given_twice() -> None:
    """A kernel that raises one and the same error object does not spoil it for later runs."""
    shared = errors.DataLossError("shared")

    def fail(_x: Any) -> None:
        raise shared

    with custom_kernels("ExFail(x: float32) -> (y: float32)") as register:
        register("ExFail", fail)
        first = failure("x = Const() value=1.0\none = ExFail(x)", "one")
        second = failure("x = Const() value=1.0\ntwo = ExFail(x)", "two")
    assert (first.node_name, second.node_name) == ("one", "two")
    assert shared.node_name is None


def test_a_dead_fetch_names_switch_and_predicate() -> None:
    """A fetch on the side not taken says which Switch and predicate killed it."""
    text = """
        p = Placeholder() dtype=bool
        x = Const() value=1.0
        choose = Switch(x, p)
        a = Neg(choose:1)
        b = Neg(a)
    """
    for fetch in ("b:0", "choose:1"):
        error = failure(text, fetch, {"p": False})
        assert type(error) is errors.InvalidArgumentError
        assert error.node_name == fetch.partition(":")[0]
        for part in (
            "Retval[0] does not have value",
            "output 1 of Switch 'choose'",
            "predicate 'p' was false",
        ):
            assert part in str(error)


def test_a_dead_fetch_is_counted_among_all() -> None:
    """The index is that of the dead fetch among those that the step computes."""
    text = "p = Const() value=True\nx = Const() value=1.0\ns = Switch(x, p)"
    assert "Retval[1] does not" in str(failure(text, ["x:0", "s:0", "s:1"]))  # type: ignore[arg-type]


def test_what_has_no_kernel_harms_nobody_who_does_not_need_it() -> None:
    """A graph with nodes that no kernel supports runs as long as they are not needed."""
    with custom_kernels("ExNothing(x: float32) -> (y: float32)"):
        text = "x = Const() value=1.0\nstrange = ExNothing(x)\nneeds = Neg(strange)\ny = Neg(x)"
        with ps.Session(sketch(text)) as session:
            assert session.run("y:0") == -1.0
            with pytest.raises(
                errors.InvalidArgumentError, match="No OpKernel was regis"
            ) as caught:
                session.run("needs:0")
            assert caught.value.node_name == "strange"
            assert session.run("needs:0", {"strange": 3.0}) == -3.0


def test_an_unfed_placeholder_says_what_it_wants() -> None:
    """Type and shape of a missing placeholder are in the message."""
    error = failure("x = Placeholder() dtype=int64 shape=[2,-1]\ny = Identity(x)", "y:0")
    assert "You must feed a value for placeholder tensor 'x' with dtype int64" in str(error)
    assert "[2,?]" in str(error)


def test_an_empty_graph_says_so() -> None:
    """Running an empty graph is refused with words."""
    with ps.Session(ps.Graph()) as session:
        with pytest.raises(errors.InvalidArgumentError, match="graph is empty"):
            session.run("x:0")
        assert session.run([]) == []


@pytest.mark.parametrize("graph", [b"\xff\xff\xff", "/no/such/file.pb", 3, None, ["x"], "/"])
def test_what_is_no_graph_is_refused(graph: Any) -> None:
    """A session on something that is no graph is not made."""
    with pytest.raises(errors.OpError):
        ps.Session(graph)


def test_an_error_does_not_spoil_the_session() -> None:
    """After an error the next run gives its answer."""
    text = "x = Placeholder() dtype=float32\ny = Placeholder() dtype=float32\ns = Add(x, y)"
    with ps.Session(sketch(text)) as session:
        for _ in range(3):
            with pytest.raises(errors.InvalidArgumentError):
                session.run("s:0", {"x": np.zeros(2), "y": np.zeros(3)})
            assert session.run("s:0", {"x": 1, "y": 2}) == 3.0


def test_errors_on_two_devices_are_one_error() -> None:
    """An error on one device is reported, not the consequences on the others."""

    def fail(_x: Any) -> None:
        raise ValueError("no good")

    with custom_kernels("ExFail(x: float32) -> (y: float32)") as register:
        register("ExFail", fail)
        text = """
            x = Placeholder() dtype=float32
            bad = ExFail(x) device="/device:CPU:1"
            y = Neg(bad) device="/device:CPU:0"
            z = Neg(y) device="/device:CPU:1"
        """
        for threads in (1, 4):
            error = failure(
                text,
                "z:0",
                {"x": 1.0},
                device_count={"CPU": 2},
                inter_op_parallelism_threads=threads,
                offload_seconds=0.0,
            )
            assert type(error) is errors.InvalidArgumentError
            assert error.node_name == "bad"
            assert error.device is not None
            assert error.device.endswith("CPU:1")
            assert "root error" not in str(error)
