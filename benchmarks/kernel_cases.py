"""One op at a time: which ones, on what, and as graphs that both engines can read.

In:   the table below.
Out:  ``KernelCase``, and its folder as ``benchmarks.cases`` reads it.
Not:  runs nothing.

What a graph computes is fed; what is known when a graph is made, such as axes and shapes,
is a constant.  Sizes are those of real networks, and small ones, where calling the kernel is
the work.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

import penstock as ps


@dataclass(frozen=True, slots=True)
class Fixed:
    """An input that is a constant of the graph."""

    value: Any


@dataclass(frozen=True, slots=True)
class State:
    """An input that is a variable with this value at first."""

    value: Any


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One op, its inputs and its attributes."""

    family: str
    what: str
    op: str
    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    #: How many of the op's outputs are fetched; without any, the first variable is.
    outputs: int

    @property
    def name(self) -> str:
        """The op, and what sets this case apart from others of it."""
        return f"{self.op} {self.what}".strip()


def f32(*shape: int) -> Any:
    """Normal random numbers, the same for the same shape."""
    seed = zlib.crc32(repr(shape).encode())
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> Any:
    """Random numbers above one tenth."""
    return np.abs(f32(*shape)) + np.float32(0.1)


def ints(limit: int, *shape: int) -> Any:
    """Random integers from zero on."""
    seed = zlib.crc32(repr((limit, shape)).encode())
    return np.random.RandomState(seed).randint(0, limit, shape).astype(np.int32)


def fixed(*numbers: int) -> Fixed:
    """A constant vector of integers."""
    return Fixed(np.array(numbers, np.int32))


def one(number: float) -> Fixed:
    """A constant scalar."""
    return Fixed(np.float32(number))


def write_case(case: KernelCase, folder: Path) -> None:
    """Store a case as a folder that ``benchmarks.cases.Case`` reads."""
    graph, feeds = ps.Graph(), dict[str, Any]()
    with graph.as_default():
        inputs = [_input(value, place, feeds) for place, value in enumerate(case.inputs)]
        made = graph.apply(case.op, *inputs, name="y", **case.attrs)
        if not case.outputs:
            with ps.control_dependencies([made]):
                ps.ops.ReadVariableOp(inputs[0], dtype=np.float32, name="y_after")
        init = ps.global_variables_initializer().name
    meta = {
        "group": case.family,
        "units": 1,
        "devices": 1,
        "feeds": {f"{key}:0": key for key in feeds},
        "fetches": [f"y:{slot}" for slot in range(case.outputs)] or ["y_after:0"],
        "init_op": "" if case.outputs else init,
    }
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    (folder / "case.json").write_text(json.dumps(meta), "utf-8")
    np.savez(folder / "feeds.npz", **feeds)


def _input(value: Any, place: int, feeds: dict[str, Any]) -> Any:
    """The tensor for an input; what is to be fed goes to ``feeds``."""
    if isinstance(value, Fixed):
        return ps.ops.constant(value.value, name=f"c{place}")
    if isinstance(value, State):
        return ps.ops.Variable(value.value, name=f"v{place}").handle
    if isinstance(value, list):
        return [_input(item, 100 * place + at, feeds) for at, item in enumerate(value)]
    array = np.asarray(value)
    feeds[f"x{place}"] = array
    return ps.ops.placeholder(array.dtype, array.shape, name=f"x{place}")


def chosen(words: Sequence[str], families: Sequence[Callable[[], Cases]]) -> list[KernelCase]:
    """The cases of families, or those whose family or name has one of the words in it."""
    return [
        case
        for family in families
        for case in family()
        if not words or any(word in f"{case.family} {case.name}" for word in words)
    ]


Cases: TypeAlias = Iterator[KernelCase]
_Settings: TypeAlias = dict[str, Any]
_SAME: Final[_Settings] = {"strides": [1, 1, 1, 1], "padding": "SAME"}
_BY_TWO: Final[_Settings] = {"strides": [1, 2, 2, 1], "padding": "SAME"}


class KernelFamily:
    """Makes the cases of one family."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(
        self, op: str, what: str, *inputs: Any, outputs: int = 1, **attrs: Any
    ) -> KernelCase:
        """One case: an op, what sets it apart, inputs and attributes."""
        return KernelCase(self._name, what, op, inputs, attrs, outputs)


def _products() -> Cases:
    case = KernelFamily("matmul")
    yield case("MatMul", "512", f32(512, 512), f32(512, 512))
    yield case("MatMul", "64x512 transposed", f32(64, 512), f32(512, 512), transpose_b=True)
    yield case("MatMul", "8", f32(8, 8), f32(8, 8))
    yield case("MatMul", "1x1280x1000", f32(1, 1280), f32(1280, 1000))
    yield case("BatchMatMulV2", "8x8x64x64", f32(8, 8, 64, 64), f32(8, 8, 64, 64))
    yield case("BatchMatMulV2", "64x16x16 adj", f32(64, 16, 16), f32(64, 16, 16), adj_y=True)
    yield case("BatchMatMulV2", "64x8x1 8", f32(64, 8, 1), f32(64, 1, 8))
    for what, equation, a, b in (
        ("project", "abc,cde->abde", f32(8, 64, 256), f32(256, 8, 32)),
        ("scores", "aecd,abcd->acbe", f32(8, 64, 8, 32), f32(8, 64, 8, 32)),
        ("attend", "acbe,aecd->abcd", f32(8, 8, 64, 64), f32(8, 64, 8, 32)),
        ("merge", "abcd,cde->abe", f32(8, 64, 8, 32), f32(8, 32, 256)),
        ("small", "ij,jk->ik", f32(8, 8), f32(8, 8)),
        ("outer", "bi,bj->bij", f32(64, 64), f32(64, 64)),
    ):
        yield case("Einsum", what, [a, b], equation=equation)


def _convolutions() -> Cases:
    case, images = KernelFamily("conv"), f32(8, 56, 56, 64)
    yield case("Conv2D", "1x1 56x56x64", images, f32(1, 1, 64, 64), **_SAME)
    yield case("Conv2D", "3x3 56x56x64", images, f32(3, 3, 64, 64), **_SAME)
    yield case("Conv2D", "3x3 stride 2", images, f32(3, 3, 64, 64), **_BY_TWO)
    yield case("Conv2D", "1x1 stride 2", images, f32(1, 1, 64, 128), **_BY_TWO)
    yield case("Conv2D", "5x5 28x28x1", f32(32, 28, 28, 1), f32(5, 5, 1, 32), **_SAME)
    yield case("Conv2D", "5x5 14x14x32", f32(32, 14, 14, 32), f32(5, 5, 32, 64), **_SAME)
    yield case("Conv2D", "3x3 stride 2 224x224x3", f32(1, 224, 224, 3), f32(3, 3, 3, 32), **_BY_TWO)
    yield case("Conv2D", "3x3 14x14x256", f32(1, 14, 14, 256), f32(3, 3, 256, 256), **_SAME)
    yield case("Conv2D", "3x3 8x8x4", f32(1, 8, 8, 4), f32(3, 3, 4, 4), **_SAME)
    yield case(
        "Conv2D", "3x3 dilated", f32(2, 28, 28, 64), f32(3, 3, 64, 64),
        dilations=[1, 2, 2, 1], **_SAME,
    )  # fmt: skip
    for name, filters in (("3x3", f32(3, 3, 64, 1)), ("5x5", f32(5, 5, 64, 1))):
        yield case("DepthwiseConv2dNative", f"{name} 56x56x64", images, filters, **_SAME)
    deep, filters = f32(1, 14, 14, 256), f32(3, 3, 256, 1)
    yield case("DepthwiseConv2dNative", "3x3 14x14x256", deep, filters, **_SAME)
    yield case("DepthwiseConv2dNative", "stride 2", images, f32(3, 3, 64, 1), **_BY_TWO)
    cubes, ones = f32(1, 16, 32, 32, 16), [1] * 5
    yield case("Conv3D", "3x3x3", cubes, f32(3, 3, 3, 16, 16), strides=ones, padding="SAME")


def _convolution_gradients() -> Cases:
    case = KernelFamily("conv_grad")
    for what, images, filters, attrs in (
        ("1x1 56x56x64", (8, 56, 56, 64), (1, 1, 64, 64), _SAME),
        ("3x3 28x28x64", (8, 28, 28, 64), (3, 3, 64, 64), _SAME),
        ("3x3 stride 2", (8, 56, 56, 64), (3, 3, 64, 64), _BY_TWO),
        ("5x5 28x28x1", (32, 28, 28, 1), (5, 5, 1, 32), _SAME),
        ("5x5 14x14x32", (32, 14, 14, 32), (5, 5, 32, 64), _SAME),
        ("3x3 8x8x4", (1, 8, 8, 4), (3, 3, 4, 4), _SAME),
    ):
        yield from _both_gradients(case, "Conv2D", what, images, filters, attrs)
    for what, images, filters, attrs in (
        ("3x3 28x28x64", (8, 28, 28, 64), (3, 3, 64, 1), _SAME),
        ("3x3 stride 2", (8, 56, 56, 64), (3, 3, 64, 1), _BY_TWO),
    ):
        name = "DepthwiseConv2dNative"
        yield from _both_gradients(case, name, what, images, filters, attrs)


def _both_gradients(
    case: KernelFamily,
    op: str,
    what: str,
    images: tuple[int, ...],
    filters: tuple[int, ...],
    attrs: _Settings,
) -> Cases:
    step = attrs["strides"][1]
    count = filters[3] * (filters[2] if "Depthwise" in op else 1)
    grads = f32(images[0], -(-images[1] // step), -(-images[2] // step), count)
    yield case(f"{op}BackpropInput", what, fixed(*images), f32(*filters), grads, **attrs)
    yield case(f"{op}BackpropFilter", what, f32(*images), fixed(*filters), grads, **attrs)


def _pools() -> Cases:
    case, images = KernelFamily("pool"), f32(8, 56, 56, 64)
    for name, size, step in (("2x2/2", 2, 2), ("3x3/2", 3, 2), ("3x3/1", 3, 1)):
        attrs: _Settings = {
            "ksize": [1, size, size, 1],
            "strides": [1, step, step, 1],
            "padding": "SAME",
        }
        places = -(-56 // step)
        grads = f32(8, places, places, 64)
        yield case("MaxPool", name, images, **attrs)
        yield case("AvgPool", name, images, **attrs)
        yield case("MaxPoolGrad", name, images, _pooled(images, size, step), grads, **attrs)
        yield case("AvgPoolGrad", name, fixed(8, 56, 56, 64), grads, **attrs)
    small: _Settings = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    yield case("MaxPool", "8x8x4", f32(1, 8, 8, 4), **small)
    yield case("AvgPool", "7x7 whole", f32(1, 7, 7, 1024), ksize=[1, 7, 7, 1],
               strides=[1, 1, 1, 1], padding="VALID")  # fmt: skip
    yield case("MaxPool3D", "2x2x2", f32(1, 16, 32, 32, 16), ksize=[1, 2, 2, 2, 1],
               strides=[1, 2, 2, 2, 1], padding="SAME")  # fmt: skip


def _pooled(images: Any, size: int, step: int) -> Any:
    """What MaxPool with the padding SAME gives, by its definition."""
    places = -(-images.shape[1] // step)
    missing = max((places - 1) * step + size - images.shape[1], 0)
    edge = (missing // 2, missing - missing // 2)
    padded = np.pad(images, ((0, 0), edge, edge, (0, 0)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))
    return np.ascontiguousarray(windows[:, ::step, ::step].max((-1, -2)))


def _networks() -> Cases:
    case, images, of = KernelFamily("nn"), f32(8, 56, 56, 64), f32(64)
    statistics = (positive(64), of, of, positive(64))
    yield case("FusedBatchNormV3", "infer", images, *statistics, is_training=False)
    yield case("FusedBatchNormV3", "train", images, *statistics, is_training=True, outputs=5)
    yield case("FusedBatchNormV3", "infer 14x14x16", f32(1, 14, 14, 16), positive(16), f32(16),
               f32(16), positive(16), is_training=False)  # fmt: skip
    yield case("FusedBatchNormGradV3", "train", f32(8, 56, 56, 64), images, positive(64), of,
               positive(64), f32(0), is_training=True, outputs=3)  # fmt: skip
    for what, x in (("8x56x56x64", images), ("16x16", f32(16, 16))):
        bias = f32(x.shape[-1])
        yield case("BiasAdd", what, x, bias)
        yield case("BiasAddGrad", what, x)
        for op in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Sigmoid", "Tanh", "LeakyRelu"):
            yield case(op, what, x)
        for op in ("ReluGrad", "Relu6Grad", "EluGrad", "SigmoidGrad", "TanhGrad"):
            yield case(op, what, x, x)
    for what, x, labels in (
        ("512x1000", f32(512, 1000), ints(1000, 512)),
        ("64x10", f32(64, 10), ints(10, 64)),
    ):
        yield case("Softmax", what, x)
        yield case("LogSoftmax", what, x)
        yield case("SparseSoftmaxCrossEntropyWithLogits", what, x, labels, outputs=2)
        yield case("SoftmaxCrossEntropyWithLogits", what, x, positive(*x.shape), outputs=2)
    yield case("LRN", "radius 5", images[:2])
    yield case("LRN", "beta 0.5", images[:2], beta=0.5)
    for op in ("ResizeBilinear", "ResizeNearestNeighbor"):
        yield case(op, "28 to 56", f32(8, 28, 28, 64), fixed(56, 56))
        yield case(op, "224 to 300", f32(1, 224, 224, 3), fixed(300, 300))
        yield case(f"{op}Grad", "56 to 28", images,
                   fixed(28, 28) if "Near" in op else f32(8, 28, 28, 64))  # fmt: skip


def _reductions() -> Cases:
    case, matrix, images = KernelFamily("reduce"), f32(1000, 1000), f32(8, 56, 56, 64)
    for op in ("Sum", "Mean", "Max", "Prod"):
        yield case(op, "all", matrix, fixed(0, 1))
        yield case(op, "rows", matrix, fixed(1))
        yield case(op, "columns", matrix, fixed(0))
        yield case(op, "spatial", images, fixed(1, 2))
        yield case(op, "inner two", images, fixed(2, 3))
        yield case(op, "8x8", f32(8, 8), fixed(1))
    for op in ("ArgMax", "ArgMin"):
        yield case(op, "rows", matrix, Fixed(np.int32(1)))
        yield case(op, "columns", matrix, Fixed(np.int32(0)))
        yield case(op, "64x10", f32(64, 10), Fixed(np.int32(1)))
    yield case("All", "rows", matrix > 0, fixed(1))
    yield case("Any", "all", matrix > 9, fixed(0, 1))
    yield case("Cumsum", "rows", matrix, Fixed(np.int32(1)))
    yield case("Cumsum", "columns", matrix, Fixed(np.int32(0)))
    yield case("L2Loss", "1e6", matrix)
    yield case("AddN", "3 of 1e6", [matrix, f32(1000, 1000), positive(1000, 1000)])


def _elements() -> Cases:
    case = KernelFamily("elements")
    for what, x in (("1e6", f32(1000, 1000)), ("16", f32(16))):
        y = positive(*x.shape)
        for op in ("AddV2", "Mul", "RealDiv", "Maximum", "SquaredDifference", "Pow"):
            yield case(op, what, y, y)
        for op in ("Exp", "Sqrt", "Rsqrt", "Erf", "Log", "Square", "Neg", "Floor"):
            yield case(op, what, y)
        yield case("SelectV2", what, x > 0, x, y)
        yield case("Greater", what, x, y)
        yield case("ClipByValue", what, x, one(-1), one(1))
        yield case("Cast", f"{what} to int32", x, SrcT=np.float32, DstT=np.int32)
        yield case("Cast", f"{what} to half", x, SrcT=np.float32, DstT=np.float16)
    yield case("AddV2", "row by row", f32(1000, 1000), f32(1000))
    yield case("Mul", "column by column", f32(1000, 1000), f32(1000, 1))
    yield case("FloorMod", "1e6 int", ints(1000, 1000, 1000), ints(9, 1000, 1000) + 1)
    yield case("Mul", "1e6 int", ints(1000, 1000, 1000), ints(9, 1000, 1000))


def _arrays() -> Cases:
    case, matrix, images = KernelFamily("arrays"), f32(1000, 1000), f32(8, 56, 56, 64)
    yield case("Transpose", "1000x1000", matrix, fixed(1, 0))
    yield case("Transpose", "NHWC to NCHW", images, fixed(0, 3, 1, 2))
    yield case("Transpose", "heads", f32(8, 64, 8, 32), fixed(0, 2, 1, 3))
    yield case("Tile", "2x2", matrix, fixed(2, 2))
    yield case("Tile", "row", f32(1, 1000), fixed(1000, 1))
    yield case("Pad", "spatial", images, Fixed(np.array([[0, 0], [1, 1], [1, 1], [0, 0]])))
    yield case("MirrorPad", "spatial", images, Fixed(np.array([[0, 0], [1, 1], [1, 1], [0, 0]])),
               mode="REFLECT")  # fmt: skip
    last = Fixed(np.int32(-1))
    yield case("ConcatV2", "last axis", [matrix, f32(1000, 1000)], last)
    yield case("ConcatV2", "small", [f32(8, 8), f32(8, 8)], last)
    yield case("GatherV2", "rows", matrix, ints(1000, 4096), Fixed(np.int32(0)))
    yield case("GatherV2", "columns", matrix, ints(1000, 500), Fixed(np.int32(1)))
    yield case("GatherNd", "elements", matrix, ints(1000, 100_000, 2))
    yield case("ScatterNd", "rows", ints(1000, 4096, 1), f32(4096, 64), fixed(1000, 64))
    yield case("ScatterNd", "elements", ints(1000, 100_000, 2), f32(100_000), fixed(1000, 1000))
    yield case("UnsortedSegmentSum", "rows", f32(4096, 64), ints(1000, 4096),
               Fixed(np.int32(1000)))  # fmt: skip
    yield case("UnsortedSegmentSum", "elements", f32(100_000), ints(1000, 100_000),
               Fixed(np.int32(1000)))  # fmt: skip
    yield case("UnsortedSegmentMax", "rows", f32(4096, 64), ints(1000, 4096),
               Fixed(np.int32(1000)))  # fmt: skip
    yield case("SegmentSum", "rows", f32(4096, 64), np.sort(ints(1000, 4096)))
    gathered, segments = ints(20_000, 8192), np.sort(ints(1000, 8192))
    yield case("SparseSegmentSum", "rows", f32(20_000, 64), gathered, segments)
    yield case("SparseSegmentMean", "rows", f32(20_000, 64), gathered, segments)
    yield case("OneHot", "4096x1000", ints(1000, 4096), Fixed(np.int32(1000)), one(1), one(0))
    yield case("OneHot", "64x10", ints(10, 64), Fixed(np.int32(10)), one(1), one(0))
    begin, end, step = fixed(0, 1, 1, 0), fixed(8, 55, 55, 64), fixed(1, 1, 1, 1)
    yield case("StridedSlice", "spatial", images, begin, end, step)
    yield case("StridedSlice", "stride 2", images, begin, end, fixed(1, 2, 2, 1))
    yield case("Slice", "columns", matrix, fixed(0, 100), fixed(1000, 500))
    yield case("Split", "4", Fixed(np.int32(1)), matrix, num_split=4, outputs=4)
    yield case("Pack", "4", [f32(1000, 100)] * 4, axis=1)
    yield case("ReverseV2", "columns", matrix, fixed(1))
    yield case("SpaceToDepth", "2", images, block_size=2)
    yield case("DepthToSpace", "2", images, block_size=2)


def _orders() -> Cases:
    case, matrix = KernelFamily("order"), f32(1000, 1000)
    yield case("TopKV2", "10 of 1000", matrix, Fixed(np.int32(10)), outputs=2)
    yield case("TopKV2", "100 of 1e6", matrix.reshape(-1), Fixed(np.int32(100)), outputs=2)
    yield case("TopKV2", "all of 1e5", f32(100_000), Fixed(np.int32(100_000)), outputs=2)
    yield case("Unique", "1e5", ints(1000, 100_000), outputs=2)
    yield case("Where", "1e6", matrix > 1)
    yield case("LowerBound", "1e5", np.sort(f32(1, 1000)),
               f32(1, 100_000))  # fmt: skip
    corner = positive(1000, 2) * 100
    boxes = np.concatenate([corner, corner + positive(1000, 2)[::-1] * 30], 1)
    yield case("NonMaxSuppressionV3", "1000", boxes, f32(1000), Fixed(np.int32(100)), one(0.5),
               one(-9))  # fmt: skip
    yield case("NonMaxSuppressionV3", "100", boxes[:100], f32(100), Fixed(np.int32(100)),
               one(0.5), one(-9))  # fmt: skip


def _decompositions() -> Cases:
    case = KernelFamily("linalg")
    for what, x in (("256", f32(256, 256)), ("64x8", f32(64, 8, 8))):
        square = x @ x.swapaxes(-1, -2) + np.eye(x.shape[-1], dtype=np.float32) * 9
        yield case("MatrixInverse", what, square)
        yield case("Cholesky", what, square)
        yield case("MatrixDeterminant", what, square / np.float32(20))
        yield case("MatrixSolve", what, square, x)
        yield case("MatrixTriangularSolve", what, np.tril(square), x)
        yield case("SelfAdjointEigV2", what, square, compute_v=False)
        yield case("Svd", what, x, compute_uv=False)
        yield case("Qr", what, x, outputs=1)


def _random() -> Cases:
    case, seeds = KernelFamily("random"), np.array([3, 5], np.int32)
    for what, shape in (("1e6", fixed(1000, 1000)), ("256", fixed(256))):
        for op in ("RandomUniform", "RandomNormal", "TruncatedNormal"):
            yield case(f"Stateless{op}", what, shape, seeds, dtype=np.float32)
    yield case("StatelessRandomUniformInt", "1e6", fixed(1000, 1000), seeds,
               Fixed(np.int32(0)), Fixed(np.int32(1000)), dtype=np.int32)  # fmt: skip


def _optimisers() -> Cases:
    case = KernelFamily("training")
    rates = (one(0.9), one(0.999), one(1e-3), one(0.9), one(0.999), one(1e-8))
    for what, x in (("1e6", f32(1000, 1000)), ("256x64", f32(256, 64)), ("10", f32(10))):
        zero, grad = State(np.zeros_like(x)), positive(*x.shape)
        var = State(x)
        yield case("ResourceApplyGradientDescent", what, var, one(0.1), grad, outputs=0)
        yield case("ResourceApplyMomentum", what, var, zero, one(0.1), grad, one(0.9), outputs=0)
        yield case("ResourceApplyAdam", what, var, zero, zero, *rates, grad, outputs=0)
        yield case("ResourceApplyRMSProp", what, var, State(np.ones_like(x)), zero, one(0.1),
                   one(0.9), one(0.9), one(1e-8), grad, outputs=0)  # fmt: skip
        yield case("AssignAddVariableOp", what, var, grad, outputs=0)
    table, rows = State(f32(10_000, 64)), ints(10_000, 256)
    yield case("ResourceSparseApplyAdagrad", "256 rows", table, State(positive(10_000, 64)),
               one(0.1), f32(256, 64), rows, outputs=0)  # fmt: skip
    yield case("ResourceScatterAdd", "256 rows", table, rows, f32(256, 64), outputs=0)


FAMILIES: Final[tuple[Callable[[], Cases], ...]] = (
    _products,
    _convolutions,
    _convolution_gradients,
    _pools,
    _networks,
    _reductions,
    _elements,
    _arrays,
    _orders,
    _decompositions,
    _random,
    _optimisers,
)
