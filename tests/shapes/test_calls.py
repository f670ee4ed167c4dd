"""Shapes through functions: calls, branches, loops, recursion."""

from __future__ import annotations

from penstock.defs.schema import Message
from penstock.graph.import_graph_def import graph_from_def
from penstock.shapes.infer import infer_shapes
from support.functions import graph_def_with


def inferred(graph_def: Message, name: str) -> str:
    """The shape of ``node:slot`` as text."""
    graph = graph_from_def(graph_def)
    node, _, slot = name.partition(":")
    return str(infer_shapes(graph).shape(graph.node(node), int(slot or 0)))


_HALVES = """
Turn(x: float32) -> (y: float32)
perm = Const[value=1|0; dtype=int32]
t = Transpose[Tperm=int32](x, perm:output)
return y = t:y

Same(x: float32) -> (y: float32)
return y = x
"""


def of(text: str, name: str, functions: str = _HALVES) -> str:
    """The shape of an output of a graph with functions."""
    return inferred(graph_def_with(text, functions), name)


def test_calls_are_gone_into() -> None:
    """What a function returns follows from what it is given, each time anew."""
    text = """
        a = Placeholder[shape=2|3]
        b = Placeholder[shape=4|5]
        x = PartitionedCall[f=Turn; Tin=float32; Tout=float32](a)
        y = Turn(b)
    """
    assert of(text, "x") == "[3,2]"
    assert of(text, "y") == "[5,4]"


def test_branches_agree_or_are_unknown() -> None:
    """An If has the sizes that both of its branches give."""
    text = """
        p = Placeholder[dtype=bool; shape=()]
        a = Placeholder[shape=3|3]
        b = Placeholder[shape=2|3]
        x = If[Tcond=bool; Tin=float32; Tout=float32; then_branch=Turn; else_branch=Same](p, a)
        y = If[Tcond=bool; Tin=float32; Tout=float32; then_branch=Turn; else_branch=Same](p, b)
    """
    assert of(text, "x") == "[3,3]"
    assert of(text, "y") == "[?,?]"


_LOOP = """
Goes(x: float32) -> (p: bool)
t = Const[value=1; dtype=bool]
return p = t:output

Turn(x: float32) -> (y: float32)
perm = Const[value=1|0; dtype=int32]
t = Transpose[Tperm=int32](x, perm:output)
return y = t:y

Grow(x: float32) -> (y: float32)
axis = Const[value=0; dtype=int32]
c = ConcatV2[N=2; Tidx=int32](x, x, axis:output)
return y = c:output
"""


def test_loops_are_gone_around_until_nothing_changes() -> None:
    """What a loop's body changes is unknown; what it keeps is known."""
    text = """
        a = Placeholder[shape=3|3]
        b = Placeholder[shape=2|3]
        w = While[T=float32; cond=Goes; body=Turn](a)
        x = While[T=float32; cond=Goes; body=Turn](b)
        y = While[T=float32; cond=Goes; body=Grow](b)
    """
    assert of(text, "w", _LOOP) == "[3,3]"
    assert of(text, "x", _LOOP) == "[?,?]"
    assert of(text, "y", _LOOP) == "[?,3]"


def test_loops_hand_shapes_from_variable_to_variable() -> None:
    """What one variable gets from another one changes only an iteration later."""
    functions = """
    Goes(x: float32, y: float32) -> (p: bool)
    t = Const[value=1; dtype=bool]
    return p = t:output

    Shift(x: float32, y: float32) -> (a: float32, b: float32)
    axis = Const[value=0; dtype=int32]
    c = ConcatV2[N=2; Tidx=int32](y, y, axis:output)
    return a = y
    return b = c:output
    """
    text = """
        b = Placeholder[shape=2|3]
        w = While[T=float32|float32; cond=Goes; body=Shift](b, b)
    """
    assert of(text, "w:0", functions) == of(text, "w:1", functions) == "[?,3]"


def test_recursion_ends() -> None:
    """Nothing is known of what a function returns that calls itself."""
    again = """
    Again(x: float32) -> (y: float32)
    c = PartitionedCall[f=Again; Tin=float32; Tout=float32](x)
    return y = c:output
    """
    text = """
        a = Placeholder[shape=2|3]
        x = PartitionedCall[f=Again; Tin=float32; Tout=float32](a)
    """
    assert of(text, "x", again) == "<unknown>"


def test_many_calls_of_calls_end() -> None:
    """Twenty functions that each call the next one twice are looked at once per shape."""
    parts = ["F0(x: float32) -> (y: float32)\nn = Neg(x)\nreturn y = n:y"]
    parts += [
        f"F{i}(x: float32) -> (y: float32)\n"
        f"a = PartitionedCall[f=F{i - 1}; Tin=float32; Tout=float32](x)\n"
        f"b = PartitionedCall[f=F{i - 1}; Tin=float32; Tout=float32](a:output)\n"
        "return y = b:output"
        for i in range(1, 21)
    ]
    text = """
        a = Placeholder[shape=2|3]
        x = PartitionedCall[f=F20; Tin=float32; Tout=float32](a)
    """
    assert of(text, "x", "\n\n".join(parts)) == "[2,3]"


def test_handles_go_into_functions() -> None:
    """A function that reads a variable returns something of the variable's shape."""
    read = """
    Read(v: resource) -> (y: float32)
    r = ReadVariableOp[dtype=float32](v)
    return y = r:value
    """
    text = """
        v = VarHandleOp[dtype=float32; shape=5|6]
        x = PartitionedCall[f=Read; Tin=resource; Tout=float32](v)
    """
    assert of(text, "x", read) == "[5,6]"
