"""The child of a fork: new sessions work, whatever its parent's threads were at; others say so.

Each program has a deadline against hangs; in a child the stacks are shown when it comes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import penstock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

BEGIN = """
import faulthandler, gc, io, logging, os, sys, threading, time, traceback, warnings
import numpy as np
import penstock as ps
from penstock import errors
from penstock.core import forks
from support.graphs import graph_def
warnings.simplefilter("ignore")

TEXT = '''
    x = Placeholder
    m = Placeholder
    q = FIFOQueueV2[component_types=float32; shared_name=q]
    put = QueueEnqueueV2[Tcomponents=float32](q, x)
    get = QueueDequeueV2[component_types=float32](q, ^put)
    y = Neg(get)
    product = MatMul(m, m)
    z = Tanh(product)
'''
M = np.full((64, 64), 1 / 64, np.float32)
POOLED = ps.Config(offload_seconds=0.0, inter_op_parallelism_threads=4)


def check_new_session(graph=None):
    # A session of the child's own, which uses the pool.
    graph = graph_def(TEXT) if graph is None else graph
    with ps.Session(graph, config=POOLED) as session:
        y, z = session.run(["y:0", "z:0"], {"x": 2.0, "m": M})
    assert y == -2.0 and np.allclose(z, np.tanh(M))


def in_child(work):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return
    faulthandler.dump_traceback_later(20, exit=True)
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def refused(call):
    try:
        call()
    except errors.FailedPreconditionError as error:
        assert "fork" in str(error) or "child" in str(error), error
        return True
    return False
"""


def run(code: str, *args: str) -> str:
    """Run a program; returns what it prints."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(code), *args],
        env={"PYTHONPATH": f"{root / 'src'}:{root / 'tests'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


STRESS = """
    stop = []
    logging.basicConfig(stream=io.StringIO(), level=logging.DEBUG)
    shared = ps.Session(graph_def(TEXT), config=POOLED)

    def runs():
        while not stop:
            shared.run(["y:0", "z:0"], {"x": 1.0, "m": M})

    def prepares():
        # What it needs of Penstock is imported, and a graph is prepared.
        ops = iter("Erf Digamma Lgamma Cumsum Softplus Elu Sinh Cholesky ArgMax Qr".split())
        while not stop:
            op = next(ops, "Tan")
            options = {"ArgMax": ", one", "Cumsum": ", one"}.get(op, "")
            attrs = {"ArgMax": "[output_type=int64]"}.get(op, "")
            text = TEXT + f"one = Const[value=0; dtype=int32]\\nw = {op}{attrs}(m{options})"
            with ps.Session(graph_def(text), config=POOLED) as session:
                session.run(["y:0", "w:0"], {"x": 1.0, "m": M + np.eye(64, dtype=np.float32)})

    def logs():
        while not stop:
            logging.info("a line")

    work = [runs, runs, prepares, logs]
    threads = [threading.Thread(target=function, daemon=True) for function in work]
    for thread in threads:
        thread.start()

    def child():
        check_new_session()
        assert gc.isenabled()
        logging.info("a line")
        if not refused(lambda: shared.run("z:0", {"m": M})):
            assert shared.run("y:0", {"x": 3.0}) == -3.0

    for number in range(int(sys.argv[1])):
        time.sleep(0.001 * (number % 7))
        in_child(child)
    stop.append(True)
    for thread in threads:
        thread.join(30.0)
        assert not thread.is_alive()
"""


@pytest.mark.parametrize("number", range(4))
def test_forks_while_threads_run_prepare_import_and_log(number: int) -> None:
    """From the first import on, each child can open a session; the shared one works or refuses."""
    run(STRESS, "25" if number == 0 else "6")


def test_a_fork_while_another_thread_asks_for_the_memory_that_is_left() -> None:
    """A module that a thread is importing stays locked in a child, which would wait for ever."""
    run("""
        from penstock.core.memory import available_memory
        at_it, go = threading.Event(), threading.Event()

        class Slow:
            def find_spec(self, name, *_):
                if name == "resource":
                    at_it.set()
                    assert go.wait(30.0)

        sys.meta_path.insert(0, Slow())
        thread = threading.Thread(target=available_memory, daemon=True)
        thread.start()
        while thread.is_alive() and not at_it.wait(0.01):
            pass
        in_child(available_memory)
        go.set()
        thread.join(30.0)
        assert not thread.is_alive()
    """)


@pytest.mark.parametrize(
    ("module", "action"),
    [
        ("penstock.runtime.executor.recorded", "traced"),
        ("penstock.shapes.infer", "fed_inside"),
        ("penstock.builder", "built"),
    ],
)
def test_a_fork_while_another_thread_imports_what_few_need(module: str, action: str) -> None:
    """A fork waits for it, so that the child can have it."""
    run(f"""
        def traced():
            with ps.Session(graph_def(TEXT), config=POOLED) as session:
                options = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE)
                assert session.run("y:0", {{"x": 3.0}}, options, ps.RunMetadata()) == -3.0

        def fed_inside():
            with ps.Session(graph_def(TEXT), config=POOLED) as session:
                assert session.run("y:0", {{"y": 2.0}}) == 2.0
                assert session.run("y:0", {{"x": 3.0}}) == -3.0

        def built():
            with ps.Graph().as_default():
                assert ps.constant(3.0).name == "Const:0"

        at_it, go = threading.Event(), threading.Event()

        class Slow:
            def find_spec(self, name, *_):
                if name == "{module}":
                    at_it.set()
                    go.wait(0.3)

        sys.meta_path.insert(0, Slow())
        thread = threading.Thread(target={action}, daemon=True)
        thread.start()
        assert at_it.wait(30.0)
        in_child({action})
        thread.join(30.0)
        assert not thread.is_alive()
    """)


def test_a_session_that_was_busy_refuses_at_once() -> None:
    """A step in another thread, alone or in the pool: every use of the session is refused."""
    run("""
        begun, go = threading.Event(), threading.Event()

        def block(x):
            begun.set()
            assert go.wait(20.0)
            return x

        ps.register_py_func({"block": block})
        text = TEXT + "b = PyFunc[token=block; Tin=float32; Tout=float32](x)"
        session = ps.Session(graph_def(text), config=POOLED)
        call = session.make_callable("z:0", ["m"])
        busy = session.run_async(["b:0", "y:0"], {"x": 1.0})
        assert begun.wait(10.0)

        def child():
            assert refused(lambda: session.run("z:0", {"m": M}))
            assert refused(lambda: call(M))
            assert refused(lambda: session.run_async("z:0", {"m": M}))
            assert refused(lambda: session.partial_run_setup(["z:0"], ["m"]))
            assert refused(lambda: session.extend(graph_def("other = NoOp()")))
            assert refused(lambda: busy.result())
            session.close()
            ps.Session.reset()
            check_new_session()

        in_child(child)
        go.set()
        assert busy.result(20.0) == [1.0, -1.0]
        assert np.allclose(call(M), np.tanh(M))
    """)


def test_a_fork_while_another_thread_prepares() -> None:
    """The graph is free in the child: it can be opened anew, though its lock was held."""
    run("""
        begun, go = threading.Event(), threading.Event()

        def block(x):
            begun.set()
            assert go.wait(20.0)
            return x

        ps.register_py_func({"block": block})
        graph = ps.Graph()
        with graph.as_default():
            ps.import_graph_def(graph_def(TEXT + '''
                c = Const[value=2.0]
                b = PyFuncStateless[token=block; Tin=float32; Tout=float32](c)
            '''), name="")
        session = ps.Session(graph, config=POOLED)
        assert session.run("y:0", {"x": 1.0}) == -1.0
        busy = session.run_async("b:0")
        assert begun.wait(10.0)

        def child():
            assert gc.isenabled()
            assert refused(lambda: session.run("y:0", {"x": 1.0}))
            check_new_session(graph)
            go.set()
            with ps.Session(graph) as other:
                assert other.run("b:0") == 2.0

        in_child(child)
        go.set()
        assert busy.result(20.0) == 2.0
    """)


@pytest.mark.parametrize("tier", ["COMPILED", "DATAFLOW"])
def test_a_kernel_that_forks(tier: str) -> None:
    """In the child its step ends at once, with the result or a refusal; the parent's goes on.

    A thread of a pool that comes back in the child ends it, and says why.
    """
    run(f"""
        go, begun = threading.Event(), threading.Event()
        child, on_pool = [], []

        def fork(x):
            assert begun.wait(10.0)
            on_pool.append(threading.current_thread() is not threading.main_thread())
            child.append(os.fork())
            if child[0] == 0:
                faulthandler.dump_traceback_later(20, exit=True)
                check_new_session()
                assert refused(lambda: session.run("z:0", {{"m": M}}))
            return x

        def slow(x):
            begun.set()
            assert go.wait(20.0)
            return x

        ps.register_py_func({{"fork": fork, "slow": slow}})
        text = TEXT + '''
            a = PyFunc[token=slow; Tin=float32; Tout=float32](x)
            b = PyFunc[token=fork; Tin=float32; Tout=float32](x)
            sum = Add(a, b)
        '''
        config = ps.Config(
            tier=ps.Tier.{tier}, offload_seconds=0.0, inter_op_parallelism_threads=4
        )
        session = ps.Session(graph_def(text), config=config)
        threading.Timer(2.0, go.set).start()
        try:
            results = session.run(["sum:0", "y:0"], {{"x": 4.0}})
        except BaseException as error:
            if child and child[0] == 0:
                os._exit(0 if isinstance(error, errors.FailedPreconditionError) else 2)
            raise
        if child[0] == 0:
            os._exit(0)
        assert results == [8.0, -4.0]
        code = os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1])
        assert code == int(on_pool[0]), code
    """)


def test_every_lock_of_the_process_is_known() -> None:
    """A module makes its locks by ``core/forks.py``, or tells it of them."""
    source = Path(penstock.__file__).parent
    modules = [path for path in source.rglob("*.py") if path.name != "forks.py"]
    found = [
        f"{path.relative_to(source)}: {line}"
        for path in modules
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"\w[^#]*= *(threading\.)?(R?Lock|Condition|Semaphore)\(", line)
    ]
    assert found == []
    assert len(modules) > 400


def test_a_lock_of_the_process_is_free_in_the_child() -> None:
    """Who forks waits for the locks of others, for as long as there is hope."""
    run("""
        locks = [lock for _, lock in forks._outer] + list(forks._innermost)
        assert len(locks) > 8
        forks._PATIENCE = 0.2

        def check():
            for lock in locks:
                assert lock.acquire(timeout=1.0)
                lock.release()
            check_new_session()

        for lock in locks:
            for seconds in (0.05, 1.0):
                held, done = threading.Event(), threading.Event()

                def hold():
                    with lock:
                        held.set()
                        done.wait(seconds)

                thread = threading.Thread(target=hold)
                thread.start()
                assert held.wait(10.0)
                in_child(check)
                done.set()
                thread.join()
        check()
    """)


def test_a_pause_of_the_collector_ends_with_its_thread() -> None:
    """Python's collector runs in the child, though it paused in the parent; or never ran there."""
    run("""
        from penstock.core.collector import collector_paused

        for is_on in (True, False):
            held, done = threading.Event(), threading.Event()
            gc.enable() if is_on else gc.disable()

            @collector_paused
            def pause():
                held.set()
                assert done.wait(20.0)

            def child():
                assert gc.isenabled() == is_on

            thread = threading.Thread(target=pause)
            thread.start()
            assert held.wait(10.0) and not gc.isenabled()
            in_child(child)
            done.set()
            thread.join()
            assert gc.isenabled() == is_on
    """)


def test_a_fork_while_a_pause_of_the_collector_ends() -> None:
    """What is left to do at a pause's end belongs to it: a fork there leaves no child without."""
    run("""
        from penstock.core import collector

        @collector.collector_paused
        def pause():
            collector._aged[0] = collector._OBJECTS_PER_LOOK

        def child():
            assert gc.isenabled()

        def fork(phase, info):
            if phase == "start" and threading.current_thread() is not threading.main_thread():
                assert not gc.isenabled()
                in_child(child)
                good.append(info["generation"])  # what is raised here is lost

        good = []
        gc.callbacks.append(fork)
        thread = threading.Thread(target=pause)
        thread.start()
        thread.join()
        assert good == [2] and gc.isenabled()
    """)


def test_a_kernel_that_forks_while_others_are_in_the_pool() -> None:
    """What the pool was at is never done in the child: its copy of the step ends and says so."""
    run("""
        go, begun = threading.Event(), threading.Event()
        child = []

        def fork(x):
            assert begun.wait(10.0)
            assert threading.current_thread() is threading.main_thread()
            child.append(os.fork())
            if child[0] == 0:
                faulthandler.dump_traceback_later(20, exit=True)
                check_new_session()
            return x

        def slow(x):
            begun.set()
            assert go.wait(20.0)
            return x

        ps.register_py_func({"fork": fork, "slow": slow})
        text = TEXT + '''
            a = PyFunc[token=slow; Tin=float32; Tout=float32](x)
            b = EagerPyFunc[token=fork; Tin=float32; Tout=float32](x)
            sum = Add(a, b)
        '''
        config = ps.Config(
            tier=ps.Tier.DATAFLOW, offload_seconds=0.0, inter_op_parallelism_threads=4
        )
        session = ps.Session(graph_def(text), config=config)
        threading.Timer(2.0, go.set).start()
        try:
            result = session.run("sum:0", {"x": 4.0})
        except errors.FailedPreconditionError:
            if child[0] == 0:
                os._exit(0 if refused(lambda: session.run("y:0", {"x": 1.0})) else 2)
            raise
        if child[0] == 0:
            os._exit(3)
        assert result == 8.0
        code = os.waitstatus_to_exitcode(os.waitpid(child[0], 0)[1])
        assert code == 0, code
    """)
