"""Shapes through graphs: sizes that are computed, loops, branches, handles, contradictions."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.core.shapes import TensorShape
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Graph
from penstock.kernels.api.shape_rules import shape_rule
from penstock.shapes.infer import infer_shapes
from support.loops import counting_loop
from support.sketch import sketch


def inferred(graph: Graph, name: str) -> str:
    """The shape of ``node:slot`` as text."""
    node, _, slot = name.partition(":")
    return str(infer_shapes(graph).shape(graph.node(node), int(slot or 0)))


def shape_in(text: str, name: str) -> str:
    """The shape of one output of a sketch."""
    return inferred(sketch(text), name)


def test_sizes_that_a_graph_computes_are_known_in_parts() -> None:
    """Of ``[Shape(x)[0], 4 * 8, -1]`` the first size is as unknown as x's, the second is 32."""
    text = """
        x = Placeholder() dtype=float32 shape=(None,6,16)
        size = Shape(x)
        zero = Const() value=[0]
        one = Const() value=[1]
        first = StridedSlice(size, zero, one, one) shrink_axis_mask=1
        four = Const() value=4
        eight = Const() value=8
        product = Mul(four, eight)
        rest = Const() value=-1
        wanted = Pack(first, product, rest) N=3
        y = Reshape(x, wanted)
    """
    assert shape_in(text, "y") == "[?,32,?]"
    assert shape_in(text.replace("(None,6,16)", "(2,6,16)"), "y") == "[2,32,3]"


def test_elements_that_only_move_are_known_where_they_were() -> None:
    """Concatenated, turned round, and picked, unknown sizes do not hide the known ones."""
    text = """
        x = Placeholder() dtype=float32 shape=(None,5)
        y = Placeholder() dtype=float32 shape=(7,None)
        a = Shape(x)
        b = Shape(y)
        zero = Const() value=0
        both = ConcatV2(a, b, zero) N=2
        axis = Const() value=[0]
        turned = ReverseV2(both, axis)
        places = Const() value=[3,1,2]
        picked = GatherV2(turned, places, zero)
        value = Const() value=1.0
        filled = Fill(picked, value)
    """
    # [?,5,7,?] turned round is [?,7,5,?].
    assert shape_in(text, "filled") == "[?,7,5]"


def test_what_an_unknown_size_takes_part_in_is_unknown() -> None:
    """A result that is the same for two numbers need not be for others: ``min(n, 100)``."""
    text = """
        x = Placeholder() dtype=float32 shape=(None)
        n = Size(x) out_type=int32
        hundred = Const() value=100
        least = Minimum(n, hundred)
        quotient = FloorDiv(n, hundred)
        dims = Pack(least, quotient, hundred) N=3
        value = Const() value=1.0
        filled = Fill(dims, value)
    """
    assert shape_in(text, "filled") == "[?,?,100]"


def test_a_loop_is_gone_around_until_nothing_changes() -> None:
    """A variable that keeps its shape has it; one that grows is unknown where it grows."""
    text = """
        x = Placeholder() dtype=float32 shape=(1,4)
        start = Enter(x) frame_name="l"
        kept = Enter(x) frame_name="l"
        p = Placeholder() dtype=bool
        q = Enter(p) frame_name="l" is_constant=True
        cond = LoopCond(q)
        grows = Merge(start, next)
        stays = Merge(kept, same)
        switch = Switch(grows, cond)
        other = Switch(stays, cond)
        axis = Const() value=0
        inside = Enter(axis) frame_name="l" is_constant=True
        longer = ConcatV2(switch:1, other:1, inside) N=2
        next = NextIteration(longer)
        same = NextIteration(other:1)
        exit = Exit(switch)
        end = Exit(other)
    """
    assert shape_in(text, "exit") == "[?,4]"
    assert shape_in(text, "longer") == "[?,4]"
    assert shape_in(text, "end") == "[1,4]"


def test_what_a_loop_computes_from_a_shape_changes_with_it() -> None:
    """A size that a value brings is looked at anew when the shape that it is of has changed."""
    text = """
        x = Placeholder() dtype=float32 shape=(1,4)
        start = Enter(x) frame_name="l"
        p = Placeholder() dtype=bool
        q = Enter(p) frame_name="l" is_constant=True
        cond = LoopCond(q)
        merge = Merge(start, next)
        switch = Switch(merge, cond)
        size = Shape(switch:1)
        one = Const() value=1.0
        inside = Enter(one) frame_name="l" is_constant=True
        filled = Fill(size, inside)
        axis = Const() value=0
        along = Enter(axis) frame_name="l" is_constant=True
        longer = ConcatV2(switch:1, filled, along) N=2
        next = NextIteration(longer)
        exit = Exit(switch)
    """
    assert shape_in(text, "filled") == "[?,4]"
    assert shape_in(text, "exit") == "[?,4]"


def test_a_default_is_not_taken_for_the_value() -> None:
    """What may be fed says nothing about sizes; nor is anything computed that has effects."""
    text = """
        two = Const() value=[2]
        fed = PlaceholderWithDefault(two) shape=[1]
        one = Const() value=1.0
        filled = Fill(fed, one)
        zero = Const() value=[0]
        written = InplaceAdd(two, zero, two)
        other = Fill(written, one)
    """
    graph = sketch(text)
    assert inferred(graph, "filled") == "[?]"
    assert inferred(graph, "other") == "[?]"
    assert graph.node("two").attrs["value"].value.tolist() == [2]


def test_a_counter_is_not_taken_for_its_first_value() -> None:
    """Sizes that depend on a loop's counter are unknown, though it begins with a constant."""
    text = (
        counting_loop()
        + """
        dims = Pack(exit, exit) N=2
        value = Const() value=1.0
        filled = Fill(dims, value)
    """
    )
    assert shape_in(text, "exit") == "[]"
    assert shape_in(text, "filled") == "[?,?]"


def test_branches_agree_or_are_unknown() -> None:
    """A Merge has the sizes that all of its inputs have; its second output is a number."""
    text = """
        p = Placeholder() dtype=bool
        x = Placeholder() dtype=float32 shape=(2,3)
        y = Placeholder() dtype=float32 shape=(2,4)
        a = Switch(x, p)
        b = Switch(y, p)
        merge = Merge(a, b:1) N=2
    """
    assert shape_in(text, "merge") == "[2,?]"
    assert shape_in(text, "merge:1") == "[]"
    assert shape_in(text.replace("(2,4)", "(2,4,1)"), "merge") == "<unknown>"
    for known in ("(2,3)", "(2,4)"):
        assert shape_in(text.replace(f" shape={known}", ""), "merge") == "<unknown>"


def test_handles_carry_what_they_point_to() -> None:
    """A variable's shape comes out of ReadVariableOp, through Identities and Switches."""
    text = """
        v = VarHandleOp() dtype=float32 shape=(3,None)
        p = Placeholder() dtype=bool
        i = Identity(v)
        s = Switch(i, p)
        r = ReadVariableOp(s:1) dtype=float32
        size = VariableShape(v)
    """
    assert shape_in(text, "r") == "[3,?]"
    assert shape_in(text, "size") == "[2]"
    assert shape_in(f"{text}w = ReadVariableOp(s:1) dtype=int32", "w") == "<unknown>"


def test_lists_carry_the_shape_of_their_elements() -> None:
    """What is put into a TensorList comes out with its shape, also stacked."""
    text = """
        x = Placeholder() dtype=float32 shape=(9,2,None)
        any = Const() value=-1
        list = TensorListFromTensor(x, any) element_dtype=float32
        i = Const() value=0
        item = TensorListGetItem(list, i, any) element_dtype=float32
        new = TensorListSetItem(list, i, item) element_dtype=float32
        stack = TensorListStack(new, any) element_dtype=float32
    """
    assert shape_in(text, "item") == "[2,?]"
    assert shape_in(text, "stack") == "[?,2,?]"


def test_contradictions_are_noted_and_stop_nothing() -> None:
    """Of what cannot be nothing is known; the reason is TensorFlow's; the rest is inferred."""
    graph = sketch("""
        a = Placeholder() dtype=float32 shape=(2,3)
        b = Placeholder() dtype=float32 shape=(4,5)
        bad = MatMul(a, b)
        good = MatMul(a, b) transpose_a=True
        c = Shape(bad)
        d = Neg(a)
    """)
    shapes = infer_shapes(graph)
    assert [str(shapes.shape(graph.node(name), 0)) for name in ("bad", "c", "d")] == [
        "<unknown>",
        "[?]",
        "[2,3]",
    ]
    (error,) = shapes.errors.values()
    assert error.reason == "Dimensions must be equal, but are 3 and 4"
    with pytest.raises(InvalidArgumentError, match="are 2 and 4"):
        shapes.check(graph.node("good"))


def test_what_only_the_first_iteration_contradicts_is_no_contradiction() -> None:
    """A loop's variable may begin with another shape than its body needs, if it may become that."""
    graph = sketch("""
        x = Placeholder() dtype=float32 shape=(1,4)
        y = Placeholder() dtype=float32 shape=(3,4)
        start = Enter(x) frame_name="l"
        other = Enter(y) frame_name="l" is_constant=True
        p = Placeholder() dtype=bool
        q = Enter(p) frame_name="l" is_constant=True
        cond = LoopCond(q)
        merge = Merge(start, next)
        switch = Switch(merge, cond)
        same = AddN(switch:1, other) N=2
        both = Pack(same, same) N=2
        axis = Const() value=0
        along = Enter(axis) frame_name="l" is_constant=True
        least = Min(both, along)
        next = NextIteration(least)
        exit = Exit(switch)
    """)
    shapes = infer_shapes(graph)
    assert str(shapes.shape(graph.node("exit"), 0)) == "<unknown>"
    shapes.check(graph.node("same"))
    assert shapes.errors == {}


def test_what_is_noted_is_used_unless_it_contradicts() -> None:
    """``_output_shapes`` adds to what is inferred; of what both deny nothing is known."""
    graph = sketch("""
        s = Placeholder() dtype=string
        t = ParseTensor(s) out_type=float32
        x = Placeholder() dtype=float32 shape=(2,3)
        y = Neg(x)
    """)
    for name, sizes in (("t", (4, None)), ("y", (7, 7))):
        node = graph.node(name)
        node.attrs = {**node.attrs, "_output_shapes": (TensorShape(sizes),)}
    assert inferred(graph, "t") == "[4,?]"
    assert inferred(graph, "y") == "[?,?]"


def test_old_graphs_say_nothing_by_an_empty_shape() -> None:
    """A placeholder without sizes is one of unknown rank in graphs of version 23 and before."""
    graph = sketch("x = Placeholder() dtype=float32 shape=()\ny = Neg(x)")
    assert inferred(graph, "y") == "[]"
    graph.versions = type(graph.versions)(producer=23)
    assert inferred(graph, "y") == "<unknown>"


def test_ops_without_a_rule_are_unknown() -> None:
    """Nothing is guessed of an op that nobody has written a rule for, nor of what follows."""
    ps.register_op("Ruleless(x: T) -> (y: T) [T: type{float32}]")
    text = "x = Placeholder() dtype=float32 shape=(2,)\ny = Ruleless(x)\nz = Neg(y)\nn = Shape(y)"
    assert shape_in(text, "y") == shape_in(text, "z") == "<unknown>"
    assert shape_in(text, "n") == "[?]"


def test_a_rule_that_fails_stops_nothing() -> None:
    """Whatever a rule of somebody's own raises, the shape is unknown, and the reason is noted."""

    def fails(_node: object) -> TensorShape:
        raise RuntimeError("no idea")

    ps.register_op("Misruled(x: T) -> (y: T) [T: type{float32}]")
    shape_rule("Misruled")(fails)
    graph = sketch("x = Placeholder() dtype=float32 shape=(2,)\ny = Misruled(x)")
    shapes = infer_shapes(graph)
    assert str(shapes.shape(graph.node("y"), 0)) == "<unknown>"
    assert "no idea" in shapes.errors[graph.node("y").id].reason
    shapes.check(graph.node("y"))  # The builder goes on, too.


def test_long_chains_are_followed() -> None:
    """Tens of thousands of nodes in a row take no recursion."""
    rows = ["n0 = Placeholder() dtype=float32 shape=(2,None)"]
    rows += [f"n{i + 1} = Neg(n{i})" for i in range(20_000)]
    assert shape_in("\n".join(rows), "n20000") == "[2,?]"


def test_nothing_large_is_computed() -> None:
    """A value that would take memory is not computed for a shape; its own shape is known."""
    text = """
        dims = Const() value=[100000, 100000, 100]
        zero = Const() value=0
        huge = Fill(dims, zero)
        y = Neg(huge)
        wanted = Fill(dims, zero)
        r = Reshape(y, wanted)
    """
    assert shape_in(text, "y") == "[100000,100000,100]"
    assert shape_in(text, "r") == "<unknown>"


def test_more_than_fits_is_no_size() -> None:
    """A size beyond 64 bits, which TensorFlow refuses, is unknown; one below zero is refused."""
    largest = 2**62
    text = f"""
        x = Placeholder() dtype=float32 shape=({largest},4)
        n = Const() value=np.array([2,2])
        y = Tile(x, n)
        begin = Const() value=[0,5]
        rest = Const() value=[1,-1]
        z = Slice(x, begin, rest)
    """.replace("np.array([2,2])", "[2,2]")
    assert shape_in(text, "y") == "[?,8]"
    assert shape_in(text, "z") == "<unknown>"
