"""Whatever can keep a value keeps its own: of each family, what was fed or fetched may be changed.

The families are those of TensorFlow's ops with state, and objects that hold values.  Each is given
a value that was fed, a view of one, and one that is computed and fetched in the same step; then
the caller's arrays are overwritten, and the state is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import penstock as ps
from penstock.catalogue.registry import all_ops, get_op
from penstock.passes.tell_apart import NOTHING, tell_apart
from support.custom import custom_kernels
from support.sketch import sketch


class Family(NamedTuple):
    """How a value ``{v}`` of shape [2] is put away, and how it comes back."""

    text: str
    put: tuple[str, ...]
    get: str
    #: Run before anything is put away.
    first: str = ""
    #: Whether the value is still there after it was read.
    stays: bool = False


LIST = """
    shape = Const() value=[2]
    many = Const() value=4
    empty = EmptyTensorList(shape, many) element_dtype=float32
    list = TensorListPushBack(empty, {v}) element_dtype=float32
"""

FAMILIES = {
    "reference variable": Family(
        "var = VariableV2() dtype=float32 shape=[2]\nset = Assign(var, {v})\nget = Identity(var)",
        ("set",),
        "get:0",
        stays=True,
    ),
    "resource variable": Family(
        """
        var = VarHandleOp() dtype=float32 shape=[2] shared_name="var"
        set = AssignVariableOp(var, {v}) dtype=float32
        get = ReadVariableOp(var) dtype=float32
        """,
        ("set",),
        "get:0",
        stays=True,
    ),
    "queue": Family(
        """
        q = FIFOQueueV2() component_types=["float32"]
        put = QueueEnqueueV2(q, {v})
        get = QueueDequeueV2(q) component_types=["float32"]
        """,
        ("put",),
        "get:0",
    ),
    "queue, many at once": Family(
        """
        q = FIFOQueueV2() component_types=["float32"] shapes=[[]]
        two = Const() value=2
        put = QueueEnqueueManyV2(q, {v})
        get = QueueDequeueManyV2(q, two) component_types=["float32"]
        """,
        ("put",),
        "get:0",
    ),
    "old queue": Family(
        """
        q = FIFOQueue() component_types=["float32"]
        put = QueueEnqueue(q, {v})
        get = QueueDequeue(q) component_types=["float32"]
        """,
        ("put",),
        "get:0",
    ),
    "shuffled queue": Family(
        """
        q = RandomShuffleQueueV2() component_types=["float32"]
        put = QueueEnqueueV2(q, {v})
        get = QueueDequeueV2(q) component_types=["float32"]
        """,
        ("put",),
        "get:0",
    ),
    "padded queue": Family(
        """
        q = PaddingFIFOQueueV2() component_types=["float32"] shapes=[[-1]]
        put = QueueEnqueueV2(q, {v})
        get = QueueDequeueV2(q) component_types=["float32"]
        """,
        ("put",),
        "get:0",
    ),
    "queue by priority": Family(
        """
        q = PriorityQueueV2() component_types=["float32"] shapes=[[2]]
        zero = Const() value=0
        first = Cast(zero) DstT=int64
        put = QueueEnqueueV2(q, first, {v})
        get = QueueDequeueV2(q) component_types=["int64","float32"]
        """,
        ("put",),
        "get:1",
    ),
    "stage": Family(
        """
        put = Stage({v}) dtypes=["float32"] shared_name="s"
        get = Unstage() dtypes=["float32"] shared_name="s"
        """,
        ("put",),
        "get:0",
    ),
    "stage, looked at": Family(
        """
        put = Stage({v}) dtypes=["float32"] shared_name="s"
        first = Const() value=0
        get = StagePeek(first) dtypes=["float32"] shared_name="s"
        """,
        ("put",),
        "get:0",
        stays=True,
    ),
    "map of stages": Family(
        """
        seven = Const() value=7
        key = Cast(seven) DstT=int64
        which = Const() value=[0]
        put = MapStage(key, which, {v}) dtypes=["float32"] fake_dtypes=["float32"] shared_name="s"
        get = MapPeek(key, which) dtypes=["float32"] shared_name="s"
        """,
        ("put",),
        "get:0",
        stays=True,
    ),
    "ordered map of stages": Family(
        """
        seven = Const() value=7
        k = Cast(seven) DstT=int64
        w = Const() value=[0]
        put = OrderedMapStage(k, w, {v}) dtypes=["float32"] fake_dtypes=["float32"] shared_name="s"
        get = OrderedMapPeek(k, w) dtypes=["float32"] shared_name="s"
        """,
        ("put",),
        "get:0",
        stays=True,
    ),
    "table": Family(
        """
        t = MutableHashTableV2() key_dtype=int64 value_dtype=float32
        numbers = Const() value=[3,4]
        keys = Cast(numbers) DstT=int64
        none = Const() value=0.0
        put = LookupTableInsertV2(t, keys, {v})
        get = LookupTableFindV2(t, keys, none)
        """,
        ("put",),
        "get:0",
        stays=True,
    ),
    "table of rows": Family(
        """
        t = MutableHashTableOfTensorsV2() key_dtype=int64 value_dtype=float32 value_shape=[2]
        numbers = Const() value=[3]
        keys = Cast(numbers) DstT=int64
        none = Const() value=[0.0,0.0]
        front = Const() value=0
        row = ExpandDims({v}, front)
        put = LookupTableInsertV2(t, keys, row)
        found = LookupTableFindV2(t, keys, none)
        get = Squeeze(found)
        """,
        ("put",),
        "get:0",
        stays=True,
    ),
    "barrier": Family(
        """
        b = Barrier() component_types=["float32"] shapes=[[2]]
        keys = Const() value=["k"]
        one = Const() value=1
        front = Const() value=0
        row = ExpandDims({v}, front)
        put = BarrierInsertMany(b, keys, row) component_index=0
        taken = BarrierTakeMany(b, one) component_types=["float32"]
        get = Squeeze(taken:2)
        """,
        ("put",),
        "get:0",
    ),
    "accumulator": Family(
        """
        a = ConditionalAccumulator() dtype=float32 shape=[2]
        zero = Const() value=0
        step = Cast(zero) DstT=int64
        one = Const() value=1
        put = AccumulatorApplyGradient(a, step, {v})
        get = AccumulatorTakeGradient(a, one) dtype=float32
        """,
        ("put",),
        "get:0",
    ),
    "session handle": Family(
        "put = GetSessionHandle({v})\nh = Placeholder() dtype=string\n"
        "get = GetSessionTensor(h) dtype=float32",
        ("put:0",),
        "get:0",
        stays=True,
    ),
    "list in a variable": Family(
        LIST
        + """
        var = VarHandleOp() dtype=variant shape=[] shared_name="var"
        set = AssignVariableOp(var, list) dtype=variant
        read = ReadVariableOp(var) dtype=variant
        zero = Const() value=0
        get = TensorListGetItem(read, zero, shape) element_dtype=float32
        """,
        ("set",),
        "get:0",
        stays=True,
    ),
    "list in a queue": Family(
        LIST
        + """
        q = FIFOQueueV2() component_types=["variant"]
        put = QueueEnqueueV2(q, list)
        taken = QueueDequeueV2(q) component_types=["variant"]
        zero = Const() value=0
        get = TensorListGetItem(taken, zero, shape) element_dtype=float32
        """,
        ("put",),
        "get:0",
    ),
    "list of a tensor's rows": Family(
        """
        scalar = Const() value=1
        none = Shape(scalar)
        list = TensorListFromTensor({v}, none) element_dtype=float32
        var = VarHandleOp() dtype=variant shape=[] shared_name="var"
        set = AssignVariableOp(var, list) dtype=variant
        read = ReadVariableOp(var) dtype=variant
        get = TensorListStack(read, none) element_dtype=float32
        """,
        ("set",),
        "get:0",
        stays=True,
    ),
    "map in a variable": Family(
        """
        empty = EmptyTensorMap()
        key = Const() value=1
        map = TensorMapInsert(empty, key, {v})
        var = VarHandleOp() dtype=variant shape=[] shared_name="var"
        set = AssignVariableOp(var, map) dtype=variant
        read = ReadVariableOp(var) dtype=variant
        get = TensorMapLookup(read, key) value_dtype=float32
        """,
        ("set",),
        "get:0",
        stays=True,
    ),
    "optional in a variable": Family(
        """
        some = OptionalFromValue({v}) Toutput_types=["float32"]
        var = VarHandleOp() dtype=variant shape=[] shared_name="var"
        set = AssignVariableOp(var, some) dtype=variant
        read = ReadVariableOp(var) dtype=variant
        get = OptionalGetValue(read) output_types=["float32"] output_shapes=[[2]]
        """,
        ("set",),
        "get:0",
        stays=True,
    ),
    "dataset of a tensor": Family(
        """
        data = TensorDataset({v}) Toutput_types=["float32"] output_shapes=[[2]]
        it = IteratorV2() shared_name="it" container="" output_types=["float32"] output_shapes=[[2]]
        put = MakeIterator(data, it)
        get = IteratorGetNext(it) output_types=["float32"] output_shapes=[[2]]
        """,
        ("put",),
        "get:0",
    ),
    "dataset that is repeated": Family(
        """
        data = TensorDataset({v}) Toutput_types=["float32"] output_shapes=[[2]]
        minus = Const() value=-1
        times = Cast(minus) DstT=int64
        again = RepeatDataset(data, times) output_types=["float32"] output_shapes=[[2]]
        it = IteratorV2() shared_name="it" container="" output_types=["float32"] output_shapes=[[2]]
        put = MakeIterator(again, it)
        get = IteratorGetNext(it) output_types=["float32"] output_shapes=[[2]]
        """,
        ("put",),
        "get:0",
        stays=True,
    ),
    "the user's function": Family(
        'put = PyFunc({v}) token="keep" Tin=["float32"] Tout=[]\n'
        'get = PyFunc() token="kept" Tin=[] Tout=["float32"]',
        ("put",),
        "get:0",
        stays=True,
    ),
    "the user's stateless function": Family(
        'put = PyFuncStateless({v}) token="keep" Tin=["float32"] Tout=[]\n'
        'get = PyFuncStateless() token="kept" Tin=[] Tout=["float32"]',
        ("put",),
        "get:0",
        stays=True,
    ),
    "the user's kernel": Family(
        "put = TestKeep({v})\nget = TestKept()", ("put",), "get:0", stays=True
    ),
}


@pytest.fixture(scope="module", autouse=True)
def users_own() -> Iterator[None]:
    """A function and a kernel that keep what they get, and give it again."""
    held: list[Any] = [None]

    def keep(value: Any) -> None:
        held[0] = value

    ps.register_py_func({"keep": keep, "kept": lambda: held[0]})
    with custom_kernels("TestKeep(x: float32) -> ()", "TestKept() -> (y: float32)") as register:
        register("TestKeep", keep)
        register("TestKept", lambda: held[0])
        yield


VALUES = """
    x = Placeholder() dtype=float32
    form = Const() value=[2]
    view = Reshape(x, form)
    y = Neg(x)
    y_view = Reshape(y, form)
"""


def overwrite(arrays: Any) -> None:
    """Change what is the caller's."""
    for array in arrays:
        array[...] = 99


@pytest.mark.parametrize("tier", list(ps.Tier), ids=lambda tier: tier.name)
@pytest.mark.parametrize("by", ["run", "callable"])
@pytest.mark.parametrize("value", ["x", "view", "y", "y_view"])
@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_kept_is_nobodys_array(name: str, value: str, by: str, tier: ps.Tier) -> None:
    """What was put away comes back, though the caller has changed all that he fed and fetched."""
    family = FAMILIES[name]
    text = VALUES + family.text.replace("{v}", value)
    feed = np.float32([3.0, -3.0])
    expected = feed.tolist() if value in ("x", "view") else (-feed).tolist()
    fetches = [*family.put, "y:0", "y_view:0", "view:0"]
    with ps.Session(
        sketch(text), config=ps.Config(tier=tier, operation_timeout_in_ms=3000)
    ) as session:
        if by == "run":
            first, *given = session.run(fetches, {"x": feed})
        else:
            first, *given = session.make_callable(fetches, ["x"])(feed)
        overwrite([feed, *given])
        feeds = {"h": first} if name == "session handle" else {}
        for _ in range(2 if family.stays else 1):
            got = session.run(family.get, feeds)
            assert sorted(got.tolist()) == sorted(expected)
            overwrite([got])


def test_a_fetched_object_holds_nobodys_array() -> None:
    """A list that was fetched is what it was when it is fed again."""
    text = (
        VALUES
        + LIST.replace("{v}", "view")
        + """
        again = Placeholder() dtype=variant
        zero = Const() value=0
        get = TensorListGetItem(again, zero, shape) element_dtype=float32
    """
    )
    feed = np.float32([3.0, -3.0])
    with ps.Session(sketch(text)) as session:
        held = session.run("list:0", {"x": feed})
        overwrite([feed])
        for _ in range(2):
            got = session.run("get:0", {"again": held})
            assert got.tolist() == [3.0, -3.0]
            overwrite([got])


def test_what_a_partial_run_has_given_is_the_callers() -> None:
    """The rest of the step does not see what the caller does with it."""
    text = """
        x = Placeholder() dtype=float32
        w = Placeholder() dtype=float32
        y = Neg(x)
        z = Add(y, w)
    """
    with ps.Session(sketch(text)) as session:
        handle = session.partial_run_setup(["y:0", "z:0"], ["x:0", "w:0"])
        got = session.partial_run(handle, "y:0", {"x": np.float32([1.0, 2.0])})
        overwrite([got])
        assert session.partial_run(handle, "z:0", {"w": np.float32([0.5, 0.5])}).tolist() == [
            -0.5,
            -1.5,
        ]


@pytest.mark.parametrize("make", [ps.constant, ps.ops.identity, ps.Variable])
def test_an_array_that_becomes_part_of_a_graph_stays_the_callers(make: Any) -> None:
    """It stays writable, and writing to it changes no graph."""
    for whole in (np.float32([[1.0, 2.0], [3.0, 4.0]]), np.array([[b"a", b"b"]], object)):
        given = whole[0]
        graph, expected = ps.Graph(), given.tolist()
        with graph.as_default():
            made = make(given)
            fetch = made.as_tensor() if isinstance(made, ps.Variable) else made
            initializer = getattr(made, "initializer", None)
        assert given.flags.writeable
        whole[...] = whole[0, 1]
        with ps.Session(graph) as session:
            if initializer is not None:
                session.run(initializer)
            assert session.run(fetch).tolist() == expected


def test_steps_without_state_copy_nothing() -> None:
    """A network reads the caller's memory itself, and gives what it has computed itself."""
    graph = sketch("x = Placeholder() dtype=float32\ny = Relu(x)\nz = Neg(y)")
    assert tell_apart(graph) == NOTHING


@pytest.mark.parametrize("read", ["ReadVariableOp(v) dtype=float32", "VariableV2() shape=[2]"])
def test_networks_with_variables_copy_nothing(read: str) -> None:
    """What is read of a variable is read-only already, and what is fed is not kept."""
    graph = sketch(f"""
        x = _Arg() index=0 T=float32
        v = VarHandleOp() dtype=float32 shape=[2] shared_name="v"
        w = {read}
        y = Add(x, w)
        z = _Retval(y) index=0
    """)
    assert tell_apart(graph) == NOTHING


def test_what_a_function_gets_may_be_kept() -> None:
    """Nobody looks into it: it may put the value away, or give it back as it is."""
    graph = sketch("""
        x = _Arg() index=0 T=float32
        y = PartitionedCall(x) Tin=["float32"] Tout=["float32"] f="F"
        z = _Retval(y) index=0
    """)
    assert tell_apart(graph) == (frozenset({0}), frozenset({0}))


def test_what_is_kept_is_told_apart() -> None:
    """Only the feed that may be kept, and the fetch that may be the same memory, are copied."""
    graph = sketch("""
        a = _Arg() index=0 T=float32
        b = _Arg() index=1 T=float32
        v = VarHandleOp() dtype=float32 shape=[2] shared_name="v"
        y = Neg(a)
        set = AssignVariableOp(v, y) dtype=float32
        z = Neg(b)
        of_y = _Retval(y) index=0
        of_z = _Retval(z) index=1
    """)
    assert tell_apart(graph) == (frozenset({0}), frozenset({0}))


def test_what_is_computed_of_a_feed_may_be_kept_without_it() -> None:
    """Behind a product nothing is left of its factors' memory, nor what is kept of its result."""
    graph = sketch("""
        a = _Arg() index=0 T=float32
        w = _Arg() index=1 T=float32
        v = VarHandleOp() dtype=float32 shape=[2,2] shared_name="v"
        y = MatMul(a, w)
        set = AssignVariableOp(v, y) dtype=float32
        z = MatMul(y, w)
        of_y = _Retval(y) index=0
        of_z = _Retval(z) index=1
    """)
    assert tell_apart(graph) == (frozenset(), frozenset({0}))


#: Attributes of nodes that make something new, and what they are given: of single elements, with
#: which a kernel might do nothing, and of more.
_IMAGE, _FILTER, _SLIDING = "[1,2,2,1]", "[1,1,1,1]", 'strides=[1,1,1,1] padding="SAME"'
_VOLUME, _FILTER_3D = "[1,2,2,2,1]", "[1,1,1,1,1]"
_SLIDING_3D = 'strides=[1,1,1,1,1] padding="SAME"'
NEW = {
    "BatchMatMul": [("(a, b)", "[2,1,1]", "[2,1,1]"), ("(a, b)", "[3,2,2]", "[3,2,2]")],
    "BatchMatMulV2": [("(a, b)", "[2,1,1]", "[1,1]"), ("(a, b)", "[3,2,2]", "[2,2]")],
    "BatchMatMulV3": [("(a, b) Ta=float32 Tb=float32 Tout=float32", "[2,1,1]", "[2,1,1]")],
    "Conv2D": [(f"(a, b) {_SLIDING}", _IMAGE, _FILTER)],
    "Conv2DBackpropFilter": [(f"(a, at, b) {_SLIDING}", _IMAGE, _IMAGE, _FILTER)],
    "Conv2DBackpropInput": [(f"(at, a, b) {_SLIDING}", _FILTER, _IMAGE, _IMAGE)],
    "Conv3D": [(f"(a, b) {_SLIDING_3D}", _VOLUME, _FILTER_3D)],
    "Conv3DBackpropFilterV2": [(f"(a, at, b) {_SLIDING_3D}", _VOLUME, _VOLUME, _FILTER_3D)],
    "Conv3DBackpropInputV2": [(f"(at, a, b) {_SLIDING_3D}", _FILTER_3D, _VOLUME, _VOLUME)],
    "DepthwiseConv2dNative": [(f"(a, b) {_SLIDING}", _IMAGE, _FILTER)],
    "DepthwiseConv2dNativeBackpropFilter": [(f"(a, at, b) {_SLIDING}", _IMAGE, _IMAGE, _FILTER)],
    "DepthwiseConv2dNativeBackpropInput": [(f"(at, a, b) {_SLIDING}", _FILTER, _IMAGE, _IMAGE)],
    "MatMul": [("(a, b)", "[1,1]", "[1,1]"), ("(a, b)", "[64,64]", "[64,64]")],
    "_FusedConv2D": [(f" = Conv2D(a, b) {_SLIDING}\nnew = BiasAdd(new0, c)", _IMAGE, _FILTER)],
    "_FusedMatMul": [(" = MatMul(a, b)\nnew = BiasAdd(new0, c)", "[1,1]", "[1,1]")],
}


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("tier", list(ps.Tier), ids=lambda tier: tier.name)
@pytest.mark.parametrize("op", [op for op in all_ops() if get_op(op).traits.makes_new])
def test_what_is_new_is_not_its_inputs_memory(op: str, tier: ps.Tier, accelerate: bool) -> None:
    """Not even where it is equal: times one, or a bias of zero."""
    for node, a, b, *at in NEW[op]:
        text = f"""
            a = Placeholder() dtype=float32
            b = Placeholder() dtype=float32
            c = Placeholder() dtype=float32
            at = Const() value={(at or ["[1]"])[0]}
            {"new0" if "new0" in node else f"new = {op}"}{node}
        """
        fed = [np.ones(json.loads(shape), np.float32) for shape in (a, b)]
        fed.append(np.zeros(json.loads(b)[-1:], np.float32))
        with ps.Session(
            sketch(text), config=ps.Config(tier=tier, accelerate=accelerate)
        ) as session:
            call = session.make_callable("new:0", ["a", "b", "c"])
            for _ in range(3):
                made = call(*fed)
                assert made.size
                assert not any(np.shares_memory(made, given) for given in fed)
