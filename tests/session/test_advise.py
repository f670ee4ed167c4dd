"""A run without initialized variables says which nodes of the graph give them values."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.advice import NO_INITIALIZER
from penstock.cli import main
from penstock.errors import OpError
from support.graphs import graph, graph_def

RESOURCE: Final = """
x = Placeholder[shape=]
zero = Const[value=0]
v = VarHandleOp[dtype=float32; shape=; shared_name=v]
v/Assign = AssignVariableOp[dtype=float32](v, zero)
init = NoOp(^v/Assign)
v/Read = ReadVariableOp[dtype=float32](v)
y = Mul(x, v/Read)
put = AssignVariableOp[dtype=float32](v, x)
save/default = Const[dtype=string; value=model]
save/Const = PlaceholderWithDefault[dtype=string; shape=](save/default)
save/name = Const[dtype=string; value=v]
save/names = Pack[N=1; T=string](save/name)
save/slice = Const[dtype=string; value=]
save/slices = Pack[N=1; T=string](save/slice)
save/SaveV2 = SaveV2[dtypes=float32](save/Const, save/names, save/slices, v/Read)
save/RestoreV2 = RestoreV2[dtypes=float32](save/Const, save/names, save/slices)
save/Assign = AssignVariableOp[dtype=float32](v, save/RestoreV2)
save/restore_all = NoOp(^save/Assign)
"""
REFERENCE: Final = (
    RESOURCE.replace("VarHandleOp[dtype=float32; shape=; shared_name=v]", "VariableV2[shape=]")
    .replace("AssignVariableOp[dtype=float32]", "Assign[T=float32]")
    .replace("ReadVariableOp[dtype=float32]", "Identity")
)
ADVICE: Final = (
    "restore a checkpoint: session.run('save/restore_all', {'save/Const:0': 'PREFIX'}), "
    "or initialize it: session.run('init')"
)


def ways_to_run(session: ps.Session) -> dict[str, Callable[[], Any]]:
    """Every way to run the session's graph."""
    feeds = {"x:0": 1.0}
    options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE)
    return {
        "run": lambda: session.run("y:0", feeds),
        "traced": lambda: session.run("y:0", feeds, options),
        "run_async": lambda: session.run_async("y:0", feeds).result(),
        "callable": lambda: session.make_callable("y:0", ["x:0"])(1.0),
        "partial_run": lambda: session.partial_run(
            session.partial_run_setup(["y:0"], ["x:0"]), ["y:0"], feeds
        ),
    }


@pytest.mark.parametrize("tier", list(ps.Tier))
@pytest.mark.parametrize("text", [REFERENCE, RESOURCE], ids=["reference", "resource"])
def test_every_way_to_run_says_it(text: str, tier: ps.Tier) -> None:
    """The error names the nodes that restore and initialize, and following it helps."""
    with ps.Session(graph(text), config=ps.Config(tier=tier)) as session:
        for way, run in ways_to_run(session).items():
            with pytest.raises(OpError) as caught:
                run()
            assert caught.value.next_step == ADVICE, way
        session.run("init")
        for way, run in ways_to_run(session).items():
            assert run() in (0.0, [0.0]), way


def test_a_graph_without_initializers() -> None:
    """It can only be frozen, and that is said."""
    text = "v = VariableV2[shape=]\ny = Identity(v)"
    with ps.Session(graph(text)) as session, pytest.raises(OpError) as caught:
        session.run("y:0")

    assert caught.value.next_step == NO_INITIALIZER


def test_an_uninitialized_iterator() -> None:
    """It names the node that makes it begin."""
    definition = graph_def(
        """
        start = Const[dtype=int64; value=0]
        stop = Const[dtype=int64; value=3]
        step = Const[dtype=int64; value=1]
        range = RangeDataset[output_types=int64; output_shapes=](start, stop, step)
        iterator = IteratorV2[output_types=int64; output_shapes=; shared_name=i; container=c]
        begin = MakeIterator(range, iterator)
        next = IteratorGetNext[output_types=int64; output_shapes=](iterator)
        """
    )
    for node in definition.node:
        if "output_shapes" in node.attr:
            node.attr["output_shapes"].list.shape.add()
    with ps.Session(definition) as session:
        with pytest.raises(OpError, match="iterator has not been initialized") as caught:
            session.run("next:0")
        assert caught.value.next_step == "initialize it: session.run('begin')"
        session.run("begin")
        assert session.run("next:0") == 0


def test_the_command_line_restores_a_checkpoint(tmp_path: Path) -> None:
    """What it says after a run without values can be typed in, and gives the saved ones."""
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_def(RESOURCE).SerializeToString())
    prefix = str(tmp_path / "model.ckpt-7")
    with ps.Session(path) as session:
        session.run("put", {"x:0": 5.0})
        session.run("save/SaveV2", {"save/Const:0": prefix})
    run = ["run", str(path), "--feed", "x:0=2", "--fetch", "y:0"]
    failed = CliRunner().invoke(main, run)
    advised = failed.stderr.partition("restore a checkpoint: ")[2].partition(", or initialize it: ")
    restore = shlex.split(advised[0].replace("PREFIX", prefix))
    done = CliRunner().invoke(main, [*run, *restore])
    fresh = CliRunner().invoke(main, [*run, *shlex.split(advised[2])])

    assert failed.exit_code == 1
    assert restore == ["--checkpoint", prefix]
    assert (done.exit_code, done.stdout) == (0, "y:0  float32  10\n")
    assert (fresh.exit_code, fresh.stdout) == (0, "y:0  float32  0\n")


def test_the_example_of_an_idle_run_restores_too(tmp_path: Path) -> None:
    """A command that is offered gives variables their values."""
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_def(RESOURCE).SerializeToString())
    done = CliRunner().invoke(main, ["run", str(path)])
    example = shlex.split(done.stderr.rstrip().splitlines()[-1])

    assert example[3:5] == ["--checkpoint", "PREFIX"]
