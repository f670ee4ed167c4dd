"""Regions are computed for some entries of a batch at a time: which, and that nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import penstock as ps
from penstock.kernels.onnx import library

pytest.importorskip("onnxruntime")

ops = ps.ops
RANDOM = np.random.default_rng(3)
#: The largest array of an image has 8 x 8 x 4 numbers: two images at a time.
LIMITS: Final = ps.Limits(region_products=0, entries_at_once=512)


def numbers(*shape: int) -> Any:
    """Random numbers of float32."""
    return RANDOM.standard_normal(shape, np.float32)


def images(batch: int | None = None, name: str = "x") -> ps.Tensor:
    """Fed images of 8 x 8, with three channels."""
    return ps.placeholder("float32", [batch, 8, 8, 3], name=name)


def conv(x: Any, count: int = 4) -> ps.Tensor:
    """A convolution by random numbers."""
    filters = numbers(3, 3, x.shape.dims[-1], count)
    return ops.conv2_d(x, filters, strides=[1] * 4, padding="SAME")


def network(x: Any) -> ps.Tensor:
    """To the scores of classes."""
    hidden = ops.relu(ops.bias_add(conv(x), numbers(4)))
    hidden = hidden + ops.sigmoid(ops.mean(hidden, [1, 2], keep_dims=True)) * conv(hidden)
    both = ops.concat_v2([hidden, ops.max_pool(hidden, ksize=[1, 3, 3, 1], strides=[1] * 4,
                                               padding="SAME")], np.int32(3))  # fmt: skip
    return ops.softmax(ops.mat_mul(ops.mean(both, [1, 2]), numbers(8, 5)))


def alike(x: Any) -> ps.Tensor:
    """How similar rows are to each other."""
    return ops.mat_mul(x, x, transpose_b=True)


def also(x: Any) -> ps.Tensor:
    """Something that is fetched, too."""
    return ps.identity(x, name="also")


#: What becomes of images of which each is alone.
CUT: Final[dict[str, Callable[[], Any]]] = {
    "network": lambda: network(images()),
    "padding": lambda: ops.pad(conv(images()), np.int32([[0, 0], [1, 1], [0, 2], [0, 0]])),
    "rows": lambda: ops.reshape(conv(images()), np.int32([-1, 256])),
    "a scale for all": lambda: conv(images()) * numbers(1, 1, 1, 4),
    "what is computed of constants": lambda: conv(images()) * ops.exp(numbers(4)),
    "two inputs": lambda: conv(images()) + conv(images(name="y")),
}
#: Those with larger arrays than one convolution has.
LARGE: Final = {"network", "padding"}
#: What needs all of them, or may.
WHOLE: Final[dict[str, Callable[[], Any]]] = {
    "a mean of the batch": lambda: conv(images()) - ops.mean(conv(images(name="y")), [0]),
    "rows of all": lambda: ops.reshape(conv(images()), np.int32([-1, 4])),
    "a known batch": lambda: conv(images(9)),
    "similarities": lambda: alike(ops.reshape(conv(images()), np.int32([-1, 256]))),
    "similarities of what is fed": lambda: ops.concat_v2(
        [
            ops.mean(conv(images()), [1, 2]),
            alike(ps.placeholder("float32", [None, 4], name="y")),
        ],
        np.int32(1),
    ),
    "a result for all": lambda: (
        conv(images()) * also(ops.exp(ps.placeholder("float32", [4], name="y")))
    ),
    "an order": lambda: ops.transpose(conv(images()), np.int32([1, 0, 2, 3])),
    "two that may be broadcast": lambda: (
        conv(images()) + ps.placeholder("float32", [None, None, None, None], name="y")
    ),
}


class Seen:
    """How many images ONNX Runtime has got each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: list[int] = []
        ready = library.ready

        def noting(*args: Any) -> Any:
            compute = ready(*args)

            def noted(feeds: Any) -> Any:
                self.counts.append(len(feeds["input0"]))
                return compute(feeds)

            return noted

        monkeypatch.setattr(library, "ready", noting)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What happens from now on."""
    return Seen(monkeypatch)


def fed(graph: ps.Graph, batch: int) -> dict[str, Any]:
    """Random numbers for all that is fed, in batches of so many."""
    tensors = [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
    shapes = [tensor.shape.dims or () for tensor in tensors]
    return {
        tensor.name: numbers(*[batch if size is None else size for size in shape])
        for tensor, shape in zip(tensors, shapes, strict=True)
    }


def check(graph: ps.Graph, feeds: Any) -> None:
    """A session gives the same with regions and without."""
    names = {op.name for op in graph.get_operations()}
    fetches, given = [f"{name}:0" for name in ("out", "also") if name in names], []
    for accelerate in (True, False):
        config = ps.Config(limits=LIMITS, accelerate=accelerate)
        with ps.Session(graph, config=config) as session:
            given.append(session.run(fetches, feeds))
    for found, wanted in zip(*given, strict=True):
        # Sums of up to 256 products, which ONNX Runtime adds up in another order.
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, strict=True)


@pytest.mark.parametrize("name", CUT)
def test_a_region_in_parts(name: str, seen: Seen) -> None:
    """Nine images are done two or one at a time, a few at once, and none as well."""
    with ps.Graph().as_default() as graph:
        ps.identity(CUT[name](), name="out")
    for batch in (9, 7, 1, 0):
        seen.counts.clear()
        check(graph, fed(graph, batch))
        at_once = 1 if name in LARGE else 2
        parts = -(-batch // at_once) if batch >= 4 * at_once else 1
        assert sum(seen.counts) == batch
        assert len(seen.counts) == parts


@pytest.mark.parametrize("name", WHOLE)
def test_a_region_that_stays_whole(name: str, seen: Seen) -> None:
    """All images at once, where entries are not alone or nobody knows."""
    with ps.Graph().as_default() as graph:
        ps.identity(WHOLE[name](), name="out")
    feeds = fed(graph, 9)
    if name == "two that may be broadcast":
        feeds["y:0"] = numbers(1, 8, 8, 4)
    check(graph, feeds)
    assert set(seen.counts) == {9}


def test_batches_that_differ(seen: Seen) -> None:
    """Inputs of which one has a single image for all of the other's are taken as they are."""
    with ps.Graph().as_default() as graph:
        ps.identity(CUT["two inputs"](), name="out")
    feeds = {"x:0": numbers(9, 8, 8, 3), "y:0": numbers(1, 8, 8, 3)}
    check(graph, feeds)
    assert set(seen.counts) == {9}
