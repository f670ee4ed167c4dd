"""The functions of ops have types: generated, current, and of use to mypy."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import penstock as ps
from penstock.builder.op_function import function_name, op_functions
from penstock.catalogue.registry import all_ops, get_op, is_builtin_op, listed_ops
from tools.make_op_stubs import STUB, stub

#: Programs that use much of what is typed, each line of the second one wrong in the way it says.
GOOD: Final = """
import numpy as np
import penstock as ps

graph = ps.Graph()
with graph.as_default():
    x = ps.placeholder(ps.dtypes.float32, [None, 3], name="x")
    w = ps.Variable(np.zeros((3, 2), np.float32), name="w")
    y: ps.Tensor = ps.ops.relu(ps.ops.mat_mul(x, w) + 1.0)
    values, indices = ps.ops.top_kv2(y, 2)
    found = ps.ops.unique(ps.ops.reshape(y, [-1]), out_idx=ps.dtypes.int64)
    first: ps.Tensor = found.y
    parts: list[ps.Tensor] = ps.ops.split(0, x, num_split=2)
    total = ps.ops.sum(y, [0, 1], keep_dims=True, name="total")
    done: ps.Operation = ps.ops.no_op()
    both = ps.ops.concat_v2([parts[0], parts[1], 1.0], np.int32(0))
    text = ps.ops.string_join([ps.constant("a"), "b"], separator="-")
    pooled = ps.ops.max_pool(ps.ops.expand_dims(x, 0), [1, 2, 2, 1], [1, 1, 1, 1], padding="SAME")
    n = ps.ops.placeholder("int32", [], name="n")
    _, count = ps.ops.while_loop(
        lambda i, total: i < n,
        lambda i, total: (i + 1, total + i * i),
        [ps.ops.constant(0), ps.ops.constant(0)],
    )
    chosen = ps.cond(total > 0, lambda: x, lambda: x * 2)
    branches = ps.ops.Case(0, [x], ["float32"], ["f", "g"])
    anything = graph.apply("MyOp", x)
    imported = ps.import_graph_def("model.pb", return_elements=["y:0"], name="")
    init = ps.global_variables_initializer()

with ps.Session(graph, config=ps.Config(tier=ps.Tier.DATAFLOW)) as session:
    init.run()
    options = ps.RunOptions(timeout_in_ms=100)
    result = session.run([y, total], {x: np.ones((4, 3), np.float32)}, options)
    shape: ps.TensorShape = x.shape
    run: ps.Run = session.run_async(y)
    for op in session.graph.get_operations():
        print(op.type, op.outputs)

try:
    ps.load_graph_def("model.pb")
except ps.errors.NotFoundError as error:
    print(error.message, error.code is ps.errors.Code.NOT_FOUND)
"""
BAD: Final = """
import penstock as ps
ps.opss  # attr-defined
ps.float32  # attr-defined
ps.ops.mat_mull  # attr-defined
x = ps.placeholder("float32")
ps.ops.mat_mul(x)  # call-arg
ps.ops.mat_mul(x, x, transpose_a="yes")  # arg-type
ps.ops.mat_mul(x, x, transpose_c=True)  # call-arg
y: int = ps.ops.relu(x)  # assignment
ps.ops.relu(object())  # arg-type
ps.ops.concat_v2(x, 0)  # arg-type
a, b, c = ps.ops.unique(x)  # misc
ps.ops.unique(x).values  # attr-defined
ps.ops.no_op().dtype  # attr-defined
ps.Config(tier="compiled")  # arg-type
ps.Config(tiers=1)  # call-arg
x.foo  # attr-defined
ps.Graph().get_collection("x")  # attr-defined
ps.Session("x").foo  # attr-defined
ps.default_graph().tensor(3)  # arg-type
"""


def functions() -> dict[str, ast.FunctionDef]:
    """What the stub declares, by name."""
    tree = ast.parse(STUB.read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_stub_is_up_to_date() -> None:
    """It is what the catalogue says; if not, run tools/make_op_stubs.py."""
    assert STUB.read_text("utf-8") == stub()


def test_the_stub_is_what_dir_lists() -> None:
    """All functions of ``dir(ps.ops)`` but users' own are declared, and what it hides."""
    by_hand = set(ps.ops.__all__)
    declared = set(functions())
    hidden = {name for name in declared if name[0].isupper()}
    users = {function_name(op) for op in listed_ops() if not is_builtin_op(op)}

    assert declared - hidden == set(op_functions()) - by_hand - users
    assert {op for op in listed_ops() if op in hidden} == hidden
    assert hidden == {"Case", "Placeholder"}


def test_arguments_are_those_of_the_functions() -> None:
    """Names, order, and which of them may be left out, are as they are when called."""
    for name, declared in functions().items():
        wanted = inspect.signature(getattr(ps.ops, name)).parameters.values()
        args = declared.args
        shown = [(arg.arg, False) for arg in args.args]
        shown += [
            (arg.arg, default is not None)
            for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        ]
        assert shown == [(p.name, p.default is not inspect.Parameter.empty) for p in wanted], name


def test_results_have_the_declared_names() -> None:
    """A call gives a tuple of the class that is declared: same fields, lists where it says so."""
    graph = ps.Graph()
    with graph.as_default():
        made: dict[str, Any] = {
            "unique": ps.ops.unique([1, 2]),
            "top_kv2": ps.ops.top_kv2([1.0, 2.0], 1),
            "barrier_take_many": ps.ops.barrier_take_many(
                ps.ops.barrier(["float32"]), 1, component_types=["float32"]
            ),
        }
    tree = ast.parse(STUB.read_text("utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for name, result in made.items():
        returned = functions()[name].returns
        assert isinstance(returned, ast.Name)
        fields = [node for node in classes[returned.id].body if isinstance(node, ast.AnnAssign)]
        assert [ast.unparse(field.target) for field in fields] == list(result._fields)
        lists = ["list" in ast.unparse(field.annotation) for field in fields]
        assert lists == [isinstance(item, list) for item in result]


def test_ops_for_tests_are_not_listed() -> None:
    """What only TensorFlow's own tests use is not offered, but can be looked up as before."""
    hidden = set(all_ops()) - set(listed_ops())
    for op in ("A", "Old", "TestAttr", "KernelLabel", "AttrEnum", "Namespace>TestStringOutput"):
        assert op in hidden
        assert get_op(op).name == op
    for op in ("MatMul", "Const", "Abort", "ResourceGather", "Stage"):
        assert op not in hidden
    assert not {"test_attr", "kernel_label", "a", "old"} & set(dir(ps.ops))
    assert ps.ops.test_string_output is ps.ops.TestStringOutput


def test_graphs_with_ops_for_tests_load() -> None:
    """A graph that has one is a graph."""
    graph = ps.Graph()
    with graph.as_default():
        ps.ops.TestAttr(T="float32", name="x")
    again = ps.Graph()
    again.import_graph_def(graph.as_graph_def(), name="")

    assert again.operation("x").type == "TestAttr"


def test_the_stub_stays_small() -> None:
    """It is part of what everybody installs."""
    assert STUB.stat().st_size < 400_000


@pytest.mark.slow
def test_mypy_knows_the_types(tmp_path: Path) -> None:
    """It accepts what is right, and finds each mistake where it is."""
    pytest.importorskip("mypy")
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "good.py", "bad.py"]
    environment = {"MYPYPATH": str(Path(ps.__file__).parents[1]), "PATH": ""}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    found = re.findall(r"^(\w+\.py):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    lines = BAD.splitlines()
    wrong = [
        ("bad.py", str(number), line.partition("# ")[2])
        for number, line in enumerate(lines, 1)
        if "# " in line
    ]

    assert len(wrong) > 15
    assert found == wrong, done.stdout + done.stderr
