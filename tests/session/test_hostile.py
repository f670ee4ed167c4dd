"""Whatever is thrown at a session, it answers: with a result or with an OpError."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.defs.schema import GraphDef, Message
from penstock.graph.export import graph_to_def
from support.corpus import Case, all_cases
from support.loops import NESTED_LOOPS, counting_loop
from support.sketch import sketch

#: No step of these tests may take longer.
LIMIT = ps.RunOptions(timeout_in_ms=5000)
#: Left out: long by intent, or no graph to begin with.
_SPECIAL = {"long_loop_20000", "diamond_ladder", "not_a_graphdef"}
CASES = [case for case in all_cases() if case.name not in _SPECIAL]
EXTREMES = (0, -1, 7, -(2**31), 2**31 - 1, 2**31, 2**62, -(2**63))


@contextlib.contextmanager
def quiet(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let damaged graphs ask for devices that are not here, and write where they like."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def attempt(graph: bytes, case: Case) -> str:
    """Run a damaged graph as its case would; returns the kind of error, or an empty text.

    Anything but an OpError fails the test, and so does an OpError that says that Penstock
    itself is broken.
    """
    try:
        with ps.Session(graph, config=ps.Config(check_outputs=True)) as session:
            for step in case.steps[:2]:
                names = [*step.get("fetches", ()), *step.get("targets", ())]
                session.run(names, case.feeds(step, b"."), LIMIT)
    except errors.OpError as error:
        assert "unexpected Python exception" not in str(error), str(error)
        return type(error).__name__
    return ""


# -- damaged bytes -------------------------------------------------------------------


@pytest.mark.parametrize("part", range(8))
def test_cut_off_graphs(part: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that ends too early is refused, or means something smaller."""
    with quiet(tmp_path, monkeypatch):
        for case in CASES[part::8]:
            content = case.graph_bytes
            for cut in (1, len(content) // 3, len(content) - 1):
                attempt(content[:cut], case)


@pytest.mark.parametrize("part", range(4))
def test_flipped_bits(part: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with flipped bits is refused, or means something else."""
    draw = random.Random(part)
    with quiet(tmp_path, monkeypatch):
        for case in draw.sample(CASES, 60):
            content = bytearray(case.graph_bytes)
            for _ in range(draw.choice((1, 1, 2, 5))):
                content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            attempt(bytes(content), case)


@pytest.mark.parametrize("part", range(4))
def test_strange_attributes(part: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs whose attributes, inputs or ops were changed are refused, or mean something else."""
    draw = random.Random(100 + part)
    with quiet(tmp_path, monkeypatch):
        for case in draw.sample(CASES, 60):
            graph = case.graph_def()
            if graph.node:
                spoil(draw.choice(list(graph.node)), graph, draw)
            attempt(graph.SerializeToString(), case)


def spoil(node: Any, graph: Any, draw: random.Random) -> None:
    """Change one thing about one node."""
    what = draw.randrange(4)
    if what == 0 and node.input:
        node.input[draw.randrange(len(node.input))] = draw.choice(graph.node).name
    elif what == 1 and node.input:
        del node.input[draw.randrange(len(node.input))]
    elif what == 2:
        other = draw.choice(graph.node)
        node.op = other.op
        node.attr.clear()
        for name in other.attr:
            node.attr[name].CopyFrom(other.attr[name])
    elif node.attr:
        spoil_attr(node.attr[draw.choice(sorted(node.attr))], draw)


def spoil_attr(attr: Any, draw: random.Random) -> None:
    """Put something strange into an attribute."""
    match attr.WhichOneof("value"):
        case "i":
            attr.i = draw.choice(EXTREMES)
        case "f":
            attr.f = draw.choice((float("nan"), float("inf"), -1.0))
        case "type":
            attr.type = draw.choice((0, 7, 20, 21, 101, 999))
        case "s":
            attr.s = draw.choice((b"", b"\xff\xfe", b"x" * 1000))
        case "tensor" if attr.tensor.tensor_shape.dim:
            attr.tensor.tensor_shape.dim[0].size = draw.choice(EXTREMES)
        case "tensor":
            attr.tensor.tensor_content = b"abc"
        case "shape" if attr.shape.dim:
            attr.shape.dim[0].size = draw.choice(EXTREMES)
        case "list":
            attr.list.i.append(draw.choice(EXTREMES))
        case _:
            attr.b = not attr.b


# -- absurd sizes --------------------------------------------------------------------


def as_def(text: str) -> Any:
    """A GraphDef from the text of a graph."""
    return graph_to_def(sketch(text))


def outcome(graph: Any, fetch: Any, feeds: Any = None, options: ps.RunOptions = LIMIT) -> Any:
    """The result of a run, or the kind of its error."""
    try:
        with ps.Session(graph) as session:
            return session.run(fetch, feeds, options)
    except errors.OpError as error:
        assert "unexpected Python exception" not in str(error), str(error)
        return type(error)


@pytest.mark.parametrize("sizes", [(2**62,), (2**31, 2**31), (-1,), (-5, 3), (10**6,) * 6])
def test_constants_of_absurd_shapes(sizes: tuple[int, ...]) -> None:
    """A constant that claims more elements than there can be is refused."""
    graph = as_def("x = Const() value=1.0\ny = Neg(x)")
    tensor = graph.node[0].attr["value"].tensor
    for size in sizes:
        tensor.tensor_shape.dim.add().size = size
    assert issubclass(outcome(graph, "y:0"), errors.OpError)


@pytest.mark.parametrize("sizes", [[2**30, 2**30], [2**31 - 1] * 4, [-1], [-(2**31)]])
def test_fills_of_absurd_shapes(sizes: list[int]) -> None:
    """A tensor too large to exist is an error of the op that would make it."""
    graph = "n = Placeholder() dtype=int32\nx = Const() value=1.0\ny = Fill(n, x)"
    with ps.Session(sketch(graph)) as session:
        with pytest.raises(errors.OpError) as caught:
            session.run("y:0", {"n": sizes}, LIMIT)
        assert caught.value.node_name == "y"
        assert session.run("y:0", {"n": [2]}).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("count", EXTREMES)
def test_absurd_numbers_of_inputs(count: int) -> None:
    """A node that claims a strange number of inputs is refused."""
    graph = as_def("x = Const() value=1.0\ny = AddN(x, x, x)")
    graph.node[1].attr["N"].i = count
    assert issubclass(outcome(graph, "y:0"), errors.OpError)


@pytest.mark.parametrize("count", EXTREMES)
def test_absurd_numbers_of_outputs(count: int) -> None:
    """A node that claims a strange number of outputs is refused before it fills the memory."""
    graph = as_def("a = Const() value=0\nx = Const() value=[1.0]\ny = Split(a, x) num_split=1")
    graph.node[2].attr["num_split"].i = count
    assert issubclass(outcome(graph, "y:0"), errors.OpError)


ARRAY = "ta = TensorArrayV3(n) dtype=float32 dynamic_size=True\n"
COUNTS = {
    "an array of so many places": f"{ARRAY}y = TensorArraySizeV3(ta:0, ta:1)",
    "the last of so many places": (
        "one = Const() value=1\nat = Const() value=2147483646\nx = Const() value=1.0\n"
        f"{ARRAY.replace('(n)', '(one)')}w = TensorArrayWriteV3(ta:0, at, x, ta:1)\n"
        "y = TensorArraySizeV3(ta:0, w)"
    ),
    "numbers": "a = Const() value=0\nd = Const() value=1\ny = Range(a, n, d)",
    "copies": "x = Const() value=[1, 2, 3, 4, 5, 6, 7, 8, 9]\nm = ExpandDims(n, a)\n"
    "a = Const() value=0\ny = Tile(x, m)",
    "characters": "x = Const() value=[1, 2, 3, 4, 5, 6, 7, 8]\ny = AsString(x) width=2147483647",
}


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("what", COUNTS)
def test_absurd_counts(what: str, tier: ps.Tier) -> None:
    """Two billion of something are refused before they are made, where one would notice them."""
    graph = sketch(f"n = Const() value=2147483647\n{COUNTS[what]}")
    config = ps.Config(tier=tier)
    with (
        limited_memory(4 << 30),
        ps.Session(graph, config=config) as session,
        pytest.raises(errors.ResourceExhaustedError, match="OOM when allocating"),
    ):
        session.run("y:0", options=LIMIT)


@contextlib.contextmanager
def limited_memory(size: int) -> Iterator[None]:
    """Let this process have so many bytes more than it has."""
    resource, facts = pytest.importorskip("resource"), Path("/proc/self/statm")
    if not facts.exists():
        pytest.skip("the system does not tell how much memory there is")
    pages = int(facts.read_text("ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("parallel", EXTREMES)
def test_absurd_windows(parallel: int) -> None:
    """Whatever parallel_iterations says, a loop counts or is refused."""
    assert outcome(as_def(counting_loop(parallel)), "exit:0", {"limit": 5}) in (
        5,
        errors.InvalidArgumentError,
    )


@pytest.mark.parametrize("value", [float("nan"), b"ten", True])
def test_windows_of_another_kind(value: Any) -> None:
    """A parallel_iterations that is no integer is refused."""
    graph = as_def(counting_loop())
    for node in graph.node:
        if node.op == "Enter":
            field = {float: "f", bytes: "s", bool: "b"}[type(value)]
            setattr(node.attr["parallel_iterations"], field, value)
    assert outcome(graph, "exit:0", {"limit": 3}) is errors.InvalidArgumentError


# -- depth ---------------------------------------------------------------------------


def test_a_deep_chain() -> None:
    """A chain of 10,000 nodes runs, and gives its value."""
    rows = ["x = Placeholder() dtype=float32", "n0 = Neg(x)"]
    rows += [f"n{i} = Neg(n{i - 1})" for i in range(1, 10_000)]
    assert outcome(as_def("\n".join(rows)), "n9999:0", {"x": 3.0}) == 3.0


@pytest.mark.slow
def test_a_deep_dead_chain() -> None:
    """Deadness travels down 10,000 nodes, and the message finds its cause."""
    rows = ["p = Const() value=True", "x = Const() value=1.0", "s = Switch(x, p)", "n0 = Neg(s:0)"]
    rows += [f"n{i} = Neg(n{i - 1})" for i in range(1, 10_000)]
    assert outcome(as_def("\n".join(rows)), "n9999:0") is errors.InvalidArgumentError


def test_a_wide_fan() -> None:
    """A sum of 2,000 inputs, with 2,000 control inputs elsewhere, is a sum."""
    rows = ["x = Const() value=1.0"]
    rows += [f"n{i} = Neg(x)" for i in range(2000)]
    listed = ", ".join(f"n{i}" for i in range(2000))
    rows.append(f"sum = AddN({listed})\nall = Const({listed.replace('n', '^n')}) value=2.0")
    assert outcome(as_def("\n".join(rows)), ["sum:0", "all:0"]) == [-2000.0, 2.0]


@pytest.mark.slow
def test_deeply_nested_frames() -> None:
    """A thousand frames inside each other are entered and left."""
    depth = 1000
    rows = ["x = Const() value=3.0", 'e0 = Enter(x) frame_name="f0"']
    rows += [f'e{i} = Enter(e{i - 1}) frame_name="f{i}"' for i in range(1, depth)]
    rows += [f"o0 = Exit(e{depth - 1})", *(f"o{i} = Exit(o{i - 1})" for i in range(1, depth))]
    assert outcome(as_def("\n".join(rows)), f"o{depth - 1}:0") == 3.0


@pytest.mark.slow
def test_deeply_nested_choices() -> None:
    """Three thousand Switches behind each other choose, and merge again."""
    depth = 3000
    rows = ["p = Placeholder() dtype=bool", "x = Const() value=3.0", "s0 = Switch(x, p)"]
    rows += [f"s{i} = Switch(s{i - 1}:1, p)" for i in range(1, depth)]
    rows += [f"m0 = Merge(s{depth - 1}:1, s{depth - 1}:0)"]
    rows += [f"m{i} = Merge(m{i - 1}, s{depth - 1 - i}:0)" for i in range(1, depth)]
    graph = as_def("\n".join(rows))
    for pred in (True, False):
        assert outcome(graph, f"m{depth - 1}:0", {"p": pred}) == 3.0


def functions(bodies: dict[str, str]) -> Message:
    """A graph ``y = f0(x)`` with a library: each body calls functions on ``x``."""
    graph: Any = GraphDef()
    graph.versions.producer = 1000
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 1
    graph.node.add(name="y", op=next(iter(bodies)), input=["x"])
    for name, called in bodies.items():
        function = graph.library.function.add()
        function.signature.name = name
        function.signature.input_arg.add(name="a", type=1)
        function.signature.output_arg.add(name="r", type=1)
        last = "a"
        for number, op in enumerate(called.split()):
            node = function.node_def.add(name=f"n{number}", op=op, input=[last])
            if op == "Neg":
                node.attr["T"].type = 1
            last = f"n{number}:{'y' if op == 'Neg' else 'r'}:0"
        function.ret["r"] = last
    return graph


def test_deeply_nested_functions() -> None:
    """A thousand functions that call each other return in the end."""
    bodies = {f"f{i}": f"f{i + 1} Neg" for i in range(1000)} | {"f1000": "Neg"}
    assert outcome(functions(bodies), "y:0", {"x": 2.0}) == -2.0


@pytest.mark.slow
@pytest.mark.parametrize("bodies", [{"f": "f"}, {"f": "Neg g", "g": "Neg f"}, {"f": "f f"}])
def test_endless_recursion(bodies: dict[str, str]) -> None:
    """A function that calls itself for ever fails, rather than fill the memory."""
    patient = ps.RunOptions(timeout_in_ms=60_000)  # five thousand levels take a second or more
    end = outcome(functions(bodies), "y:0", {"x": 2.0}, patient)
    assert end is errors.ResourceExhaustedError


# -- contradictions ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "changes"),
    [
        ("y", {"input": ["y"]}),
        ("y", {"input": ["^y", "x"]}),
        ("y", {"input": ["x", "^y"]}),
        ("y", {"input": ["y:7"]}),
        ("y", {"input": [""]}),
        ("y", {"input": ["x:99999999999999999999"]}),
        ("y", {"input": ["x", "x"]}),
        ("y", {"op": "NoSuchOp"}),
        ("y", {"op": ""}),
        ("y", {"op": "_Arg"}),
        ("y", {"op": "_Retval"}),
        ("y", {"op": "Merge"}),
        ("y", {"name": ""}),
        ("y", {"name": "x"}),
        ("y", {"name": "a b"}),
        ("y", {"name": "\u00e4"}),
        ("y", {"name": "_y"}),
        ("y", {"name": "y:0"}),
        ("y", {"device": "/device:"}),
        ("y", {"device": "\u00e4"}),
        ("y", {"device": "/job:a/job:b"}),
    ],
)
def test_nodes_that_contradict_themselves(node: str, changes: dict[str, Any]) -> None:
    """A node that refers to itself, to nothing, or to what it cannot is refused."""
    graph = as_def("x = Const() value=1.0\ny = Neg(x)")
    proto = next(n for n in graph.node if n.name == node)
    for field, value in changes.items():
        if isinstance(value, list):
            del proto.input[:]
            proto.input.extend(value)
        else:
            setattr(proto, field, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = outcome(graph, f"{proto.name}:0")
    assert isinstance(got, type)
    assert issubclass(got, errors.OpError)


def test_names_that_are_no_text() -> None:
    """A name that is not UTF-8 is refused with the file."""
    content = as_def("xyz = Const() value=1.0").SerializeToString().replace(b"xyz", b"\xff\xfe\xfd")
    assert issubclass(outcome(content, "xyz:0"), errors.OpError)


def test_cycles() -> None:
    """A cycle without a NextIteration is refused, however long."""
    rows = [f"n{i} = Neg(n{(i + 1) % 5000})" for i in range(5000)]
    text = "\n".join(["a = Const() value=1.0", *rows, "b = Add(a, n0)"])
    got = outcome(as_def(text), "b:0")
    assert got is errors.InvalidArgumentError


def test_a_loop_without_an_end() -> None:
    """A loop whose condition is always true ends with the deadline."""
    always = "true = Const(^merge) value=0\nless = LessEqual(true, true)"
    text = counting_loop().replace("less = Less(merge, bound)", always)
    with ps.Session(sketch(text)) as session, pytest.raises(errors.DeadlineExceededError):
        session.run("exit:0", {"limit": 1}, ps.RunOptions(timeout_in_ms=50))


def test_a_merge_that_never_comes() -> None:
    """A loop without an entry never runs; fetching from it is a dead fetch."""
    text = "m = Merge(n, n)\nn = NextIteration(m)\nx = Const() value=1.0\ny = Add(x, m)"
    assert issubclass(outcome(as_def(text), "y:0"), errors.OpError)


@pytest.mark.parametrize("drop", ["enter", "t_enter", "i_cond", "j_switch", "s_exit", "i_next"])
def test_loops_with_a_part_missing(drop: str) -> None:
    """A loop whose parts were replaced by Identities is refused or dead, and hangs nowhere."""
    graph = as_def(NESTED_LOOPS)
    for node in graph.node:
        if node.name == drop:
            del node.input[1:]
            node.op = "Identity"
            dtype = node.attr["T"].type or 10
            node.attr.clear()
            node.attr["T"].type = dtype
    got = outcome(graph, "total:0", {"outer": 2, "inner": 2})
    assert got == 2 or issubclass(got, errors.OpError)


def test_feeds_of_every_strange_kind() -> None:
    """Arrays with strange strides, orders, sizes and contents are fed, or refused."""
    odd: list[Any] = [
        np.zeros((0,)),
        np.zeros((1,) * 32, np.float32),
        np.full((2, 2), np.nan),
        np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (5,), (0,)),
        np.ones(4, ">f8")[::-2],
        np.array([2**63], np.uint64),
        np.array([None]),
        np.datetime64("2020-01-01"),
        np.ones(3, [("a", "f4")]),
        1e400,
        -0.0,
        10**400,
    ]
    with ps.Session(sketch("x = Placeholder() dtype=float32\ny = Neg(x)")) as session:
        for value in odd:
            with warnings.catch_warnings(), contextlib.suppress(errors.OpError):
                warnings.simplefilter("ignore")
                session.run("y:0", {"x": value}, LIMIT)
        assert session.run("y:0", {"x": 1.0}) == -1.0
