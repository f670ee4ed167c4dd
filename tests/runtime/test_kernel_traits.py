"""What authors say of their kernels, and what is assumed of those who say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.cli.python_text import python_text
from penstock.core.values import Value
from penstock.graph.graph import Node
from penstock.kernels.api import registry
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import kernels_of, ops_with_kernels
from penstock.kernels.api.traits import KernelTraits
from penstock.passes.tell_apart import NOTHING, tell_apart
from penstock.runtime import KernelBinder
from support.custom import custom_kernels
from support.sketch import CPU, sketch

ROWS = (
    "TrWhere(x: int64) -> (y: int64)",
    "TrPass(x: float32) -> (y: float32)",
    "TrTurned(x: float32) -> (y: int32)",
    "TrHandle() -> (handle: resource) stateful",
)
TIERS = [ps.Tier.DATAFLOW, ps.Tier.COMPILED]


@pytest.fixture(autouse=True)
def _ops() -> Iterator[None]:
    """The ops of these tests, and their kernels, go with the test."""
    with custom_kernels(*ROWS):
        yield


def where(context: OpKernelContext, x: Value) -> Value:
    """A number that tells iterations, and those around them, apart."""
    label = context.frame.label
    around = int(found[1]) if (found := re.search(r"\[(\d+)\]", label)) else -1
    return np.int64(x * 1000 + around * 10 + context.iteration)


def nested() -> tuple[ps.Graph, Any]:
    """A loop in a loop, in which each iteration adds where it is."""
    graph = ps.Graph()
    with graph.as_default():

        def outer(i: Any, total: Any) -> Any:
            def inner(j: Any, one: Any) -> Any:
                return j + 1, ps.ops.add_v2(one, ps.ops.tr_where(ps.ops.constant(j_zero)))

            j_zero = np.int64(0)
            _, added = ps.while_loop(lambda j, _: j < 3, inner, [ps.constant(0), total])
            return i + 1, added * np.int64(7)

        start = [ps.constant(0), ps.constant(np.int64(1))]
        _, total = ps.while_loop(lambda i, _: i < 2, outer, start)
    return graph, total


def run(tier: ps.Tier) -> Any:
    graph, total = nested()
    with ps.Session(graph, config=ps.Config(tier=tier)) as session:
        return session.run(total)


def expected() -> int:
    """What the definition of the loops says, in Python."""
    total = 1
    for i in range(2):
        for j in range(3):
            total += i * 10 + j
        total *= 7
    return total


def text() -> str:
    """The compiled loops."""
    graph, total = nested()
    return python_text(graph, [total.name], [])


# -- the frame ------------------------------------------------------------------------------


@pytest.mark.parametrize("said", [None, True])
@pytest.mark.parametrize("tier", TIERS)
def test_a_kernel_that_says_nothing_knows_its_iteration(tier: ps.Tier, said: Any) -> None:
    """In loops, compiled or not, a context tells frame and iteration; silence is no No."""
    ps.context_kernel("TrWhere", traits=KernelTraits(reads_frame=said))(lambda _: where)

    assert run(tier) == expected()


def test_the_loop_of_that_kernel_is_compiled() -> None:
    """The test above compares two tiers: the text has both loops, and sets the frame in them."""
    ps.context_kernel("TrWhere")(lambda _: where)

    assert text().count("for ") == 2
    assert ".iteration = " in text()


def test_who_says_that_no_frame_is_read_pays_for_none() -> None:
    """Nothing is set in the loop, and the answer is the same on both tiers."""
    ps.context_kernel("TrWhere", traits=KernelTraits(reads_frame=False))(
        lambda _: lambda context, x: np.int64(len(context.node_name) > 0) + x
    )

    assert ".iteration" not in text()
    assert "for " in text()
    assert run(ps.Tier.COMPILED) == run(ps.Tier.DATAFLOW)


@pytest.mark.parametrize("asked", ["frame", "iteration"])
@pytest.mark.parametrize("is_ours", [False, True])
def test_who_reads_what_is_not_there_is_told(asked: str, *, is_ours: bool) -> None:
    """A kernel of Penstock's that says nothing, or any that says No, fails instead of guessing."""

    def make(_: Attrs) -> Any:
        return lambda context, x: np.int64(attrgetter(asked)(context) is None) + x

    if is_ours:
        make.__module__ = "penstock.kernels.state.state_ops"
    traits = KernelTraits() if is_ours else KernelTraits(reads_frame=False)
    registry._loaded_ops.add("TrWhere")
    ps.context_kernel("TrWhere", traits=traits)(make)

    run(ps.Tier.DATAFLOW)
    with pytest.raises(errors.InternalError, match=rf"reads context\.{asked}") as raised:
        run(ps.Tier.COMPILED)
    assert raised.value.where is not None
    assert raised.value.where.op == "TrWhere"
    assert "reads_frame=True" in str(raised.value)


def test_other_attributes_are_missing_as_ever() -> None:
    """Only frame and iteration have a message of their own."""
    ps.context_kernel("TrWhere", traits=KernelTraits(reads_frame=False))(
        lambda _: lambda context, _x: context.frames
    )
    with pytest.raises(errors.OpError, match="no attribute 'frames'"):
        run(ps.Tier.COMPILED)


def test_our_own_kernels_say_that_they_read_the_frame() -> None:
    """The modules whose kernels ask for it are those where a kernel says so."""
    root = Path(registry.__file__).parents[1]
    asking = {
        path.relative_to(root).with_suffix("").as_posix().replace("/", ".")
        for path in root.rglob("*.py")
        if re.search(r"context\.(frame|iteration)\b", path.read_text("utf-8"))
    }
    saying = {
        known.make.__module__.removeprefix("penstock.kernels.")
        for op in ops_with_kernels()
        for known in kernels_of(op)
        if known.is_builtin and known.traits.reads_frame
    }

    assert asking - {"api.traits"} == saying
    assert len(saying) > 1


# -- forwarding -----------------------------------------------------------------------------


def forwarding(x: Value) -> Value:
    return x


def test_what_forwards_is_not_called() -> None:
    """Compiled code has no line for it; the executor calls it; both give the input."""
    ps.kernel("TrPass", traits=KernelTraits(forwards=True))(lambda _: forwarding)
    graph = sketch("x = Placeholder() dtype=float32\ny = TrPass(x)\nz = Neg(y)")

    assert "TrPass" not in python_text(graph, ["z:0"], ["x:0"])
    for tier in TIERS:
        with ps.Session(graph, config=ps.Config(tier=tier)) as session:
            assert session.run("z:0", {"x": 2.0}) == -2


@pytest.mark.parametrize("tier", TIERS)
def test_what_cannot_forward_does_not(tier: ps.Tier) -> None:
    """An output of another type is no input, whatever the author says."""
    ps.kernel("TrTurned", traits=KernelTraits(forwards=True))(lambda _: np.int32)
    graph = sketch("x = Placeholder() dtype=float32\ny = TrTurned(x)")
    with ps.Session(graph, config=ps.Config(tier=tier)) as session:
        assert session.run("y:0", {"x": 2.5}) == 2


# -- element by element ---------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
def test_elementwise_is_not_fresh(tier: ps.Tier) -> None:
    """What works element by element may still give its input: nobody writes over that."""
    traits = KernelTraits(is_elementwise=True, is_pure=True)
    ps.kernel("TrPass", traits=traits)(lambda _: forwarding)
    graph = sketch("x = Placeholder() dtype=float32\ny = TrPass(x)\nz = Exp(y)")
    fed = np.float32([0.0, 1.0])
    with ps.Session(graph, config=ps.Config(tier=tier, accelerate=False)) as session:
        np.testing.assert_array_equal(session.run("z:0", {"x": fed}), np.exp(np.float32([0, 1])))
    assert fed.tolist() == [0, 1]


# -- purity ---------------------------------------------------------------------------------


def bound(text: str) -> Any:
    graph = sketch(text)
    node: Node = graph.node("made")
    return KernelBinder(CPU).bind(node)


@pytest.mark.parametrize(("said", "is_pure"), [(None, True), (True, True), (False, False)])
def test_purity_of_a_plain_kernel(said: Any, *, is_pure: bool) -> None:
    """A plain kernel of a stateless op is taken to do nothing but compute, unless it says No."""
    ps.kernel("TrPass", traits=KernelTraits(is_pure=said))(lambda _: forwarding)

    assert bound("x = Placeholder() dtype=float32\nmade = TrPass(x)").is_pure is is_pure


@pytest.mark.parametrize("said", [None, True, False])
def test_purity_of_a_users_handle(said: Any) -> None:
    """Our own makers of handles do nothing else; of somebody's own nobody knows."""
    ps.context_kernel("TrHandle", traits=KernelTraits(is_pure=said))(lambda _: lambda _c: object())

    assert bound("made = TrHandle()").is_pure is bool(said)
    assert bound('made = VarHandleOp() dtype=float32 shape=[2] shared_name="v"').is_pure


@pytest.mark.parametrize(("said", "shares"), [(None, True), (False, True), (True, False)])
def test_pure_kernels_keep_nothing(said: Any, *, shares: bool) -> None:
    """Who may keep what it gets is given a copy of what the caller feeds; who does not, is not."""
    ps.kernel("TrPass", traits=KernelTraits(is_pure=said))(lambda _: forwarding)
    rows = "x = _Arg() T=float32 index=0\ny = TrPass(x)\nr = _Retval(y) index=0"

    assert (tell_apart(sketch(rows)) != NOTHING) is shares


def test_several_kernels_must_all_say_so() -> None:
    """One kernel of an op that says nothing is enough for a copy."""
    ps.kernel("TrPass", traits=KernelTraits(is_pure=True))(lambda _: forwarding)
    ps.kernel("TrPass", priority=1)(lambda _: forwarding)
    rows = "x = _Arg() T=float32 index=0\ny = TrPass(x)\nr = _Retval(y) index=0"

    assert tell_apart(sketch(rows)) != NOTHING
