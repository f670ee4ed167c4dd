"""Every graph of the corpus gives TensorFlow's own answers, whichever tasks run it.

One in eight is tried, all of them with ``PENSTOCK_CLUSTER=all``, which takes two minutes more.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError

pytest.importorskip("grpc")

import penstock as ps
from penstock.catalogue.registry import find_op
from penstock.core import dtypes
from penstock.defs.schema import Message
from penstock.graph.import_graph_def import graph_from_def
from support.clusters import new_cluster, serving
from support.corpus import Case, all_cases, check_error, run_case

#: Cases in which a reader sees a variable's memory change under its eyes; what has gone to another
#: task is a copy, also in TensorFlow.
_SHARE_MEMORY = {"control_order_ref", "train_ema_accumulators"}
#: Cases with tens of thousands of iterations, in each of which the tasks would have to talk.
_LONG = {"long_loop_20000", "long_loop_functional_5000", "deep_loop_nest_8"}
CASES = [
    case
    for case in all_cases()
    if case.category != "placement"
    and "device" not in case.meta["tags"]
    # It calls a function on a device that it names.
    and case.name != "remote_call_local"
]
TASKS = 3
EVERY = 1 if os.environ.get("PENSTOCK_CLUSTER") == "all" else 8


@pytest.fixture(scope="module")
def alone() -> Iterator[str]:
    """The target of a server that is a cluster by itself."""
    with serving(new_cluster(worker=1)) as servers:
        yield servers[0].target


@pytest.fixture(scope="module")
def three() -> Iterator[str]:
    """The target of the first of three tasks."""
    with serving(new_cluster(worker=TASKS)) as servers:
        yield servers[0].target


def run(case: Case, target: str, tmp_path: Path, graph: Message) -> None:
    """Run a case at a server, which forgets it afterwards."""
    config = ps.Config(
        allow_soft_placement=bool(case.meta.get("allow_soft_placement", False)),
        operation_timeout_in_ms=20_000,
    )
    try:
        session = ps.Session(graph, target=target, config=config)
    except ps.errors.OpError as error:
        check_error(error, case.steps[0]["expect"])
        return
    try:
        with session:
            run_case(session, case, case.folder(tmp_path))
    finally:
        ps.Session.reset(target)


@pytest.mark.parametrize("case", CASES[::EVERY], ids=str)
def test_a_server_gives_tensorflows_answers(case: Case, alone: str, tmp_path: Path) -> None:
    """Values, types, shapes, dead fetches and errors survive the way to a server and back."""
    run(case, alone, tmp_path, case.graph_bytes)


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name not in _SHARE_MEMORY | _LONG][::EVERY], ids=str
)
def test_tasks_may_share_a_graph(case: Case, three: str, tmp_path: Path) -> None:
    """Cut at random places, and run by three tasks, a graph means the same."""
    try:
        graph_def = scattered(case.graph_def(), seed=len(case.name))
    except (ps.errors.OpError, DecodeError):
        pytest.skip("the graph is refused: there is nothing to cut")
    run(case, three, tmp_path, graph_def)


def scattered(graph_def: Message, seed: int) -> Message:
    """Ask for a random task for every node that has nothing to do with what lives in a task."""
    draw = random.Random(seed)
    graph_from_def(graph_def)
    special = {dtypes.resource, dtypes.variant}
    numbers = {dtype.number for dtype in special}
    for node in graph_def.node:
        op = find_op(node.op)
        if op is None or op.is_stateful or op.name.startswith("TensorArray"):
            continue
        args = (*op.inputs, *op.outputs)
        is_bound = any(arg.is_ref or arg.dtype in special for arg in args) or any(
            value.type in numbers or numbers & set(value.list.type) for value in node.attr.values()
        )
        if not is_bound:
            node.device = f"/job:worker/task:{draw.randrange(TASKS)}"
            node.attr.pop("_class", None)
    return graph_def
