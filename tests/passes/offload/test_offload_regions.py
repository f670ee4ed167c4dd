"""Heavy regions become single nodes; what they compute stays what it was, and so do the errors."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.limits import Limits
from penstock.kernels.c.library import library as library_in_c
from penstock.kernels.onnx import contest, library, region_op

pytest.importorskip("onnxruntime")

ALL = Limits(region_products=0)
RANDOM = np.random.default_rng(7)


def numbers(*shape: int) -> Any:
    """Random numbers of float32."""
    return RANDOM.standard_normal(shape, np.float32)


def ops_of(session: ps.Session, fetches: Any, feeds: Any) -> dict[str, int]:
    """How many nodes of each op run."""
    metadata = ps.RunMetadata()
    options = ps.RunOptions(output_partition_graphs=True)
    session.run(fetches, feeds, options, metadata)
    counts: dict[str, int] = {}
    for part in metadata.partition_graphs:
        for node in part.node:
            counts[node.op] = counts.get(node.op, 0) + 1
    return counts


def network(graph: ps.Graph) -> ps.Tensor:
    """Two convolutions, a sum around the second, pooling, and a product."""
    with graph.as_default():
        x = ps.placeholder("float32", [None, 8, 8, 3], name="x")
        first = ps.ops.conv2_d(x, numbers(3, 3, 3, 4), strides=[1, 1, 1, 1], padding="SAME")
        first = ps.ops.relu(ps.ops.bias_add(first, numbers(4)))
        second = ps.ops.conv2_d(first, numbers(3, 3, 4, 4), strides=[1, 1, 1, 1], padding="SAME")
        pooled = ps.ops.mean(first + second, [1, 2])
        return ps.ops.softmax(ps.ops.mat_mul(pooled, numbers(4, 5)), name="y")


@pytest.fixture
def graph() -> ps.Graph:
    made = ps.Graph()
    network(made)
    return made


def test_a_network_is_one_node(graph: ps.Graph) -> None:
    """Nothing is left but the region, and its answers are numpy's up to rounding."""
    x = numbers(2, 8, 8, 3)
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        ops = ops_of(session, "y:0", {"x:0": x})
        given = session.run("y:0", {"x:0": x})
    with ps.Session(graph, config=ps.Config(accelerate=False, limits=ALL)) as session:
        plain_ops = ops_of(session, "y:0", {"x:0": x})
        plain = session.run("y:0", {"x:0": x})

    assert ops["_OnnxRegion"] == 1
    assert not {"Conv2D", "_FusedConv2D", "MatMul", "Softmax"} & ops.keys()
    assert "_OnnxRegion" not in plain_ops
    assert (given != plain).any()  # another library has computed it
    np.testing.assert_allclose(given, plain, rtol=1e-5)


def test_small_work_stays_where_it_is(graph: ps.Graph) -> None:
    """Handing arrays over costs more than some thousand products."""
    with ps.Session(graph) as session:
        assert "_OnnxRegion" not in ops_of(session, "y:0", {"x:0": numbers(1, 8, 8, 3)})


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_any_batch_is_computed(graph: ps.Graph, batch: int) -> None:
    """One region is for all sizes of the batch, an empty one among them."""
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        session.run("y:0", {"x:0": numbers(2, 8, 8, 3)})
        given = session.run("y:0", {"x:0": np.ones((batch, 8, 8, 3))})

    assert given.shape == (batch, 5)
    np.testing.assert_allclose(given.sum(axis=1), 1, rtol=1e-5)


def test_answers_repeat_bit_for_bit(graph: ps.Graph) -> None:
    """In one session and in another, on any thread."""
    x, found = numbers(3, 8, 8, 3), []
    for _ in range(2):
        with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
            threads = [
                threading.Thread(
                    target=lambda: found.extend(
                        session.run("y:0", {"x:0": x}).tobytes() for _ in range(10)
                    )
                )
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    assert len(found) == 80
    assert len(set(found)) == 1


def test_an_error_names_its_node() -> None:
    """What ONNX Runtime refuses is computed node by node: then the error is TensorFlow's."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", name="x", shape=[None, None])
        hidden = ps.ops.mat_mul(x, numbers(3, 4), name="hidden")
        ps.ops.mat_mul(hidden, numbers(4, 2), name="y")
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        assert session.run("y:0", {"x:0": np.ones((2, 3))}).shape == (2, 2)
        with pytest.raises(errors.InvalidArgumentError, match="Matrix size-incompatible") as caught:
            session.run("y:0", {"x:0": np.ones((2, 5))})
        assert "hidden" in str(caught.value)
        assert session.run("y:0", {"x:0": np.ones((2, 3))}).shape == (2, 2)


def test_a_model_that_cannot_be_built_is_computed_by_numpy(
    graph: ps.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where ONNX Runtime cannot be imported, though it is installed."""
    x = numbers(1, 8, 8, 3)
    with ps.Session(graph, config=ps.Config(accelerate=False)) as session:
        plain = session.run("y:0", {"x:0": x})

    def refuse(*_args: Any) -> Any:
        raise RuntimeError("no")

    for name, stand_in in (("ready", refuse), ("load", lambda: None)):
        with monkeypatch.context() as patch:
            patch.setattr(library, name, stand_in)
            region_op._shared.clear()
            with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
                # What is next to nothing beside others is as exact as the exponent it is made of.
                given = session.run("y:0", {"x:0": x})
                np.testing.assert_allclose(given, plain, rtol=1e-5, atol=1e-9)


# -- what stays outside --------------------------------------------------------------------------


def test_branches_and_loops_are_left_alone() -> None:
    """A region is alive as a whole: what may be dead, or runs often, is no part of one."""
    graph = ps.Graph()
    with graph.as_default():
        flag = ps.placeholder("bool", [], name="flag")
        x = ps.placeholder("float32", [2, 2], name="x")
        w = numbers(2, 2)
        y = ps.ops.mat_mul(x, w)
        taken = ps.cond(flag, lambda: ps.ops.mat_mul(y, w), lambda: y)
        _, z = ps.while_loop(
            lambda i, _: i < 3, lambda i, a: (i + 1, ps.ops.mat_mul(a, w)), [0, taken]
        )
        ps.identity(z, name="z")
    feeds = {"x:0": np.eye(2), "flag:0": True}
    with ps.Session(graph, config=ps.Config(limits=ALL, accelerate=False)) as session:
        plain = [session.run("z:0", {**feeds, "flag:0": flag}) for flag in (True, False)]
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        ops = ops_of(session, "z:0", feeds)
        given = [session.run("z:0", {**feeds, "flag:0": flag}) for flag in (True, False)]

    assert ops["_OnnxRegion"] == 1
    assert ops["MatMul"] == 2
    np.testing.assert_allclose(given, plain, rtol=1e-5)


def test_no_path_leaves_a_region_and_comes_back() -> None:
    """Two products with something between them that ONNX has not are two regions."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [3, 3], name="x")
        first = ps.ops.mat_mul(x, numbers(3, 3))
        between = ps.ops.matrix_inverse(first)
        ps.identity(ps.ops.mat_mul(first, numbers(3, 3)) + ps.ops.mat_mul(between, first), name="y")
    x = np.eye(3, dtype=np.float32)
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        ops = ops_of(session, "y:0", {"x:0": x})
        given = session.run("y:0", {"x:0": x})
    with ps.Session(graph, config=ps.Config(accelerate=False)) as session:
        plain = session.run("y:0", {"x:0": x})

    assert ops["_OnnxRegion"] == 2
    np.testing.assert_allclose(given, plain, rtol=1e-4)


def test_devices_have_regions_of_their_own() -> None:
    """A path over another device leaves the region, too: nothing waits for itself."""
    graph = ps.Graph()
    with graph.as_default():
        value = ps.placeholder("float32", [2, 2], name="x")
        for number in range(3):
            with ps.device(f"/cpu:{number % 2}"):
                value = ps.ops.mat_mul(value, np.float32([[1, 1], [0, 1]]))
        ps.identity(value, name="y")
    config = ps.Config(limits=ALL, device_count={"CPU": 2}, operation_timeout_in_ms=20_000)
    with ps.Session(graph, config=config) as session:
        given = session.run("y:0", {"x:0": np.eye(2)})

    assert given.tolist() == [[1, 3], [0, 1]]


# -- threads ---------------------------------------------------------------------------------------


def test_onnx_runtime_has_the_threads_that_a_kernel_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as there are cores, and no more than an open session grants; the caller is one."""
    threads: list[int] = []
    ready: Callable[..., Any] = library.ready

    def noted(onnx: Any, model: bytes, weights: Any, count: int) -> Any:
        threads.append(count)
        return ready(onnx, model, weights, count)

    monkeypatch.setattr(library, "ready", noted)
    monkeypatch.setattr(region_op, "CORES", 4)
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [1, 20], name="x")
        ps.ops.mat_mul(x, np.eye(20, dtype=np.float32), name="y")
    for granted in (0, 1, 2, 9):
        region_op._shared.clear()
        config = ps.Config(limits=ALL, intra_op_parallelism_threads=granted)
        with ps.Session(graph, config=config) as session:
            session.run("y:0", {"x:0": numbers(1, 20)})
    assert threads == [4, 1, 2, 4]


# -- trials ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", ["regions", "nodes"])
def test_whatever_proves_faster_computes(monkeypatch: pytest.MonkeyPatch, slow: str) -> None:
    """Where last bits may differ, both ways are timed; the faster one goes on."""
    seconds, taken = [0.0], list[str]()

    def noting(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            taken.append(name)
            seconds[0] += 1e-3 if name == slow else 1e-6
            return compute(*args)

        return noted

    ready: Callable[..., Any] = library.ready
    monkeypatch.setattr(library, "ready", lambda *args: noting("regions", ready(*args)))
    nodes = region_op._Region.one_by_one
    monkeypatch.setattr(region_op._Region, "one_by_one", noting("nodes", nodes))
    monkeypatch.setattr(contest, "perf_counter", lambda: seconds[0])

    def begun() -> contest.Contest:
        """A trial; what is learnt from a slow step makes the node anew, and so the trial."""
        taken.clear()
        return contest.Contest()

    monkeypatch.setattr(region_op, "Contest", begun)
    region_op._shared.clear()
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [1, 20], name="x")
        ps.ops.mat_mul(x, 2 * np.eye(20, dtype=np.float32), name="y")
    x = numbers(1, 20)
    with ps.Session(graph, config=ps.Config(limits=ALL, exact_repetition=False)) as session:
        for _ in range(100):  # as many as it takes, and no more
            if len(taken) >= 13:
                break
            np.testing.assert_allclose(session.run("y:0", {"x:0": x}), 2 * x, rtol=1e-6)
    fast = "nodes" if slow == "regions" else "regions"
    assert set(taken[:7]) == {"regions", "nodes"}
    assert taken[7:13] == [fast] * 6


# -- variables -----------------------------------------------------------------------------------


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of weights of each model that is made ready."""
    notes: list[int] = []
    ready: Callable[..., Any] = library.ready

    def noted(onnx: Any, model: bytes, weights: Any, threads: int) -> Any:
        notes.append(len(weights))
        return ready(onnx, model, weights, threads)

    monkeypatch.setattr(library, "ready", noted)
    region_op._shared.clear()
    return notes


def test_variables_are_constants_until_they_change(built: list[int]) -> None:
    """A new value counts at once; a model is made for it when it has stayed for a step."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [1, 20], name="x")
        w = ps.Variable(np.eye(20, dtype=np.float32), name="w")
        ps.ops.mat_mul(x, w.value(), name="y")
        new = ps.placeholder("float32", [20, 20], name="new")
        assign = w.assign(new)
        init = ps.global_variables_initializer()
    x = numbers(1, 20)
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        session.run(init)
        given = [session.run("y:0", {"x:0": x}) for _ in range(3)]
        assert built == [1]
        for times in (2, 3, 4):
            session.run(assign, {"new:0": times * np.eye(20)})
            given += [session.run("y:0", {"x:0": x}) / times]
        assert built == [1]
        given += [session.run("y:0", {"x:0": x}) / 4 for _ in range(2)]
        assert built == [1, 1]

    np.testing.assert_allclose(given, [x] * len(given), rtol=1e-5)


def test_what_a_step_itself_changes_is_no_constant(built: list[int]) -> None:
    """A request that trains reads its variables as they are."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [1, 20], name="x")
        w = ps.Variable(np.eye(20, dtype=np.float32), name="w")
        y = ps.ops.mat_mul(x, w.value(), name="y")
        with ps.control_dependencies([y]):
            step = ps.ops.assign_add_variable_op(w.handle, np.eye(20, dtype=np.float32))
        init = ps.global_variables_initializer()
    x = numbers(1, 20)
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        session.run(init)
        given = [session.run([y, step], {"x:0": x})[0] for _ in range(3)]

    assert all(count == 0 for count in built)
    np.testing.assert_allclose(given, [x, 2 * x, 3 * x], rtol=1e-5)


def test_requests_share_a_model(built: list[int]) -> None:
    """The same region in another request is made ready once, and kept as long as it is used."""
    graph = ps.Graph()
    network(graph)
    with graph.as_default():
        ps.ops.neg(graph.tensor("y:0"), name="z")
    x = numbers(1, 8, 8, 3)
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        session.run("y:0", {"x:0": x})
        session.run(["y:0", "x:0"], {"x:0": x})

    assert len(built) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_process_computes(graph: ps.Graph) -> None:
    """In the child there are no threads of the parent's model; it makes its own."""
    x = numbers(4, 8, 8, 3)
    with ps.Session(graph, config=ps.Config(limits=ALL)) as session:
        wanted = session.run("y:0", {"x:0": x})
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                with ps.Session(graph, config=ps.Config(limits=ALL)) as own:
                    os.write(writer, own.run("y:0", {"x:0": x}).tobytes())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            given = pipe.read()
        os.waitpid(child, 0)

    assert given == wanted.tobytes()


@pytest.mark.skipif(library_in_c() is None, reason="there was no C compiler")
@pytest.mark.parametrize("has_convolution", [False, True])
def test_products_in_c_are_no_reason_for_a_region(*, has_convolution: bool) -> None:
    """They are faster; beside convolutions, they may be part of one."""
    with ps.Graph().as_default() as graph:
        x = ps.placeholder("float32", [8, 8, 8, 8], name="x")
        for _ in range(4 if has_convolution else 0):
            x = ps.ops.conv2_d(x, numbers(1, 1, 8, 8), strides=[1] * 4, padding="SAME")
        rows = ps.ops.reshape(x, [512, 8])
        ps.identity(ps.ops.mat_mul(rows, numbers(8, 8)), name="y")
    config = ps.Config(limits=Limits(region_products=1000))
    with ps.Session(graph, config=config) as session:
        ops = ops_of(session, "y:0", {"x:0": numbers(8, 8, 8, 8)})

    assert ("_OnnxRegion" in ops) == has_convolution
    assert ("MatMul" in ops) != has_convolution


@pytest.mark.skipif(library_in_c() is None, reason="there was no C compiler")
@pytest.mark.parametrize(
    ("window", "others", "is_region"),
    [((7, 9), 0, True), ((8, 8), 0, False), ((3, 39), 0, False), ((8, 8), 20, True)],
)
def test_large_windows_are_left_to_kernels_in_c(
    window: tuple[int, int], others: int, is_region: bool
) -> None:
    """These are faster; most of a region's products decide."""
    x = numbers(1, 12, 40, 8)
    with ps.Graph().as_default() as graph:
        y = ps.placeholder("float32", [1, 12, 40, 8], name="x")
        for sizes in (window, *[(1, 1)] * others):
            y = ps.ops.conv2_d(y, numbers(*sizes, 8, 8), strides=[1] * 4, padding="SAME")
        ps.identity(y, name="y")
    config = ps.Config(limits=Limits(region_products=1000))
    with ps.Session(graph, config=config) as session:
        ops = ops_of(session, "y:0", {"x:0": x})
    assert ("_OnnxRegion" in ops) == is_region
    with ps.Session(graph, config=ps.Config(limits=Limits(region_products=0))) as session:
        assert "_OnnxRegion" in ops_of(session, "y:0", {"x:0": x})


def convolved(
    *,
    side: int,
    window: int,
    layers: int = 6,
    stride: int = 1,
    channels: int = 32,
    trained: bool = False,
) -> ps.Graph:
    """Sixteen channels to 32, and more layers of 32 by 1x1."""
    with ps.Graph().as_default() as graph:
        x = ps.placeholder("float32", [1, side, side, 16], name="x")
        filters: Any = numbers(window, window, 16, channels)
        if trained:
            filters = ps.Variable(filters, name="w").value()
        strides = [1, stride, stride, 1]
        y = ps.ops.conv2_d(x, filters, strides=strides, padding="SAME")
        for _ in range(layers - 1):
            more = numbers(1, 1, channels, channels)
            y = ps.ops.conv2_d(y, more, strides=[1] * 4, padding="SAME")
        ps.identity(y, name="y")
    return graph


def has_region(graph: ps.Graph, side: int) -> bool:
    """Whether ONNX Runtime computes a graph of ``convolved``."""
    with graph.as_default():
        init = ps.global_variables_initializer()
    feeds = {"x:0": numbers(1, side, side, 16)}
    with ps.Session(graph, config=ps.Config(limits=Limits(region_products=1000))) as session:
        session.run(init)
        return "_OnnxRegion" in ops_of(session, "y:0", feeds)


@pytest.mark.skipif(library_in_c() is None, reason="there was no C compiler")
@pytest.mark.parametrize(
    ("how", "is_region"),
    [
        ({"side": 16, "window": 3}, False),
        ({"side": 16, "window": 3, "layers": 10}, True),
        ({"side": 16, "window": 3, "stride": 2}, True),
        ({"side": 16, "window": 5}, True),
        ({"side": 8, "window": 3}, True),
        ({"side": 16, "window": 3, "trained": True}, True),
        ({"side": 32, "window": 3, "trained": True}, False),
    ],
)
def test_windows_from_fewer_products_are_left_to_kernels_in_c(
    how: dict[str, Any], *, is_region: bool
) -> None:
    """Where twelve tiles of four by four results are computed at once, or 64 if filters change."""
    assert has_region(convolved(**how), how["side"]) == is_region


@pytest.mark.skipif(library_in_c() is None, reason="there was no C compiler")
@pytest.mark.parametrize(
    ("how", "is_region"),
    [
        ({"layers": 1}, False),
        ({"layers": 2}, False),
        ({"layers": 6}, True),
        ({"layers": 2, "window": 5, "trained": True}, True),
        ({"channels": 24}, True),
        ({"channels": 20}, False),
        ({"channels": 28}, False),
    ],
)
def test_a_layout_of_its_own_must_be_worth_it(how: dict[str, Any], *, is_region: bool) -> None:
    """What comes into a region, or leaves it, is laid out anew; weights are only once.

    The layout has blocks of eight channels: with a few more, most of a block is for nothing.
    """
    graph = convolved(**{"side": 8, "window": 3, **how})
    assert has_region(graph, 8) == is_region


@pytest.mark.skipif(library_in_c() is None, reason="there was no C compiler")
@pytest.mark.parametrize(
    ("layers", "windows_of_one_channel", "is_region"),
    [(1, 0, False), (1, 1, True), (2, 0, False)],
)
def test_kernels_in_c_take_longer_for_each_channel_by_itself(
    layers: int, windows_of_one_channel: int, *, is_region: bool
) -> None:
    """Three times as long for a product."""
    graph = convolved(side=8, window=3, layers=layers)
    with graph.as_default():
        y = graph.tensor("y:0")
        for _ in range(windows_of_one_channel):
            filters = numbers(3, 3, 32, 1)
            y = ps.ops.depthwise_conv2d_native(y, filters, strides=[1] * 4, padding="SAME")
        ps.identity(y, name="z")
    feeds = {"x:0": numbers(1, 8, 8, 16)}
    with ps.Session(graph, config=ps.Config(limits=Limits(region_products=1000))) as session:
        ops = ops_of(session, "z:0", feeds)
    assert ("_OnnxRegion" in ops) == is_region


@pytest.mark.skipif(library_in_c() is None, reason="there was no C compiler")
@pytest.mark.parametrize(("least", "is_region"), [(40_000, True), (42_000, False)])
def test_a_region_must_be_worth_the_way_there(least: int, *, is_region: bool) -> None:
    """It saves 164,000 of 1,310,720 products, and must save four times as many as it must have."""
    with ps.Graph().as_default() as graph:
        y = ps.placeholder("float32", [1, 8, 8, 64], name="x")
        for _ in range(5):
            y = ps.ops.conv2_d(y, numbers(1, 1, 64, 64), strides=[1] * 4, padding="SAME")
        ps.identity(y, name="y")
    with ps.Session(graph, config=ps.Config(limits=Limits(region_products=least))) as session:
        ops = ops_of(session, "y:0", {"x:0": numbers(1, 8, 8, 64)})
    assert ("_OnnxRegion" in ops) == is_region
