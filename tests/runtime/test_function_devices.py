"""Where the nodes of functions lie and run on three CPUs: as TensorFlow has recorded it.

``placements.json`` has random graphs of ``support/random_functions.py`` with TensorFlow's answers;
the other tests have theirs written down.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock import errors
from penstock.defs.schema import GraphDef, Message
from support.functions import graph_def_with

RECORDED = json.loads((Path(__file__).parent / "placements.json").read_text("utf-8"))
FEEDS = {"p:0": True, "i:0": 1, "x:0": 2.0, "y:0": 3.0}
#: Only functions are optimised, or nothing at all.
OPENS = ps.GraphOptions(
    rewrite_options=ps.RewriterConfig(
        function_optimization=ps.RewriterConfig.ON,
        constant_folding=ps.RewriterConfig.OFF,
        common_subgraph_elimination=ps.RewriterConfig.OFF,
        arithmetic_optimization=ps.RewriterConfig.OFF,
        dependency_optimization=ps.RewriterConfig.OFF,
        remapping=ps.RewriterConfig.OFF,
    )
)
NOTHING = ps.GraphOptions.nothing()
CPUS = {"CPU": 3}


def loaded(case: dict[str, Any]) -> Message:
    """A case's graph."""
    proto = GraphDef()
    proto.ParseFromString(zlib.decompress(base64.b64decode(case["graph"])))
    return proto


def read_places(text: str) -> dict[str, str]:
    """Devices' numbers by node, as the file has them."""
    return dict(part.split(":") for part in text.split())


def numbers(found: list[tuple[str, str]], names: set[str]) -> dict[str, str]:
    """Devices' numbers by node, of the functions' nodes.

    A few of TensorFlow's may not be here: what only feeds arguments that nobody reads.
    """
    short = {name.rpartition("/")[2]: device[-1] for name, device in found}
    return {name: short[name] for name in names & short.keys()}


def function_nodes(proto: Message) -> set[str]:
    """The names of all nodes of all functions."""
    return {node.name for function in proto.library.function for node in function.node_def}


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["seed"]))
@pytest.mark.parametrize("tier", ps.Tier)
def test_opened_functions_lie_where_tensorflow_puts_them(
    case: dict[str, Any], tier: ps.Tier
) -> None:
    """The partition graphs say so, and the result is TensorFlow's."""
    proto, metadata = loaded(case), ps.RunMetadata()
    config = ps.Config(
        device_count=CPUS,
        tier=tier,
        graph_options=OPENS,
        ready_order_seed=case["seed"] if tier is ps.Tier.DATAFLOW else None,
        check_graphs=True,
    )
    options = ps.RunOptions(output_partition_graphs=True)
    with ps.Session(proto, config=config) as session:
        session.run("init")
        value = session.run("out:0", FEEDS, options, metadata)
    nodes = [(node.name, node.device) for part in metadata.partition_graphs for node in part.node]
    found = numbers(nodes, function_nodes(proto))
    expected = read_places(case["opened"]["places"])
    common = found.keys() & expected.keys()
    assert {name: found[name] for name in common} == {name: expected[name] for name in common}
    assert len(expected) - len(common) <= max(1, len(expected) // 10)
    assert value == case["opened"]["value"]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["seed"]))
@pytest.mark.parametrize("tier", ps.Tier)
def test_called_functions_run_where_tensorflow_runs_them(
    case: dict[str, Any], tier: ps.Tier
) -> None:
    """The step's statistics say so, and the result is TensorFlow's."""
    proto, metadata = loaded(case), ps.RunMetadata()
    for nodes in (proto.node, *(function.node_def for function in proto.library.function)):
        for node in nodes:
            node.attr.pop("_lower_using_switch_merge", None)
    config = ps.Config(
        device_count=CPUS,
        tier=tier,
        graph_options=NOTHING,
        ready_order_seed=case["seed"] if tier is ps.Tier.DATAFLOW else None,
        check_graphs=True,
    )
    options = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE)
    with ps.Session(proto, config=config) as session:
        session.run("init")
        value = session.run("out:0", FEEDS)
        assert session.run("out:0", FEEDS, options, metadata) == value
    devices = metadata.step_stats.dev_stats
    nodes = [(node.node_name, where.device) for where in devices for node in where.node_stats]
    found = numbers(nodes, function_nodes(proto))
    expected = read_places(case["called"]["places"])
    common = found.keys() & expected.keys()
    assert {name: found[name] for name in common} == {name: expected[name] for name in common}
    assert len(expected) - len(common) <= max(1, len(expected) // 10)
    assert value == case["called"]["value"]


# -- functions on several devices ---------------------------------------------------------------

PLACED = """
Placed(x: float32) -> (y: float32)
neg = Neg(x) @/device:CPU:1
exp = Exp(x) @/device:CPU:2
y = Add(neg:y, exp:y)
return y = y:z
"""
REMOTE = """
target = Placeholder[dtype=string]
x = Placeholder
r = RemoteCall[Tin=float32; Tout=float32; f=Placed](target, x) @/device:CPU:1
"""
DEVICE = "/job:localhost/replica:0/task:0/device:CPU:"


def three_cpus(tier: ps.Tier) -> ps.Config:
    """Three CPUs, and functions are called."""
    return ps.Config(device_count=CPUS, tier=tier, graph_options=NOTHING, check_graphs=True)


def run_and_trace(session: ps.Session, fetch: str, feeds: dict[str, Any]) -> tuple[Any, Any]:
    """What a run gives, and the number of the device on which each node ran."""
    metadata = ps.RunMetadata()
    options = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE)
    value = session.run(fetch, feeds, options, metadata)
    devices = metadata.step_stats.dev_stats
    return value, {
        node.node_name: where.device[-1] for where in devices for node in where.node_stats
    }


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(
    ("call", "places"),
    [
        ("PartitionedCall[Tin=float32; Tout=float32; f=Placed]", ("1", "2", "0")),
        ("StatefulPartitionedCall[Tin=float32; Tout=float32; f=Placed]", ("1", "2", "0")),
        ("Placed", ("0", "0", "0")),
    ],
)
def test_where_nodes_run(call: str, places: tuple[str, ...], tier: ps.Tier) -> None:
    """A partitioned call lies where its nodes ask to, a call by name where it lies itself."""
    proto = graph_def_with(f"x = Placeholder\nr = {call}(x)", PLACED)
    with ps.Session(proto, config=three_cpus(tier)) as session:
        value, found = run_and_trace(session, "r:0", {"x:0": 0.0})
        assert value == session.run("r:0", {"x:0": 0.0}) == 1
    assert (found["neg"], found["exp"], found["y"]) == places


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(
    ("target", "place"),
    [
        (f"{DEVICE}2", "2"),
        ("/device:CPU:2", "2"),
        ("CPU:2", "2"),
        ("/cpu:0", "0"),
        ("", "1"),
        ("/job:localhost", "1"),
    ],
)
def test_remote_calls(target: str, place: str, tier: ps.Tier) -> None:
    """All of the function runs on the device that is named; what the name leaves out is as here."""
    with ps.Session(graph_def_with(REMOTE, PLACED), config=three_cpus(tier)) as session:
        value, found = run_and_trace(session, "r:0", {"target:0": target, "x:0": 0.0})
    assert value == 1
    assert {found[name] for name in ("neg", "exp", "y")} == {place}


@pytest.mark.parametrize(
    ("target", "error", "says"),
    [
        ("/device:CPU:7", errors.InternalError, f"functions on device: {DEVICE}7"),
        ("/device:GPU:0", errors.InternalError, "functions on device: .*/device:GPU:0"),
        ("/job:worker/task:0/cpu:0", errors.InternalError, "functions on device: /job:worker/"),
        ("no name!", errors.InvalidArgumentError, "Could not parse no name! into a device"),
    ],
)
def test_remote_calls_to_nowhere(target: str, error: type[errors.OpError], says: str) -> None:
    """What is no device of the session, or no name of one, is said as TensorFlow says it."""
    with (
        ps.Session(graph_def_with(REMOTE, PLACED), config=three_cpus(ps.Tier.COMPILED)) as session,
        pytest.raises(error, match=says),
    ):
        session.run("r:0", {"target:0": target, "x:0": 0.0})


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_failure_on_one_device_ends_the_call(tier: ps.Tier) -> None:
    """The other devices wait for what never comes; the error is that of the node that failed."""
    functions = """
        Fails(x: float32) -> (y: float32)
        bad = CheckNumerics[T=float32; message=oops](x) @/device:CPU:1
        far = Neg(bad:output) @/device:CPU:2
        y = Add(far:y, x)
        return y = y:z
    """
    call = "PartitionedCall[Tin=float32; Tout=float32; f=Fails](x)"
    proto = graph_def_with(f"x = Placeholder\nr = {call}", functions)
    with ps.Session(proto, config=three_cpus(tier)) as session:
        with pytest.raises(errors.InvalidArgumentError, match="oops") as caught:
            session.run("r:0", {"x:0": float("nan")}, ps.RunOptions(timeout_in_ms=20_000))
        assert session.run("r:0", {"x:0": 3.0}) == 0
    assert caught.value.node_name == "bad"


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_deadline_ends_calls_on_several_devices(tier: ps.Tier) -> None:
    """A function whose parts wait, for a queue and for each other, ends with its step."""
    functions = """
        Waits(q: resource) -> (y: float32)
        got = QueueDequeueV2[component_types=float32](q)
        y = Neg(got:components) @/device:CPU:0
        return y = y:y
    """
    graph = """
        q = FIFOQueueV2[component_types=float32] @/device:CPU:1
        r = StatefulPartitionedCall[Tin=resource; Tout=float32; f=Waits](q)
    """
    with (
        ps.Session(graph_def_with(graph, functions), config=three_cpus(tier)) as session,
        pytest.raises(errors.DeadlineExceededError),
    ):
        session.run("r:0", options=ps.RunOptions(timeout_in_ms=300))


@pytest.mark.parametrize("tier", ps.Tier)
def test_calls_of_one_function_do_not_mix(tier: ps.Tier) -> None:
    """A recursion over two devices has many calls at once, each with transfers of its own."""
    functions = """
        Fibonacci(n: int32) -> (f: int32)
        two = Const[value=2; dtype=int32]
        small = Less[T=int32](n, two:output) @/device:CPU:1
        f = If[Tcond=bool; Tin=int32; Tout=int32; then_branch=Same; else_branch=Both](small:z, n)
        return f = f:output:0

        Same(n: int32) -> (f: int32)
        return f = n

        Both(n: int32) -> (f: int32)
        one = Const[value=1; dtype=int32]
        two = Const[value=2; dtype=int32]
        m = Sub[T=int32](n, one:output) @/device:CPU:1
        k = Sub[T=int32](n, two:output) @/device:CPU:2
        a = PartitionedCall[Tin=int32; Tout=int32; f=Fibonacci](m:z) @/device:CPU:2
        b = PartitionedCall[Tin=int32; Tout=int32; f=Fibonacci](k:z) @/device:CPU:1
        f = Add[T=int32](a:output:0, b:output:0) @/device:CPU:2
        return f = f:z
    """
    call = "PartitionedCall[Tin=int32; Tout=int32; f=Fibonacci](n)"
    proto = graph_def_with(f"n = Placeholder[dtype=int32]\nr = {call}", functions)
    for made in proto.library.function:
        for node in made.node_def:
            if node.op == "If":
                node.attr["_lower_using_switch_merge"].b = True
    with ps.Session(proto, config=three_cpus(tier)) as session:
        assert session.run("r:0", {"n:0": 9}, ps.RunOptions(timeout_in_ms=60_000)) == 34


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_function_of_nothing_lies_nowhere(tier: ps.Tier) -> None:
    """Without arguments, results and nodes, a call of it is done at once."""
    graph = "x = Const[value=3]\nc = PartitionedCall[Tin=; Tout=; f=Hollow]\nr = Neg(x, ^c)"
    proto = graph_def_with(graph, "Hollow() -> ()\n")
    with ps.Session(proto, config=three_cpus(tier)) as session:
        assert session.run("r:0") == -3
