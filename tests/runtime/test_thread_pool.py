"""Pools: which session has which, who shares them, and what a forked process makes of them."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import penstock as ps
from penstock import errors
from penstock.config import GraphOptions, ThreadPoolOption
from penstock.defs import schema
from penstock.kernels.parallel.contention import contention
from penstock.runtime.thread_pool import Pool, SessionPools
from support.custom import custom_kernels
from support.graphs import graph_def
from support.sketch import sketch

ONE = "ExOne(x: float32) -> (y: float32)"
BODY = "\n".join(["x = Const() value=1.0", *(f"n{i} = ExOne(x)" for i in range(9))])
FETCHES = [f"n{i}" for i in range(9)]


#: The thread of each kernel that ran.
seen: list[threading.Thread] = []


def threads_of(session: ps.Session, number: int) -> set[threading.Thread]:
    """The threads that helped with one run on the pool of that number."""
    seen.clear()
    session.run(FETCHES, options=ps.RunOptions(inter_op_thread_pool=number))
    return set(seen) - {threading.current_thread()}


@pytest.fixture(autouse=True)
def kernels() -> Iterator[None]:
    """Register an op whose kernel notes its thread."""
    with custom_kernels(ONE) as register:
        register("ExOne", lambda x: (seen.append(threading.current_thread()), x)[1])
        yield


def config(*pools: tuple[int, str], **options: Any) -> ps.Config:
    listed = tuple(ThreadPoolOption(*pool) for pool in pools)
    return ps.Config(
        tier=ps.Tier.DATAFLOW,
        graph_options=GraphOptions.nothing(),
        session_inter_op_thread_pool=listed,
        offload_seconds=0.0,
        **options,
    )


def test_a_run_chooses_its_pool() -> None:
    """Each pool has threads of its own; -1 is the caller's, and so is a pool of one."""
    with ps.Session(sketch(BODY), config=config((2, ""), (3, ""), (1, ""))) as session:
        first, second = threads_of(session, 0), threads_of(session, 1)
        assert first
        assert second
        assert not first & second
        assert not threads_of(session, -1)
        assert not threads_of(session, 2)


@pytest.mark.parametrize("number", [-2, 2, 99])
def test_a_pool_that_is_not_there(number: int) -> None:
    """A run cannot choose what the session does not have."""
    with (
        ps.Session(sketch(BODY), config=config((2, ""), (2, ""))) as session,
        pytest.raises(errors.InvalidArgumentError, match=f"Invalid inter_op_thread_pool: {number}"),
    ):
        threads_of(session, number)


def test_pools_with_a_name_are_shared() -> None:
    """Two sessions that name the same pool use the same threads, also when one is closed."""
    with ps.Session(sketch(BODY), config=config((2, "shared"))) as one:
        threads = threads_of(one, 0)
        with ps.Session(sketch(BODY), config=config((4, ""), (2, "shared"))) as two:
            assert not threads_of(two, 0) & threads
            assert threads_of(two, 1)
            assert two._pools._pools[1] is one._pools._pools[0]
    with ps.Session(sketch(BODY), config=config((2, "shared"))) as three:
        assert threads_of(three, 0)


def test_a_named_pool_keeps_its_size() -> None:
    """Who asks for a known name with another number of threads is refused."""
    with ps.Session(sketch(BODY), config=config((2, "fixed"))):
        text = (
            "Pool fixed configured previously with num_threads=2; "
            "cannot re-configure with num_threads=3"
        )
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ps.Session(sketch(BODY), config=config((3, "fixed")))


def test_pools_come_from_messages() -> None:
    """A ConfigProto lists pools; a number of zero means the session's default."""
    proto = schema.ConfigProto(inter_op_parallelism_threads=3)
    proto.session_inter_op_thread_pool.add(num_threads=2, global_name="proto")
    proto.session_inter_op_thread_pool.add()
    read = ps.Config.of(proto.SerializeToString())
    assert list(read.session_inter_op_thread_pool) == [(2, "proto"), (0, "")]
    pools = SessionPools(read)
    assert [pool.count for pool in pools._pools] == [2, 3]
    pools.close()


def test_functions_keep_to_the_pool_of_their_step() -> None:
    """With inter_op_thread_pool -1, the kernels of function bodies stay with the caller, too."""
    proto = graph_def("x = Const\ny = PartitionedCall[f=F; Tin=float32; Tout=float32](x)")
    function = proto.library.function.add()
    function.signature.name = "F"
    function.signature.input_arg.add(name="a", type=1)
    function.signature.output_arg.add(name="r", type=1)
    for i in range(9):
        function.node_def.add(name=f"n{i}", op="ExOne", input=["a"])
    total = function.node_def.add(name="sum", op="AddN", input=[f"n{i}:y:0" for i in range(9)])
    total.attr["N"].i, total.attr["T"].type = 9, 1
    function.ret["r"] = "sum:sum:0"
    options = ps.RunOptions(inter_op_thread_pool=-1)
    with ps.Session(proto, config=config((2, ""))) as session:
        seen.clear()
        session.run("y:0", options=options)
        assert set(seen) == {threading.current_thread()}
        session.run("y:0")
        assert len(set(seen)) > 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("own", [False, True])
def test_a_forked_process_starts_threads_of_its_own(own: bool) -> None:
    """A session that was opened, and even used, before a fork works in the child."""
    code = f"""
        import os, warnings
        import numpy as np
        import penstock as ps
        warnings.simplefilter("ignore")
        graph = ps.Graph()
        with graph.as_default():
            x = ps.ops.placeholder(ps.dtypes.float32, [], name="x")
            total = ps.ops.add_n([-x for _ in range(9)])
        config = ps.Config(
            inter_op_parallelism_threads=4, offload_seconds=0.0, use_per_session_threads={own},
            tier=ps.Tier.DATAFLOW, graph_options=ps.GraphOptions.nothing(),
        )
        session = ps.Session(graph, config=config)
        assert session.run(total, {{x: 1.0}}) == -9.0
        child = os.fork()
        if child == 0:
            os._exit(int(session.run(total, {{x: 2.0}}) != -18.0))
        assert os.waitpid(child, 0)[1] == 0
        assert session.run(total, {{x: 3.0}}) == -27.0
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=30)


# -- whose cores they are ------------------------------------------------------------------------


@pytest.fixture
def alone() -> Iterator[None]:
    """Nothing else runs, before and after."""
    assert contention.helpers(7) == 7
    yield
    assert contention.helpers(7) == 7


@pytest.mark.usefixtures("alone")
def test_who_begins_first_knows_of_those_who_are_about_to() -> None:
    """It has its share of the cores, as if all had begun; there are as many as threads."""
    pool, gate, found = Pool(2), threading.Event(), queue.SimpleQueue[int]()

    def look() -> None:
        gate.wait()
        found.put(contention.helpers(7))

    for wanted in (7, 3, 3, 3):
        pool.schedule(look)
        assert contention.helpers(7) == wanted
    gate.set()
    seen = [found.get(timeout=10) for _ in range(4)]
    assert seen[:2] == [3, 3]
    pool.close(wait=True)


@pytest.mark.usefixtures("alone")
def test_what_fails_or_is_refused_is_company_no_more() -> None:
    """Whoever failed does not count, nor what came when the pool was closed."""
    pool = Pool(2)

    def fail() -> None:
        raise ValueError("no good")

    for _ in range(3):
        pool.schedule(fail)
    pool.close(wait=True)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            pool.schedule(fail)
