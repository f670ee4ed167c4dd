"""What learns from times, and sessions in which nothing does."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.kernels.parallel.contention import Contention, contention
from penstock.kernels.parallel.intra_op import parallel_for
from penstock.runtime.compiler.compile_regions import Compiler
from support.custom import custom_kernels
from support.sketch import sketch

#: Two kernels that could run side by side.
BESIDE = """
    x = Placeholder() dtype=float32
    y = Placeholder() dtype=float32
    a = ExSlow(x)
    b = ExSlow(y)
"""
SLOW = "ExSlow(x: float32) -> (y: float32)"


def threads_of(value: Any, *, adaptive: bool, steps: int = 6) -> set[bool]:
    """Whether each step of two slow kernels used other threads than the caller's."""
    used: set[bool] = set()
    seen: set[int] = set()

    def slow(x: Any) -> Any:
        seen.add(threading.get_ident())
        time.sleep(2e-3)
        return x

    with custom_kernels(SLOW) as register:
        register("ExSlow", slow)
        config = ps.Config(adaptive=adaptive, tier=ps.Tier.DATAFLOW, inter_op_parallelism_threads=4)
        with ps.Session(sketch(BESIDE), config=config) as session:
            for _ in range(steps):
                seen.clear()
                session.run(["a:0", "b:0"], {"x": value, "y": value})
                used.add(seen != {threading.get_ident()})
    return used


def test_slow_kernels_are_found_out() -> None:
    """By default a kernel that takes long goes to the pool, once that is known."""
    assert True in threads_of(np.float32(1), adaptive=True)


@pytest.mark.parametrize(("value", "elsewhere"), [(1.0, False), (np.ones(1 << 16), True)])
def test_without_adaptation_sizes_decide(value: Any, elsewhere: bool) -> None:
    """However long it takes, a kernel of small inputs stays, and one of large ones goes."""
    assert threads_of(np.float32(value), adaptive=False) == {elsewhere}


@pytest.mark.parametrize("adaptive", [False, True])
def test_without_adaptation_no_request_is_tuned(
    monkeypatch: pytest.MonkeyPatch, adaptive: bool
) -> None:
    """Steps that are slow are watched node by node, once, unless nothing adapts."""
    probed: list[Any] = []
    probing = Compiler.probing

    def noted(self: Compiler, *args: Any) -> Any:
        probed.append(args)
        return probing(self, *args)

    monkeypatch.setattr(Compiler, "probing", noted)
    with custom_kernels(SLOW) as register:
        register("ExSlow", lambda x: time.sleep(2e-3) or x)
        with ps.Session(sketch(BESIDE), config=ps.Config(adaptive=adaptive)) as session:
            for _ in range(8):
                session.run(["a:0", "b:0"], {"x": 1.0, "y": 2.0})
    assert len(probed) == int(adaptive)


def test_the_machine_is_idle_as_long_as_such_a_session_is_open() -> None:
    """Closed or forgotten, it has no say any more."""
    assert contention._pins == 0
    with ps.Session(sketch("x = Const() value=1.0"), config=ps.Config(adaptive=False)) as session:
        assert contention._pins == 1
        session.close()
        assert contention._pins == 0
    ps.Session(sketch("x = Const() value=1.0"), config=ps.Config(adaptive=False))
    gc.collect()
    assert contention._pins == 0


def test_the_least_that_an_open_session_grants_holds() -> None:
    """Closed or forgotten, it grants whatever there is."""
    graph = sketch("x = Const() value=1.0")
    assert contention.threads(8) == 8
    with ps.Session(graph, config=ps.Config(intra_op_parallelism_threads=3)):
        assert contention.threads(8) == 3
        assert contention.threads(2) == 2
        assert contention.helpers(7) == 2
        with ps.Session(graph, config=ps.Config(intra_op_parallelism_threads=-1)):
            assert contention.threads(8) == 1
            assert contention.helpers(7) == 0
        assert contention.threads(8) == 3
    assert contention.helpers(7) == 7
    ps.Session(graph, config=ps.Config(intra_op_parallelism_threads=1))
    gc.collect()
    assert contention.threads(8) == 8


def test_a_kernel_keeps_to_the_threads_that_it_is_granted() -> None:
    """However large its work is, with one thread all of it is done by the caller's."""
    seen: list[int] = []
    config = ps.Config(intra_op_parallelism_threads=1)
    with ps.Session(sketch("x = Const() value=1.0"), config=config):
        parallel_for(64, lambda _: seen.append(threading.get_ident()))
    assert set(seen) == {threading.get_ident()}


def test_what_is_pinned_says_the_same_whatever_happens() -> None:
    """Neither other kernels nor other programs count."""
    machine = Contention()
    for _ in range(2):
        machine.note([1e-3, 1.0])
    assert machine.is_busy
    machine.pin()
    assert not machine.is_busy
    machine.count(2)
    assert machine.helpers(7) == 7
    machine.unpin()
    assert machine.is_busy
    assert machine.helpers(7) == 3
