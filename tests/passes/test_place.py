"""Where nodes go, and why some graphs cannot be placed at all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from penstock.catalogue.registry import get_op
from penstock.core import dtypes
from penstock.defs.schema import FunctionDefLibrary
from penstock.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OpError,
)
from penstock.graph.graph import Node
from penstock.passes.place import PlacerOptions, place
from penstock.state.devices import Device, DeviceSet
from support.fake_devices import CPU, GPU, GraphMaker, device, fake_devices, fake_world

CPU0, GPU0 = device(CPU, 0), device(GPU, 0)
STRICT = PlacerOptions(allow_soft_placement=False)
SOFT = PlacerOptions()
BOTH = pytest.mark.parametrize("options", [STRICT, SOFT], ids=["strict", "soft"])


@pytest.fixture(autouse=True, scope="module")
def devices() -> Iterator[DeviceSet]:
    """Ten fake CPUs and ten fake GPUs, which have the higher priority."""
    with fake_world() as devices:
        yield devices


@pytest.fixture
def maker() -> GraphMaker:
    """An empty graph."""
    return GraphMaker()


class _Where:
    """The answer to "where is this node?"."""

    def __init__(self, maker: GraphMaker, options: PlacerOptions, devices: DeviceSet) -> None:
        self.placed = place(maker.graph, devices, options)

    def __call__(self, node: Node) -> str:
        return self.placed.device_of[node.id]


def placed(
    maker: GraphMaker, options: PlacerOptions = SOFT, devices: DeviceSet | None = None
) -> _Where:
    return _Where(maker, options, fake_devices() if devices is None else devices)


def refused(
    maker: GraphMaker,
    kind: type[OpError] = InvalidArgumentError,
    options: PlacerOptions = STRICT,
    devices: DeviceSet | None = None,
) -> str:
    """The message of the error that placing raises; the graph must have stayed as it was."""
    before = [(node.name, node.assigned_device) for node in maker.graph]
    with pytest.raises(kind) as caught:
        place(maker.graph, fake_devices() if devices is None else devices, options)
    assert before == [(node.name, node.assigned_device) for node in maker.graph]
    return caught.value.message


# -- basics ------------------------------------------------------------------------


def test_without_constraints_the_best_device_type_wins(maker: GraphMaker) -> None:
    """Nodes with kernels for both types go to the first device of the preferred one."""
    source = maker.add("PtInput")
    relus = [maker.add("PtRelu", (source, slot)) for slot in (0, 1)]

    where = placed(maker)

    assert {where(node) for node in [source, *relus]} == {GPU0}


def test_every_node_gets_a_device_of_the_set(maker: GraphMaker) -> None:
    """The result has all nodes, and only full names of known devices."""
    last = maker.add("PtInput")
    for _ in range(5):
        last = maker.add("PtRelu", last)

    where = placed(maker)

    assert set(where.placed.device_of) == {node.id for node in maker.graph}
    assert set(where.placed.device_of.values()) <= {d.name for d in fake_devices()}


def test_kernel_priority_comes_before_device_priority(maker: GraphMaker) -> None:
    """A kernel that is better on the lesser device draws its node there."""
    source = maker.add("PtInput")
    cpu, gpu = maker.add("PtPrefersCpu", source), maker.add("PtPrefersGpu", source)

    where = placed(maker)

    assert (where(cpu), where(gpu)) == (CPU0, GPU0)


def test_partial_specifications_are_completed(maker: GraphMaker) -> None:
    """A name without type or id is filled in with the best that fits."""
    anywhere = maker.add("PtInput", on="/job:a")
    cpu = maker.add("PtVariable", on=f"/job:a/device:{CPU}:*")
    one = maker.add("PtRelu", anywhere, on=f"/device:{CPU}:7")

    where = placed(maker)

    assert where(anywhere) == GPU0
    assert where(cpu) == CPU0
    assert where(one) == device(CPU, 7)


def test_names_sort_as_text(maker: GraphMaker) -> None:
    """Of equal devices the first by name is taken, and 10 stands before 2."""
    node = maker.add("PtRelu", maker.add("PtInput"))
    two_and_ten = DeviceSet([Device(device(CPU, i), CPU) for i in (2, 10)])

    assert placed(maker, devices=two_and_ten)(node) == device(CPU, 10)


def test_default_device_is_preferred_where_it_is_possible(maker: GraphMaker) -> None:
    """The preferred device beats every priority, but not what has no kernel on it."""
    source = maker.add("PtInput")
    free, bound = maker.add("PtRelu", source), maker.add("PtReluGpu", source)

    where = placed(maker, PlacerOptions(default_device=device(CPU, 3)))

    assert (where(free), where(bound)) == (device(CPU, 3), GPU0)


def test_assigned_device_is_kept(maker: GraphMaker) -> None:
    """What an earlier placement decided stands, whoever says it."""
    source = maker.add("PtInput", assigned=device(GPU, 7))
    relu = maker.add("PtRelu", source, name="relu", on=GPU0)

    where = placed(maker, PlacerOptions(assigned={"relu": device(CPU, 4)}))

    assert (where(source), where(relu)) == (device(GPU, 7), device(CPU, 4))


def test_types_of_attributes_decide(maker: GraphMaker) -> None:
    """An op may have a kernel for one element type here and for another there."""
    floats = maker.add("PtTyped", maker.add("PtInput"), on="/job:a")
    ints = maker.add("PtTyped", maker.add("Shape", floats, out_type=dtypes.int32))

    where = placed(maker, STRICT)

    assert (where(floats), where(ints)) == (GPU0, CPU0)


def test_calls_by_name_go_to_the_cpu(maker: GraphMaker) -> None:
    """A function of the library needs no kernel."""
    library = FunctionDefLibrary()
    library.function.add().signature.name = "body"
    maker.graph.library.add_library(library)
    call = maker.graph.add_node("call", maker.graph.op_def("body"), {}, device="/cpu:0")

    where = placed(maker, STRICT, DeviceSet([Device("/job:a/device:CPU:0", "CPU")]))

    assert where(call) == "/job:a/device:CPU:0"


def test_placing_twice_gives_the_same(maker: GraphMaker) -> None:
    """Placing changes nothing in the graph, so a second time has the same result."""
    variable = maker.add("PtVariable", on=device(CPU, 2))
    maker.add("PtAssign", variable, maker.add("PtInput"))

    first, second = placed(maker), placed(maker)

    assert first.placed.device_of == second.placed.device_of
    assert all(node.assigned_device == "" for node in maker.graph)


# -- kernel priorities in groups ----------------------------------------------------


def test_colocation_with_a_prioritised_kernel_draws_the_group(maker: GraphMaker) -> None:
    """If only one member's kernels have an opinion, the group follows it."""
    source = maker.add("PtInput")
    relu = maker.add("PtRelu", source, name="relu")
    choosy = maker.add("PtPrefersCpu", relu, groups=["relu"])

    where = placed(maker)

    assert where(relu) == where(choosy) == CPU0


def test_agreeing_priorities_are_kept(maker: GraphMaker) -> None:
    """Two members that prefer the same type get it, whatever their numbers."""
    source = maker.add("PtInput")
    one = maker.add("PtPrefersCpu", source, name="one")
    two = maker.add("PtPrefersCpuToo", source, groups=["one"])

    where = placed(maker)

    assert where(one) == where(two) == CPU0


@pytest.mark.parametrize(
    "ops", [("PtPrefersCpu", "PtPrefersGpu"), ("PtPrefersGpu", "PtPrefersCpu")]
)
def test_conflicting_priorities_fall_back_to_device_order(
    maker: GraphMaker, ops: tuple[str, str]
) -> None:
    """Members that disagree cancel out; then the device types decide, in either order."""
    source = maker.add("PtInput")
    one = maker.add(ops[0], source, name="one")
    two = maker.add(ops[1], source, groups=["one"])

    where = placed(maker)

    assert where(one) == where(two) == GPU0


def test_a_request_beats_kernel_priority(maker: GraphMaker) -> None:
    """What the user asks for is not overruled by a better kernel elsewhere."""
    node = maker.add("PtPrefersCpu", maker.add("PtInput"), on=f"/device:{GPU}:*")

    assert placed(maker)(node) == GPU0


# -- neighbours ----------------------------------------------------------------------


def test_metadata_follows_its_input(maker: GraphMaker) -> None:
    """Shape goes where its input is, so that no big value travels."""
    variable = maker.add("PtVariableCpu")
    relu = maker.add("PtReluCpu", maker.add("PtInput"), after=[variable])
    shape = maker.add("Shape", relu, out_type=dtypes.int32)

    assert placed(maker)(shape) == CPU0


def test_metadata_that_asks_goes_where_it_asks(maker: GraphMaker) -> None:
    """A request of Shape itself is stronger than the wish to save a transfer."""
    relu = maker.add("PtReluCpu", maker.add("PtInput"))
    shape = maker.add("Shape", relu, out_type=dtypes.int32, on=device(GPU, 4))

    assert placed(maker)(shape) == device(GPU, 4)


def test_identity_between_equal_requests_follows_its_input(maker: GraphMaker) -> None:
    """An Identity that asks for nothing lies with its input if both sides ask for the same."""
    handle = maker.add("PtHandle", on=device(CPU, 3))
    identity = maker.add("Identity", maker.add("PtUse", handle))
    consumer = maker.add("PtRelu", identity)

    where = placed(maker)

    assert (where(identity), where(consumer)) == (device(CPU, 3), GPU0)


@pytest.mark.parametrize("case", ["request", "consumer asks", "two consumers", "control input"])
def test_identity_with_opinions_around_is_placed_as_others(maker: GraphMaker, case: str) -> None:
    """A request, a differing request behind, two consumers or a control edge break the rule."""
    handle = maker.add("PtHandle", on=device(CPU, 3))
    after = [handle] if case == "control input" else []
    on = "/job:a" if case == "request" else ""
    identity = maker.add("Identity", maker.add("PtUse", handle), on=on, after=after)
    maker.add("PtRelu", identity, on="/job:a" if case == "consumer asks" else "")
    if case == "two consumers":
        maker.add("PtRelu", identity)

    assert placed(maker)(identity) == GPU0


def test_generator_follows_its_only_consumer(maker: GraphMaker) -> None:
    """A constant lies where it is used."""
    constant = maker.add("PtConst")
    relu = maker.add("PtReluCpu", constant)

    where = placed(maker)

    assert where(constant) == where(relu) == CPU0


def test_generator_follows_consumers_that_lie_together(maker: GraphMaker) -> None:
    """Several consumers on one device draw it as one does."""
    constant = maker.add("PtConst")
    for _ in range(3):
        maker.add("PtRelu", constant, on=device(CPU, 5))

    assert placed(maker)(constant) == device(CPU, 5)


def test_generator_does_not_follow_consumers_that_lie_apart(maker: GraphMaker) -> None:
    """With consumers on two devices the generator goes to its own best one."""
    constant = maker.add("PtConst")
    maker.add("PtReluCpu", constant)
    maker.add("PtReluGpu", constant)

    assert placed(maker)(constant) == GPU0


def test_control_edges_count_for_generators(maker: GraphMaker) -> None:
    """A node that merely waits for the generator is a consumer, too."""
    constant = maker.add("PtConst")
    maker.add("PtReluCpu", constant)
    maker.add("NoOp", after=[constant], on=device(GPU, 3))

    assert placed(maker)(constant) == GPU0


@pytest.mark.parametrize(
    ("kind", "on"), [("PtConstCpu", ""), ("PtConst", f"/device:{CPU}:*"), ("PtConst", CPU0)]
)
def test_generator_stays_where_it_must(maker: GraphMaker, kind: str, on: str) -> None:
    """A consumer's device that the generator cannot or must not have does not draw it."""
    constant = maker.add(kind, on=on)
    maker.add("PtReluGpu", constant)

    assert placed(maker)(constant) == CPU0


def test_generator_without_consumers_goes_to_the_best_device(maker: GraphMaker) -> None:
    """Nothing draws a constant that nobody uses."""
    constant = maker.add("PtConst")

    assert placed(maker)(constant) == GPU0


def test_node_with_two_outputs_is_no_generator(maker: GraphMaker) -> None:
    """Only sources of a single value wait for their consumers."""
    source = maker.add("PtInput")
    maker.add("PtReluCpu", source)

    assert placed(maker)(source) == GPU0


# -- reference edges -------------------------------------------------------------------


@BOTH
def test_reference_edge_intersects_supported_types(
    maker: GraphMaker, options: PlacerOptions
) -> None:
    """Variable and Assign meet on the one type that has kernels for both."""
    source = maker.add("PtInput")
    where: dict[Node, str] = {}
    for variable_op, assign_op, wanted in (
        ("PtVariableGpu", "PtAssign", GPU0),
        ("PtVariable", "PtAssignCpu", CPU0),
        ("PtVariableCpu", "PtAssign", CPU0),
        ("PtVariable", "PtAssign", GPU0),
    ):
        variable = maker.add(variable_op)
        where[variable] = where[maker.add(assign_op, variable, source)] = wanted

    result = placed(maker, options)

    assert {node: result(node) for node in where} == where


@pytest.mark.parametrize(("variable", "assign"), [(CPU, GPU), (GPU, CPU)])
@BOTH
def test_reference_edge_without_common_type_is_refused(
    maker: GraphMaker, options: PlacerOptions, variable: str, assign: str
) -> None:
    """Soft placement does not help where no device type has both kernels."""
    var = maker.add(f"PtVariable{variable[4:].title()}", name="var")
    maker.add(f"PtAssign{assign[4:].title()}", var, maker.add("PtInput"), name="assign")

    message = refused(maker, options=options)

    assert "Nodes were connected by a reference or resource connection" in message
    assert "no device type supports both of those nodes" in message
    assert "{{node assign}}" in message


@BOTH
def test_destination_of_a_reference_loses_its_request(
    maker: GraphMaker, options: PlacerOptions
) -> None:
    """The variable's device wins over what Assign asks for, without a word."""
    variable = maker.add("PtVariable", on=device(GPU, 3))
    assign = maker.add("PtAssign", variable, maker.add("PtInput"), on=device(CPU, 5))

    where = placed(maker, options)

    assert where(variable) == where(assign) == device(GPU, 3)


def test_more_specific_destination_completes_the_source(maker: GraphMaker) -> None:
    """As long as they do not contradict, the more precise request counts for both."""
    variable = maker.add("PtVariable", on=f"/device:{GPU}:*")
    assign = maker.add("PtAssign", variable, maker.add("PtInput"), on=device(GPU, 3))

    where = placed(maker, STRICT)

    assert where(variable) == where(assign) == device(GPU, 3)


def test_request_of_the_destination_moves_a_source_that_asks_nothing(maker: GraphMaker) -> None:
    """A variable without a request goes where its Assign wants it."""
    variable = maker.add("PtVariable")
    assign = maker.add("PtAssign", variable, maker.add("PtInput"), on=device(CPU, 5))

    where = placed(maker, STRICT)

    assert where(variable) == where(assign) == device(CPU, 5)


def test_ignored_request_is_logged(maker: GraphMaker) -> None:
    """Who logs placements hears of a request that lost to a reference."""
    lines: list[str] = []
    variable = maker.add("PtVariable", on=device(GPU, 3), name="var")
    maker.add("PtAssign", variable, maker.add("PtInput"), on=device(CPU, 5), name="assign")

    placed(maker, PlacerOptions(log=lines.append))

    assert lines[0].startswith(f"Ignoring device specification '{device(CPU, 5)}' for node '")
    assert f"var: (PtVariable): {device(GPU, 3)}" in lines


def test_giving_up_on_a_resource_is_logged(maker: GraphMaker) -> None:
    """Who logs placements hears that even the device of a resource was left, and only then."""
    lines: list[str] = []
    handle = maker.add("PtHandle", on=device(GPU, 3))
    maker.add("PtUseCpu", handle)
    placed(maker, PlacerOptions(log=lines.append, allow_soft_placement=True))
    assert [line for line in lines if "without changing the devices of some resources" in line]

    lines.clear()
    fine = GraphMaker()
    fine.add("PtReluCpu", fine.add("PtInput"), on=device(GPU, 3))
    placed(fine, PlacerOptions(log=lines.append, allow_soft_placement=True))
    assert not [line for line in lines if "without changing" in line]


# -- resource edges ---------------------------------------------------------------------


@pytest.mark.parametrize("consumer", ["PtUse", "PtPass"])
@BOTH
def test_consumer_of_a_resource_lies_with_it(
    maker: GraphMaker, options: PlacerOptions, consumer: str
) -> None:
    """Handles do not travel; the request of their maker counts."""
    handle = maker.add("PtHandle", on=device(CPU, 4))
    use = maker.add(consumer, handle, on=device(GPU, 1))

    where = placed(maker, options)

    assert where(handle) == where(use) == device(CPU, 4)


@BOTH
def test_resources_on_two_devices_cannot_meet(maker: GraphMaker, options: PlacerOptions) -> None:
    """One consumer of two resources with different requests is never placed."""
    one, two = maker.add("PtHandle", on=CPU0, name="one"), maker.add("PtHandle", on=GPU0)
    maker.add("PtUseTwo", one, two, name="use")

    message = refused(maker, options=options)

    assert "connects colocation groups with incompatible resource devices: " in message
    assert f"{GPU0} vs {CPU0}" in message
    assert "dst node is use" in message


def test_resource_moves_where_its_consumer_can_run(maker: GraphMaker) -> None:
    """Under soft placement a maker gives way to a consumer without kernels there."""
    handle = maker.add("PtHandle", on=GPU0)
    use = maker.add("PtUseCpu", handle)

    where = placed(maker)

    assert where(handle) == where(use) == CPU0
    assert f"colocated with a group of nodes that required incompatible device '{GPU0}'" in (
        refused(maker)
    )


def test_request_on_a_resource_is_kept_by_its_group(maker: GraphMaker) -> None:
    """A colocation that contradicts it is refused, since a resource's device is fixed."""
    handle = maker.add("PtHandle", on=GPU0, name="handle")
    maker.add("PtHandle", on=CPU0, groups=["handle"], name="other")

    assert "Cannot merge devices with incompatible types" in refused(maker)
    where = placed(maker)
    assert (where(handle), where(maker.graph.node("other"))) == (GPU0, CPU0)


@BOTH
def test_request_of_any_other_node_can_be_overridden(
    maker: GraphMaker, options: PlacerOptions
) -> None:
    """A node that hands a resource on is no maker; its request gives way."""
    handle = maker.add("PtHandle", on=CPU0)
    middle = maker.add("PtPass", handle, on=GPU0)
    use = maker.add("PtUse", middle)

    where = placed(maker, options)

    assert {where(handle), where(middle), where(use)} == {CPU0}


@BOTH
def test_assigned_devices_are_not_overridden_by_resources(
    maker: GraphMaker, options: PlacerOptions
) -> None:
    """Two fixed placements at the ends of a resource edge contradict each other."""
    handle = maker.add("PtHandle", assigned=CPU0)
    maker.add("PtUse", handle, assigned=GPU0)

    message = refused(maker, options=options)

    assert "connects colocation groups with incompatible assigned devices" in message


@BOTH
def test_assigned_device_of_a_colocated_node_is_respected(
    maker: GraphMaker, options: PlacerOptions
) -> None:
    """A consumer that is fixed already fixes the maker of its resource."""
    handle = maker.add("PtHandle")
    use = maker.add("PtUse", handle, assigned=device(CPU, 6))

    where = placed(maker, options)

    assert where(handle) == where(use) == device(CPU, 6)


def test_identity_n_lets_resources_lie_apart(maker: GraphMaker) -> None:
    """An op that only hands values on does not bind what it is given."""
    handles = [maker.add("PtHandle", on=name) for name in (CPU0, GPU0)]
    both = maker.add("IdentityN", *handles)

    where = placed(maker, STRICT)

    assert [where(node) for node in [*handles, both]] == [CPU0, GPU0, GPU0]


@BOTH
def test_a_dataset_lies_with_the_one_that_it_reads(
    maker: GraphMaker, options: PlacerOptions
) -> None:
    """A chain of datasets lies in one place."""
    source = maker.add("PtSourceDataset", on=device(CPU, 5))
    chain = maker.add("PtMapDataset", source)

    where = placed(maker, options)

    assert where(source) == where(chain) == device(CPU, 5)


@pytest.mark.parametrize(
    ("source", "reader"), [("PtSourceDataset", "PtReadVariant"), ("PtVariant", "PtMapDataset")]
)
def test_other_variants_are_values(maker: GraphMaker, source: str, reader: str) -> None:
    """Whoever reads one, and is no dataset or reads none, may lie apart from it."""
    made = maker.add(source, on=device(CPU, 5))
    read = maker.add(reader, made, on=device(CPU, 6))

    where = placed(maker, STRICT)

    assert (where(made), where(read)) == (device(CPU, 5), device(CPU, 6))


# -- colocation by name -------------------------------------------------------------------


def test_group_of_a_node(maker: GraphMaker) -> None:
    """A node that names another lies with it, and nodes that name nothing do not."""
    source = maker.add("PtInput")
    anchor = maker.add("PtReluCpu", source, name="anchor")
    bound = maker.add("PtRelu", source, groups=["anchor"])
    free = maker.add("PtRelu", source)

    where = placed(maker)

    assert (where(anchor), where(bound), where(free)) == (CPU0, CPU0, GPU0)


def test_group_that_no_node_is_called(maker: GraphMaker) -> None:
    """The name of a group is only a name."""
    source = maker.add("PtInput")
    first = maker.add("PtReluCpu", source, groups=["nobody"])
    second = maker.add("PtRelu", source, groups=["nobody"])

    where = placed(maker)

    assert where(first) == where(second) == CPU0


def test_group_named_before_its_node_exists(maker: GraphMaker) -> None:
    """The order of nodes does not matter for who lies with whom."""
    source = maker.add("PtInput")
    early = maker.add("PtRelu", source, groups=["late"])
    late = maker.add("PtRelu", source, name="late", on=device(CPU, 2))

    where = placed(maker)

    assert where(early) == where(late) == device(CPU, 2)


def test_node_in_two_groups_joins_them(maker: GraphMaker) -> None:
    """Membership is transitive."""
    source = maker.add("PtInput")
    one = maker.add("PtReluCpu", source, name="one")
    two = maker.add("PtRelu", source, name="two")
    both = maker.add("PtRelu", source, groups=["one", "two"])

    where = placed(maker)

    assert where(one) == where(two) == where(both) == CPU0


def test_chain_of_colocations(maker: GraphMaker) -> None:
    """Each node that names the one before makes one group of them all."""
    source = maker.add("PtInput", name="n_0")
    chain = [
        maker.add("PtRelu", source, name=f"n_{number}", groups=[f"n_{number - 1}"])
        for number in range(1, 8)
    ]
    chain += [source, maker.add("PtReluCpu", source, groups=["n_7"])]

    where = placed(maker)

    assert {where(node) for node in chain} == {CPU0}


def test_impossible_groups_are_refused_or_dropped(maker: GraphMaker) -> None:
    """Strictly an error that shows the groups; softly the join is left out."""
    source = maker.add("PtInput")
    cpu = maker.add("PtReluCpu", source, name="colocated_1")
    gpu = maker.add("PtReluGpu", source, name="colocated_2", groups=["colocated_1"])

    message = refused(maker)
    where = placed(maker)

    assert (
        "Cannot colocate nodes {{colocation_node colocated_2}} and "
        "{{colocation_node colocated_1}} because no device type supports both" in message
    )
    assert "Colocation Debug Info:" in message
    assert f"PtReluCpu: {CPU}" in message
    assert f"PtReluGpu: {GPU}" in message
    assert (where(cpu), where(gpu)) == (CPU0, GPU0)


@pytest.mark.parametrize(
    ("mine", "yours", "what"),
    [
        (CPU0, GPU0, "types"),
        (CPU0, device(CPU, 1), "ids"),
        ("/task:0", "/task:1", "tasks"),
        ("/replica:0", "/replica:1", "replicas"),
        ("/job:a", "/job:b", "jobs"),
    ],
)
def test_groups_with_contradicting_requests(
    maker: GraphMaker, mine: str, yours: str, what: str
) -> None:
    """The error says what of the requests does not fit."""
    source = maker.add("PtInput")
    maker.add("PtRelu", source, name="one", on=mine)
    maker.add("PtRelu", source, name="two", on=yours, groups=["one"])

    assert f"Cannot merge devices with incompatible {what}: " in refused(maker)


@pytest.mark.parametrize(
    ("mine", "yours", "got"),
    [
        (device(CPU, 2), device(GPU, 3), GPU0),
        (device(CPU, 2), device(CPU, 3), CPU0),
        (f"/device:{CPU}:*", device(CPU, 3), device(CPU, 3)),
    ],
)
def test_soft_groups_give_up_what_they_disagree_on(
    maker: GraphMaker, mine: str, yours: str, got: str
) -> None:
    """Of two types none is kept, of two ids neither; what fits is joined."""
    source = maker.add("PtInput")
    one = maker.add("PtRelu", source, name="one", on=mine)
    two = maker.add("PtRelu", source, name="two", on=yours, groups=["one"])

    where = placed(maker)

    assert where(one) == where(two) == got


def test_dropped_colocation_is_logged(maker: GraphMaker) -> None:
    """Who logs placements hears of a group that was not formed."""
    lines: list[str] = []
    source = maker.add("PtInput")
    maker.add("PtReluCpu", source, name="one")
    maker.add("PtReluGpu", source, name="two", groups=["one"])

    placed(maker, PlacerOptions(log=lines.append))

    assert lines[0].startswith(
        "Ignoring request to colocate node 'two' with nodes in colocation group 'one': "
    )


def test_groups_and_references_together(maker: GraphMaker) -> None:
    """A hundred variables, assigned through references, in two groups of names."""
    source = maker.add("PtInput")
    where: dict[Node, str] = {}
    for number in range(100):
        kind, groups = (CPU, ["a"]) if number % 2 else (GPU, ["b"])
        variable = maker.add(f"PtVariable{kind[4:].title()}", name=f"var_{number}")
        assign = maker.add("PtAssign", variable, source, groups=[f"var_{number}", *groups])
        where |= {variable: device(kind, 0), assign: device(kind, 0)}

    result = placed(maker, STRICT)

    assert {node: result(node) for node in where} == where


def test_group_with_unsatisfiable_references(maker: GraphMaker) -> None:
    """A variable may drag a group to where another member cannot be."""
    source = maker.add("PtInput")
    cpu, gpu = maker.add("PtVariableCpu"), maker.add("PtVariableGpu")
    one = maker.add("PtAssign", cpu, source, name="one")
    two = maker.add("PtAssign", gpu, source, name="two", groups=["one"])

    message = refused(maker)
    where = placed(maker)

    assert "Cannot colocate nodes {{colocation_node two}} and {{colocation_node one}}" in message
    assert (where(one), where(two)) == (CPU0, GPU0)


def test_other_entries_of_class_are_ignored(maker: GraphMaker) -> None:
    """Only entries that begin with loc:@ name groups."""
    source = maker.add("PtInput")
    maker.add("PtReluCpu", source, name="anchor")
    node = maker.add("PtRelu", source, _class=(b"anchor", b"@anchor"))

    assert placed(maker)(node) == GPU0


# -- soft placement ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "wanted", "got"),
    [
        ("PtRelu", f"/device:{GPU}:99", GPU0),
        ("PtRelu", "/device:TPU:0", GPU0),
        ("PtReluCpu", GPU0, CPU0),
        ("PtReluGpu", "/job:a/device:FakeCPU:0", GPU0),
    ],
)
def test_soft_placement_finds_another_device(
    maker: GraphMaker, op: str, wanted: str, got: str
) -> None:
    """Type and id are given up where there is no such device, or no kernel on it."""
    node = maker.add(op, maker.add("PtInput"), on=wanted)

    assert placed(maker)(node) == got


def test_soft_placement_does_not_leave_the_task(maker: GraphMaker) -> None:
    """Another job or task is never a substitute."""
    maker.add("PtInput", on=f"/job:zzz/device:{CPU}:0", name="in")

    assert "explicitly assigned to" in refused(maker, options=SOFT)


def test_fallbacks_are_told(maker: GraphMaker) -> None:
    """The session hears of each request that was given up, to warn once."""
    told: list[tuple[str, str, str]] = []
    source = maker.add("PtInput", on="/device:TPU:3", name="source")
    maker.add("PtRelu", source, on=CPU0, name="relu")

    def hear(node: Node, wanted: str, got: str) -> None:
        told.append((node.name, wanted, got))

    placed(maker, PlacerOptions(on_fallback=hear))

    assert told == [("source", "/device:TPU:3", GPU0)]


def test_colocation_is_no_fallback(maker: GraphMaker) -> None:
    """A request that gave way to a resource's device is nothing to warn of."""
    told: list[Any] = []
    handle = maker.add("PtHandle", on=CPU0)
    maker.add("PtUse", handle, on=GPU0)

    placed(maker, PlacerOptions(on_fallback=lambda *facts: told.append(facts)))

    assert told == []


# -- errors --------------------------------------------------------------------------------------


def test_no_devices(maker: GraphMaker) -> None:
    """An empty set of devices is refused before anything else."""
    maker.add("PtNoKernels", maker.add("PtInput"))

    message = refused(maker, FailedPreconditionError, devices=DeviceSet([]))

    assert "No devices are registered" in message


def test_devices_of_one_type_only(maker: GraphMaker) -> None:
    """The message says which types each op of the group supports."""
    variable = maker.add("PtVariableGpu", name="var")
    maker.add("PtAssign", variable, maker.add("PtInput"), name="assign")

    message = refused(maker, devices=fake_devices(CPU))

    assert "registered to support Op 'PtVariableGpu' used by {{node var}}" in message
    assert f"Registered devices: [{CPU}]" in message
    assert f"device='{GPU}'" in message


@pytest.mark.parametrize("on", ["", "/job:a", f"/job:a/replica:0/task:0/device:{CPU}:0"])
@BOTH
def test_op_without_kernels(maker: GraphMaker, options: PlacerOptions, on: str) -> None:
    """Nothing helps a node of this process whose op has no kernel at all."""
    maker.add("PtNoKernels", maker.add("PtInput"), name="in", on=on)

    message = refused(maker, options=options)

    assert "No OpKernel was registered to support Op 'PtNoKernels' used by {{node in}}" in message
    assert "<no registered kernels>" in message


@pytest.mark.parametrize("on", ["/job:b", f"/job:b/replica:0/task:0/device:{CPU}:3"])
def test_op_without_kernels_on_another_process(maker: GraphMaker, on: str) -> None:
    """Another process may have the kernels that this one lacks."""
    remote = Device(f"/job:b/replica:0/task:0/device:{CPU}:3", CPU)
    node = maker.add("PtNoKernels", maker.add("PtInput"), on=on)

    where = placed(maker, STRICT, DeviceSet([*fake_devices(), remote]))

    assert where(node) == remote.name


def test_no_kernel_for_the_element_type(maker: GraphMaker) -> None:
    """The message lists the kernels there are, with their types."""
    shape = maker.add("Shape", maker.add("PtInput"), out_type=dtypes.int64)
    maker.add("PtTyped", shape, name="typed")

    message = refused(maker)

    assert "with these attrs: [T=int64]" in message
    assert f"device='{GPU}'; T in [DT_FLOAT]" in message


def test_unknown_device(maker: GraphMaker) -> None:
    """The message names the request and all devices there are."""
    maker.add("PtInput", on="/job:foo", name="in")

    message = refused(maker)

    assert "Cannot assign a device for operation in: {{node in}} was explicitly" in message
    assert f"assigned to /job:foo but available devices are [ {CPU0}, {device(CPU, 1)}" in message
    assert "Make sure the device specification refers to a valid device." in message
    assert "GPU, but" not in message


def test_unknown_gpu(maker: GraphMaker) -> None:
    """For a GPU the message says that there are none here."""
    maker.add("PtInput", on="/device:GPU:0")

    assert "appears to be a GPU, but CUDA is not enabled" in refused(maker)


def test_unknown_device_of_a_group(maker: GraphMaker) -> None:
    """What is asked for jointly may not exist although each half of it does."""
    one = maker.add("PtVariable", on="/job:foo", name="one")
    maker.add("PtAssign", one, maker.add("PtInput"), on=f"/device:{CPU}:0")

    message = refused(maker)

    assert "{{colocation_node one}} was colocated with a group of nodes" in message
    assert f"required incompatible device '/job:foo/device:{CPU}:0'" in message


def test_device_without_a_kernel(maker: GraphMaker) -> None:
    """Strictly, a request for a device that cannot run the node is refused."""
    maker.add("PtReluGpu", maker.add("PtInput"), on=CPU0, name="relu")

    message = refused(maker)

    assert f"Could not satisfy explicit device specification '{CPU0}'" in message
    assert f"because no supported kernel for {CPU} devices is available" in message
    assert "Registered kernels:" in message


def test_malformed_request(maker: GraphMaker) -> None:
    """A request that is no device name is refused, also under soft placement."""
    maker.add("PtInput", on="/foo:bar", name="in")

    message = refused(maker, options=SOFT)

    assert "Malformed device specification '/foo:bar' in node: in" in message


@pytest.mark.parametrize(
    ("assigned", "text"),
    [
        ("/job:foo", "Assigned device '/job:foo' does not match any device"),
        ("/job:a", "Assigned device '/job:a' does not match any device"),
        ("/foo:bar", "Malformed assigned device '/foo:bar'"),
        (
            CPU0,
            f"Assigned device '{CPU0}' does not have registered OpKernel support for PtReluGpu",
        ),
    ],
)
def test_wrong_earlier_placement(maker: GraphMaker, assigned: str, text: str) -> None:
    """Earlier placements are the runtime's own, so what is wrong with them is internal."""
    maker.add("PtReluGpu", maker.add("PtInput"), assigned=assigned)

    assert text in refused(maker, InternalError)


# -- size ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("how", ["free", "names", "references"])
def test_long_chains_are_placed_in_linear_time(maker: GraphMaker, how: str) -> None:
    """Thirty thousand nodes in a row need no recursion, and no more than seconds."""
    source = last = maker.add("PtInput", name="n_0")
    if how == "references":
        last = maker.add("PtVariableCpu")
    for number in range(1, 30_000):
        if how == "references":
            last = maker.add("PtAssign", last, source)
        else:
            groups = [f"n_{number - 1}"] if how == "names" else []
            last = maker.add("PtRelu", last, name=f"n_{number}", groups=groups)

    start = time.perf_counter()
    where = placed(maker)

    assert time.perf_counter() - start < 5
    assert where(last) == (CPU0 if how == "references" else GPU0)


# -- one device --------------------------------------------------------------------


def random_maker(random: Random) -> GraphMaker:
    """Ten nodes, some with requests, groups and references, few of them impossible."""
    maker = GraphMaker()
    made = [maker.add("PtInput"), maker.add("PtVariable")]
    for _ in range(8):
        op = random.choices(["PtRelu", "PtVariable", "PtAssign", "PtReluGpu"], [8, 4, 4, 1])[0]
        wanted = random.choices(["", CPU0, GPU0, "/device:FakeCPU:*", "//"], [20, 3, 1, 2, 1])[0]
        groups = random.sample([node.name for node in made], random.choice([0, 0, 0, 1, 2]))
        signature = get_op(op)
        inputs = []
        for arg in signature.inputs:
            fits = [n for n in made if n.output_types and n.output_types[0].is_ref >= arg.is_ref]
            inputs.append(random.choice(fits))
        assigned = random.choices(["", CPU0], [12, 1])[0]
        made.append(maker.add(op, *inputs, on=wanted, groups=groups, assigned=assigned))
    return maker


def outcome(maker: GraphMaker, options: PlacerOptions) -> object:
    """The devices by node id, or the text of the error."""
    try:
        only = DeviceSet([Device(CPU0, CPU)])
        return dict(place(maker.graph, only, options).device_of)
    except OpError as error:
        return type(error), str(error)


@pytest.mark.parametrize("seed", range(200))
def test_one_device_is_no_special_case(seed: int) -> None:
    """The short way to the only device gives what the long way, taken for a log, gives."""
    maker = random_maker(Random(seed))
    for soft in (False, True):
        options = PlacerOptions(allow_soft_placement=soft)
        logged = PlacerOptions(allow_soft_placement=soft, log=lambda _line: None)

        assert outcome(maker, options) == outcome(maker, logged)


def test_random_graphs_are_of_both_kinds() -> None:
    """Among the graphs above, many can be placed and many cannot."""
    kinds = [isinstance(outcome(random_maker(Random(i)), STRICT), dict) for i in range(200)]

    assert 30 < sum(kinds) < 170
