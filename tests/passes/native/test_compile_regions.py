"""Loops and regions become programs in C; what they compute stays what it was, and the errors."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from benchmarks.cases import Case
from penstock import errors
from penstock.defs import schema
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import import_graph_def
from penstock.kernels.native import native_region_op, ready_program
from penstock.runtime.compiler import compile_regions
from penstock.runtime.compiler.compile_regions import Compiler
from penstock.runtime.native import with_programs
from support.functions import graph_def_with
from support.native import ALL, JIT, WITHOUT, watched

NATIVE = ps.Config(graph_options=JIT, limits=ALL, check_graphs=True)
RANDOM = np.random.default_rng(11)
TEXT = ps.Config(graph_options=WITHOUT)
BENCHMARKS = Path(__file__).parents[3] / "benchmarks" / "graphs"
W = RANDOM.standard_normal((4, 4), np.float32) / 2


def ops_of(graph: ps.Graph) -> Counter[str]:
    """How many nodes of each op there are when loops are programs."""
    whole = Graph()
    import_graph_def(whole, graph.as_graph_def())
    made = with_programs(whole, None)
    assert made is not None
    return Counter(node.op.name for node in made)


def recurrence() -> ps.Graph:
    """``x`` multiplied by a matrix and squashed, ``n`` times."""
    graph = ps.Graph()
    with graph.as_default():
        n = ps.placeholder("int32", [], name="n")
        x = ps.placeholder("float32", [None, 4], name="x")
        ends = ps.while_loop(
            lambda i, _: i < n, lambda i, a: (i + 1, ps.ops.tanh(ps.ops.mat_mul(a, W))), [0, x]
        )
        ps.identity(ends[1], name="y")
    return graph


def recurred(n: int, x: Any) -> Any:
    """The same by numpy."""
    for _ in range(n):
        x = np.tanh(x @ W)
    return x


# -- what becomes a program ----------------------------------------------------------------------


def test_a_loop_is_one_node() -> None:
    """Nothing of the loop is left, and its answers are numpy's up to rounding."""
    x = RANDOM.standard_normal((3, 4), np.float32)
    ops = ops_of(recurrence())
    assert ops["_NativeRegion"] == 1
    assert not {"Enter", "Merge", "Switch", "NextIteration", "Exit", "_NativeLoop"} & ops.keys()
    with watched() as given, ps.Session(recurrence(), config=NATIVE) as session:
        y = session.run("y:0", {"x:0": x, "n:0": 5})
    assert None not in given
    assert len(given) == 1
    np.testing.assert_allclose(y, recurred(5, x), rtol=1e-5, atol=1e-6)


def test_loops_go_by_default() -> None:
    """Unless somebody says no; then they are text, as they are for those who want no rounding."""
    feeds = {"x:0": np.ones((1, 4), np.float32), "n:0": 3}
    configs = [ps.Config(), TEXT, ps.Config(accelerate=False), ps.Config(tier=ps.Tier.DATAFLOW)]
    counts = []
    for config in configs:
        with watched() as given, ps.Session(recurrence(), config=config) as session:
            np.testing.assert_allclose(
                session.run("y:0", feeds), recurred(3, feeds["x:0"]), rtol=1e-5
            )
        counts.append(len(given))
    assert counts == [1, 0, 0, 0]


def waiting(before: str) -> schema.GraphDef:
    """The same with waits, as functions have that were put in place of their calls."""
    graph = recurrence()
    with graph.as_default():
        n = graph.get_tensor_by_name("n:0")
        ps.identity(ps.ops.switch(n, ps.constant(True))[0], name="dead")
        ps.identity(n, name="alive")
    proto: schema.GraphDef = graph.as_graph_def()
    by_op: dict[str, list[schema.NodeDef]] = {}
    for node in proto.node:
        by_op.setdefault(node.op, []).append(node)
    [product] = by_op["MatMul"]
    switches = [node for node in by_op["Switch"] if node.name.startswith("while")]
    gates = {
        "before": [before],
        "within": [*(node.name for node in switches), product.input[0].split(":")[0]],
        "behind": [product.name],
        "after": [node.name for node in by_op["Exit"]],
    }
    for name, sources in gates.items():
        proto.node.add(name=name, op="NoOp", input=[f"^{source}" for source in sources])
    product.input.append("^within")
    late = proto.node.add(name="late", op="Identity", input=["n", "^after"])
    late.attr["T"].type = ps.dtypes.int32.number
    for op, gate in (("Enter", "^before"), ("NextIteration", "^behind")):
        for node in by_op[op]:
            node.input.append(gate)
    return proto


def test_what_only_waits_does_not_keep_a_loop_from_going() -> None:
    """Nobody sees when a loop computes; only what may be dead must be waited for."""
    x = RANDOM.standard_normal((3, 4), np.float32)
    for before, count in (("alive", 1), ("dead", 0)):
        graph = waiting(before)
        with watched() as given, ps.Session(graph, config=ps.Config(check_graphs=True)) as session:
            if count:
                y, late = session.run(["y:0", "late:0"], {"x:0": x, "n:0": 5})
                np.testing.assert_allclose(y, recurred(5, x), rtol=1e-5, atol=1e-6)
                assert late == 5
            else:
                with pytest.raises(errors.InvalidArgumentError, match="is dead"):
                    session.run("late:0", {"x:0": x, "n:0": 5})
        assert len(given) == count


WHILE = """
n = Placeholder[dtype=int32]
x = Placeholder[dtype=float32]
zero = Const[value=0; dtype=int32]
w = Placeholder[dtype=float32]
loop = While[T=int32|float32|int32|float32; cond=Goes; body=Step](zero, x, n, w)
y = Identity[T=float32](loop:1)
"""
FUNCTIONS = """
Goes(i: int32, a: float32, n: int32, w: float32) -> (go: TYPE)
TEST

Step(i: int32, a: float32, n: int32, w: float32) -> (j: int32, b: float32, m: int32, v: float32)
one = Const[value=1; dtype=int32]
next = AddV2[T=int32](i, one:output)
product = MatMul[T=float32](a, w)
tanh = Tanh[T=float32](product:product)
return j = next:z
return b = tanh:y
return m = n
return v = w
"""


@pytest.mark.parametrize(
    ("dtype", "test", "is_program"),
    [
        ("bool", "less = Less[T=int32](i, n)\nreturn go = less:z", True),
        ("int32", "left = Sub[T=int32](n, i)\nreturn go = left:z", False),
    ],
)
@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_while_of_functions_is_a_program(
    dtype: str, test: str, turns: int, is_program: bool
) -> None:
    """The same as a While that does not ask to be lowered; a number that decides is for text."""
    functions = FUNCTIONS.replace("TYPE", dtype).replace("TEST", test)
    x = RANDOM.standard_normal((3, 4), np.float32)
    with watched() as given, ps.Session(graph_def_with(WHILE, functions), config=NATIVE) as session:
        y = session.run("y:0", {"x:0": x, "n:0": turns, "w:0": W})
    assert len(given) == is_program
    assert None not in given
    np.testing.assert_allclose(y, recurred(turns, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("flag", [[True], [False], [False, False]])
def test_a_condition_with_elements_is_true(flag: list[bool]) -> None:
    """A While that does not ask goes on as long as there are elements, which a program leaves."""
    functions = """
        Left(a: bool) -> (go: bool)
        return go = a

        Rest(a: bool) -> (b: bool)
        one = Const[value=1; dtype=int32]
        begin = Pack[T=int32; N=1](one:output)
        size = Const[value=-1; dtype=int32]
        sizes = Pack[T=int32; N=1](size:output)
        rest = Slice[T=bool; Index=int32](a, begin:output, sizes:output)
        return b = rest:output
    """
    text = "a = Placeholder[dtype=bool]\ny = While[T=bool; cond=Left; body=Rest](a)"
    with ps.Session(graph_def_with(text, functions), config=NATIVE) as session:
        assert session.run("y:0", {"a:0": flag}).tolist() == []


@pytest.mark.parametrize(("length", "count"), [(20, 0), (80, 1)])
def test_a_straight_line_must_be_asked_for_and_long(length: int, count: int) -> None:
    """Entering a program takes as long as some nodes."""
    graph = ps.Graph()
    with graph.as_default():
        y = ps.placeholder("float32", [None], name="x")
        for _ in range(length):
            y = ps.ops.tanh(y)
        ps.identity(y, name="y")
    x = np.linspace(-2, 2, 7, dtype=np.float32)
    counts = []
    for config in (ps.Config(graph_options=JIT), ps.Config()):
        with watched() as given, ps.Session(graph, config=config) as session:
            got = session.run("y:0", {"x:0": x})
        counts.append(len(given))
        want = x
        for _ in range(length):
            want = np.tanh(want)
        np.testing.assert_allclose(got, want, rtol=1e-5)
    assert counts == [count, 0]


def test_a_message_may_ask_for_it() -> None:
    """The level is read from a ConfigProto; one that nobody knows yet is the last one."""
    proto = schema.ConfigProto()
    for number, level in ((1, "ON_1"), (2, "ON_2"), (-1, "OFF"), (0, "DEFAULT"), (7, "ON_2")):
        proto.graph_options.optimizer_options.global_jit_level = number
        options = ps.Config.of(proto).graph_options.optimizer_options
        assert options.global_jit_level is getattr(ps.OptimizerOptions, level)


@pytest.mark.parametrize("shape", [(), (3,), (3, 4)])
def test_a_choice_for_all_for_each_row_and_for_each_number(shape: tuple[int, ...]) -> None:
    """What the older op chooses, which broadcasts to the right; other conditions are refused."""
    graph = ps.Graph()
    with graph.as_default():
        x, y = (ps.placeholder("float32", [3, 4], name=name) for name in "xy")
        where = ps.placeholder("bool", None, name="where")
        ps.ops.select(where, ps.ops.neg(x), y, name="z")
    x, y = RANDOM.standard_normal((2, 3, 4), np.float32)
    condition = RANDOM.random(shape) < 0.5
    with watched() as given, ps.Session(graph, config=NATIVE) as session:
        got = session.run("z:0", {"x:0": x, "y:0": y, "where:0": condition})
        np.testing.assert_array_equal(
            got, np.where(condition.reshape(*shape, *[1] * (2 - len(shape))), -x, y)
        )
        with pytest.raises(errors.InvalidArgumentError):
            session.run("z:0", {"x:0": x, "y:0": y, "where:0": np.ones(4, bool)})
    assert len(given) == 1
    assert None not in given


@pytest.mark.parametrize("index", [2, [1, 1], 5])
def test_rows_by_their_numbers(index: Any) -> None:
    """By the older op, too; a number that is too large is TensorFlow's error."""
    graph = ps.Graph()
    with graph.as_default():
        x, at = (
            ps.placeholder("float32", [3, 4], name="x"),
            ps.placeholder("int32", None, name="at"),
        )
        ps.ops.neg(ps.ops.gather(x, at), name="y")
    x = RANDOM.standard_normal((3, 4), np.float32)
    with watched() as given, ps.Session(graph, config=NATIVE) as session:
        if index == 5:
            with pytest.raises(errors.InvalidArgumentError, match="= 5 is not in"):
                session.run("y:0", {"x:0": x, "at:0": index})
        else:
            got = session.run("y:0", {"x:0": x, "at:0": index})
            np.testing.assert_array_equal(got, -x[index])
    assert [one is None for one in given] == [index == 5]


# -- when a program is used ----------------------------------------------------------------------


def test_each_shape_has_its_program_up_to_a_number() -> None:
    """What is met when there are enough is computed by text."""
    most = native_region_op._MAX_PROGRAMS
    # What is learnt from times has kernels of its own, with programs of their own.
    steady = dataclasses.replace(NATIVE, adaptive=False)
    with watched() as given, ps.Session(recurrence(), config=steady) as session:
        for rows in range(1, most + 4):
            x = RANDOM.standard_normal((rows, 4), np.float32)
            y = session.run("y:0", {"x:0": x, "n:0": 2})
            np.testing.assert_allclose(y, recurred(2, x), rtol=1e-5, atol=1e-6)
    assert len(given) == most


def test_what_goes_on_without_a_program_learns_from_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that wants threads is computed by text, which is compiled again as any other is."""
    improved: list[int] = []
    improve = Compiler.improve

    def noted(self: Any, graph: Any, *args: Any) -> Any:
        improved.append(sum(node.op.name == "_NativeRegion" for node in graph))
        return improve(self, graph, *args)

    monkeypatch.setattr(Compiler, "improve", noted)
    slow = ps.Config(limits=ps.Limits(slow_step=0.0))
    for rows, graphs in ((1, [1]), (100_000, [0, 1])):
        x = np.ones((rows, 4), np.float32)
        improved.clear()
        with ps.Session(recurrence(), config=slow) as session:
            for _ in range(8):
                y = session.run("y:0", {"x:0": x, "n:0": 2})
                np.testing.assert_allclose(y, recurred(2, x), rtol=1e-5)
        assert improved == graphs


@pytest.fixture
def wordless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text can multiply matrices, as if that were an op that must wait."""
    can_compile = compile_regions.can_be_line

    def spoilt(node: Any, kernel: Any) -> bool:
        return node.op.name != "MatMul" and can_compile(node, kernel)

    monkeypatch.setattr(compile_regions, "can_be_line", spoilt)


@pytest.mark.usefixtures("wordless")
@pytest.mark.parametrize("slow_step", [0.0, 1.0])
def test_an_executor_goes_on_where_there_is_no_text(slow_step: float) -> None:
    """The small x has a program; the large one wants threads, in any order, tuned or not."""
    xs = [np.ones((rows, 4), np.float32) for rows in (3, 100_000, 3, 100_000, 3)]
    config = ps.Config(limits=ps.Limits(slow_step=slow_step))
    with watched() as given, ps.Session(recurrence(), config=config) as session:
        run = session.make_callable("y:0", ["x:0", "n:0"])
        for x in xs * 2:
            np.testing.assert_allclose(run(x, 2), recurred(2, x), rtol=1e-5)
    assert len(given) == 6


#: A loop in a function that stays one.
WHOLE = """
Whole(x: float32, n: int32, w: float32) -> (y: float32)
zero = Const[value=0; dtype=int32]
loop = While[T=int32|float32|int32|float32; cond=Goes; body=Step](zero:output, x, n, w)
return y = loop:output:1
"""


@pytest.mark.usefixtures("wordless")
def test_a_function_is_run_node_by_node_where_there_is_no_text() -> None:
    """Its results are the call's, and errors name its nodes."""
    less = "less = Less[T=int32](i, n)\nreturn go = less:z"
    functions = FUNCTIONS.replace("TYPE", "bool").replace("TEST", less) + WHOLE
    text = """
        x = Placeholder[dtype=float32]
        n = Placeholder[dtype=int32]
        w = Placeholder[dtype=float32]
        y = Whole(x, n, w)
    """
    proto = graph_def_with(text, functions)
    for function in proto.library.function:
        function.attr["_noinline"].b = True
    x = np.ones((100_000, 4), np.float32)
    with watched() as given, ps.Session(proto) as session:
        y = session.run("y:0", {"x:0": x, "n:0": 2, "w:0": W})
        np.testing.assert_allclose(y, recurred(2, x), rtol=1e-5)
        with pytest.raises(errors.InvalidArgumentError, match="Matrix size-incompatible") as caught:
            session.run("y:0", {"x:0": x, "n:0": 2, "w:0": W[:3]})
    assert "product" in str(caught.value)
    assert given == []


@pytest.mark.usefixtures("wordless")
def test_a_dead_result_is_dead_where_there_is_no_text() -> None:
    """Whoever fetches it is told what the dataflow tier tells."""
    graph = recurrence()
    with graph.as_default():
        n = graph.get_tensor_by_name("n:0")
        ps.identity(ps.ops.switch(n, ps.constant(True))[0], name="dead")
    feeds = {"x:0": np.ones((100_000, 4), np.float32), "n:0": 2}
    told = []
    for config in (ps.Config(), ps.Config(tier=ps.Tier.DATAFLOW)):
        with (
            ps.Session(graph, config=config) as session,
            pytest.raises(errors.InvalidArgumentError) as caught,
        ):
            session.run(["y:0", "dead:0"], feeds)
        told.append(str(caught.value))
    assert told[0] == told[1]


@pytest.mark.usefixtures("wordless")
def test_what_is_run_node_by_node_can_be_ended() -> None:
    """By a time that is up, as a text would be."""
    x = np.ones((100_000, 4), np.float32)
    with ps.Session(recurrence()) as session:
        with pytest.raises(errors.DeadlineExceededError):
            session.run("y:0", {"x:0": x, "n:0": 1 << 30}, ps.RunOptions(timeout_in_ms=300))
        np.testing.assert_allclose(
            session.run("y:0", {"x:0": x, "n:0": 2}), recurred(2, x), rtol=1e-5
        )


@pytest.mark.parametrize("turns", [0, 2])
@pytest.mark.parametrize("equation", [b"ij,jk", b"ij->ik", b"ij,jk->iz", b"ij.,jk->ik"])
def test_what_makes_no_sense_in_a_loop_is_told_as_before(equation: bytes, turns: int) -> None:
    """Text is not written before it is needed, and yet the error is that of the dataflow tier."""
    graph = ps.Graph()
    with graph.as_default():
        n, x = ps.placeholder("int32", [], name="n"), ps.placeholder("float32", [3, 3], name="x")
        ends = ps.while_loop(
            lambda i, _: i < n,
            lambda i, a: (i + 1, ps.ops.einsum([a, a], equation="ij,jk->ik")),
            [0, x],
        )
        ps.identity(ends[1], name="y")
    proto = graph.as_graph_def()
    [product] = [node for node in proto.node if node.op == "Einsum"]
    product.attr["equation"].s = equation
    told = []
    for tier in ps.Tier:
        with ps.Session(proto, config=ps.Config(tier=tier)) as session:
            try:
                session.run("y:0", {"x:0": np.ones((3, 3), np.float32), "n:0": turns})
                told.append("")
            except errors.InvalidArgumentError as error:
                told.append(error.message)
    assert told[0] == told[1]
    assert bool(told[0]) == (turns > 0 or equation in (b"ij,jk", b"ij->ik"))


def test_threads_may_share_a_program() -> None:
    """Many steps at once give each its own answer."""
    xs = [RANDOM.standard_normal((3, 4), np.float32) for _ in range(4)]
    found: dict[int, list[Any]] = {}
    with watched(), ps.Session(recurrence(), config=NATIVE) as session:
        session.run("y:0", {"x:0": xs[0], "n:0": 50})

        def work(number: int) -> None:
            feeds = {"x:0": xs[number], "n:0": 50}
            found[number] = [session.run("y:0", feeds) for _ in range(50)]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number, x in enumerate(xs):
        for y in found[number]:
            np.testing.assert_allclose(y, recurred(50, x), rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_has_programs_too() -> None:
    """A forked process may go on with its parent's, and write its own."""
    x = RANDOM.standard_normal((2, 4), np.float32)
    with watched() as given, ps.Session(recurrence(), config=NATIVE) as session:
        y = session.run("y:0", {"x:0": x, "n:0": 4})
        child = os.fork()
        if not child:
            got = [session.run("y:0", {"x:0": x, "n:0": 4})]
            with ps.Session(recurrence(), config=NATIVE) as own:
                got += [own.run("y:0", {"x:0": x, "n:0": 4}) for _ in range(2)]
            is_right = all(np.array_equal(y, one) for one in got)
            os._exit(0 if is_right and len(given) == 4 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- guards --------------------------------------------------------------------------------------


def looked_up() -> ps.Graph:
    """The sum of rows that a loop picks: from ``begin`` on, ``n`` of them."""
    graph = ps.Graph()
    with graph.as_default():
        n, begin = (ps.placeholder("int32", [], name=name) for name in ("n", "begin"))
        table = ps.placeholder("float32", [None, 2], name="table")
        ends = ps.while_loop(
            lambda i, _: i < n,
            lambda i, a: (i + 1, a + ps.ops.gather_v2(table, begin + i, 0, name="picked")),
            [0, ps.ops.zeros_like(ps.ops.gather_v2(table, 0, 0))],
        )
        ps.identity(ends[1], name="y")
    return graph


def test_an_index_out_of_range_is_tensorflows_error() -> None:
    """With the name of the node, and the iteration; the next step is the program's again."""
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    with watched() as given, ps.Session(looked_up(), config=NATIVE) as session:
        feeds = {"table:0": table, "begin:0": 1, "n:0": 3}
        assert session.run("y:0", feeds).tolist() == table[1:4].sum(0).tolist()
        with pytest.raises(errors.InvalidArgumentError, match=r"4 is not in \[0, 4\)") as caught:
            session.run("y:0", {**feeds, "begin:0": 2})
        assert session.run("y:0", feeds).tolist() == table[1:4].sum(0).tolist()
    assert [one is None for one in given] == [False, True, False]
    assert caught.value.where is not None
    assert (caught.value.where.node, caught.value.where.iteration) == ("while/picked", 2)


def arrays(*, clears: bool) -> ps.Graph:
    """Squares written at ``stride * i``, and all of them gathered; ``x`` read at ``back * i``."""
    graph = ps.Graph()
    with graph.as_default():
        stride, back = (ps.placeholder("int32", [], name=name) for name in ("stride", "back"))
        x = ps.placeholder("float32", [4], name="x")
        source = ps.ops.tensor_array_v3(4, dtype="float32", clear_after_read=clears)
        target = ps.ops.tensor_array_v3(4, dtype="float32")
        flow = ps.ops.tensor_array_scatter_v3(source.handle, list(range(4)), x, source.flow)

        def body(i: Any, written: Any) -> Any:
            item = ps.ops.tensor_array_read_v3(source.handle, i * back, flow, dtype="float32")
            return i + 1, ps.ops.tensor_array_write_v3(
                target.handle, i * stride, item * item, written
            )

        _, last = ps.while_loop(lambda i, _: i < 4, body, [0, target.flow])
        ps.ops.tensor_array_gather_v3(
            target.handle, list(range(4)), last, dtype="float32", name="y"
        )
    return graph


@pytest.mark.parametrize("clears", [True, False])
def test_arrays_of_tensors_are_plain_arrays(clears: bool) -> None:
    """They begin and end within the program."""
    x = np.arange(4, dtype=np.float32)
    with watched() as given, ps.Session(arrays(clears=clears), config=NATIVE) as session:
        feeds = {"x:0": x, "stride:0": 1, "back:0": 1}
        assert session.run("y:0", feeds).tolist() == (x * x).tolist()
    assert None not in given
    assert given


@pytest.mark.parametrize(
    ("stride", "back", "clears", "phrase"),
    [
        (0, 1, False, "already been written"),
        (1, 0, True, "twice because it was cleared"),
        (2, 1, False, "array is not resizeable"),
        (1, 2, False, "Tried to read from index 4 but array size is: 4"),
    ],
)
def test_what_arrays_of_tensors_refuse(stride: int, back: int, clears: bool, phrase: str) -> None:
    """A second writing, a second reading and what is out of range are TensorFlow's errors."""
    feeds = {"x:0": np.ones(4, np.float32), "stride:0": stride, "back:0": back}
    texts = []
    for config in (TEXT, NATIVE):
        with watched() as given, ps.Session(arrays(clears=clears), config=config) as session:
            with pytest.raises(errors.InvalidArgumentError, match=phrase) as caught:
                session.run("y:0", feeds)
            texts.append((caught.value.where.node, caught.value.where.iteration))  # type: ignore[union-attr]
    assert given == [None]
    assert texts[0] == texts[1]


def matrices() -> ps.Graph:
    """Matrices doubled, in an array that only says how many columns they have."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None, None, None], name="x")
        target = ps.ops.tensor_array_v3(3, dtype="float32", element_shape=[None, 2])

        def body(i: Any, written: Any) -> Any:
            item = ps.ops.gather_v2(x, i, 0) * 2.0
            return i + 1, ps.ops.tensor_array_write_v3(target.handle, i, item, written)

        _, last = ps.while_loop(lambda i, _: i < 3, body, [0, target.flow])
        ps.ops.tensor_array_gather_v3(
            target.handle, [0, 1, 2], last, dtype="float32", element_shape=[None, 2], name="y"
        )
    return graph


@pytest.mark.parametrize("rows", [1, 5])
def test_an_array_may_say_half_of_its_elements_shape(rows: int) -> None:
    """As those of ``dynamic_rnn`` do, which do not know how large a batch will be."""
    x = RANDOM.standard_normal((3, rows, 2), np.float32)
    with watched() as given, ps.Session(matrices(), config=NATIVE) as session:
        np.testing.assert_array_equal(session.run("y:0", {"x:0": x}), 2 * x)
    assert [one is not None for one in given] == [True]


def test_elements_of_another_shape_are_tensorflows_error() -> None:
    """What an array said of its elements' shape, the nodes compare, with program or without."""
    x = np.ones((3, 4, 5), np.float32)
    told = []
    for config in (TEXT, NATIVE):
        with (
            ps.Session(matrices(), config=config) as session,
            pytest.raises(errors.InvalidArgumentError, match="element shape") as caught,
        ):
            session.run("y:0", {"x:0": x})
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_reading_an_element_twice_is_allowed_where_it_stays() -> None:
    """An array that keeps what was read gives it as often as it is asked."""
    feeds = {"x:0": np.arange(3, 7, dtype=np.float32), "stride:0": 1, "back:0": 0}
    with watched() as given, ps.Session(arrays(clears=False), config=NATIVE) as session:
        assert session.run("y:0", feeds).tolist() == [9.0] * 4
    assert None not in given


def test_nan_is_no_maximum() -> None:
    """Where ArgMax meets NaN, the node decides."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None], name="x")
        ps.identity(ps.ops.arg_max(ps.ops.neg(x), 0), name="y")
    values = [
        np.float32([1, -3, -3, 0]),
        np.float32([np.nan, 1, 2, 0]),
        np.float32([2, np.nan, 1, 0]),
    ]
    with watched() as given:
        with ps.Session(graph, config=NATIVE) as session:
            got = [session.run("y:0", {"x:0": value}) for value in values]
        with ps.Session(graph, config=TEXT) as session:
            assert got == [session.run("y:0", {"x:0": value}) for value in values]
    assert [one is None for one in given] == [False, True, True]


# -- what takes long -----------------------------------------------------------------------------


def endless() -> ps.Graph:
    """Counts as long as what it has counted is not ``n``."""
    graph = ps.Graph()
    with graph.as_default():
        n = ps.placeholder("int32", [], name="n")
        ps.identity(ps.while_loop(lambda i: ps.ops.not_equal(i, n), lambda i: i + 1, [0]), name="y")
    return graph


def test_a_loop_without_end_can_be_ended() -> None:
    """A program stops now and then, and goes on if it may."""
    with watched() as given, ps.Session(endless(), config=NATIVE) as session:
        assert session.run("y:0", {"n:0": 1000}) == 1000
        with pytest.raises(errors.DeadlineExceededError):
            session.run("y:0", {"n:0": -1}, ps.RunOptions(timeout_in_ms=300))
        assert session.run("y:0", {"n:0": 1000}) == 1000
    assert given == [(1000,), (1000,)]


def test_a_loop_without_end_can_be_cancelled() -> None:
    """By whoever closes the session, while the program runs without Python's lock."""
    with ps.Session(endless(), config=NATIVE) as session:
        assert session.run("y:0", {"n:0": 10}) == 10
        closer = threading.Timer(0.2, session.close)
        closer.start()
        with pytest.raises(errors.CancelledError):
            session.run("y:0", {"n:0": -1})
        closer.join()


def test_a_long_loop_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the program stops in each iteration, and goes on."""
    monkeypatch.setattr(ready_program, "BUDGET", 0)
    x = RANDOM.standard_normal((2, 4), np.float32)
    with watched() as given, ps.Session(recurrence(), config=NATIVE) as session:
        for n in (0, 1, 2, 77):
            np.testing.assert_allclose(
                session.run("y:0", {"x:0": x, "n:0": n}), recurred(n, x), rtol=1e-4, atol=1e-6
            )
    assert len(given) == 4
    assert None not in given


def test_what_would_be_too_large_is_for_the_nodes() -> None:
    """Where a program would need more memory than there is, the error is TensorFlow's."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [], name="x")
        ps.identity(ps.ops.neg(ps.ops.fill([1 << 20, 1 << 20, 1 << 10], x, name="huge")), name="y")
    with (
        watched() as given,
        ps.Session(graph, config=NATIVE) as session,
        pytest.raises(errors.ResourceExhaustedError) as caught,
    ):
        session.run("y:0", {"x:0": 1.0})
    assert caught.value.where is not None
    assert caught.value.where.node == "huge"
    assert given == []


def test_an_error_names_the_function_that_its_node_was_written_in() -> None:
    """Also where the node was a part of a region."""
    case = Case.read(BENCHMARKS / "function_rnn")
    feeds = dict(zip(case.feeds, case.fed(), strict=True))
    (fed,) = feeds
    feeds[fed] = feeds[fed][..., :3]
    texts = []
    for config in (TEXT, NATIVE):
        with watched(), ps.Session(case.graph_bytes, config=config) as session:
            with pytest.raises(errors.InvalidArgumentError) as caught:
                session.run(case.fetches, feeds)
            texts.append(str(caught.value.where))
    assert texts[0] == texts[1]


# -- what must not be believed -------------------------------------------------------------------


def test_variables_are_read_in_each_step() -> None:
    """A large value that changes between steps is handed over anew."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(np.zeros((200, 200), np.float32), name="v")
        x = ps.placeholder("float32", [200, 200], name="x")
        y = ps.ops.tanh(ps.ops.add_v2(v.value(), x))
        more = v.assign_add(np.full((200, 200), 0.25, np.float32))
    zeros = np.zeros((200, 200), np.float32)
    with watched() as given, ps.Session(graph, config=NATIVE) as session:
        session.run(v.initializer)
        for step in range(5):
            got = session.run(y, {x: zeros})
            np.testing.assert_allclose(got, np.full_like(zeros, np.tanh(step / 4)), rtol=1e-6)
            session.run(more)
    assert len(given) == 5


def test_large_constants_are_handed_over_once() -> None:
    """And stay what they are, whoever else reads them."""
    table = RANDOM.standard_normal((600, 600), np.float32)
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None, 600], name="x")
        ps.identity(ps.ops.tanh(ps.ops.mat_mul(x, table)), name="y")
    with watched() as given, ps.Session(graph, config=NATIVE) as session:
        for _ in range(3):
            x = RANDOM.standard_normal((2, 600), np.float32)
            np.testing.assert_allclose(
                session.run("y:0", {"x:0": x}), np.tanh(x @ table), rtol=1e-3, atol=1e-4
            )
    assert len(given) == 3
