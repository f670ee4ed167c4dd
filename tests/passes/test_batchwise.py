"""What is read entry by entry gives, entry by entry, what it gives at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from penstock.graph.graph import Graph
from penstock.graph.roles import Role
from penstock.passes.batchwise import _RULES, read_by_entries
from penstock.runtime import KernelBinder
from support.sketch import CPU, sketch

RANDOM = np.random.default_rng(4)
BATCH: Final = 5
IMAGES, ROWS = (BATCH, 6, 6, 4), (BATCH, 8)
CONV: Final = "strides=[1,1,1,1] padding='SAME'"
ONE: Final = "num_args=1 num_host_args=0 TArgs=['float32']"
TWO: Final = "num_args=2 num_host_args=0 TArgs=['float32','float32']"
POOL: Final = "ksize=[1,2,2,1] strides=[1,2,2,1] padding='VALID'"

#: A row of a sketch whose inputs are ``a``, ``b``..., of these shapes; and which have entries.
Case = tuple[str, list[tuple[int, ...]], tuple[bool, ...]]
OF_IMAGES: Final = {
    "AvgPool": POOL,
    "MaxPool": POOL,
    "DepthToSpace": "block_size=2",
    "SpaceToDepth": "block_size=2",
    "LRN": "depth_radius=1",
    "Softmax": "",
    "LogSoftmax": "",
}
UNARY: Final = [
    "Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Identity", "Inv", "LeakyRelu", "Log",
    "Neg", "Reciprocal", "Relu", "Relu6", "Rsqrt", "Selu", "Sigmoid", "Sin", "Softplus",
    "Softsign", "Sqrt", "Square", "StopGradient", "Tanh",
]  # fmt: skip
BINARY: Final = [
    "Add", "AddV2", "Maximum", "Minimum", "Mul", "Pow", "RealDiv", "SquaredDifference", "Sub",
]  # fmt: skip
CASES: Final[list[Case]] = [
    *((f"{op}(a) {attrs}", [IMAGES], (True,)) for op, attrs in OF_IMAGES.items()),
    *((f"{op}(a)", [IMAGES], (True,)) for op in UNARY),
    *((f"{op}(a, b)", [IMAGES, IMAGES], (True, True)) for op in BINARY),
    ("Mul(a, b)", [IMAGES, (4,)], (True, False)),
    ("Mul(a, b)", [(4,), IMAGES], (False, True)),
    ("Mul(a, b)", [IMAGES, (1, 1, 1, 4)], (True, False)),
    ("Mul(a, b)", [IMAGES, ()], (True, False)),
    # As many channels as entries, or rows: which dimension is the first, ranks say.
    ("Mul(a, b)", [(BATCH, BATCH), (BATCH,)], (True, False)),
    ("Mul(a, b)", [IMAGES, (BATCH, 1, 1, 1)], (True, True)),
    ("BiasAdd(a, b)", [IMAGES, (4,)], (True, False)),
    (f"Conv2D(a, b) {CONV}", [IMAGES, (3, 3, 4, 2)], (True, False)),
    (f"Conv2D(a, b) {CONV}", [(BATCH, 8, 8, 1), (BATCH, 1, 1, 2)], (True, False)),
    (f"DepthwiseConv2dNative(a, b) {CONV}", [IMAGES, (3, 3, 4, 1)], (True, False)),
    (
        "Conv3D(a, b) strides=[1,1,1,1,1] padding='SAME'",
        [(BATCH, 2, 3, 3, 2), (2, 2, 2, 2, 3)],
        (True, False),
    ),
    (
        f"_FusedConv2D(a, b, c) {CONV} {ONE} fused_ops=[b'BiasAdd',b'Relu']",
        [IMAGES, (3, 3, 4, 2), (2,)],
        (True, False, False),
    ),
    (
        f"_FusedConv2D(a, b, c, d) {CONV} {TWO} fused_ops=[b'BiasAdd',b'Add',b'Relu']",
        [IMAGES, (3, 3, 4, 2), (2,), (BATCH, 6, 6, 2)],
        (True, False, False, True),
    ),
    (
        f"_FusedDepthwiseConv2dNative(a, b, c) {CONV} num_args=1 fused_ops=[b'BiasAdd']",
        [IMAGES, (3, 3, 4, 1), (4,)],
        (True, False, False),
    ),
    ("MatMul(a, b)", [ROWS, (8, 3)], (True, False)),
    ("MatMul(a, b) transpose_b=True", [ROWS, (3, 8)], (True, False)),
    (
        "_FusedMatMul(a, b, c) num_args=1 fused_ops=[b'BiasAdd']",
        [ROWS, (8, 3), (3,)],
        (True, False, False),
    ),
    (
        "FusedBatchNormV3(a, b, c, d, e) is_training=False",
        [IMAGES, (4,), (4,), (4,), (4,)],
        (True, False, False, False, False),
    ),
    ("Squeeze(a) squeeze_dims=(1,)", [(BATCH, 1, 4)], (True,)),
    ("Squeeze(a) squeeze_dims=(-2,)", [(BATCH, 1, 4)], (True,)),
]
K: Final = "k = Const() value="
#: With a constant ``k``, in a row of its own.
WITH_CONSTANTS: Final[list[tuple[str, Case]]] = [
    (f"{K}3", ("ConcatV2(a, b, k) N=2", [IMAGES, IMAGES], (True, True, False))),
    (f"{K}-1", ("ConcatV2(a, b, k) N=2", [IMAGES, IMAGES], (True, True, False))),
    (f"{K}[[0,0],[1,2],[0,1],[0,0]]", ("Pad(a, k)", [IMAGES], (True, False))),
    (f"{K}[[0,0],[1,2],[0,1],[0,0]]", ("PadV2(a, k, b)", [IMAGES, ()], (True, False, False))),
    (
        f"{K}[[0,0],[1,2],[0,1],[0,0]]",
        ("MirrorPad(a, k) mode='REFLECT'", [IMAGES], (True, False)),
    ),
    (f"{K}[1,2]", ("Mean(a, k)", [IMAGES], (True, False))),
    (f"{K}[-1]", ("Max(a, k) keep_dims=True", [IMAGES], (True, False))),
    (f"{K}[1,3]", ("Sum(a, k)", [IMAGES], (True, False))),
    (f"{K}1", ("Min(a, k)", [ROWS], (True, False))),
    (f"{K}1", ("Prod(a, k)", [ROWS], (True, False))),
    (f"{K}[-1,36,4]", ("Reshape(a, k)", [IMAGES], (True, False))),
    (f"{K}[9,3]", ("ResizeBilinear(a, k)", [IMAGES], (True, False))),
    (f"{K}[9,3]", ("ResizeNearestNeighbor(a, k)", [IMAGES], (True, False))),
]
#: What treats entries together, or may.
REFUSED: Final[list[tuple[str, str, list[tuple[int, ...]]]]] = [
    (f"{K}0", "ConcatV2(a, b, k) N=2", [IMAGES, IMAGES]),
    (f"{K}-4", "ConcatV2(a, b, k) N=2", [IMAGES, IMAGES]),
    (f"{K}3", "ConcatV2(a, b, k) N=2", [IMAGES, (1, 6, 6, 4)]),
    (f"{K}[[0,1],[0,0],[0,0],[0,0]]", "Pad(a, k)", [IMAGES]),
    (f"{K}[0]", "Mean(a, k)", [IMAGES]),
    (f"{K}[1,-4]", "Mean(a, k)", [IMAGES]),
    (f"{K}[-1,4]", "Reshape(a, k)", [IMAGES]),
    (f"{K}[5,144]", "Reshape(a, k)", [IMAGES]),
    ("", "Softmax(a)", [(BATCH,)]),
    ("", "MatMul(a, b) transpose_a=True", [(BATCH, 5), (5, 3)]),
    ("", "Squeeze(a)", [(BATCH, 1, 4)]),
    ("", "Mul(a, b)", [(4,), (1, 4)]),
    ("", "Mul(a, b)", [(1, 4), (BATCH,)]),
    ("", "L2Loss(a)", [IMAGES]),
    (f"{K}0", "Cumsum(a, k)", [IMAGES]),
    (
        "",
        f"_FusedConv2D(a, b, c, d) {CONV} {TWO} fused_ops=[b'BiasAdd',b'Add']",
        [IMAGES, (3, 3, 4, 2), (2,), (1, 6, 6, 2)],
    ),
    (
        "",
        "FusedBatchNormV3(a, b, c, d, e) is_training=True",
        [IMAGES, (4,), (4,), (4,), (4,)],
    ),
]


def graph_of(constant: str, row: str, shapes: list[tuple[int, ...]]) -> Graph:
    """One node ``n``, and what it reads."""
    names = "abcde"[: len(shapes)]
    rows = [f"{name} = _Arg() T=float32 index={i}" for i, name in enumerate(names)]
    return sketch("\n".join([*rows, constant, f"n = {row}"]))


def sizes_of(graph: Graph, shapes: list[tuple[int, ...]]) -> list[Any]:
    """Those of the inputs of ``n``."""
    sources = [graph.node("n").input(slot).src for slot in range(len(graph.node("n").inputs))]
    return [
        np.shape(src.attrs["value"].value)
        if src.role is Role.CONSTANT
        else shapes[src.attrs["index"]]
        for src in sources
    ]


def result_of(graph: Graph, values: list[Any]) -> Any:
    """What the kernel of ``n`` gives first."""
    node = graph.node("n")
    sources = [node.input(slot).src for slot in range(len(node.inputs))]
    inputs = [
        src.attrs["value"].value if src.role is Role.CONSTANT else values[src.attrs["index"]]
        for src in sources
    ]
    made = KernelBinder(CPU).bind(node).compute(*inputs)
    return made[0] if isinstance(made, tuple) else made


@pytest.mark.parametrize(
    ("constant", "case"), [*(("", case) for case in CASES), *WITH_CONSTANTS], ids=str
)
def test_entries_are_alone(constant: str, case: Case) -> None:
    """Given some entries at a time, a node's kernel gives theirs."""
    row, shapes, want = case
    graph = graph_of(constant, row, shapes)
    node = graph.node("n")
    assert read_by_entries(node, sizes_of(graph, shapes), BATCH) == want
    node_reads = [node.input(slot).src for slot in range(len(node.inputs))]
    values = [np.abs(RANDOM.standard_normal(shape, np.float32)) + 0.1 for shape in shapes]
    cut = [has for src, has in zip(node_reads, want, strict=True) if src.role is Role.ARG]
    whole = result_of(graph, values)
    for entries in (slice(0, 2), slice(2, 3), slice(3, BATCH)):
        some = [v[entries] if has else v for v, has in zip(values, cut, strict=True)]
        found = result_of(graph, some)
        if "MatMul" in row:  # whose sums BLAS adds up in another order for fewer rows
            np.testing.assert_allclose(found, whole[entries], 1e-6)
        else:
            np.testing.assert_array_equal(found, whole[entries])


@pytest.mark.parametrize(("constant", "row", "shapes"), REFUSED, ids=str)
def test_entries_that_are_not(constant: str, row: str, shapes: list[tuple[int, ...]]) -> None:
    """A node that mixes entries, or of which that is not known, is none of these."""
    graph = graph_of(constant, row, shapes)
    assert read_by_entries(graph.node("n"), sizes_of(graph, shapes), BATCH) is None


@pytest.mark.parametrize("known", [None, (None, 6, 6, 4)], ids=str)
@pytest.mark.parametrize("row", ["Mul(a, b)", f"_FusedConv2D(b, b, a) {CONV} {ONE}"])
def test_sizes_that_are_not_known(row: str, known: Any) -> None:
    """What is broadcast may have any rank, or one entry: nobody can tell what it is read by."""
    graph = graph_of("", row, [IMAGES, IMAGES])
    sources = [graph.node("n").input(slot).src for slot in range(len(graph.node("n").inputs))]
    sizes = [known if source.name == "a" else IMAGES for source in sources]
    assert read_by_entries(graph.node("n"), sizes, BATCH) is None


def test_all_rules_are_tested() -> None:
    """Each op of the table has a case, but for older versions of one."""
    rows = [row for row, *_ in (*CASES, *(case for _, case in WITH_CONSTANTS))]
    tested = {row.split("(")[0] for row in rows} | {"FusedBatchNorm", "FusedBatchNormV2"}
    assert set(_RULES) - tested == {"_FusedConv3D"}
