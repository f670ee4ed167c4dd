"""Step statistics are those that TensorFlow fills, and its Timeline reads them.

``recorded.json`` is what TensorFlow 2.21 recorded of the same graph, by
``tools/record_step_stats.py``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from support.graphs import graph_def
from support.loops import counting_loop
from support.sketch import sketch
from tracing.traced_graph import FEEDS, FETCHES, traced_graph

TENSORFLOW = os.environ.get("PENSTOCK_TENSORFLOW", "")
RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text("utf-8"))
FULL = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE)
NOTHING = ps.GraphOptions.nothing()
#: Where an executor begins, and the names that each gives to what it is fed, fetches and returns.
OWN_NAMES = re.compile(r"_SOURCE|_arg_.*|_retval_.*|.*RetVal")
STRING = 7
#: TensorFlow computes these in the memory of their inputs.
IN_PLACE = {"i_sum", "square", "root", "y"}


@pytest.fixture(scope="module")
def stats() -> Any:
    """What Penstock records of the graph."""
    metadata = ps.RunMetadata()
    config = ps.Config(device_count={"CPU": 2}, graph_options=NOTHING)
    with ps.Session(traced_graph(), config=config) as session:
        session.run("init")
        session.run(list(FETCHES), FEEDS, FULL, metadata)
    return metadata.step_stats


def nodes(stats: Any) -> dict[str, list[Any]]:
    """The records of each device."""
    return {device.device: list(device.node_stats) for device in stats.dev_stats}


def shown(output: Any) -> list[Any]:
    """Slot, type, shape, bytes and whether the step allocated an output."""
    described = output.tensor_description
    allocation = described.allocation_description
    sizes = [dim.size for dim in described.shape.dim]
    row = [output.slot, described.dtype, sizes, allocation.requested_bytes]
    return [*row, bool(allocation.allocated_bytes)]


def text_left_out(row: list[Any]) -> list[Any]:
    """An output; without the bytes of strings, which lie in memory in other ways."""
    return [*row[:3], None, row[4]] if row[1] == STRING else row


def test_the_same_nodes_as_in_tensorflow(stats: Any) -> None:
    """On each device, each node as often as it was alive, those of functions included."""
    for device, found in nodes(stats).items():
        have = Counter(n.node_name for n in found if not OWN_NAMES.fullmatch(n.node_name))
        want = Counter(n["name"] for n in RECORDED[device] if not OWN_NAMES.fullmatch(n["name"]))
        assert have == want
    assert nodes(stats).keys() == RECORDED.keys()


def test_the_same_outputs_as_in_tensorflow(stats: Any) -> None:
    """Slots, types, shapes, bytes, and what was allocated in the step."""
    for device, found in nodes(stats).items():
        for name in {n.node_name for n in found if not OWN_NAMES.fullmatch(n.node_name)}:
            have = sorted(
                [text_left_out(shown(o)) for o in n.output] for n in found if n.node_name == name
            )
            want = sorted(
                [text_left_out(o) for o in n["outputs"]]
                for n in RECORDED[device]
                if n["name"] == name
            )
            assert have == want, name


def test_the_same_labels_as_in_tensorflow(stats: Any) -> None:
    """Name, op and inputs; numbers of transfers are each program's own."""

    def plain(label: str) -> tuple[str, list[str]]:
        head, _, inputs = re.sub(r"/_\d+\b", "/_", label).partition("(")
        return head, sorted(inputs.removesuffix(")").split(", "))  # Add is the same either way

    for device, found in nodes(stats).items():
        have = {n.node_name: plain(n.timeline_label) for n in found}
        want = {n["name"]: plain(n["label"]) for n in RECORDED[device]}
        common = {name for name in have if name != "y" and not OWN_NAMES.fullmatch(name)}
        assert {n: have[n] for n in common} == {n: want[n] for n in common}


def test_the_same_memory_as_in_tensorflow(stats: Any) -> None:
    """What a node allocates, and what its kernel keeps from step to step."""
    for device, found in nodes(stats).items():
        want = {
            (n["name"], *map(tuple, n["memory"]))
            for n in RECORDED[device]
            if n["name"] not in IN_PLACE and n["name"] != "joined"
        }
        have = {
            (n.node_name, *((m.total_bytes, m.peak_bytes, m.live_bytes) for m in n.memory))
            for n in found
            if n.node_name not in IN_PLACE and n.node_name != "joined"
        }
        named = {row for row in want if not OWN_NAMES.fullmatch(row[0])}
        assert {row for row in have if not OWN_NAMES.fullmatch(row[0])} == named
        kept = {n["name"]: n["persistent"] for n in RECORDED[device] if n["name"] != "words"}
        for node in found:
            assert node.memory_stats.persistent_memory_size == kept.get(
                node.node_name, node.memory_stats.persistent_memory_size
            )


def test_memory_is_given_back_when_nobody_reads_it(stats: Any) -> None:
    """Each allocation has a record with its bytes, and a later one that takes them back."""
    for found in nodes(stats).values():
        begins = {n.node_name: (n.all_start_nanos + n.op_start_rel_nanos) // 1000 for n in found}
        ends = {n.node_name: (n.all_start_nanos + n.op_end_rel_nanos) // 1000 for n in found}
        for node in found:
            for memory in node.memory:
                sizes = [record.alloc_bytes for record in memory.allocation_records]
                times = [record.alloc_micros for record in memory.allocation_records]
                assert sum(sizes) == 0
                assert sum(size for size in sizes if size > 0) == memory.total_bytes
                assert times == sorted(times)
        if "scaled" in ends:
            (scaled,) = (n for n in found if n.node_name == "scaled")
            made, freed = scaled.memory[0].allocation_records
            assert (made.alloc_micros, freed.alloc_micros) == (begins["scaled"], ends["sum"])


def test_times_are_in_order_and_in_both_units(stats: Any) -> None:
    """Scheduled, started, kernel begun, kernel done, outputs handed on; nanoseconds and micros."""
    for found in nodes(stats).values():
        for n in found:
            assert n.scheduled_nanos <= n.all_start_nanos
            assert 0 <= n.op_start_rel_nanos <= n.op_end_rel_nanos <= n.all_end_rel_nanos
            assert n.scheduled_micros == n.scheduled_nanos // 1000
            assert n.all_start_micros == n.all_start_nanos // 1000
            assert n.op_start_rel_micros == n.op_start_rel_nanos // 1000
            assert n.op_end_rel_micros == max(1, n.op_end_rel_nanos // 1000)
            assert n.all_end_rel_micros >= n.op_end_rel_micros


def test_threads_have_names(stats: Any) -> None:
    """The thread of each record is named."""
    for device in stats.dev_stats:
        assert {n.thread_id for n in device.node_stats} == set(device.thread_names)
        assert all(device.thread_names.values())


def test_a_node_is_scheduled_when_its_last_input_is_there() -> None:
    """Not before the last node that it reads is done, and before any other begins after that."""
    metadata = ps.RunMetadata()
    text = "x = Placeholder\na = Neg(x)\nb = Neg(x)\nc = Exp(x)\nz = AddN[N=3](a, b, c)"
    config = ps.Config(graph_options=NOTHING, inter_op_parallelism_threads=1)
    with ps.Session(graph_def(text), config=config) as session:
        session.run("z:0", {"x:0": 1.0}, FULL, metadata)
    (device,) = metadata.step_stats.dev_stats
    found = {node.node_name: node for node in device.node_stats}
    z = found["z"]
    done = [found[n].all_start_nanos + found[n].op_end_rel_nanos for n in "abc"]
    told = [found[n].all_start_nanos + found[n].all_end_rel_nanos for n in "abc"]
    assert max(done) <= z.scheduled_nanos <= max(told)
    for name in "abc":  # x made all of them ready at once
        assert found[name].scheduled_nanos == found["a"].scheduled_nanos


def test_a_node_is_ready_before_its_turn_comes() -> None:
    """What was ready earlier runs first; when it became ready is noted all the same."""
    metadata = ps.RunMetadata()
    text = "x = Placeholder\na = Neg(x)\nb = Exp(x)\nc = Abs(x)\nd = Neg(a)\ne = Neg(d)"
    text += "\nz = AddN[N=3](b, c, e)"
    config = ps.Config(graph_options=NOTHING, inter_op_parallelism_threads=1)
    with ps.Session(graph_def(text), config=config) as session:
        session.run("z:0", {"x:0": 1.0}, FULL, metadata)
    (device,) = metadata.step_stats.dev_stats
    found = {node.node_name: node for node in device.node_stats}
    told = {name: n.all_start_nanos + n.all_end_rel_nanos for name, n in found.items()}
    order = [n.node_name for n in device.node_stats if n.node_name in set("abcdez")]
    assert order == ["a", "b", "c", "d", "e", "z"]
    # b and c stood before d; e was taken up as soon as it was ready.
    assert found["d"].scheduled_nanos == told["a"] < told["c"] <= found["d"].all_start_nanos
    assert found["e"].scheduled_nanos == told["d"] <= found["e"].all_start_nanos
    assert found["z"].scheduled_nanos == told["e"]


def test_statistics_are_made_when_they_are_read() -> None:
    """And are the same message each time."""
    metadata = ps.RunMetadata()
    with ps.Session(sketch(counting_loop())) as session:
        session.run("exit:0", {"limit": 2}, FULL, metadata)
    assert metadata.step_stats is metadata.step_stats
    assert metadata.cost_graph is metadata.cost_graph
    assert len(metadata.step_stats.dev_stats) == 1


TIMELINE = """
import json, sys
from tensorflow.core.framework import step_stats_pb2
from tensorflow.python.client.timeline import Timeline
stats = step_stats_pb2.StepStats.FromString(sys.stdin.buffer.read())
print(Timeline(stats).generate_chrome_trace_format(show_memory=True))
"""


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.skipif(not TENSORFLOW, reason="PENSTOCK_TENSORFLOW names no Python with TensorFlow")
def test_tensorflows_timeline_reads_them(stats: Any) -> None:
    """It shows every record with its op and inputs, every tensor, and the memory."""
    content = stats.SerializeToString()
    done = subprocess.run(
        [TENSORFLOW, "-c", TIMELINE], input=content, capture_output=True, check=True, timeout=120
    )
    events = json.loads(done.stdout)["traceEvents"]
    shown_ops = [e for e in events if e["ph"] == "X" and e["cat"] == "Op"]
    want = Counter(n.node_name for found in nodes(stats).values() for n in found)
    assert Counter(event["args"]["name"] for event in shown_ops) == want
    (total,) = (e for e in shown_ops if e["args"]["name"] == "sum")
    assert (total["name"], total["args"]["input0"], total["args"]["input1"]) == (
        "Sum", "scaled", "axis",
    )  # fmt: skip
    assert {e["args"]["cpu"] > 0 for e in events if e["ph"] == "C"} >= {True}
    # An arrow from device to device: what it reads under the name of a transfer is found.
    assert any(event["ph"] == "s" and event["name"] == "sum" for event in events)


def test_what_a_timeline_reads_is_there(stats: Any) -> None:
    """Labels that it can take apart, names of its inputs that it knows, and allocators."""
    dead = {"small"}
    made = {n.node_name for found in nodes(stats).values() for n in found} | dead
    for found in nodes(stats).values():
        for node in found:
            match = re.fullmatch(r"(.*) = (.*)\((.*)\)", node.timeline_label)
            assert match is not None
            assert match[1] == node.node_name
            for name in filter(None, match[3].split(", ")):
                plain = re.sub(r"/_\d+$", "", name.removeprefix("^").partition(":")[0])
                assert plain in made, name
            assert node.all_end_rel_micros > 0
            for output in node.output:
                assert output.tensor_description.allocation_description.allocator_name
