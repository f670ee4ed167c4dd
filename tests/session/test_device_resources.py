"""Each device has its own variables, queues and tables, as in TensorFlow.

The answers are those of TensorFlow 2.21 with two CPUs, as ``device_count={'CPU': 2}`` makes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import checkpoint, errors
from penstock.graph.import_graph_def import graph_from_def
from penstock.saved_model.direct_restore import Restored, restore_all
from penstock.state.device_resources import DeviceResources
from penstock.state.resources import ResourceManager
from support.functions import graph_def_with
from support.graphs import graph_def
from support.saved_models import assert_same, recorded

CPU_0, CPU_1 = (f"/job:localhost/replica:0/task:0/device:CPU:{index}" for index in (0, 1))
TWO: dict[str, Any] = {"device_count": {"CPU": 2}}

#: The nodes of one device, %d being its number: ``fill`` changes what ``state`` shows.
FIRST_FILLED: dict[str, str] = {
    "reference variable": """
        v%d = VariableV2[dtype=float32; shape=; shared_name=s]
        one%d = Const[value=1.0; dtype=float32]
        fill%d = Assign[T=float32](v%d, one%d)
        state%d = IsVariableInitialized[dtype=float32](v%d)
    """,
    "resource variable": """
        v%d = VarHandleOp[dtype=float32; shape=; shared_name=s]
        one%d = Const[value=1.0; dtype=float32]
        fill%d = AssignVariableOp[dtype=float32](v%d, one%d)
        state%d = VarIsInitializedOp(v%d)
    """,
    "queue": """
        q%d = FIFOQueueV2[component_types=float32; shared_name=s]
        one%d = Const[value=1.0; dtype=float32]
        fill%d = QueueEnqueueV2[Tcomponents=float32](q%d, one%d)
        state%d = QueueSizeV2(q%d)
    """,
    "queue of the old kind": """
        q%d = FIFOQueue[component_types=float32; shared_name=s]
        one%d = Const[value=1.0; dtype=float32]
        fill%d = QueueEnqueue[Tcomponents=float32](q%d, one%d)
        state%d = QueueSize(q%d)
    """,
    "table": """
        t%d = MutableHashTableV2[key_dtype=int64; value_dtype=int64; shared_name=s]
        one%d = Const[value=1; dtype=int64]
        fill%d = LookupTableInsertV2[Tin=int64; Tout=int64](t%d, one%d, one%d)
        state%d = LookupTableSizeV2(t%d)
    """,
    "staging area": """
        one%d = Const[value=1.0; dtype=float32]
        fill%d = Stage[dtypes=float32; shared_name=s](one%d)
        state%d = StageSize[dtypes=float32; shared_name=s]
    """,
    "accumulator": """
        a%d = ConditionalAccumulator[dtype=float32; shape=; shared_name=s]
        one%d = Const[value=1.0; dtype=float32]
        step%d = Const[value=0; dtype=int64]
        fill%d = AccumulatorApplyGradient[dtype=float32](a%d, step%d, one%d)
        state%d = AccumulatorNumAccumulated(a%d)
    """,
}


def on_two_devices(nodes: str) -> Any:
    """The nodes on each of two devices."""
    lines = [
        f"{line.replace('%d', str(index))} @/device:CPU:{index}"
        for index in (0, 1)
        for line in filter(None, map(str.strip, nodes.splitlines()))
    ]
    return graph_def("\n".join(lines))


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("kind", FIRST_FILLED)
def test_equal_names_on_two_devices_are_two_resources(kind: str, tier: ps.Tier) -> None:
    """What is put into one is not in the other, and both can be seen in one run."""
    config = ps.Config(tier=tier, **TWO)
    with ps.Session(on_two_devices(FIRST_FILLED[kind]), config=config) as session:
        session.run("fill0")
        assert session.run(["state0:0", "state1:0"]) == [1, 0]
        session.run("fill1")
        assert session.run(["state0:0", "state1:0"]) == [1, 1]


def test_iterators_of_one_name_go_on_by_themselves() -> None:
    """One device's iterator gives its second element when the other's gives its first."""
    types = "output_types=int64; output_shapes=()"
    nodes = f"""
        it%d = IteratorV2[shared_name=s; container=; {types}]
        zero%d = Const[value=0; dtype=int64]
        one%d = Const[value=1; dtype=int64]
        three%d = Const[value=3; dtype=int64]
        range%d = RangeDataset[{types}](zero%d, three%d, one%d)
        make%d = MakeIterator(range%d, it%d)
        next%d = IteratorGetNext[{types}](it%d)
    """
    with ps.Session(on_two_devices(nodes), config=ps.Config(**TWO)) as session:
        session.run("make0")
        assert session.run("next0:0") == 0
        with pytest.raises(errors.FailedPreconditionError, match="has not been initialized"):
            session.run("next1:0")
        session.run("make1")
        assert session.run(["next0:0", "next1:0"]) == [1, 0]


def test_the_string_of_an_iterator_is_for_its_device() -> None:
    """On another device it is refused, with TensorFlow's words."""
    types = "output_types=int64; output_shapes=()"
    graph = graph_def(f"""
        it = IteratorV2[shared_name=s; container=; {types}] @/device:CPU:0
        text = IteratorToStringHandle(it) @/device:CPU:0
        here = IteratorFromStringHandleV2[{types}](text) @/device:CPU:0
        there = IteratorFromStringHandleV2[{types}](text) @/device:CPU:1
    """)
    with ps.Session(graph, config=ps.Config(**TWO)) as session:
        session.run("here")
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run("there")
    assert (
        f'Attempted create an iterator on device "{CPU_1}" from handle defined on device "{CPU_0}"'
        in str(caught.value)
    )


def test_temporary_variables_of_one_step() -> None:
    """Two of one name live on two devices in one step."""
    nodes = """
        t%d = TemporaryVariable[dtype=float32; shape=; var_name=t]
        value%d = Const[value=%d.0; dtype=float32]
        set%d = Assign[T=float32](t%d, value%d)
        last%d = DestroyTemporaryVariable[T=float32; var_name=t](set%d)
    """
    with ps.Session(on_two_devices(nodes), config=ps.Config(**TWO)) as session:
        assert session.run(["last0:0", "last1:0"]) == [0.0, 1.0]


VARIABLES = """
    v%d = VarHandleOp[dtype=float32; shape=; shared_name=s; container=c]
    value%d = Const[value=%d.5; dtype=float32]
    set%d = AssignVariableOp[dtype=float32](v%d, value%d)
    read%d = ReadVariableOp[dtype=float32](v%d)
    drop%d = DestroyResourceOp[ignore_lookup_error=False](v%d)
"""


def test_destroying_one_leaves_the_other() -> None:
    """The first is gone, the second has its value; the first cannot be destroyed again."""
    with ps.Session(on_two_devices(VARIABLES), config=ps.Config(**TWO)) as session:
        session.run(["set0", "set1"])
        session.run("drop0")
        assert session.run("read1:0") == 1.5
        with pytest.raises(errors.FailedPreconditionError):
            session.run("read0:0")
        with pytest.raises(errors.NotFoundError, match="does not exist"):
            session.run("drop0")


BOTH = """
    Both(a: resource, b: resource) -> (y: float32)
    first = ReadVariableOp[dtype=float32](a)
    second = ReadVariableOp[dtype=float32](b)
    ten = Const[value=10.0; dtype=float32]
    tens = Mul[T=float32](second:value, ten:output)
    y = Add[T=float32](first:value, tens:z)
    return y = y:z
"""


@pytest.mark.parametrize("options", [None, ps.GraphOptions.nothing()], ids=["opened", "called"])
@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall"])
def test_functions_are_given_variables_of_two_devices(op: str, device: int, options: Any) -> None:
    """Each handle leads to its own device's variable, wherever the function runs."""
    graph = f"""
        v0 = VarHandleOp[dtype=float32; shape=; shared_name=s] @/device:CPU:0
        v1 = VarHandleOp[dtype=float32; shape=; shared_name=s] @/device:CPU:1
        three = Const[value=3.0; dtype=float32]
        four = Const[value=4.0; dtype=float32]
        set0 = AssignVariableOp[dtype=float32](v0, three)
        set1 = AssignVariableOp[dtype=float32](v1, four)
        r = {op}[Tin=resource|resource; Tout=float32; f=Both](v0, v1) @/device:CPU:{device}
    """
    config = ps.Config(**TWO) if options is None else ps.Config(graph_options=options, **TWO)
    with ps.Session(graph_def_with(graph, BOTH), config=config) as session:
        session.run(["set0", "set1"])
        assert session.run("r:0") == 43.0


HANDED_ON = {
    "variable": """
        made = VarHandleOp[dtype=float32; shape=; shared_name=s] @/device:CPU:0
        one = Const[value=1.0; dtype=float32]
        fill = AssignVariableOp[dtype=float32](made, one)
        state = ReadVariableOp[dtype=float32](given) @/device:CPU:1
    """,
    "queue": """
        made = FIFOQueueV2[component_types=int32; shared_name=s] @/device:CPU:0
        one = Const[value=1; dtype=int32]
        fill = QueueEnqueueV2[Tcomponents=int32](made, one)
        state = QueueSizeV2(given) @/device:CPU:1
    """,
    "table": """
        made = MutableHashTableV2[key_dtype=int32; value_dtype=int32; shared_name=s] @/device:CPU:0
        one = Const[value=1; dtype=int32]
        fill = LookupTableInsertV2[Tin=int32; Tout=int32](made, one, one)
        state = LookupTableSizeV2(given) @/device:CPU:1
    """,
    "accumulator": """
        made = ResourceConditionalAccumulator[dtype=float32; shape=; shared_name=s] @/device:CPU:0
        one = Const[value=1.0; dtype=float32]
        step = Const[value=0; dtype=int64]
        fill = ResourceAccumulatorApplyGradient[dtype=float32](made, step, one)
        state = ResourceAccumulatorNumAccumulated(given) @/device:CPU:1
    """,
}


@pytest.mark.parametrize("kind", HANDED_ON)
def test_a_handle_leads_to_its_own_devices_resource(kind: str) -> None:
    """Fed to a node on another device, it means what it was fetched for."""
    graph = f"{HANDED_ON[kind]}\ngiven = Placeholder[dtype=resource] @/device:CPU:1"
    with ps.Session(graph_def(graph), config=ps.Config(**TWO)) as session:
        session.run("fill")
        handle = session.run("made:0")
        assert session.run("state:0", {"given:0": handle}) == 1


def test_the_view_of_a_session() -> None:
    """It finds what one device has, asks which one if several have it, and drops everywhere."""
    with ps.Session(on_two_devices(VARIABLES), config=ps.Config(**TWO)) as session:
        session.run("set1")
        assert session.resources.find("c", "s", "Var").value == 1.5
        assert session.resources.on(CPU_0).find("c", "s", "Var") is None
        session.run("set0")
        with pytest.raises(errors.InvalidArgumentError, match=r"on 2 devices: .*CPU:0, .*CPU:1"):
            session.resources.find("c", "s", "Var")
        assert session.resources.on(CPU_0).lookup("c", "s", "Var").value == 0.5
        session.resources.cleanup(["c"])
        assert session.resources.find("c", "s", "Var") is None
        with pytest.raises(errors.NotFoundError, match="does not exist"):
            session.resources.lookup("c", "s", "Var")


def test_reset_ends_waits_on_every_device() -> None:
    """Who waits for the queue of the second device hears that its container was reset."""
    graph = graph_def("""
        q = FIFOQueueV2[component_types=float32; shared_name=s; container=c] @/device:CPU:1
        wait = QueueDequeueV2[component_types=float32](q) @/device:CPU:1
    """)
    session = ps.Session(graph, config=ps.Config(**TWO))
    waiting = session.run_async("wait:0")
    while session.resources.find("c", "s", "Queue") is None:
        pass
    ps.Session.reset("", ["c"])
    with pytest.raises(errors.CancelledError):
        waiting.result(timeout=60)


def test_an_only_manager_is_every_devices() -> None:
    """Executors that are given one share it, whatever their devices."""
    only = ResourceManager()
    shared = DeviceResources(only=only)

    assert shared.on(CPU_0) is shared.on(CPU_1) is only
    assert only.at(CPU_1) is only


@pytest.mark.parametrize("name", ["simple_save", "keras_gru"])
def test_models_work_with_two_devices(name: str) -> None:
    """Those of both generations are restored where their variables lie."""
    model = recorded(name)
    call = model.calls[0]
    with ps.saved_model.load(model.path, config=ps.Config(**TWO)) as loaded:
        assert_same(loaded.signatures[call.signature](**call.kwargs), call.result)


def test_variables_of_a_graph_are_restored_where_they_lie(tmp_path: Path) -> None:
    """Two of one shared name get two values, before anything has run."""
    prefix = str(tmp_path / "model")
    saved = {"first": np.float32(1.5), "second": np.float32(2.5)}
    checkpoint.save(prefix, saved)
    graph = graph_from_def(on_two_devices(VARIABLES))
    with ps.Session(graph, config=ps.Config(**TWO)) as session:
        nodes = [graph.find(f"v{index}") for index in (0, 1)]
        plan = [Restored(node, key, "") for node, key in zip(nodes, saved, strict=True)]
        restore_all(plan, checkpoint.load(prefix), session.resources_of)

        assert session.run(["read0:0", "read1:0"]) == [1.5, 2.5]
