"""Every graph of the corpus gives TensorFlow's own answers, however it is run.

Each case runs on both tiers; of the other ways to run it, ``pytest`` tries a sample, and
``pytest --all`` all of them.  ``PENSTOCK_SEEDS`` sets the number of seeds of the shuffled runs;
2 unless it is set.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.catalogue.registry import find_op
from penstock.core import dtypes
from penstock.defs.schema import Message
from penstock.graph.import_graph_def import graph_from_def
from support.corpus import Case, all_cases, check_error, run_case
from support.native import ALL, JIT, watched
from support.sampling import sampled
from support.tiers import leave_some_out

SEEDS = range(int(os.environ.get("PENSTOCK_SEEDS", "2")))
CASES = list(all_cases())
#: Cases whose runs are many or long; their order is shuffled by one seed only.
_LONG = {
    *("long_loop_20000", "long_loop_functional_5000", "deep_loop_nest_8", "many_loops_60"),
    *("long_chain_3000", "deep_cond_nest_25", "diamond_ladder"),
}
#: Cases in which a reader sees a variable's memory change under its eyes; what has crossed to
#: another device is a copy, also in TensorFlow.
_SHARE_MEMORY = {"control_order_ref", "train_ema_accumulators"}
#: Cases whose graph is refused when it is read: there is nothing to cut.
_REFUSED = {
    *("attr_missing", "attr_not_allowed", "attr_type_not_allowed", "attr_wrong_kind"),
    *("bad_input_index", "bad_node_name", "cycle_control", "cycle_plain"),
    *("data_after_control_input", "deprecated_op_new_graph", "duplicate_names"),
    *("graph_version_too_new", "input_dtype_mismatch", "missing_input_node", "not_a_graphdef"),
    *("op_not_registered", "too_few_inputs", "too_many_inputs"),
}
#: Cases that are not about the devices they ask for.
CUTTABLE = [
    case
    for case in CASES
    if case.category != "placement"
    and "device" not in case.meta["tags"]
    and case.name not in _SHARE_MEMORY
    and (case.category != "errors" or case.name not in _REFUSED)
]


@contextlib.contextmanager
def opened(case: Case, graph: Any = None, **options: Any) -> Iterator[ps.Session | None]:
    """A session for a case; None if making it failed as the case expects."""
    settings = {
        "device_count": case.device_count,
        "allow_soft_placement": bool(case.meta.get("allow_soft_placement", False)),
        "check_outputs": True,
        "check_graphs": True,
        **options,
    }
    try:
        session = ps.Session(
            case.graph_bytes if graph is None else graph, config=ps.Config(**settings)
        )
    except ps.errors.OpError as error:
        expect = case.steps[0]["expect"]
        assert "error" in expect, str(error)
        check_error(error, expect)
        yield None
        return
    with session:
        yield session


def run(case: Case, tmp_path: Path, graph: Any = None, **options: Any) -> None:
    """Run a case with the given options of the session."""
    folder = case.folder(tmp_path)
    with opened(case, graph, **options) as session:
        if session is not None:
            run_case(session, case, folder)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_answers_are_tensorflows(case: Case, tier: ps.Tier, tmp_path: Path) -> None:
    """Values, types, shapes, dead fetches and errors are TensorFlow's, on both tiers."""
    # A checked kernel is never written as an operator.
    run(case, tmp_path, tier=tier, check_outputs=tier is ps.Tier.DATAFLOW)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_steps_before_it_is_compiled_give_tensorflows_answers(case: Case, tmp_path: Path) -> None:
    """Node after node on the calling thread, where a graph is straight."""
    run(case, tmp_path, limits=ps.Limits(uncompiled_steps=1 << 20))


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_regions_give_tensorflows_answers(case: Case, tmp_path: Path) -> None:
    """Whatever ONNX Runtime can compute of a graph, however little, it may compute."""
    pytest.importorskip("onnxruntime")
    run(case, tmp_path, limits=ps.Limits(region_products=0), check_outputs=False)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_native_regions_give_tensorflows_answers(case: Case, tier: ps.Tier, tmp_path: Path) -> None:
    """Whatever programs in C can compute of a graph, loops included, they may, on both tiers."""
    with watched():
        run(case, tmp_path, tier=tier, limits=ALL, graph_options=JIT, check_outputs=False)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize(
    "case", [case for case in CASES if b"QueueDequeue" in case.graph_bytes], ids=str
)
def test_queues_may_be_tried(case: Case, tmp_path: Path) -> None:
    """What may have to wait is tried inside of one function, from the first step on."""
    run(case, tmp_path, limits=ps.Limits(untried_steps=0), check_outputs=False)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", sampled(CASES), ids=str)
def test_tiers_may_share_a_graph(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With any nodes left to the executor, and regions made of the others, nothing changes."""
    for seed in SEEDS if case.name not in _LONG else list(SEEDS)[:1]:
        leave_some_out(monkeypatch, seed)
        run(case, tmp_path, ready_order_seed=seed)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", [c for c in CASES if c.meta.get("placement")], ids=str)
def test_placement_is_tensorflows(case: Case) -> None:
    """Every node lies on the device that TensorFlow chose."""
    step = case.steps[case.meta.get("placement_step", 0)]
    names = [*step.get("fetches", ()), *step.get("targets", ())]
    with opened(case) as session:
        assert session is not None
        got = session.placement(names)
    want = case.meta["placement"]
    assert {name: got.get(name) for name in want} == want


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("case", sampled(CASES), ids=str)
def test_order_and_threads_do_not_matter(case: Case, threads: int, tmp_path: Path) -> None:
    """Whatever the order of ready nodes and the number of threads, the answers are the same."""
    for seed in SEEDS if case.name not in _LONG else list(SEEDS)[:1]:
        run(
            case,
            tmp_path,
            tier=ps.Tier.DATAFLOW,
            ready_order_seed=seed,
            inter_op_parallelism_threads=threads,
            offload_seconds=0.0 if threads > 1 else 1.0,
        )


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", sampled(CUTTABLE), ids=str)
def test_cut_over_two_devices_does_not_matter(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at random places and joined by Send and Recv, a graph means the same."""
    for seed in SEEDS if case.name not in _LONG else list(SEEDS)[:1]:
        graph_def = cut(case.graph_def(), seed)
        # As one function, as functions around the transfers, and without functions.
        if seed % 2:
            leave_some_out(monkeypatch, seed)
        run(
            case,
            tmp_path,
            graph=graph_def,
            device_count={"CPU": 2},
            allow_soft_placement=True,
            ready_order_seed=seed,
        )


def cut(graph_def: Message, seed: int) -> Message:
    """Ask for a random CPU for every node that handles neither references nor resources."""
    draw = random.Random(seed)
    graph_from_def(graph_def)  # a graph that is refused is not worth cutting
    special = (dtypes.resource, dtypes.variant)
    for node in graph_def.node:
        op = find_op(node.op)
        # What has no handle finds its map or its staging area by name, on its own device.
        if op is None or not _is_free(node, special) or "shared_name" in op.attrs:
            continue
        node.device = f"/device:CPU:{draw.randrange(2)}"
        node.attr.pop("_class", None)
    return graph_def


def _is_free(node: Any, special: tuple[Any, ...]) -> bool:
    op = find_op(node.op)
    assert op is not None
    args = (*op.inputs, *op.outputs)
    if any(arg.is_ref or arg.dtype in special for arg in args):
        return False
    kinds = {dtypes.resource.number, dtypes.variant.number}
    return not any(
        value.type in kinds or kinds & set(value.list.type) for value in node.attr.values()
    )
