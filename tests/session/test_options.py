"""Configuration, run options, metadata and devices."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.config import GraphOptions
from penstock.defs import schema
from penstock.graph.import_graph_def import graph_from_def
from support.loops import counting_loop
from support.sketch import CPU, sketch

SIMPLE = """
    x = Placeholder() dtype=float32
    y = Neg(x)
    z = Add(y, x)
    s = Placeholder() dtype=bool
    sw = Switch(z, s)
    dead = Neg(sw:0)
    live = Neg(sw:1, ^y)
"""
TWO = """
    x = Placeholder() dtype=float32
    y = Neg(x) device="/device:CPU:1"
    z = Add(y, x) device="/cpu:0"
"""

# -- messages ------------------------------------------------------------------------


def forms(message: Any) -> list[Any]:
    """A message as it is, and as bytes."""
    return [message, message.SerializeToString()]


def test_a_config_proto_is_a_config() -> None:
    """Every field that Penstock knows is taken from the message, whole or as bytes."""
    proto = schema.ConfigProto()
    proto.device_count["CPU"] = 2
    proto.allow_soft_placement = True
    proto.log_device_placement = True
    proto.inter_op_parallelism_threads = 3
    proto.intra_op_parallelism_threads = 2
    proto.use_per_session_threads = True
    proto.operation_timeout_in_ms = 1234
    proto.graph_options.place_pruned_graph = True
    proto.experimental.disable_output_partition_graphs = True
    proto.experimental.optimize_for_static_graph = True
    want = ps.Config(
        device_count={"CPU": 2},
        allow_soft_placement=True,
        log_device_placement=True,
        inter_op_parallelism_threads=3,
        intra_op_parallelism_threads=2,
        use_per_session_threads=True,
        operation_timeout_in_ms=1234,
        place_pruned_graph=True,
        disable_output_partition_graphs=True,
        optimize_for_static_graph=True,
    )
    for form in forms(proto):
        assert ps.Config.of(form) == want
    assert ps.Config.of(want) is want
    assert ps.Config.of(None) == ps.Config()
    assert not ps.Config.of(schema.ConfigProto()).allow_soft_placement


def test_run_options_are_messages_too() -> None:
    """RunOptions come as the class, as message, or as bytes."""
    proto = schema.RunOptions(trace_level=3, timeout_in_ms=5, output_partition_graphs=True)
    want = ps.RunOptions(
        trace_level=ps.TraceLevel.FULL_TRACE, timeout_in_ms=5, output_partition_graphs=True
    )
    for form in forms(proto):
        assert ps.RunOptions.of(form) == want


@pytest.mark.parametrize("bad", [3, "text", b"\xff\xff", [], {"a": 1}, object()])
def test_what_is_no_message_is_refused(bad: Any) -> None:
    """Options of another kind are refused, not guessed at."""
    for kind in (ps.Config, ps.RunOptions):
        with pytest.raises(errors.InvalidArgumentError):
            kind.of(bad)


def test_an_unknown_trace_level_is_refused() -> None:
    """A trace level that does not exist is no Python error."""
    with pytest.raises(errors.InvalidArgumentError, match="trace_level"):
        ps.RunOptions.of(schema.RunOptions(trace_level=9))


def test_options_are_accepted_wherever_they_are_wanted() -> None:
    """Sessions, runs and callables take the bytes of messages."""
    config = schema.ConfigProto(inter_op_parallelism_threads=1).SerializeToString()
    options = schema.RunOptions(timeout_in_ms=60_000).SerializeToString()
    with ps.Session(sketch(SIMPLE), config=config) as session:
        assert session.run("y:0", {"x": 1.0}, options) == -1.0
        assert session.make_callable("y:0", ["x"], options)(1.0) == -1.0
        assert session.run_async("y:0", {"x": 1.0}, options).result(5.0) == -1.0


@pytest.mark.parametrize("pool", [-2, 1, 99])
def test_a_pool_that_is_not_there(pool: int) -> None:
    """A session has one pool, number 0; -1 is the caller's thread."""
    with ps.Session(sketch(SIMPLE)) as session:
        for good in (-1, 0):
            options = ps.RunOptions(inter_op_thread_pool=good)
            assert session.run("y:0", {"x": 1.0}, options) == -1.0
        with pytest.raises(errors.InvalidArgumentError, match="Invalid inter_op_thread_pool"):
            session.run("y:0", {"x": 1.0}, ps.RunOptions(inter_op_thread_pool=pool))


@pytest.mark.parametrize("threads", [-5, 0, 1, 2, 64])
@pytest.mark.parametrize("own", [True, False])
def test_any_number_of_threads(threads: int, own: bool) -> None:
    """However many threads are asked for, the answers are the same."""
    config = ps.Config(
        inter_op_parallelism_threads=threads, use_per_session_threads=own, offload_seconds=0.0
    )
    with ps.Session(sketch(counting_loop()), config=config) as session:
        assert session.run("exit:0", {"limit": 5}) == 5


# -- metadata ------------------------------------------------------------------------


def traced(text: str, fetch: Any, feeds: Any, **config: Any) -> ps.RunMetadata:
    """The metadata of a run with everything recorded."""
    metadata = ps.RunMetadata()
    options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE, output_partition_graphs=True)
    with ps.Session(sketch(text), config=ps.Config(**config)) as session:
        session.run(fetch, feeds, options, metadata)
    return metadata


def test_step_stats_have_a_record_per_activation() -> None:
    """Live nodes have records with times, labels and outputs; dead ones have none."""
    metadata = traced(SIMPLE, ["live:0"], {"x": [1.0, 2.0], "s": True})
    (device,) = metadata.step_stats.dev_stats
    assert device.device == CPU
    records = {node.node_name: node for node in device.node_stats}
    assert {"y", "z", "sw", "live"} <= set(records)
    assert "dead" not in records
    z = records["z"]
    assert z.timeline_label.startswith("z = Add(y, ")
    assert records["live"].timeline_label == "live = Neg(sw:1, ^y)"
    assert z.all_start_micros > 1_500_000_000_000_000
    assert z.op_end_rel_micros >= z.op_start_rel_micros >= 0
    assert z.all_end_rel_micros >= z.op_end_rel_micros > 0
    assert z.scheduled_micros <= z.all_start_micros
    (output,) = z.output
    assert output.tensor_description.dtype == 1
    assert [d.size for d in output.tensor_description.shape.dim] == [2]
    assert output.tensor_description.allocation_description.requested_bytes == 8
    assert [o.slot for o in records["sw"].output] == [1]
    starts = [node.all_start_micros for node in device.node_stats]
    assert starts == sorted(starts)


def test_loops_have_a_record_per_iteration() -> None:
    """A node in a loop has one record for each turn in which it was alive."""
    metadata = traced(counting_loop(), "exit:0", {"limit": 3})
    (device,) = metadata.step_stats.dev_stats
    names = [node.node_name for node in device.node_stats]
    assert names.count("merge") == 4
    assert names.count("sum") == 3
    assert names.count("exit") == 1


def test_the_cost_graph_sums_up_by_node() -> None:
    """The cost graph has one entry per node that ran, with inputs and output sizes."""
    metadata = traced(SIMPLE, ["z:0"], {"x": [1.0, 2.0]})
    entries = {node.name: node for node in metadata.cost_graph.node}
    assert {"y", "z"} <= set(entries)
    z = entries["z"]
    assert z.device == CPU
    assert z.output_info[0].size == 8
    assert entries["y"].id in [info.preceding_node for info in z.input_info]
    names = [node.name for node in metadata.cost_graph.node]
    assert len(names) == len(set(names))


def test_partition_graphs_are_graphs() -> None:
    """The graphs that ran can be read again; transfers join the devices."""
    metadata = traced(TWO, "z:0", {"x": 1.0}, device_count={"CPU": 2})
    assert len(metadata.partition_graphs) == 2
    ops = [{node.op for node in graph.node} for graph in metadata.partition_graphs]
    assert all({"_Send", "_Recv"} <= found for found in ops)
    for graph in metadata.partition_graphs:
        assert {node.device for node in graph.node} != {""}
        assert len({node.device for node in graph.node}) == 1
        graph_from_def(graph, allow_internal_names=True)
    assert len(metadata.step_stats.dev_stats) == 2
    proto = metadata.to_proto()
    assert len(proto.partition_graphs) == 2
    assert len(schema.RunMetadata.FromString(proto.SerializeToString()).step_stats.dev_stats) == 2


def test_nothing_is_recorded_unless_it_is_asked_for() -> None:
    """Without options, metadata stays empty."""
    metadata = ps.RunMetadata()
    with ps.Session(sketch(SIMPLE)) as session:
        session.run("y:0", {"x": 1.0}, None, metadata)
    assert not metadata.step_stats.dev_stats
    assert not metadata.partition_graphs


def test_a_failed_run_is_recorded_too() -> None:
    """What ran before an error is in the metadata."""
    metadata = ps.RunMetadata()
    options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE)
    text = "x = Const() value=[1.0]\ny = Neg(x)\nm = Const() value=[1.0, 2.0, 3.0]\nz = Add(n, m)"
    text = text.replace("z = ", "n = Concat(zero, y, y)\nz = ")
    text = "zero = Const() value=0\n" + text.replace("Concat(zero, y, y)", "Concat(zero, y, y) N=2")
    config = ps.Config(graph_options=GraphOptions.nothing())
    session = ps.Session(sketch(text), config=config)
    with session, pytest.raises(errors.InvalidArgumentError):
        session.run("z:0", None, options, metadata)
    (device,) = metadata.step_stats.dev_stats
    names = {node.node_name for node in device.node_stats}
    assert "y" in names
    assert "z" not in names


def test_partition_graphs_can_be_forbidden() -> None:
    """A session that does not give partition graphs says so before anything runs."""
    config = ps.Config(disable_output_partition_graphs=True)
    options = ps.RunOptions(output_partition_graphs=True)
    with ps.Session(sketch(SIMPLE), config=config) as session:
        with pytest.raises(errors.InvalidArgumentError, match="disable_output_partition_graphs"):
            session.run("y:0", {"x": 1.0}, options, ps.RunMetadata())
        assert session.run("y:0", {"x": 1.0}) == -1.0


# -- devices -------------------------------------------------------------------------


def test_devices_are_listed() -> None:
    """A session has as many CPUs as it was asked for, and always one."""
    for asked, got in ((0, 1), (1, 1), (3, 3)):
        with ps.Session(sketch(SIMPLE), config=ps.Config(device_count={"CPU": asked})) as session:
            devices = session.list_devices()
        assert [d.name[-5:] for d in devices] == [f"CPU:{i}" for i in range(got)]
        assert all(d.device_type == "CPU" and d.memory_limit > 0 for d in devices)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_two_devices(seed: int | None) -> None:
    """Values cross between devices and come back."""
    config = ps.Config(device_count={"CPU": 2}, ready_order_seed=seed)
    with ps.Session(sketch(TWO), config=config) as session:
        assert session.run("z:0", {"x": 3.0}) == 0.0
        assert session.placement("z:0")["y"].endswith("CPU:1")


def test_a_loop_over_two_devices() -> None:
    """A loop whose body lies on another device counts all the same."""
    text = counting_loop().replace("Add(body, one)", 'Add(body, one) device="/device:CPU:1"')
    config = ps.Config(device_count={"CPU": 2})
    with ps.Session(sketch(text), config=config) as session:
        for limit in (0, 1, 30):
            assert session.run("exit:0", {"limit": limit}) == limit


def test_a_missing_device_is_refused_without_soft_placement() -> None:
    """A device that is not here fails placement if nothing else is allowed."""
    text = 'x = Const() value=1.0\ny = Neg(x) device="/device:CPU:7"'
    with ps.Session(sketch(text), config=ps.Config(allow_soft_placement=False)) as session:
        with pytest.raises(errors.InvalidArgumentError, match="CPU:7") as caught:
            session.run("y:0")
        assert caught.value.node_name == "y"


def test_soft_placement_warns_once() -> None:
    """A graph made for other devices runs here, after one warning per session."""
    text = 'x = Const() value=1.0\ny = Neg(x) device="/device:GPU:0"\nz = Neg(y) device="/gpu:1"'
    with ps.Session(sketch(text)) as session:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert session.run("z:0") == 1.0
            assert session.run("y:0") == -1.0
        assert len(caught) == 1
        assert "GPU" in str(caught[0].message)
        assert "allow_soft_placement=False" in str(caught[0].message)


def test_placement_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """With log_device_placement, each node and its device is printed."""
    config = ps.Config(device_count={"CPU": 2}, log_device_placement=True)
    with ps.Session(sketch(TWO), config=config) as session:
        session.run("z:0", {"x": 1.0})
    lines = capsys.readouterr().out.splitlines()
    assert any("y" in line and "Neg" in line and "CPU:1" in line for line in lines)
    assert any("z" in line and "Add" in line and "CPU:0" in line for line in lines)


def test_a_misplaced_node_elsewhere_does_no_harm_if_only_the_pruned_graph_is_placed() -> None:
    """With place_pruned_graph, only what a request needs must be placeable."""
    text = 'x = Const() value=1.0\ny = Neg(x)\nbad = Neg(x) device="/device:CPU:7"'
    strict = {"allow_soft_placement": False}
    session = ps.Session(sketch(text), config=ps.Config(**strict))
    with session, pytest.raises(errors.InvalidArgumentError):
        session.run("y:0")
    config = ps.Config(place_pruned_graph=True, **strict)
    with ps.Session(sketch(text), config=config) as session:
        assert session.run("y:0") == -1.0
        with pytest.raises(errors.InvalidArgumentError):
            session.run("bad:0")


def test_outputs_are_checked_if_asked() -> None:
    """With check_outputs, results are what they are without."""
    config = ps.Config(check_outputs=True)
    with ps.Session(sketch(counting_loop()), config=config) as session:
        assert session.run("exit:0", {"limit": np.int32(4)}) == 4
