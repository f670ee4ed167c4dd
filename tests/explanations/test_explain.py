"""What is said of nodes is so: of dead, pruned, folded, merged, fused and compiled ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.explanations import Topic


def branched() -> ps.Graph:
    """Two sides of a Switch, a Merge, something constant, and something that nobody reads."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [2], name="x")
        flag = ps.placeholder(ps.dtypes.bool_, [], name="flag")
        predicate = ps.ops.logical_not(flag, name="predicate")
        no, yes = ps.ops.Switch(data=x, pred=predicate, name="switch")
        merged = ps.ops.merge([ps.ops.exp(no, name="no"), ps.ops.neg(yes, name="yes")], name="m")
        two = ps.constant(2.0, name="two")
        four = ps.ops.mul(two, two, name="four")
        total = ps.ops.add(merged[0], four, name="total")
        same = ps.ops.identity(total, name="same")
        ps.ops.neg(same, name="out")
        ps.ops.sqrt(x, name="unused")
    return graph


FEEDS: dict[str, Any] = {"x": [1, 2], "flag": True}


def about(topic: Topic, node: str, graph: ps.Graph | None = None, **request: Any) -> str:
    """What is said of a node, on one topic."""
    request = {"fetches": ["out"]} | request
    return ps.explain(graph or branched(), node, **request).about(topic)


def test_a_dead_node_names_its_predicate_and_the_feed() -> None:
    """The predicate is what a step finds it to be."""
    found = ps.explain(branched(), "yes", ["out"], FEEDS)
    assert "only if 'predicate:0' is true, and it is false" in found.trouble
    assert "'flag:0' = True" in found.trouble
    graph = branched()
    with ps.Session(graph) as session:
        assert not session.run("predicate:0", FEEDS)
        with pytest.raises(ps.errors.InvalidArgumentError, match="dead"):
            session.run("yes:0", FEEDS)
        # A session may be asked as well.
        assert ps.explain(session, "yes", ["out"], FEEDS).trouble == found.trouble
        assert session.explain("yes", ["out"], FEEDS).trouble == found.trouble
    assert not ps.explain(branched(), "no", ["out"], FEEDS).trouble
    assert not ps.explain(branched(), "yes", ["out"], FEEDS | {"flag": False}).trouble
    # Nobody says what is fed.
    unfed = about(Topic.DEAD, "yes")
    assert unfed == ("it runs only if 'predicate:0' is true; that depends on what is fed: 'flag:0'")
    assert about(Topic.DEAD, "total") == ""


def test_predicates_with_effects_are_not_run() -> None:
    """Explaining takes nothing from a queue."""
    graph = ps.Graph()
    with graph.as_default():
        queue = ps.ops.fifo_queue_v2(component_types=["bool"], shapes=[[]])
        taken = ps.ops.queue_dequeue_v2(queue, component_types=["bool"])
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        _, yes = ps.ops.Switch(data=x, pred=taken[0] if isinstance(taken, list) else taken)
        ps.ops.neg(yes, name="out")
        put = ps.ops.queue_enqueue_v2(queue, [ps.constant(True)])
        size = ps.ops.queue_size_v2(queue, name="size")
    with ps.Session(graph) as session:
        session.run(put)
        found = ps.explain(session, "out", ["out"], {"x": 1.0})
        assert "it runs only if" in found.about(Topic.DEAD)
        assert session.run(size) == 1


def test_who_needs_a_node() -> None:
    """The way to what is fetched; or that nobody does, or that it is fed."""
    assert about(Topic.RUNS, "no") == "needed: no → m → total → same → out"
    assert about(Topic.RUNS, "out") == "it is asked for"
    assert "pruned" in ps.explain(branched(), "unused", ["out"]).trouble
    assert "pruned" in about(Topic.RUNS, "no", feeds=["total"])
    assert about(Topic.RUNS, "total", feeds=["total"]) == "it is fed, and so never computed"


def test_a_missing_kernel() -> None:
    """Of the node itself, or of a function that it calls."""
    graph = ps.Graph()
    with graph.as_default():
        ps.ops.NcclAllReduce(
            input=ps.constant(1.0), reduction="sum", num_devices=1, shared_name="", name="n"
        )
    assert "cannot run" in ps.explain(graph, "n").trouble


def test_what_passes_do() -> None:
    """Each named, with what stands in the node's place."""
    assert "fold_constants: it is a Const now" in about(Topic.OPTIMISED, "four")
    assert "remove_identities: who read it reads total (Add) instead" in about(
        Topic.OPTIMISED, "same"
    )
    assert about(Topic.OPTIMISED, "predicate") == "it is run as it was written"


def test_merged_nodes() -> None:
    """Of two equal nodes, one is computed."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [2], name="x")
        one, other = ps.ops.exp(x, name="one"), ps.ops.exp(x, name="other")
        ps.ops.add(one, ps.ops.neg(other, name="minus"), name="out")
    texts = {name: about(Topic.OPTIMISED, name, graph) for name in ("one", "other")}
    (gone,) = (name for name, text in texts.items() if "as it was written" not in text)
    kept = ({"one", "other"} - {gone}).pop()
    assert f"eliminate_common_subexpressions: who read it reads {kept} (Exp) instead" in texts[gone]


def test_fused_nodes() -> None:
    """A bias becomes part of its convolution."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [1, 8, 8, 3], name="x")
        filters = ps.placeholder(ps.dtypes.float32, [3, 3, 3, 4], name="filters")
        bias = ps.placeholder(ps.dtypes.float32, [4], name="bias")
        made = ps.ops.conv_2d(x, filters, strides=[1, 1, 1, 1], padding="SAME", name="conv")
        ps.ops.relu(ps.ops.bias_add(made, bias, name="biased"), name="out")
    text = about(Topic.OPTIMISED, "biased", graph)
    assert "fuse_convolutions" in text, text


def test_an_own_pass_is_named() -> None:
    """What somebody registered stands beside Penstock's."""

    def drop_repeated_abs(rewriter: Any) -> int:
        moves = {
            node: [(edge.src, edge.src_slot)]
            for node in rewriter.graph
            if node.op.name == "Abs" and (edge := node.inputs[0]).src.op.name == "Abs"
        }
        rewriter.replace(moves)
        return len(moves)

    ps.register_pass("drop_abs", drop_repeated_abs, does="drops what has no effect")
    try:
        graph = ps.Graph()
        with graph.as_default():
            x = ps.placeholder(ps.dtypes.float32, [2], name="x")
            ps.ops.neg(ps.ops.abs(ps.ops.abs(x, name="a"), name="b"), name="out")
        text = about(Topic.OPTIMISED, "b", graph)
    finally:
        ps.unregister_pass("drop_abs")
    assert text == "drop_abs: who read it reads a (Abs) instead (drops what has no effect)"


def on_two(**attrs: Any) -> ps.Config:
    """A session's with two devices."""
    return ps.Config(device_count={"CPU": 2}, **attrs)


@pytest.mark.filterwarnings("ignore:Node")
def test_devices() -> None:
    """Requested, colocated, drawn to inputs or consumers, or fallen back; as a session says."""
    graph = ps.Graph()
    with graph.as_default():
        with ps.device("/device:CPU:1"):
            variable = ps.Variable(np.float32([1, 2]), name="v")
            asked = ps.ops.neg(variable.value(), name="asked")
        with ps.device("/device:GPU:3"):
            lost = ps.ops.exp(asked, name="lost")
        shape = ps.ops.shape(asked, name="shape")
        ps.ops.add(lost, ps.ops.cast(shape, "float32"), name="out")
        ps.constant(np.float32([1, 2]), name="free")
        ps.ops.mul(asked, ps.constant(np.float32([2, 2]), name="made"), name="at_one")
    config = on_two(allow_soft_placement=True)
    texts = {
        name: about(Topic.DEVICE, name, graph, config=config)
        for name in ("asked", "lost", "shape", "out", "v")
    }
    assert "CPU:1: the graph asks for it ('/device:CPU:1')" in texts["asked"]
    assert "cannot be had" in texts["lost"]
    assert "'/device:GPU:3'" in texts["lost"]
    assert "CPU:1: it only looks at its input" in texts["shape"]
    assert "CPU:0: nobody asks" in texts["out"]
    assert "it lies with" in texts["v"]
    with ps.Session(graph, config=config) as session:
        placed = session.placement("out")
    for name in ("asked", "lost", "shape", "out"):
        assert texts[name].startswith(placed[name])
    with (
        pytest.raises(ps.errors.InvalidArgumentError),
        ps.Session(graph, config=on_two(allow_soft_placement=False)) as session,
    ):
        session.run("out:0")
    refused = ps.explain(graph, "lost", ["out"], config=on_two(allow_soft_placement=False))
    assert "was explicitly assigned to /device:GPU:3" in refused.trouble


def test_frames() -> None:
    """The loops around a node, and the way in; or the two ways that do not fit."""
    graph = ps.Graph()
    with graph.as_default():
        ps.while_loop(lambda i: i < 3, lambda i: i + 1, [ps.constant(np.int32(0))], name="loop")
    text = ps.explain(graph, "loop/add").about(Topic.FRAME)
    assert text.startswith("it is in the loop 'loop/")
    assert "loop/Enter (Enter) → loop/Merge (Merge)" in text
    broken = ps.Graph()
    with broken.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        inside = ps.ops.enter(x, frame_name="ring", name="enter")
        ps.ops.add(inside, x, name="mixed")
    trouble = ps.explain(broken, "mixed").trouble
    assert "from the loop 'ring': enter (Enter) → mixed (Add)" in trouble
    assert "from the outside of all loops: x (Placeholder) → mixed (Add)" in trouble


def test_what_kept_a_node_out_of_a_region() -> None:
    """What may wait is left to the executor; what may not is compiled."""
    graph = ps.Graph()
    with graph.as_default():
        queue = ps.ops.fifo_queue_v2(component_types=["float"], shapes=[[]])
        taken = ps.ops.queue_dequeue_v2(queue, component_types=["float"], name="taken")
        first = taken[0] if isinstance(taken, list) else taken
        ps.ops.exp(ps.ops.neg(first, name="minus"), name="out")
    assert "may wait" in about(Topic.COMPILED, "taken", graph)
    assert about(Topic.COMPILED, "yes") == "one Python function computes the whole request"
    plain = ps.Config(tier=ps.Tier.DATAFLOW)
    assert about(Topic.COMPILED, "yes", config=plain).startswith("no: the session is told")


def test_shapes() -> None:
    """Known ones, since when one is unknown, and what does not fit."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [None, 3], name="x")
        ps.ops.exp(ps.ops.neg(x, name="minus"), name="out")
    assert about(Topic.SHAPE, "out", graph) == (
        "out:0 is float32[?,3]; sizes are unknown since 'x' (Placeholder)"
    )
    assert about(Topic.SHAPE, "four") == "four:0 is float32[]"


def test_the_command(tmp_path: Path) -> None:
    """As text and as JSON; a node that is not there is said so."""
    model = tmp_path / "model.pb"
    model.write_bytes(ps.graph_to_def(branched()).SerializeToString())
    feeds = ["--fetch", "out", "--feed", "x:0=[1,2]", "--feed", "flag:0=true"]
    done = CliRunner().invoke(main, ["explain", str(model), "yes", *feeds], catch_exceptions=False)
    assert done.exit_code == 0
    assert "dead      ! it runs only if 'predicate:0' is true, and it is false" in done.output
    command = ["explain", str(model), "yes", *feeds, "--format", "json"]
    facts = json.loads(CliRunner().invoke(main, command).output)["facts"]
    assert [fact["topic"] for fact in facts if fact["trouble"]] == ["dead"]
    absent = CliRunner().invoke(main, ["explain", str(model), "nobody"])
    assert absent.exit_code != 0
    assert "nobody" in absent.output


def test_names_reach_a_terminal_as_text() -> None:
    """A model's names are no commands."""
    graph = ps.Graph()
    with graph.as_default():
        ps.constant(1.0, name="plain")
    definition = ps.graph_to_def(graph)
    definition.node[0].name = "bad\x1b[2J"
    try:
        found = str(ps.explain(definition, "bad\x1b[2J"))
    except ps.errors.OpError as error:
        found = str(error)
    assert "\x1b" not in found
