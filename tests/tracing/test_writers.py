"""What is written is what viewers read: Chrome's JSON, Perfetto's packets, TensorBoard's events."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock import records
from penstock.defs import perfetto_schema, schema
from penstock.tracing.chrome import chrome_trace_of
from penstock.tracing.from_step_stats import task_of, trace_of_step_stats
from penstock.tracing.perfetto import perfetto_trace_of
from penstock.tracing.trace import Activation, Place, Sort, Trace
from penstock.tracing.tracks import Slice, Timeline, timeline_of
from support.graphs import graph_def
from tracing.traced_graph import FEEDS, FETCHES, traced_graph

NOTHING = ps.GraphOptions.nothing()
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@pytest.fixture(scope="module")
def run() -> ps.TracedRun:
    """Two steps on two devices, with a loop, a branch and a call."""
    config = ps.Config(graph_options=NOTHING, device_count={"CPU": 2})
    with ps.Session(traced_graph(), config=config) as session:
        session.run("init")
        return ps.trace(session, list(FETCHES), FEEDS, detail=ps.TraceDetail.NODES, steps=2)


def slices(timeline: Timeline) -> list[Slice]:
    """All slices of a timeline."""
    return [s for group in timeline.groups for track in group.tracks for s in track.slices]


def test_slices_of_a_track_stand_beside_or_within_each_other(run: ps.TracedRun) -> None:
    """Viewers can show nothing else; and nothing is lost."""
    timeline = timeline_of(run.trace)
    for group in timeline.groups:
        for track in group.tracks:
            around: list[int] = []
            for one in track.slices:
                while around and around[-1] <= one.start:
                    around.pop()
                assert one.end >= one.start
                assert not around or one.end <= around[-1] or one.end == one.start
                around.append(one.end)
    found = Counter(s.category.split(",")[0] for s in slices(timeline))
    trace = run.trace
    assert found["node"] == len(trace.activations)
    assert found["dead"] == len(trace.dead) > 0
    assert found["iteration"] + found["frame"] == len(trace.spans) > 0
    assert found["step"] == 2
    names = [track.name for group in timeline.groups for track in group.tracks]
    assert "MainThread" in names
    assert "loops" in names
    assert [g.name for g in timeline.groups] == ["steps", *trace.devices]


def by_hand(*times: tuple[int, int]) -> Timeline:
    """A thread that did something from then to then."""
    place = Place("/device:CPU:0")
    return timeline_of(
        Trace(
            activations=[
                Activation(place, f"n{i}", "Op", (), Sort.NODE, 7, *(start,) * 3, end, end)
                for i, (start, end) in enumerate(times)
            ]
        )
    )


def test_what_overlaps_in_part_ends_with_what_it_began_in() -> None:
    """Clocks that disagree make no track that nobody can show."""
    (found,) = (track for group in by_hand((0, 10), (5, 20)).groups for track in group.tracks)
    assert [(s.name, s.start, s.end) for s in found.slices] == [("n0", 0, 10), ("n1", 5, 10)]


def test_what_ends_when_the_next_begins_is_beside_it() -> None:
    """In Perfetto's file the end comes before the beginning, so that neither is in the other."""
    trace = perfetto_schema.Trace.FromString(perfetto_trace_of(by_hand((0, 10), (10, 20))))
    kinds = [p.track_event.type for p in trace.packet if p.HasField("track_event")]
    assert kinds == [BEGIN, END, BEGIN, END]


def test_chrome_has_every_slice_and_both_ends_of_arrows(run: ps.TracedRun) -> None:
    """Times are microseconds since the trace began; processes and threads have names."""
    timeline = timeline_of(run.trace)
    content = json.loads(json.dumps(chrome_trace_of(timeline)))
    events = content["traceEvents"]
    kinds = Counter(event["ph"] for event in events)
    whole = slices(timeline)
    assert kinds["X"] == sum(s.end > s.start for s in whole)
    assert kinds["i"] == sum(s.end == s.start for s in whole)
    assert kinds["s"] == kinds["f"] == len(run.trace.flows) > 0
    assert kinds["C"] == sum(len(c.points) for c in run.trace.counters)
    ends = {kind: {e["id"]: e["ts"] for e in events if e["ph"] == kind} for kind in "sf"}
    assert all(ends["s"][number] <= ends["f"][number] for number in ends["s"])
    assert min(event["ts"] for event in events if "ts" in event) >= 0
    assert int(content["otherData"]["start_ns"]) == run.trace.start
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] in "Xi"} == named


def check_perfetto(trace: Any, run: ps.TracedRun) -> None:
    """The laws of a file of track events."""
    tracks = {p.track_descriptor.uuid for p in trace.packet if p.HasField("track_descriptor")}
    open_slices: defaultdict[int, int] = defaultdict(int)
    times: dict[int, int] = {}
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    kinds: Counter[int] = Counter()
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        kinds[event.type] += 1
        assert event.track_uuid in tracks
        assert times.get(event.track_uuid, 0) <= packet.timestamp
        times[event.track_uuid] = packet.timestamp
        open_slices[event.track_uuid] += {BEGIN: 1, END: -1}.get(event.type, 0)
        assert open_slices[event.track_uuid] >= 0
        begun.update(dict.fromkeys(event.flow_ids, packet.timestamp))
        ended.update(dict.fromkeys(event.terminating_flow_ids, packet.timestamp))
    assert not any(open_slices.values())
    assert kinds[BEGIN] == kinds[END] > 0
    whole = slices(timeline_of(run.trace))
    arrivals = sum(bool(s.receives) and s.end > s.start for s in whole)
    assert kinds[BEGIN] + kinds[INSTANT] == len(whole) + arrivals
    assert kinds[COUNTER] == sum(len(c.points) for c in run.trace.counters)
    assert begun.keys() == ended.keys()
    assert len(begun) == len(run.trace.flows)
    assert all(begun[number] <= ended[number] for number in begun)
    first = trace.packet[0]
    assert first.sequence_flags == 1


def test_perfetto_has_every_slice(run: ps.TracedRun) -> None:
    """On each track, in the order of time, everything that begins ends, inner things first."""
    written = perfetto_trace_of(timeline_of(run.trace))
    check_perfetto(perfetto_schema.Trace.FromString(written), run)


def test_perfettos_own_messages_read_it(run: ps.TracedRun) -> None:
    """No field is unknown to them, and the names are there."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    content = perfetto_trace_of(timeline_of(run.trace))
    found = protos.Trace.FromString(content)
    check_perfetto(found, run)
    again = perfetto_schema.Trace.FromString(found.SerializeToString())
    assert again == perfetto_schema.Trace.FromString(content)
    names = {p.track_event.name for p in found.packet if p.HasField("track_event")}
    assert {"square", "loop", "loop[1]", "received"} <= names
    counters = {
        p.track_descriptor.name: p.track_descriptor.counter.unit
        for p in found.packet
        if p.track_descriptor.HasField("counter")
    }
    units = protos.CounterDescriptor
    assert counters == {
        "ready nodes": units.UNIT_COUNT, "live bytes": units.UNIT_SIZE_BYTES
    }  # fmt: skip


def test_events_hold_the_graph_and_the_metadata(run: ps.TracedRun, tmp_path: Path) -> None:
    """A file in a folder, or one with a name: records that TensorBoard reads, in its order."""
    by_name = run.save(tmp_path / "events.out.tfevents.1.mine", tag="train", step=7)
    for path in (by_name, run.save(tmp_path / "logs", tag="train", step=7)):
        version, graph, recorded = (schema.Event.FromString(r) for r in records.read(path))
        assert version.file_version == "brain.Event:2"
        assert len(schema.GraphDef.FromString(graph.graph_def).node) == len(traced_graph().node)
        assert recorded.tagged_run_metadata.tag == "train"
        assert recorded.step == 7
        metadata = schema.RunMetadata.FromString(recorded.tagged_run_metadata.run_metadata)
        assert metadata.step_stats == run.metadata.step_stats


def test_tensorboard_reads_the_events(run: ps.TracedRun, tmp_path: Path) -> None:
    """Its own accumulator finds the graph and the metadata."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator
    run.save(tmp_path, tag="train")
    found = accumulator(str(tmp_path))
    found.Reload()
    assert found.Tags()["run_metadata"] == ["train"]
    assert found.Tags()["graph"]
    read = found.RunMetadata("train").SerializeToString()
    assert schema.RunMetadata.FromString(read).step_stats == run.metadata.step_stats


def test_the_name_of_a_file_says_its_format(run: ps.TracedRun, tmp_path: Path) -> None:
    """JSON, packed JSON, Perfetto's packets, a message; anything else is refused."""
    plain = json.loads(Path(run.save(tmp_path / "a.json")).read_text("utf-8"))
    packed = Path(run.save(tmp_path / "new" / "a.json.gz")).read_bytes()
    assert json.loads(gzip.decompress(packed)) == plain
    first = Path(run.save(tmp_path / "a.pftrace")).read_bytes()
    assert Path(run.save(tmp_path / "a.perfetto-trace")).read_bytes() == first
    message = schema.RunMetadata.FromString(Path(run.save(tmp_path / "a.pb")).read_bytes())
    assert message.step_stats == run.metadata.step_stats
    with pytest.raises(ps.errors.InvalidArgumentError, match="no format"):
        run.save(tmp_path / "a.txt")
    assert not (tmp_path / "a.txt").exists()


def test_no_name_of_a_graph_comes_out_unescaped() -> None:
    """Control characters and marks of direction are shown as escapes, wherever names are."""
    evil = "a\x1b[31m\u202e\n"
    place = Place(f"/device:{evil}", evil, 1, evil)
    node = Activation(
        place, evil, evil, (evil,), Sort.NODE, 5, 1, 1, 1, 9, 9, waits_for=evil, key=evil,
        is_async=True,
    )  # fmt: skip
    sound = Activation(place, evil, evil, (), Sort.NODE, 5, 1, 1, 1, 9, 9)
    trace = Trace(evil, [(0, 10)], [node, sound], threads={5: evil})
    timeline = timeline_of(trace)
    text = json.dumps(chrome_trace_of(timeline), ensure_ascii=False)
    for mark in ("\\u001b", "\x1b", "\u202e", "\\n"):
        assert mark not in text.replace("\\\\x1b", "").replace("\\\\n", "")
    written = perfetto_trace_of(timeline)
    assert b"\x1b" not in written
    assert "\u202e".encode() not in written


# -- messages of others ---------------------------------------------------------------------------


def test_step_stats_become_a_trace_again(run: ps.TracedRun) -> None:
    """With the same nodes, times, outputs and threads; and arrows from device to device."""
    found = trace_of_step_stats(run.metadata.step_stats)
    kept = [a for a in run.trace.activations if not (a.is_transfer or a.is_dead)]
    key = [(a.place.device, a.name, a.op, a.start, a.op_start) for a in found.activations]
    assert sorted(key) == sorted((a.place.device, a.name, a.op, a.start, a.op_start) for a in kept)
    arrows = {
        (found.activations[f.source].name, found.activations[f.target].name) for f in found.flows
    }
    assert ("sum", "y_enter") in arrows
    assert ("read", "scaled") in arrows
    assert "MainThread" in found.threads.values()


def test_tasks_are_on_one_axis() -> None:
    """A task whose clock is behind is moved until nothing is received before it was sent."""
    stats = schema.StepStats()
    second = 1_000_000_000
    rows = [
        ("worker", 0, "a", "a = Neg(x)", 10 * second),
        ("ps", 1, "b", "b = Exp(a/_1)", 3 * second),
        ("worker", 0, "c", "c = Abs(b/_3)", 11 * second),
    ]
    devices = {
        job: stats.dev_stats.add(device=f"/job:{job}/replica:0/task:0/device:CPU:0")
        for job in ("worker", "ps")
    }
    for job, _, name, label, start in rows:
        devices[job].node_stats.add(
            node_name=name, timeline_label=label, all_start_nanos=start, scheduled_nanos=start,
            op_end_rel_nanos=1000, all_end_rel_nanos=1000,
        )  # fmt: skip
    found = trace_of_step_stats(stats)
    start_of = {a.name: a.start for a in found.activations}
    assert start_of["a"] == 10 * second
    assert start_of["b"] == 10 * second + 1000
    assert start_of["c"] == 11 * second
    assert [a.name for a in found.activations] == ["a", "b", "c"]
    assert {task_of(device) for device in found.devices} == {
        "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"
    }  # fmt: skip


def test_what_is_fed_comes_from_no_node() -> None:
    """It goes out with the calls: that its node runs later moves no clock, and is no arrow."""
    stats = schema.StepStats()
    rows = [
        ("/job:worker/task:0/device:CPU:0", "_arg_x_0_0", "_arg_x_0_0 = _Arg()", 9000),
        ("/job:worker/task:1/device:CPU:0", "_arg_x_0_0/_2/_Arg", "_arg_x_0_0/_2/_Arg = _Arg()", 5),
        ("/job:worker/task:1/device:CPU:0", "y", "y = Neg(_arg_x_0_0/_4)", 7),
    ]
    for device, name, label, start in rows:
        stats.dev_stats.add(device=device).node_stats.add(
            node_name=name, timeline_label=label, all_start_nanos=start, op_end_rel_nanos=1
        )
    found = trace_of_step_stats(stats)
    assert found.flows == []
    assert [a.start for a in found.activations] == [5, 7, 9000]


def test_an_empty_trace_can_be_written(tmp_path: Path) -> None:
    """Of a request that runs nothing."""
    with ps.Session(graph_def("x = Placeholder")) as session:
        found = ps.trace(session, "x:0", {"x:0": 1.0})
    for name in ("a.json", "a.pftrace", "a.pb", "logs"):
        found.save(tmp_path / name)
    assert found.value == 1.0
