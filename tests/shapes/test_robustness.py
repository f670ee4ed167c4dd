"""Damaged and rewired graphs: inference ends, soon, and raises nothing."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest

from penstock.defs.codec import load_graph_def
from penstock.defs.schema import Message
from penstock.errors import OpError
from penstock.graph.import_graph_def import graph_from_def
from penstock.shapes.infer import infer_shapes
from support import corpus, op_cases
from support.sampling import sampled
from support.sketch import sketch

_CASES = [*corpus.all_cases(), *op_cases.all_op_cases()]


def graph_def_of(case: Any) -> Message | None:
    """A case's definition, unless its bytes are no definition."""
    try:
        return load_graph_def(case.graph_bytes)
    except OpError:
        return None


def damage(definition: Message, draw: random.Random) -> None:
    """Change some numbers of attributes, some shapes, and where some inputs come from."""
    nodes = definition.node
    for node in draw.sample(list(nodes), min(len(nodes), 3)):
        for value in node.attr.values():
            field = value.WhichOneof("value")
            if field == "i" and draw.random() < 0.5:
                value.i = draw.choice((-(2**63), -1, 0, 1, 7, 2**31, 2**63 - 1))
            if field == "list" and value.list.i:
                value.list.i[draw.randrange(len(value.list.i))] = draw.choice((-1, 0, 3, 2**40))
            if field == "shape" and draw.random() < 0.5:
                value.shape.dim.add().size = draw.choice((-1, 0, 2, 2**62))
        if node.input and draw.random() < 0.5:
            node.input[draw.randrange(len(node.input))] = draw.choice(nodes).name


@pytest.mark.parametrize(
    "row",
    [
        "y = Pad(x, p)",
        "y = Tile(x, v)",
        "y = Slice(x, v, v)",
        "y = StridedSlice(x, v, v, v)",
        "y = Transpose(x, v)",
        "y = Reshape(x, v)",
        "y = SpaceToBatchND(x, v, p)",
        "y = ReverseV2(x, v)",
        "y = Fill(v, one)",
        "y = SparseReduceSum(m, f, w, v)",
    ],
)
def test_nobody_has_so_many_axes(row: str) -> None:
    """A list of sizes that promises to be as long as memory is not made, but refused."""
    graph = sketch(f"""
        x = Placeholder() dtype=float32
        v = Placeholder() dtype=int32 shape=(4611686018427387904,)
        w = Placeholder() dtype=int64 shape=(4611686018427387904,)
        p = Placeholder() dtype=int32 shape=(1000000000000,2)
        m = Placeholder() dtype=int64
        f = Placeholder() dtype=float32
        one = Const() value=1.0
        {row}
    """)
    tracemalloc.start()
    shapes = infer_shapes(graph)
    shape = shapes.shape(graph.node("y"), 0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert shape.dims is None
    assert most < 10_000_000
    assert not any("MemoryError" in error.reason for error in shapes.errors.values())


@pytest.mark.parametrize("seed", sampled(range(8)))
def test_whatever_a_graph_says_inference_ends(seed: int) -> None:
    """Every output gets a shape whose sizes are possible, or none; nothing else is raised."""
    looked_at = 0
    for case in _CASES[seed::8]:
        draw = random.Random(f"{case} {seed}")
        definition = graph_def_of(case)
        if definition is None or not definition.node:
            continue
        damage(definition, draw)
        try:
            graph = graph_from_def(definition)
        except OpError:
            continue
        looked_at += 1
        shapes = infer_shapes(graph)
        for node in graph:
            for shape in shapes.facts(node).shapes:
                assert all(size is None or 0 <= size < 2**63 for size in shape.dims or ())
    assert looked_at > 100
