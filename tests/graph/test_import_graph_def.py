"""Definitions become graphs, or are refused with the reason, and nothing in between."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from penstock.defs.schema import AttrValue, Message, NameAttrList, TensorProto, TensorShapeProto
from penstock.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError
from penstock.graph.export import graph_to_def
from penstock.graph.graph import VERSION, Graph
from penstock.graph.import_graph_def import graph_from_def, import_graph_def
from penstock.graph.import_options import ImportOptions
from penstock.session import Session
from support.graphs import graph, graph_def, lines

LOOP = """
    n = Placeholder
    enter = Enter[frame_name=f](n)
    merge = Merge(enter, next)
    cond = LoopCond(less)
    less = Less(merge, merge)
    switch = Switch(merge, cond)
    exit = Exit(switch:0)
    next = NextIteration(switch:1)
"""


def imported(into: Graph, text: str, **options: Any) -> list[str]:
    """Import text into a graph; the lines of what it became."""
    before = set(into.names())
    import_graph_def(into, graph_def(text), ImportOptions(**options))
    return [line for line in lines(into) if line.split(" = ")[0] not in before]


def test_nodes_may_come_in_any_order() -> None:
    """A node may refer to later ones; it is created after them."""
    made = graph("b = Neg(a)\na = Placeholder\nc = Add(b, a, ^b)")

    assert lines(made) == ["a = Placeholder", "b = Neg(a)", "c = Add(b, a, ^b)"]


def test_loops_close_over_a_back_edge() -> None:
    """An edge from a NextIteration to a Merge may close a cycle."""
    made = graph(LOOP)

    assert "merge = Merge(enter, next)" in lines(made)


def test_export_reads_back_as_the_same_graph() -> None:
    """A definition written out gives an equal graph, loops included."""
    made = graph(LOOP)
    written = graph_to_def(made)

    assert graph_to_def(graph_from_def(written)) == written


def test_control_inputs_are_sorted_and_kept_once() -> None:
    """Control inputs stand in the order of their names, none twice."""
    made = graph("b = NoOp\na = NoOp\nc = NoOp(^b, ^a, ^b)")

    assert lines(made)[-1] == "c = NoOp(^a, ^b)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bad! = NoOp", "contains invalid characters"),
        ("_x = NoOp", "contains invalid characters"),
        ("a = NoOp\na = NoOp", "Node 'a' is not unique"),
        ("b = Neg(ghost)", "Node 'b': Unknown input node 'ghost'"),
        ("b = NoOp(^ghost)", r"Unknown input node '\^ghost'"),
        ("a = Placeholder\nb = Neg(a:1)", "invalid output 1 of source node a which has 1"),
        ("a = Placeholder\nb = Add(^a, a)", "Control dependencies must come after regular"),
        ("a = Neg(b)\nb = Neg(a)", "2 nodes in a cycle"),
        ("a = NoOp(^b)\nb = NoOp(^a)", "2 nodes in a cycle"),
        ("a = NextIteration(b)\nb = Neg(a)", "2 nodes in a cycle"),
        ("a = Placeholder\nb = Add(a)", "expected inputs 'float32, float32' do not match 1 inputs"),
        ("a = Placeholder\nb = Neg(a, a)", "expected inputs 'float32' do not match 2 inputs"),
        ("a = Placeholder\nb = Neg[T=int32](a)", "from a:0 incompatible with expected int32"),
        ("a = Placeholder\nb = Neg[T=string](a)", "'T' of string is not in the list"),
        ("a = Placeholder\nb = AddN[N=0](a)", "must be at least minimum 1"),
        ("a = NoOp[_class=loc:@x]", "expects to be colocated with unknown node 'x'"),
    ],
)  # fmt: skip
def test_bad_definitions_are_refused(text: str, message: str) -> None:
    """Each mistake is an InvalidArgumentError that names the node and the reason."""
    with pytest.raises(InvalidArgumentError, match=message):
        graph(text)


def test_unknown_ops_are_not_found() -> None:
    """An op that nobody registered is named, with near names."""
    with pytest.raises(NotFoundError, match=r"Op type not registered 'MatMull'.*\n.*\n.*MatMul"):
        graph("a = MatMull")


def test_unknown_attributes_are_ignored() -> None:
    """An attribute that the op does not declare is kept and means nothing."""
    made = graph("a = NoOp[future=x]")

    assert made.node("a").attrs["future"] == (b"x",)


def test_absent_attributes_take_the_default() -> None:
    """Attributes that are not given take the op's default."""
    made = graph("a = Placeholder\nb = MatMul(a, a)")

    assert made.node("b").attrs["transpose_a"] is False


def test_an_attribute_without_a_value_is_absent() -> None:
    """An entry that holds nothing, such as a mere look at it leaves, takes the default."""
    proto = graph_def("a = Placeholder\nb = MatMul(a, a)\nc = Squeeze(b)")
    for node, name in ((1, "transpose_a"), (1, "Tk"), (1, "_class"), (2, "squeeze_dims")):
        _ = proto.node[node].attr[name]
    written = graph_to_def(graph_from_def(proto))

    assert proto.node[1].attr["transpose_a"].WhichOneof("value") is None
    assert written == graph_to_def(graph("a = Placeholder\nb = MatMul(a, a)\nc = Squeeze(b)"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (AttrValue(), "AttrValue missing value with expected type 'type'"),
        (AttrValue(i=1), "AttrValue had value with type 'int' when 'type' expected"),
        (
            AttrValue(list=AttrValue.ListValue(type=[1])),
            r"AttrValue had value with type 'list\(type\)' when 'type' expected",
        ),
        (AttrValue(type=0), "AttrValue has invalid DataType enum: 0"),
        (AttrValue(type=9999), "AttrValue has invalid DataType enum: 9999"),
        (AttrValue(type=101), "AttrValue must not have reference type value of float32_ref"),
    ],
)
def test_values_of_another_kind_are_refused(value: Message, message: str) -> None:
    """What a required attribute cannot be is named, with the attribute and the node."""
    proto = graph_def("a = Placeholder\nb = Neg(a)")
    proto.node[1].attr["T"].CopyFrom(value)

    with pytest.raises(InvalidArgumentError, match=rf"{message} for attr 'T'; .*node b"):
        graph_from_def(proto)


@pytest.mark.parametrize(
    "value",
    [
        AttrValue(type=0),
        AttrValue(type=9999),
        AttrValue(placeholder="T"),
        AttrValue(shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=-5)])),
        AttrValue(tensor=TensorProto(dtype=77)),
        AttrValue(list=AttrValue.ListValue(i=[7], s=[b"x"])),
        AttrValue(list=AttrValue.ListValue(type=[977])),
        AttrValue(func=NameAttrList(name="f", attr={"z": AttrValue(type=9999)})),
    ],
)
def test_what_no_op_declares_is_not_judged(value: Message) -> None:
    """What the op does not declare may hold anything; the graph is read and written."""
    proto = graph_def("a = Placeholder\nb = Neg(a)")
    proto.node[1].attr["future"].CopyFrom(value)

    assert graph_to_def(graph_from_def(proto)).node[1].op == "Neg"


@pytest.mark.parametrize(
    "value", [AttrValue(i=3), AttrValue(s=b"loc:@a"), AttrValue(list=AttrValue.ListValue(i=[3]))]
)
@pytest.mark.parametrize("options", [{"prefix": "p"}, {"uniquify_names": True}])
def test_groups_that_are_no_texts_are_none(value: Message, options: dict[str, Any]) -> None:
    """A ``_class`` of another kind says nothing about where a node belongs."""
    proto = graph_def("a = NoOp\nb = NoOp")
    proto.node[1].attr["_class"].CopyFrom(value)
    made = Graph()
    import_graph_def(made, proto, ImportOptions(**options))

    assert ["_class" in node.attrs for node in made] == [False, False]


def test_placeholder_attributes_belong_into_functions() -> None:
    """Outside of a function nothing could be put in their place."""
    with pytest.raises(InvalidArgumentError, match="attr 'T' is a placeholder") as caught:
        graph("a = Placeholder\nb = Neg[T=$T](a)")
    assert caught.value.node_name == "b"


def test_a_number_too_long_for_a_slot_is_part_of_a_name() -> None:
    """An input with thousands of digits is an unknown node, and no Python error."""
    with pytest.raises(InvalidArgumentError, match="Unknown input node"):
        graph(f"a = Placeholder\nb = Neg(a:{'9' * 5000})")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("min_consumer", VERSION + 1, "above current version"),
        ("bad_consumers", [VERSION], "disallows consumer version"),
    ],
)
def test_versions_decide_who_may_read(field: str, value: Any, message: str) -> None:
    """A graph that excludes this version is refused."""
    proto = graph_def("a = NoOp")
    if isinstance(value, list):
        getattr(proto.versions, field).extend(value)
    else:
        setattr(proto.versions, field, value)

    with pytest.raises(InvalidArgumentError, match=message):
        graph_from_def(proto)


def test_removed_ops_are_refused_in_newer_graphs_only() -> None:
    """An old graph may use an op that newer graphs may not."""
    text = "a = Placeholder\nb = TopK[k=1](a)"
    old = graph_from_def(graph_def(text, producer=6))

    assert "b" in old
    with pytest.raises(UnimplementedError, match="TopK is not available in GraphDef version 7"):
        graph_from_def(graph_def(text, producer=7))


# -- merging into a graph that exists -------------------------------------------------


@pytest.fixture
def base() -> Graph:
    """A small graph to import into."""
    return graph("x = Placeholder\nscope/y = Neg(x)")


def test_prefix_is_put_before_names_inputs_and_colocations(base: Graph) -> None:
    """With a prefix, everything that is imported moves under it."""
    got = imported(base, "a = Placeholder\nb = Neg[_class=loc:@a](a, ^a)", prefix="p")

    assert got == ["p/a = Placeholder", "p/b = Neg(p/a, ^p/a)"]
    assert base.node("p/b").attrs["_class"] == (b"loc:@p/a",)


def test_taken_names_are_refused(base: Graph) -> None:
    """A name that the graph has, as a node or as a scope, cannot be imported again."""
    for name in ("x", "scope"):
        with pytest.raises(InvalidArgumentError, match="already exists in the Graph"):
            import_graph_def(base, graph_def(f"{name} = NoOp"))


def test_uniquify_finds_free_names(base: Graph) -> None:
    """Taken names get the first free number, colocations follow."""
    got = imported(base, "x = NoOp\nz = NoOp[_class=loc:@x](^x)", uniquify_names=True)

    assert got == ["x_1 = NoOp", "z = NoOp(^x_1)"]
    assert base.node("z").attrs["_class"] == (b"loc:@x_1",)


def test_uniquify_prefix(base: Graph) -> None:
    """A prefix that is taken gets a number."""
    assert imported(base, "a = NoOp", prefix="scope", uniquify_prefix=True) == ["scope_1/a = NoOp"]


def test_input_map_replaces_inputs(base: Graph) -> None:
    """Mapped inputs come from the graph, also those that the definition does not have."""
    got = imported(
        base, "a = Placeholder\nb = Add(a, unbound:2)", input_map={"a": "x", "unbound:2": "scope/y"}
    )

    assert got == ["a = Placeholder", "b = Add(x, scope/y)"]


def test_input_map_of_control_edges(base: Graph) -> None:
    """Control inputs can be mapped; several that fall together become one."""
    got = imported(base, "b = NoOp(^u, ^v)", input_map={"^u": "^x", "^v": "^x"})

    assert got == ["b = NoOp(^x)"]


@pytest.mark.parametrize(
    ("input_map", "message"),
    [
        ({"a": "nowhere"}, r"node 'nowhere' in input_map does not exist"),
        ({"^a": "x"}, "between control edge and non-control edge"),
    ],
)
def test_bad_input_maps_are_refused(base: Graph, input_map: dict[str, str], message: str) -> None:
    """A map to nothing, or between kinds of edges, is refused."""
    with pytest.raises(InvalidArgumentError, match=message):
        import_graph_def(base, graph_def("b = NoOp"), ImportOptions(input_map=input_map))


def test_bad_slots_of_mapped_inputs_are_refused(base: Graph) -> None:
    """A mapped-to slot that its node does not have is found when the edge is made."""
    with pytest.raises(OpError, match="output 5"):
        import_graph_def(base, graph_def("b = Neg(a)"), ImportOptions(input_map={"a": "x:5"}))


def test_skip_mapped_nodes(base: Graph) -> None:
    """A node all of whose outputs are mapped can be left out."""
    got = imported(
        base, "a = Placeholder\nb = Neg(a)", input_map={"a": "x"}, skip_mapped_nodes=True
    )

    assert got == ["b = Neg(x)"]


def test_unused_keys_that_name_nothing_are_reported(base: Graph) -> None:
    """Only keys whose node or slot is not in the definition are worth a report."""
    results = import_graph_def(
        base,
        graph_def("a = Placeholder"),
        ImportOptions(input_map={"a": "x", "a:7": "x", "none": "x"}),
    )

    assert results.missing_unused_input_map_keys == ("a:7", "none")


def test_control_dependencies_reach_nodes_without_imported_inputs(base: Graph) -> None:
    """They are added to sources only; the others inherit them."""
    got = imported(base, "a = NoOp\nb = NoOp(^a)", control_dependencies=["x"])

    assert got == ["a = NoOp(^x)", "b = NoOp(^a)"]


def test_control_dependencies_do_not_touch_loop_merges(base: Graph) -> None:
    """A Merge whose Enter is imported inherits them through it."""
    got = imported(base, LOOP, control_dependencies=["x"])

    assert "merge = Merge(enter, next)" in got
    assert "n = Placeholder(^x)" in got


def test_return_tensors_and_nodes(base: Graph) -> None:
    """What is asked for comes back, mapped tensors as what they are mapped to."""
    results = import_graph_def(
        base,
        graph_def("a = Placeholder\nb = Neg(a)"),
        ImportOptions(
            prefix="p", input_map={"a": "x"}, return_tensors=["a:0", "b:0"], return_nodes=["b"]
        ),
    )

    assert [(n.name, slot) for n, slot in results.return_tensors] == [("x", 0), ("p/b", 0)]
    assert [n.name for n in results.return_nodes] == ["p/b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"return_tensors": ["z:0"]}, "Requested return tensor 'z:0' not found in graph def"),
        ({"return_tensors": ["a:3"]}, "Invalid return output 3 of node 'a', which has 1 output"),
        ({"return_nodes": ["z"]}, "Requested return node 'z' not found in graph def"),
        ({"control_dependencies": ["z"]}, "node 'z' in control_dependencies does not exist"),
        ({"prefix": "_p"}, "would lead to invalid node names"),
    ],
)
def test_failed_imports_change_nothing(base: Graph, options: dict[str, Any], message: str) -> None:
    """After an error the graph, its versions included, is as it was."""
    before, versions = lines(base), base.versions
    with pytest.raises(InvalidArgumentError, match=message):
        import_graph_def(base, graph_def("a = Placeholder"), ImportOptions(**options))

    assert lines(base) == before
    assert base.versions == versions


def test_a_node_that_fails_late_takes_the_earlier_ones_with_it(base: Graph) -> None:
    """Nodes created before the one that fails are taken away again."""
    with pytest.raises(NotFoundError):
        import_graph_def(base, graph_def("a = Placeholder\nb = Neg(a)\nc = Nonsense(b)"))

    assert lines(base) == ["x = Placeholder", "scope/y = Neg(x)"]


def test_versions_merge() -> None:
    """The producer is the lower one, the demands on consumers add up."""
    target = graph_from_def(graph_def("a = NoOp", producer=100))
    new = graph_def("b = NoOp", producer=50)
    new.versions.min_consumer = 7
    new.versions.bad_consumers.extend([3, 2])
    import_graph_def(target, new)

    assert target.versions.producer == 50
    assert target.versions.min_consumer == 7
    assert target.versions.bad_consumers == (2, 3)


@pytest.mark.parametrize(
    ("order", "made"),
    [("abecdf", "abecdf"), ("dbaecf", "abecdf"), ("fedcba", "ecdfab"), ("faebcd", "aebcdf")],
)
def test_order_of_creation(order: str, made: str) -> None:
    """Of the nodes whose inputs are there, the first of the definition is created next."""
    inputs = {"a": "", "b": "^a", "c": "^e", "d": "^c", "e": "", "f": "^d"}
    text = "\n".join(f"{name} = NoOp({inputs[name]})" for name in order)

    assert "".join(node.name for node in graph(text)) == made


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
def test_a_loop_that_nothing_enters_is_refused(order: tuple[int, ...]) -> None:
    """A Merge both of whose inputs are back edges can never be created, wherever it stands."""
    nodes = ["m = Merge(n, o)", "n = NextIteration(m)", "o = NextIteration(m)"]

    with pytest.raises(InvalidArgumentError, match="in a cycle"):
        graph("\n".join(nodes[i] for i in order))


@pytest.mark.parametrize("length", [1, 124, 125, 126, 127, 128, 300])
def test_attributes_are_each_node_s_own(length: int) -> None:
    """Nodes that differ in attributes alone keep them apart, however long names and inputs are."""
    source = "s" * length
    wanted = {
        f"{'n' * length}{index}": (kind, mask, device)
        for index, (kind, mask, device) in enumerate(
            product(["int32", "int64"], [0, 1, 2**40], ["", "/device:CPU:0"])
        )
    }
    text = [f"{source} = Placeholder[dtype=int32]", "long = Placeholder[dtype=int64]"]
    for name, (kind, mask, device) in wanted.items():
        places = ", ".join([source if kind == "int32" else "long"] * 3)
        attrs = f"T=int32; Index={kind}; begin_mask={mask}"
        text.append(f"{name} = StridedSlice[{attrs}]({source}, {places}, ^{source}) @{device}")
    made = graph("\n".join(text).replace(" @\n", "\n").removesuffix(" @"))

    for name, (kind, mask, device) in wanted.items():
        node = made.node(name)
        assert (str(node.attrs["Index"]), node.attrs["begin_mask"]) == (kind, mask)
        assert node.requested_device == device


def test_equal_attributes_are_checked_for_every_prefix() -> None:
    """Groups of nodes get the prefix of their own import."""
    into = Graph()
    proto = graph_def("a = NoOp\nb = NoOp")
    for node in proto.node:
        node.attr["_class"].list.s.append(b"loc:@a")
    for prefix in ("p", "q"):
        import_graph_def(into, proto, ImportOptions(prefix=prefix))

    assert [node.attrs["_class"] for node in into] == [(b"loc:@p/a",)] * 2 + [(b"loc:@q/a",)] * 2


def test_a_million_inputs_are_not_named() -> None:
    """An op may declare as many inputs as it likes; the message stays one that can be read."""
    made = graph_def("x = Placeholder\ny = AddN(x, x)")
    made.node[1].attr["N"].i = 1_000_000
    with pytest.raises(InvalidArgumentError, match=r"\(1000000 in all\).* 2 inputs") as caught:
        graph_from_def(made)
    assert len(caught.value.message) < 1000


# -- attributes that are newer than the graph ---------------------------------------------------


def fused(count: int) -> Message:
    """A 1x1 convolution with a bias, as TensorFlow.js's converter writes it: without TArgs."""
    made = graph_def("x = Placeholder[dtype=float32]\nf = Placeholder[dtype=float32]\n"
                     "b = Placeholder[dtype=float32]")  # fmt: skip
    node = made.node.add(name="y", op="_FusedConv2D", input=["x", "f", "b"])
    node.attr["T"].type = 1
    node.attr["num_args"].i = count
    node.attr["strides"].list.i.extend([1, 1, 1, 1])
    node.attr["padding"].s = b"VALID"
    node.attr["fused_ops"].list.s.append(b"BiasAdd")
    return made


def test_types_that_a_newer_op_asks_for_are_told_from_others() -> None:
    """As many arguments as the graph says, all of the image's type; the node runs."""
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3, 1)
    with Session(fused(1)) as session:
        y = session.run("y:0", {"x:0": x, "f:0": [[[[2.0]]]], "b:0": [10.0]})

    assert np.array_equal(y, x * 2 + 10)


@pytest.mark.parametrize("count", [-1, 1 << 40])
def test_senseless_counts_of_arguments_are_refused(count: int) -> None:
    """No memory is asked for on their behalf."""
    with pytest.raises(OpError):
        graph_from_def(fused(count))
