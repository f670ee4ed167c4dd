"""What depends on constants only is computed once, and means the same."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from penstock.graph.frames import build_control_flow_info
from penstock.kernels.api.result_elements import result_elements
from penstock.passes import fold_constants as module
from penstock.passes.fold_constants import fold_constants
from penstock.passes.graph_rewriter import value_of
from support.custom import custom_kernels
from support.drafts import after, agree, both, constant, draft, unchanged
from support.loops import counting_loop
from support.sketch import sketch


def test_whatever_depends_on_constants_is_one() -> None:
    """A chain of nodes becomes one constant, under the name of its last node."""
    text = """
        x = Placeholder() dtype=float32
        a = Const() value=2.0
        b = Const() value=3.0
        sum = Add(a, b)
        product = Mul(sum, sum)
        out = Mul(x, product)
    """
    assert after(fold_constants, text) == [
        "out = Mul(x, product)",
        "product = Const",
        "x = Placeholder",
    ]
    made = draft(text)
    assert fold_constants(made) == 2
    assert constant(made, "product") == np.float32(25)
    assert type(constant(made, "product")) is np.float32


def test_each_output_that_is_read_is_a_constant() -> None:
    """Of a node with several outputs, those without readers leave nothing behind."""
    text = """
        pair = Const() value=[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        rows = Unpack(pair) num=3 axis=0
        x = Placeholder() dtype=float32
        p = Add(x, rows:1)
        q = Add(p, rows:2)
    """
    made = draft(text)
    fold_constants(made)
    assert after(fold_constants, text) == [
        "p = Add(x, rows)",
        "q = Add(p, rows/output_2)",
        "rows = Const",
        "rows/output_2 = Const",
        "x = Placeholder",
    ]
    assert constant(made, "rows").tolist() == [3, 4]
    assert constant(made, "rows/output_2").tolist() == [5, 6]


def test_what_is_fetched_keeps_its_name() -> None:
    """A node that runs for its own sake is a constant of the same name."""
    text = "a = Const() value=2.0\nb = Neg(a)\nc = Neg(b)"
    assert after(fold_constants, text) == ["c = Const"]


def test_shapes_of_constants() -> None:
    """Shape, Size and Rank look at a constant without its elements."""
    text = """
        a = Const() value=[[1.0, 2.0]]
        shape = Shape(a)
        size = Size(a)
        rank = Rank(a)
    """
    made = draft(text)
    assert fold_constants(made) == 3
    assert constant(made, "shape").tolist() == [1, 2]
    assert (constant(made, "size"), constant(made, "rank")) == (2, 2)


# -- where and when ------------------------------------------------------------------

BRANCH = """
    p = Placeholder() dtype=bool
    x = Placeholder() dtype=float32
    switch = Switch(x, p)
    no = Identity(switch:0)
    yes = Identity(switch:1)
    a = Const(^yes) value=2.0
    b = Const(^yes) value=3.0
    sum = Add(a, b)
    zero = Const(^no) value=0.0
    merge = Merge(zero, sum)
"""


def test_a_folded_node_waits_for_what_its_constants_waited_for() -> None:
    """Constants of a branch are one constant of that branch."""
    assert "sum = Const(^yes)" in after(fold_constants, BRANCH)


@pytest.mark.parametrize("taken", [True, False])
def test_a_folded_node_is_alive_when_it_was(taken: bool) -> None:
    """What was not taken stays dead."""
    plain, optimised = both(BRANCH, ["merge:0", "merge:1"], {"p": taken, "x": 1.0})
    assert plain == optimised == [5 if taken else 0, int(taken)]
    assert agree(BRANCH, ["sum:0"], {"p": taken, "x": 1.0})


def test_all_waits_are_kept() -> None:
    """Constants that wait for several nodes, and the node's own control inputs, add up."""
    text = """
        u = Placeholder() dtype=float32
        v = Placeholder() dtype=float32
        w = Placeholder() dtype=float32
        a = Const(^u) value=2.0
        b = Const(^v) value=3.0
        c = Add(a, b, ^w)
        d = Neg(c)
    """
    assert after(fold_constants, text) == [
        "d = Const(^u, ^v, ^w)",
        "u = Placeholder",
        "v = Placeholder",
        "w = Placeholder",
    ]


def test_what_waits_for_a_folded_node_waits_for_its_constant() -> None:
    """Control edges leave from the constant, also to constants that are folded with it."""
    text = """
        v = Placeholder() dtype=float32
        a = Const(^v) value=2.0
        b = Neg(a)
        c = Const(^b) value=1.0
        d = Neg(c)
        e = NoOp(^b)
    """
    assert after(fold_constants, text) == [
        "b = Const(^v)",
        "d = Const(^b)",
        "e = NoOp(^b)",
        "v = Placeholder",
    ]


def test_loops_keep_their_constants_inside() -> None:
    """A constant made in a loop is of the loop's frame, and the loop counts as before."""
    text = counting_loop().replace(
        "one = Const(^body) value=1",
        "two = Const(^body) value=2\nhalf = Const(^body) value=2\none = FloorDiv(two, half)",
    )
    made = draft(text)
    assert fold_constants(made) == 1
    info = build_control_flow_info(made.graph)
    one = made.graph.node("one")
    assert one.op.name == "Const"
    assert info.frame_of[one.id].name == "loop"
    assert both(text, ["exit:0"], {"limit": np.int32(7)}) == [[7], [7]]


# -- limits --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "shape = Const() value=[2]\nr = RandomUniform(shape) dtype=float32",
        "shape = Const() value=[2]\nseed = Const() value=[1, 2]\n"
        "r = StatelessRandomUniform(shape, seed) dtype=float32 Tseed=int32",
        "name = Const() value='nothing.txt'\nr = ReadFile(name)",
        "a = Const() value=1.0\nb = VariableV2() dtype=float32 shape=[]\nr = Assign(b, a)",
        "a = Const() value=1.0\np = Const() value=True\ns = Switch(a, p)",
        "a = Const() value=1.0\nb = Const() value=2.0\nm = Merge(a, b)",
        "a = Const() value=1.0\ne = Enter(a) frame_name='f'\nx = Exit(e)",
        "a = Const() value=1.0\nr = _Retval(a) index=0",
        "a = Const() value=1.0\np = Print(a, a) U=['float32']",
        "a = Const() value=1.0\np = Placeholder() dtype=float32\nr = Add(a, p)",
        "s = Const() value=[2]\nn = Const() value=2\nl = TensorListReserve(s, n) "
        "element_dtype=float32 shape_type=int32",
    ],
    ids=lambda text: text.splitlines()[-1].split(" ")[2].partition("(")[0],
)
def test_what_is_more_than_a_function_stays(text: str) -> None:
    """Effects, chance, files, control flow, what is fed and resources are left alone."""
    assert unchanged(fold_constants, text)


def test_what_fails_fails_when_it_runs() -> None:
    """A kernel that raises leaves its node as it is, and the error names it."""
    text = """
        a = Const() value=[1.0, 2.0, 3.0]
        s = Const() value=[2, 2]
        broken = Reshape(a, s) Tshape=int32
        out = Neg(broken)
    """
    assert unchanged(fold_constants, text)
    plain, optimised = both(text, ["out:0"])
    assert plain == optimised
    assert "broken" in str(optimised[0])


def test_an_error_in_a_branch_that_is_not_taken_is_none() -> None:
    """Trying to fold it does not make it one."""
    text = BRANCH.replace("sum = Add(a, b)", "s = Const(^yes) value=[2]\nsum = Reshape(a, s)")
    text = text.replace("Reshape(a, s)", "Reshape(a, s) Tshape=int32")
    assert both(text, ["merge:0"], {"p": False, "x": 1.0}) == [[0], [0]]


@pytest.mark.parametrize(
    "text",
    [
        "s = Const() value=[100000, 100000]\nv = Const() value=0.0\nr = Fill(s, v)",
        "v = Const() value=[0.0, 1.0]\ns = Const() value=[2000000000]\nr = Tile(v, s)",
        "a = Const() value=0\nb = Const() value=2000000000\nc = Const() value=1\n"
        "r = Range(a, b, c)",
        "a = Const() value=0.0\nb = Const() value=1.0\nc = Const() value=1e-12\n"
        "r = Range(a, b, c) Tidx=float32",
        "a = Const() value=[0]\nd = Const() value=2000000000\no = Const() value=1.0\n"
        "z = Const() value=0.0\nr = OneHot(a, d, o, z) TI=int32",
        "a = Const() value=[[0.0]]\np = Const() value=[[60000, 60000], [60000, 60000]]\n"
        "r = Pad(a, p)",
    ],
    ids=["Fill", "Tile", "Range", "small steps", "OneHot", "Pad"],
)
def test_huge_results_are_not_even_tried(text: str) -> None:
    """A few constants that ask for the whole memory are left for the run to refuse."""
    assert unchanged(fold_constants, text)


def test_large_results_stay() -> None:
    """More bytes than the limit are not kept, a byte less is."""
    text = "s = Const() value=[1000]\nv = Const() value=1.0\nr = Fill(s, v)"

    def fold_up_to(limit: int) -> list[str]:
        return after(lambda made: fold_constants(made, limit), text)

    assert fold_up_to(3999) == ["r = Fill(s, v)", "s = Const", "v = Const"]
    assert fold_up_to(4000) == ["r = Const"]


def test_kernels_of_ones_own_are_not_run_early() -> None:
    """Only Penstock's own kernels are known to do nothing else."""
    with custom_kernels("ExOne(x: float32) -> (y: float32)") as register:
        register("ExOne", lambda x: x)
        assert unchanged(fold_constants, "a = Const() value=1.0\nr = ExOne(a)")


def test_other_devices_fold_for_themselves() -> None:
    """What is placed elsewhere may be computed otherwise there."""
    text = 'a = Const() value=1.0\nr = Neg(a) device="/device:FAKE:0"'
    assert unchanged(fold_constants, text)


def test_a_second_pass_finds_nothing() -> None:
    """What could not be folded is not tried again."""
    made = draft(
        "a = Const() value=[1.0, 2.0, 3.0]\ns = Const() value=[2, 2]\n"
        "r = Reshape(a, s) Tshape=int32"
    )
    assert fold_constants(made) == 0
    assert made.given_up["fold_constants"] == {made.graph.node("r")}


@pytest.mark.parametrize(
    "text",
    [
        """
        dim = Const() value=40
        count = Const() value=1000000
        skip = Const() value=0
        made = SobolSample(dim, count, skip)
        """,
        """
        x = Const() value=[1.0]
        nothing = Const() value=0.0
        low = Const() value=[100000000]
        high = Const() value=[0]
        inner = Const() value=[0]
        made = XlaPad(x, nothing, low, high, inner)
        """,
    ],
)
def test_what_values_make_large_is_not_computed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an input is a size, the kernel is not even asked for what would be thrown away."""
    asked: list[str] = []

    def begun(what: str) -> None:
        asked.append(what)

    monkeypatch.setattr(module, "begin", begun)
    made = draft(text)

    assert fold_constants(made) == 0
    assert asked == []


#: Ops of constants, with as many elements as their results have.
_LARGE = {
    "Fill(d, x)": ("d = Const() value=[30, 40]\nx = Const() value=1.0", 1200),
    "Range(a, b, c)": ("a = Const() value=-10\nb = Const() value=10\nc = Const() value=2", 10),
    "Range(b, a, c)": ("a = Const() value=-10\nb = Const() value=10\nc = Const() value=-3", 7),
    "Tile(x, d)": ("d = Const() value=[30, 40]\nx = Const() value=[[1.0, 2.0]]", 2400),
    "Pad(x, d)": ("d = Const() value=[[9, 9], [7, 7]]\nx = Const() value=[[1.0, 2.0]]", 19 * 16),
    "Add(x, y)": ("x = Const() value=[[1.0], [2.0], [3.0]]\ny = Const() value=[1.0, 2.0]", 6),
    "Diag(x)": ("x = Const() value=[1.0, 2.0, 3.0, 4.0, 5.0]", 25),
    "MatMul(x, x)": ("x = Const() value=[[1.0, 2.0], [3.0, 4.0]]", 4),
    "Outer": (
        "x = Const() value=" + str([[1.0]] * 20) + "\ny = Const() value=" + str([[1.0] * 30]),
        600,
    ),
}


def test_numbers_that_are_no_sizes_ask_for_nothing() -> None:
    """Of many numbers the product says nothing about how large the result is."""
    text = f"x = Const() value={[9] * 30}\nd = Const() value=[2]\nr = Tile(x, d)\nout = Identity(r)"
    assert "out = Const" in after(fold_constants, text)


@pytest.mark.parametrize("op", _LARGE)
def test_no_more_elements_are_computed_than_allowed(op: str) -> None:
    """The guess is never less than what the result has; as much as is allowed is computed."""
    rows, size = _LARGE[op]
    text = f"{rows}\nr = {'MatMul(x, y)' if op == 'Outer' else op}\nout = Identity(r)"
    assert unchanged(partial(fold_constants, max_elements=size - 1), text)
    made = sketch(text)
    node = made.node("r")
    values = [value_of(edge.src) for edge in node.inputs if edge is not None]
    guess = result_elements(node.op, node.attrs, values)
    assert guess >= size
    assert "out = Const" in after(partial(fold_constants, max_elements=guess), text)


@pytest.mark.parametrize(
    "row",
    [
        "r = ReadFile(n)",
        "r = MatchingFiles(n)",
        "r = InplaceAdd(x, i, x)",
        "r = InplaceSub(x, i, x)",
        "r = InplaceUpdate(x, i, x)",
    ],
)
def test_what_depends_on_files_or_writes_into_its_inputs_is_not_folded(row: str) -> None:
    """The catalogue does not call these stateful; they are no functions of their inputs."""
    text = f"""
        n = Const() value="/dev/null"
        x = Const() value=[1.0, 2.0]
        i = Const() value=[0, 1]
        {row}
        out = Identity(r)
    """
    assert unchanged(fold_constants, text)
