"""From a function's definition and a call's attributes to a graph that can run."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.defs.attrs import FuncAttr
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.graph.instantiate import FunctionBody, instantiate
from support.functions import functions, library
from support.graphs import lines

TYPE_OF = {"T": dtypes.float32}


def body(text: str, name: str = "", **attrs: Any) -> FunctionBody:
    """The body of the function called ``name``, or of the first one."""
    protos = functions(text)
    return instantiate(library(*protos), name or protos[0].signature.name, attrs)


def types_of(made: FunctionBody) -> tuple[list[str], list[str]]:
    """Names of the argument types and of the result types."""

    def names(types: tuple[DType, ...]) -> list[str]:
        return [dtype.name for dtype in types]

    return names(made.arg_types), names(made.ret_types)


def test_arguments_and_results_become_nodes() -> None:
    """A body is its nodes between ``_Arg`` and ``_Retval``."""
    made = body(
        """
        Twice(x: T) -> (y: T) [T: type]
        two = Const[value=2; dtype=int32]
        scale = Cast[SrcT=int32; DstT=$T](two:output:0)
        y = Mul[T=$T](x, scale:y:0)
        return y = y:z:0
        """,
        T=dtypes.float32,
    )

    assert lines(made.graph) == [
        "x = _Arg",
        "two = Const",
        "scale = Cast(two)",
        "y = Mul(x, scale)",
        "y_RetVal = _Retval(y)",
    ]
    assert made.graph.node("scale").attrs["DstT"] is dtypes.float32
    assert types_of(made) == (["float32"], ["float32"])


def test_indices_of_arguments_and_results() -> None:
    """Arguments and results are numbered through, lists included."""
    made = body(
        """
        F(a: N*T, b: int32) -> (c: int32, d: N*T) [N: int, T: type]
        return c = b
        return d = a
        """,
        N=2,
        T=dtypes.bool_,
    )
    index_of = {node.name: node.attrs["index"] for node in made.graph}

    assert index_of == {
        "a_0": 0,
        "a_1": 1,
        "b": 2,
        "c_RetVal": 0,
        "d_RetVal_0": 1,
        "d_RetVal_1": 2,
    }
    assert types_of(made) == (["bool", "bool", "int32"], ["int32", "bool", "bool"])


def test_attributes_have_defaults() -> None:
    """What the call does not give comes from the signature."""
    text = """
        F(x: T) -> (y: T) [T: type = "int32"]
        y = Neg[T=$T](x)
        return y = y:y
    """

    assert types_of(body(text)) == (["int32"], ["int32"])
    assert types_of(body(text, T=dtypes.int64)) == (["int64"], ["int64"])


def test_attributes_without_a_value_take_the_default() -> None:
    """An entry that holds nothing is none: in a node of the body, and in the call."""
    protos = functions(
        """
        F(x: T) -> (y: T) [T: type = "int32"]
        y = Squeeze[T=$T](x)
        return y = y:output
        """
    )
    for name in ("squeeze_dims", "Tk", "_class"):
        _ = protos[0].node_def[0].attr[name]
    made = instantiate(library(*protos), "F", {"T": None})

    assert made.graph.node("y").attrs == {"T": dtypes.int32, "squeeze_dims": ()}


def test_list_arguments_whole_and_by_index() -> None:
    """A name stands for the whole list, a name with an index for one of it."""
    made = body(
        """
        F(a: N*T) -> (y: T) [N: int, T: type]
        all = AddN[N=$N; T=$T](a)
        two = Add[T=$T](all:sum, a:1)
        return y = two:z
        """,
        N=3,
        T=dtypes.float32,
    )

    assert "all = AddN(a_0, a_1, a_2)" in lines(made.graph)
    assert "two = Add(all, a_1)" in lines(made.graph)


def test_list_outputs_whole_and_by_index() -> None:
    """The same holds for the outputs of nodes."""
    made = body(
        """
        F(x: float32) -> (all: 3*float32, last: float32) [N: int = 3]
        axis = Const[value=0; dtype=int32]
        parts = Split[num_split=3](axis:output, x)
        sum = AddN[N=3](parts:output)
        return all = parts:output
        return last = parts:output:2
        """.replace("3*float32", "N*float32")
    )

    assert lines(made.graph)[3:] == [
        "all_RetVal_0 = _Retval(parts)",
        "all_RetVal_1 = _Retval(parts:1)",
        "all_RetVal_2 = _Retval(parts:2)",
        "last_RetVal = _Retval(parts:2)",
    ]


def test_inputs_of_one_list_from_several_places() -> None:
    """A list input may be put together from single values and from lists."""
    made = body(
        """
        F(a: N*float32, b: float32) -> (y: float32) [N: int = 2]
        sum = AddN[N=4](b, a, b)
        return y = sum:sum
        """
    )

    assert "sum = AddN(b, a_0, a_1, b)" in lines(made.graph)


def test_lists_of_several_types() -> None:
    """The types of a list may be an attribute of the call, and may be none."""
    text = """
        F(a: Ts*) -> (y: Ts*) [Ts: list(type)]
        same = IdentityN[T=$Ts](a)
        return y = same:output
    """

    assert types_of(body(text, Ts=(dtypes.bool_, dtypes.int32)))[1] == ["bool", "int32"]
    assert len(body(text, Ts=()).graph) == 0


def test_results_may_be_arguments() -> None:
    """A function may return what it got, any number of times."""
    made = body("F(x: float32) -> (y: float32, z: float32)\nreturn y = x\nreturn z = x:0")

    assert lines(made.graph) == ["x = _Arg", "y_RetVal = _Retval(x)", "z_RetVal = _Retval(x)"]


def test_nodes_in_any_order() -> None:
    """A node may use another that is defined further down, and itself by way of a loop."""
    made = body(
        """
        F(x: float32) -> (y: float32)
        b = Neg(a:y)
        a = Neg(x)
        return y = b:y
        """
    )

    assert "b = Neg(a)" in lines(made.graph)


def test_loops_inside_bodies() -> None:
    """A loop keeps its back edge and all of its nodes, although no result needs its exit."""
    made = body(
        """
        F(x: float32) -> (y: float32)
        limit = Const[value=10]
        enter = Enter[frame_name=f](x)
        bound = Enter[frame_name=f; is_constant=true](limit:output)
        merge = Merge[N=2](enter:output, next:output)
        less = Less(merge:output, bound:output)
        cond = LoopCond(less:z)
        switch = Switch(merge:output, cond:output)
        double = Add(switch:output_true, switch:output_true)
        next = NextIteration(double:z)
        exit = Exit(switch:output_false)
        return y = x
        """
    )

    assert "merge = Merge(enter, next)" in lines(made.graph)
    assert "exit = Exit(switch)" in lines(made.graph)


def test_functions_in_attributes() -> None:
    """Attributes of a function that is an attribute are bound as well, at any depth."""
    made = body(
        """
        F(x: T) -> (y: T) [T: type, n: int]
        call = PartitionedCall[Tin=$Ts; Tout=$Ts; f=G{T=$T n=$n of=H}](x)
        return y = call:output
        """.replace("$Ts", "float32"),
        T=dtypes.float32,
        n=3,
    )
    bound = {"T": dtypes.float32, "n": 3, "of": FuncAttr("H", {})}

    assert made.graph.node("call").attrs["f"] == FuncAttr("G", bound)


def test_functions_as_placeholders() -> None:
    """The function to be called may itself be an attribute of the call."""
    made = body(
        """
        F(x: float32) -> (y: float32) [f: func]
        call = PartitionedCall[Tin=float32; Tout=float32; f=$f](x)
        return y = call:output
        """,
        f=FuncAttr("G", {}),
    )

    assert made.graph.node("call").attrs["f"] == FuncAttr("G", {})


def test_control_inputs() -> None:
    """A body's nodes may wait for nodes and for arguments."""
    made = body(
        """
        F(x: float32) -> (y: float32)
        first = NoOp(^x)
        c = Const[value=1](^first, ^x)
        return y = c:output
        """
    )

    assert lines(made.graph)[:3] == ["x = _Arg", "first = NoOp(^x)", "c = Const(^first, ^x)"]


def test_what_nothing_needs_is_pruned() -> None:
    """Kept is what results and control outputs need, and what has effects."""
    made = body(
        """
        F(x: float32) -> (y: float32)
        unused = Neg(x)
        wanted = Neg(x)
        needed = Neg(x)
        variable = VarHandleOp[dtype=float32; shape=]
        assign = AssignVariableOp[dtype=float32](variable:resource, needed:y)
        return y = x
        control done = wanted
        """
    )

    assert [node.name for node in made.graph] == [
        "x",
        "wanted",
        "needed",
        "variable",
        "assign",
        "y_RetVal",
    ]


def test_arguments_that_nothing_needs() -> None:
    """An unused argument is still one of the arguments."""
    made = body("F(x: int32, y: float32) -> (z: float32)\nreturn z = y")

    assert types_of(made) == (["int32", "float32"], ["float32"])
    assert lines(made.graph) == ["y = _Arg", "z_RetVal = _Retval(y)"]


def test_devices() -> None:
    """Nodes keep the devices that they ask for."""
    made = body("F(x: float32) -> (y: float32)\ny = Neg(x) @/device:CPU:1\nreturn y = y:y")

    assert made.graph.node("y").requested_device == "/device:CPU:1"


@pytest.mark.parametrize(
    ("message", "rows"),
    [
        ("Failed to bind all placeholders in i: U", ["i = Identity[T=$U](x)"]),
        ("Duplicated node name i", ["i = Identity(x)", "i = Identity(x)"]),
        ("Duplicated node name x", ["x = Identity(x)", "i = Identity(x:output)"]),
        ("input z is not found: {{node i}}", ["i = Identity(z)"]),
        ("input j is not found", ["j = Neg(x)", "i = Identity(j)"]),
        ("input j:0 is not found", ["j = Neg(x)", "i = Identity(j:0)"]),
        ("input j:z is not found", ["j = Neg(x)", "i = Identity(j:z)"]),
        ("input j:y:1 is not found", ["j = Neg(x)", "i = Identity(j:y:1)"]),
        ("input j:y:x is not found", ["j = Neg(x)", "i = Identity(j:y:x)"]),
        ("input x:1 is not found", ["i = Identity(x:1)"]),
        ("input x:-1 is not found", ["i = Identity(x:-1)"]),
        (
            "input input[0] expected type int32 != float32, the type of x[0]",
            ["i = Identity[T=int32](x)"],
        ),
        (
            "input inputs[1] expected type float32 != bool, the type of b:output[0]",
            ["b = Const[value=True; dtype=bool]", "i = AddN[N=2](x, b:output)"],
        ),
        ("Input l too long for inputs", ["i = AddN[N=2](l)"]),
        ("Attempt to access beyond input size: 1 >= 1", ["i = Add(x)"]),
        ("Attempt to access beyond input size: 1 >= 1", ["c = NoOp", "i = Add(x, ^c)"]),
        ("Expected input[1] == 'x' to be a control input", ["i = Identity(x, x)"]),
        (
            "Expected input[2] == 'x' to be a control input",
            ["c = NoOp", "i = Identity(x, ^c, x)"],
        ),
        ("input[1] == '^z', is not found", ["i = Identity(x, ^z)"]),
        ("Op<Identity>", ["i = Identity[T=](x)"]),
        ("2 nodes in a cycle, including: i, j", ["i = Neg(j:y)", "j = Neg(i:y)"]),
        ("1 nodes in a cycle, including: i", ["i = Neg(x, ^i)"]),
    ],
)
def test_bad_bodies(message: str, rows: list[str]) -> None:
    """What is wrong with a node is said in TensorFlow's words."""
    text = "\n".join(
        ["F(x: float32, l: N*float32) -> (y: float32) [N: int = 3]", *rows, "return y = x"]
    ).replace("[T=]", "")
    protos = functions(text)
    if message.startswith("Op<"):
        del protos[0].node_def[0].attr["T"]
    with pytest.raises(InvalidArgumentError) as caught:
        instantiate(library(*protos), "F", {})

    assert message in caught.value.message


@pytest.mark.parametrize(
    ("message", "outputs", "rows"),
    [
        ("Return y missing.", "y: float32", []),
        ("Return y -> z is not found.", "y: float32", ["return y = z"]),
        ("Return y -> i is not found.", "y: float32", ["return y = i"]),
        ("Return y -> i:output:1 is not found.", "y: float32", ["return y = i:output:1"]),
        ("Invalid ret types y : int32 vs. float32", "y: int32", ["return y = i:output"]),
        ("Invalid ret types y : float32, float32 vs. float32", "y: N*float32", ["return y = x"]),
        ("Duplicated ret name y", "y: float32, y: float32", ["return y = x"]),
        ("control output c -> z is not found", "y: float32", ["return y = x", "control c = z"]),
    ],
)
def test_bad_results(message: str, outputs: str, rows: list[str]) -> None:
    """What is wrong with a result names the result."""
    head = f"F(x: float32) -> ({outputs}) [N: int = 2]"
    with pytest.raises(InvalidArgumentError) as caught:
        body("\n".join([head, "i = Identity(x)", *rows]))

    assert message in caught.value.message


def test_duplicated_arguments() -> None:
    """Two arguments cannot have one name."""
    with pytest.raises(InvalidArgumentError, match="Duplicated arg name x"):
        body("F(x: float32, x: float32) -> (y: float32)\nreturn y = x")


def test_attributes_that_the_call_must_give() -> None:
    """An attribute without a default is the caller's to give."""
    for given in ({}, {"T": None}):
        with pytest.raises(NotFoundError, match="Attr T is not found from"):
            body("F(x: T) -> (y: T) [T: type]\nreturn y = x", **given)


def test_malformed_devices_in_bodies() -> None:
    """A device that is none is refused where the node runs; what is pruned may ask for it."""
    [bad] = functions("F(x: float32) -> (y: float32)\nn = Neg[T=float32](x)\nreturn y = n:y")
    bad.node_def[0].device = "///"
    with pytest.raises(InvalidArgumentError, match="Malformed device specification '///' in node"):
        instantiate(library(bad), "F", {})

    bad.ret["y"] = "x"
    assert lines(instantiate(library(bad), "F", {}).graph) == ["x = _Arg", "y_RetVal = _Retval(x)"]


def test_unknown_ops_in_bodies() -> None:
    """An op that nobody knows is found when the body is made."""
    with pytest.raises(NotFoundError, match="Op type not registered 'Nonesuch'"):
        body("F(x: float32) -> (y: float32)\nn = Nonesuch\nreturn y = x")


def test_unknown_functions() -> None:
    """A function must be in the library."""
    with pytest.raises(NotFoundError, match="Function Nope is not defined"):
        instantiate(library(), "Nope", {})


def test_bodies_may_call_functions_by_name() -> None:
    """A node's op may be another function, or the function itself."""
    made = body(
        """
        F(x: float32) -> (y: float32)
        again = F(x)
        other = G[T=float32](again:y)
        return y = other:z

        G(x: T) -> (z: T) [T: type]
        return z = x
        """
    )

    assert lines(made.graph)[1:3] == ["again = F(x)", "other = G(again)"]
