"""Kernels that users register: what they may do, and what they are caught at."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.values import DEAD
from penstock.kernels.api.context import OpKernelContext
from penstock.runtime import ExecutorArgs
from penstock.state.step_state import StepState
from support.custom import custom_kernels
from support.sketch import executor_of, sketch

PAIR = "ExPair(x: float32) -> (a: float32, b: int32)"
ONE = "ExOne(x: float32) -> (y: float32)"
NONE = "ExNone(x: float32) -> ()"
MANY = "ExMany(x: float32) -> (y: N*float32) [N: int]"


def run(text: str, fetch: str) -> Any:
    """Run a small graph in a session."""
    with ps.Session(sketch(text)) as session:
        return session.run(fetch)


def give(value: Any) -> Callable[..., Any]:
    """A kernel that returns ``value``."""
    return lambda *_inputs: value


def finish(value: Any) -> Callable[..., None]:
    """An asynchronous kernel that is done with ``value`` at once."""
    return lambda _context, done, *_inputs: done(value)


def test_a_plain_kernel() -> None:
    """A function of arrays is a kernel."""
    with custom_kernels(ONE, PAIR) as register:
        register("ExOne", lambda x: x + np.float32(1))
        register("ExPair", lambda x: (x, np.int32(x)))
        graph = "x = Const() value=2.5\none = ExOne(x)\npair = ExPair(one)"
        assert run(graph, "one:0") == 3.5
        assert run(graph, "pair:1") == 3


def test_a_kernel_with_a_list_of_outputs() -> None:
    """An op with a list output returns a tuple, also if the list has one element."""
    with custom_kernels(MANY) as register:
        register("ExMany", lambda x: (x, x))
        assert run("x = Const() value=1.0\nm = ExMany(x) N=2", "m:1") == 1.0
        with pytest.raises(errors.InternalError, match="returned 2 outputs"):
            run("x = Const() value=1.0\nm = ExMany(x) N=1", "m:0")


@pytest.mark.parametrize("calling", ["plain", "async"])
@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (ONE, None, "Missing 0-th output from {{node bad}}"),
        (ONE, DEAD, "Missing 0-th output"),
        (ONE, np.float64(1), "Output 0 of type float64"),
        (ONE, 1.0, "Output 0"),
        (ONE, [1.0], "Output 0"),
        (ONE, (np.float32(1),), "Output 0"),
        (PAIR, None, "Missing 0-th output"),
        (PAIR, (), "Missing 0-th output"),
        (PAIR, (np.float32(1),), "Missing 1-th output"),
        (PAIR, (np.float32(1), None), "Missing 1-th output"),
        (PAIR, (np.int32(1), np.int32(1)), "Output 0 of type int32"),
        (PAIR, (np.float32(1), np.int32(1), np.int32(1)), "returned 3 outputs, the op has 2"),
        (PAIR, np.float32(1), "not a tuple of 2 outputs"),
        (PAIR, np.ones(2, np.float32), "not a tuple of 2 outputs"),
        (PAIR, 5, "returned int"),
        (NONE, 5, "not a tuple"),
        (NONE, (np.float32(1),), "returned 1 outputs, the op has 0"),
    ],
)
def test_wrong_outputs_are_internal_errors(
    row: str, value: Any, message: str, calling: str
) -> None:
    """A kernel that forgets an output, or returns something else, is caught, and named."""
    op = row.partition("(")[0]
    with custom_kernels(row) as register:
        register(op, finish(value) if calling == "async" else give(value), calling)
        with pytest.raises(errors.InternalError) as caught:
            run(f"x = Const() value=1.0\nbad = {op}(x)", "bad")
    assert message in str(caught.value)
    assert caught.value.node_name == "bad"


def test_a_kernel_without_outputs_may_return_nothing() -> None:
    """An op without outputs returns None or an empty tuple."""
    for value in (None, ()):
        with custom_kernels(NONE) as register:
            register("ExNone", give(value))
            assert run("x = Const() value=1.0\nn = ExNone(x)", "n") is None


def make_none(_attrs: Any) -> None:
    """A maker without a ``return``."""


def make_number(_attrs: Any) -> int:
    """A maker that returns what its kernel should."""
    return 3


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(
    ("maker", "returned"),
    [(make_none, "returned nothing"), (make_number, "returned a int, which cannot be called")],
)
def test_makers_that_return_no_kernel(maker: Any, returned: str, tier: ps.Tier) -> None:
    """The error names the op, the node and the maker, and says what a maker returns."""
    with custom_kernels(ONE):
        ps.kernel("ExOne")(maker)
        text = "x = Const() value=1.0\nbad = ExOne(x)"
        with ps.Session(sketch(text), config=ps.Config(tier=tier)) as session:
            with pytest.raises(errors.InternalError) as caught:
                session.run("bad:0")
            assert session.run("x:0") == 1.0
    told = str(caught.value)
    assert f"{maker.__name__} in {__name__}, which makes kernels of Op 'ExOne', {returned}" in told
    assert "{{node bad}}" in told
    assert "returns the function that computes" in told


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (ValueError("v"), errors.InvalidArgumentError),
        (TypeError("t"), errors.InvalidArgumentError),
        (ZeroDivisionError("z"), errors.InvalidArgumentError),
        (NotImplementedError("n"), errors.UnimplementedError),
        (MemoryError("m"), errors.ResourceExhaustedError),
        (FileNotFoundError("f"), errors.NotFoundError),
        (RuntimeError("r"), errors.InternalError),
        (RecursionError("d"), errors.InternalError),
        (AssertionError("a"), errors.InternalError),
        (StopIteration("s"), errors.InternalError),
        (errors.DataLossError("d"), errors.DataLossError),
    ],
)
@pytest.mark.parametrize("calling", ["plain", "context", "async"])
def test_what_kernels_raise_is_canonical(
    cause: Exception, kind: type[errors.OpError], calling: str
) -> None:
    """Every Python exception of a kernel becomes an OpError that names the node."""

    def crash(*_args: Any) -> None:
        raise cause

    with custom_kernels(ONE) as register:
        register("ExOne", crash, calling)
        for _ in range(2):  # the second run is told the same
            with pytest.raises(kind) as caught:
                run("x = Const() value=1.0\nbad = ExOne(x)", "bad")
            assert type(caught.value) is kind
            assert caught.value.node_name == "bad"
            assert str(cause) in str(caught.value)


def test_an_asynchronous_kernel_may_finish_on_another_thread() -> None:
    """Its outputs are taken wherever and whenever ``done`` is called."""
    go = threading.Event()

    def later(_context: OpKernelContext, done: Any, x: Any) -> None:
        def work() -> None:
            go.wait(5.0)
            done(x * np.float32(2))

        threading.Thread(target=work).start()

    with custom_kernels(ONE) as register:
        register("ExOne", later, "async")
        graph = sketch("x = Const() value=2.0\ny = ExOne(x)\nz = Neg(y)\nw = ExOne(z)")
        with ps.Session(graph) as session:
            pending = session.run_async("w:0")
            assert not pending.is_done()
            go.set()
            assert pending.result(5.0) == -8.0


def test_done_may_be_called_inside_the_kernel() -> None:
    """A kernel that need not wait calls ``done`` before it returns."""
    with custom_kernels(ONE) as register:
        register("ExOne", lambda _context, done, x: done(x + np.float32(1)), "async")
        rows = ["y0 = Const() value=0.0"]
        rows += [f"y{i + 1} = ExOne(y{i})" for i in range(2000)]
        assert run("\n".join(rows), "y2000:0") == 2000.0


def test_done_is_heard_once() -> None:
    """A second call of ``done`` changes nothing, whichever thread it comes from."""

    def twice(_context: OpKernelContext, done: Any, x: Any) -> None:
        done(x)
        done(x + np.float32(1))
        thread = threading.Thread(target=done, args=(ValueError("late"),))
        thread.start()
        thread.join()

    with custom_kernels(ONE) as register:
        register("ExOne", twice, "async")
        assert run("x = Const() value=2.0\ny = ExOne(x)\nz = Neg(y)", "z:0") == -2.0


def test_an_error_after_done_changes_nothing() -> None:
    """A kernel that raises after it called ``done`` has said what it had to say."""

    def confused(_context: OpKernelContext, done: Any, x: Any) -> None:
        done(x)
        raise RuntimeError("too late")

    with custom_kernels(ONE) as register:
        register("ExOne", confused, "async")
        assert run("x = Const() value=2.0\ny = ExOne(x)\nz = Neg(y)", "z:0") == -2.0


@pytest.mark.parametrize("value", [ValueError("v"), errors.DataLossError("d")])
def test_done_takes_errors(value: Exception) -> None:
    """An exception given to ``done`` is as good as one that is raised."""
    with custom_kernels(ONE) as register:
        register("ExOne", finish(value), "async")
        with pytest.raises(errors.OpError) as caught:
            run("x = Const() value=1.0\nbad = ExOne(x)", "bad")
    assert caught.value.node_name == "bad"
    assert str(value) in str(caught.value)


def test_many_asynchronous_kernels_finish_in_any_order() -> None:
    """A hundred kernels that finish on eight threads, last first, are all heard."""
    waiting: list[tuple[Any, Any]] = []

    def hold(_context: OpKernelContext, done: Any, x: Any) -> None:
        waiting.append((done, x))
        if len(waiting) == 100:
            for start in range(8):
                threading.Thread(target=release, args=(waiting[start::8],)).start()

    def release(held: list[tuple[Any, Any]]) -> None:
        for done, x in reversed(held):
            done(x)

    rows = [f"c{i} = Const() value={float(i)}\nh{i} = ExOne(c{i})" for i in range(100)]
    rows.append(f"sum = AddN({', '.join(f'h{i}' for i in range(100))})")
    with custom_kernels(ONE) as register:
        register("ExOne", hold, "async")
        assert run("\n".join(rows), "sum:0") == 4950.0


def test_a_kernel_knows_where_it_stands() -> None:
    """The context tells node, op, device, step, frame and iteration."""
    seen: list[tuple[Any, ...]] = []

    def note(context: OpKernelContext, x: Any) -> Any:
        seen.append(
            (
                context.node_name,
                context.op,
                context.step.device[-5:],
                context.frame.name,
                context.iteration,
                context.is_input_dead,
            )
        )
        return x

    with custom_kernels(ONE) as register:
        register("ExOne", note, "context")
        executor = executor_of("x = Const() value=1.0\nhere = ExOne(x)")
        executor.run(ExecutorArgs(StepState(id=7)))
    assert seen == [("here", "ExOne", "CPU:0", "", 0, False)]


def test_a_kernel_may_run_a_session() -> None:
    """A kernel may use Penstock itself, another session or its own."""
    with (
        ps.Session(sketch("a = Const() value=3.0\nb = Neg(a)")) as inner,
        custom_kernels(ONE) as register,
    ):
        register("ExOne", lambda x: x * inner.run("b:0"))
        assert run("x = Const() value=2.0\ny = ExOne(x)", "y:0") == -6.0


def test_kernels_of_a_kind_are_found_by_type() -> None:
    """Of several kernels of an op, the one for the node's types is called."""
    with custom_kernels("ExTyped(x: T) -> (y: T) [T: type]"):
        for dtype, factor in ((ps.dtypes.float32, 2), (ps.dtypes.int32, 3)):
            ps.kernel("ExTyped", types={"T": {dtype}})(
                lambda _attrs, factor=factor: lambda x: x * x.dtype.type(factor)
            )
        assert run("x = Const() value=2.0\ny = ExTyped(x)", "y:0") == 4.0
        assert run("x = Const() value=2\ny = ExTyped(x)", "y:0") == 6
        with pytest.raises(errors.InvalidArgumentError, match="No OpKernel was registered"):
            run("x = Const() value=True\ny = ExTyped(x)", "y:0")


def test_state_of_a_kernel_lives_as_long_as_the_session() -> None:
    """A stateful op has one kernel per session and node, shared by all requests."""
    with custom_kernels("ExCount() -> (n: int32) stateful") as register:
        del register

        @ps.kernel("ExCount")
        def make(_attrs: Any) -> Any:
            count = iter(range(1000))
            return lambda: np.int32(next(count))

        graph = sketch("n = ExCount()\nm = Neg(n)\nother = ExCount()")
        with ps.Session(graph) as session:
            assert session.run("n:0") == 0
            assert session.run("m:0") == -1
            assert session.run(["other:0", "n:0"]) == [0, 2]
        with ps.Session(graph) as session:
            assert session.run("n:0") == 0
