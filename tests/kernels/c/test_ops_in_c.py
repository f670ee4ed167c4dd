"""Ops whose kernels ask the library in C first give what numpy's kernels give."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.api.registry import get_kernel
from penstock.kernels.c.library import Library, library
from penstock.kernels.nn.conv_ops import convolve_volumes, windowed
from penstock.kernels.values.windows import Window
from support.ops import both, node_of

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(8)
SETTINGS: list[dict[str, Any]] = [
    {"strides": [1, 1, 1, 1], "padding": "SAME"},
    {"strides": [1, 2, 2, 1], "padding": "SAME"},
    {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 2, 1]},
]
EXPLICIT = {
    "strides": [1, 2, 1, 1], "padding": "EXPLICIT",
    "explicit_paddings": [0, 0, 1, 0, 0, 2, 0, 0],
}  # fmt: skip
WIDE = {"strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 2, 2, 1]}
SIZES = np.int32([2, 11, 9, 6])


def floats(*shape: int) -> Array:
    """Numbers of either sign."""
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def constant(array: Array) -> Array:
    """The same, read-only."""
    array.flags.writeable = False
    return array


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the library is asked to do."""
    calls: list[str] = []
    for name in ("convolve", "winograd", "correlate", "slide", "pool", "softmax", "sums"):
        original = getattr(Library, name)

        def noted(self: Library, *given: Any, name: str = name, do: Any = original) -> Any:
            calls.append(name)
            return do(self, *given)

        monkeypatch.setattr(Library, name, noted)
    return calls


def check(pair: tuple[Array, Array]) -> None:
    """Equal but for rounding."""
    np.testing.assert_allclose(*pair, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attrs", [*SETTINGS, EXPLICIT])
def test_convolutions(attrs: dict[str, Any], asked: list[str]) -> None:
    """Of images with the depth last, and of half precision in float32."""
    images, filters = floats(2, 11, 9, 6), floats(3, 2, 6, 40)
    check(both("Conv2D", images, filters, **attrs))
    half = both("Conv2D", images.astype(np.float16), filters.astype(np.float16), **attrs)
    np.testing.assert_allclose(*half, rtol=1e-2, atol=1e-2)
    assert asked == ["convolve"] * 2


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [[1, 1, 1, 1, 1], [1, 2, 1, 2, 1], [1, 3, 3, 1, 1]])
def test_three_dimensions(padding: str, strides: list[int], asked: list[str]) -> None:
    """One image after the other."""
    images, filters = floats(2, 7, 8, 9, 5), floats(3, 2, 3, 5, 20)
    check(both("Conv3D", images, filters, strides=strides, padding=padding))
    assert asked == ["convolve", "convolve"]


def test_three_dimensions_with_fewer_products(asked: list[str]) -> None:
    """All planes at once, with a bias and limits."""
    images, filters = floats(1, 5, 13, 14, 16), constant(floats(3, 3, 3, 16, 32))
    by_numpy, in_c = both("Conv3D", images, filters, strides=[1] * 5, padding="SAME")
    np.testing.assert_allclose(in_c, by_numpy, rtol=0, atol=5e-5)  # of sums of 432
    assert asked == ["winograd"]

    bias, windows = floats(32), [Window(3, margins=None)] * 3
    finished = convolve_volumes(images, filters, windows, bias, (0.0, 6.0))
    np.testing.assert_allclose(finished, np.clip(by_numpy + bias, 0, 6), rtol=0, atol=5e-5)


@pytest.mark.parametrize("margins", [None, (0, 0)])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("slices", [1, 2, 4])
def test_large_images_in_parts(
    margins: tuple[int, int] | None, stride: int, slices: int, asked: list[str]
) -> None:
    """However many places are computed at once, each has the same bits."""
    images, filters = floats(2, 11, 4, 3, 5), floats(3, 2, 3, 5, 20)
    windows = [Window(size, step, margins=margins) for size, step in ((3, stride), (2, 1), (3, 1))]

    at_once = convolve_volumes(images, filters, windows)
    calls = len(asked)
    in_parts = convolve_volumes(images, filters, windows, numbers_at_once=slices * 4 * 3 * 5)

    assert at_once is not None
    np.testing.assert_array_equal(in_parts, at_once)
    check((windowed(images, filters, windows), at_once))
    assert len(asked) - calls == calls * -(-at_once.shape[1] // slices)


def test_images_with_the_depth_second(asked: list[str]) -> None:
    """They are turned."""
    attrs = {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW"}
    check(both("Conv2D", floats(2, 6, 11, 9), floats(3, 2, 6, 40), **attrs))
    check(both("DepthwiseConv2dNative", floats(2, 6, 11, 9), floats(3, 2, 6, 1), **attrs))
    assert asked == ["convolve", "slide"]


@pytest.mark.parametrize("attrs", SETTINGS[:2])
def test_convolutions_by_channel(attrs: dict[str, Any], asked: list[str]) -> None:
    """With one filter for each channel; several are for numpy."""
    check(both("DepthwiseConv2dNative", floats(2, 11, 9, 20), floats(3, 2, 20, 1), **attrs))
    assert asked == ["slide"]
    check(both("DepthwiseConv2dNative", floats(2, 11, 9, 20), floats(3, 2, 20, 2), **attrs))
    assert asked == ["slide"]


@pytest.mark.parametrize("attrs", [*SETTINGS, EXPLICIT])
def test_gradients_of_images(attrs: dict[str, Any], asked: list[str]) -> None:
    """A convolution for each way in which an element may be under windows."""
    filters = floats(3, 2, 6, 40)
    places = both("Conv2D", floats(*SIZES), filters, **attrs)[0].shape
    asked.clear()
    check(both("Conv2DBackpropInput", SIZES, filters, floats(*places), **attrs))
    assert set(asked) == {"convolve"}


@pytest.mark.parametrize("strides", [[1, 1, 1, 1, 1], [1, 2, 2, 2, 1], [1, 1, 2, 3, 1]])
@pytest.mark.parametrize("depth", [2, 70])
def test_gradients_of_volumes(depth: int, strides: list[int], asked: list[str]) -> None:
    """The same with one dimension more, as sums of convolutions of images."""
    attrs: dict[str, Any] = {"strides": strides, "padding": "SAME"}
    sizes, filters = np.int32([2, 6, 7, 9, depth]), floats(3, 2, 3, depth, 20)
    places = both("Conv3D", floats(*sizes), filters, **attrs)[0].shape
    asked.clear()
    check(both("Conv3DBackpropInputV2", sizes, filters, floats(*places), **attrs))
    assert set(asked) == {"convolve"}


def test_products_with_constants(asked: list[str]) -> None:
    """Of matrices, and of batches of them with one matrix; turned or not."""
    x, y = floats(4, 64, 96), constant(floats(96, 100))
    turned = constant(np.ascontiguousarray(y.T))
    check(both("MatMul", x[0].repeat(4, 0), y))
    check(both("MatMul", x[0].repeat(4, 0), turned, transpose_b=True))
    check(both("BatchMatMulV2", x, y))
    check(both("BatchMatMulV2", x, turned, adj_y=True))
    assert asked == ["convolve"] * 4
    check(both("BatchMatMulV2", x.swapaxes(1, 2).copy(), y, adj_x=True))
    assert asked == ["convolve"] * 5


def test_products_of_what_is_computed(asked: list[str]) -> None:
    """Of matrices and of batches of them, turned or not, and as an equation."""
    x, y = floats(128, 96), floats(96, 100)
    check(both("MatMul", x, y))
    check(both("MatMul", x.T.copy(), y.T.copy(), transpose_a=True, transpose_b=True))
    batch, other = floats(3, 128, 64), floats(3, 64, 70)
    check(both("BatchMatMul", batch, other))
    check(both("BatchMatMulV2", batch, other.swapaxes(1, 2).copy(), adj_y=True))
    heads = floats(1, 64, 4, 80), floats(1, 70, 4, 80)
    check(both("Einsum", heads, equation="BTNH,BSNH->BNTS"))
    assert asked == ["convolve", "correlate", *["convolve"] * 3]


@pytest.mark.parametrize("attrs", [*SETTINGS, EXPLICIT])
def test_gradients_of_filters(attrs: dict[str, Any], asked: list[str]) -> None:
    """What each element saw; of images with the depth second, too."""
    images, sizes = floats(2, 11, 9, 6), np.int32([3, 2, 6, 40])
    places = both("Conv2D", images, floats(*sizes), **attrs)[0].shape
    asked.clear()
    check(both("Conv2DBackpropFilter", images, sizes, floats(*places), **attrs))
    assert asked == ["correlate"]


@pytest.mark.parametrize(
    ("attrs", "ways"),
    [(SETTINGS[0], ["slide", "pool"]), (SETTINGS[1], ["pool"] * 2), (WIDE, ["slide"])],
)
def test_gradients_by_channel(attrs: dict[str, Any], ways: list[str], asked: list[str]) -> None:
    """Of images and of filters, one for each channel; several are for numpy.

    Elements of images look for the places that see them, unless these are strides apart.
    """
    for times, calls in ((1, ways), (2, [])):
        images, filters = floats(2, 11, 9, 20), floats(3, 2, 20, times)
        sizes = [np.int32(array.shape) for array in (images, filters)]
        places = both("DepthwiseConv2dNative", images, filters, **attrs)[0].shape
        grads = floats(*places)
        asked.clear()
        op = "DepthwiseConv2dNativeBackpropInput"
        check(both(op, sizes[0], filters, grads, **attrs))
        op = "DepthwiseConv2dNativeBackpropFilter"
        check(both(op, images, sizes[1], grads, **attrs))
        assert asked == calls


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pooling(padding: str, asked: list[str]) -> None:
    """And its gradients."""
    images = floats(2, 11, 9, 20)
    attrs = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": padding}
    pooled = both("MaxPool", images, **attrs)
    check(pooled)
    check(both("AvgPool", images, **attrs))
    grads = floats(*pooled[0].shape)
    check(both("MaxPoolGrad", images, pooled[0], grads, **attrs))
    check(both("AvgPoolGrad", np.int32(images.shape), grads, **attrs))
    assert asked == ["pool"] * 4


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (2, 3), (4, 1)])
def test_gradients_of_means_whose_windows_overlap(
    padding: str, sizes: tuple[int, int], asked: list[str]
) -> None:
    """Elements look for the places that see them."""
    attrs = {"ksize": [1, *sizes, 1], "strides": [1, 1, 1, 1], "padding": padding}
    for images in (floats(2, 11, 9, 20), floats(1, 5, 5, 3)):
        places = both("AvgPool", images, **attrs)[0].shape
        asked.clear()
        check(both("AvgPoolGrad", np.int32(images.shape), floats(*places), **attrs))
        assert asked == ["pool"]


def test_large_windows_are_not_gone_through(asked: list[str]) -> None:
    """However large they are: neither for means, nor for convolutions by channel."""
    images = floats(1, 11, 9, 3)
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    wide = {"ksize": [1, 1 << 20, 1 << 20, 1], **attrs}
    check(both("AvgPoolGrad", np.int32(images.shape), images, **wide))
    op, filters = "DepthwiseConv2dNativeBackpropInput", floats(9, 8, 3, 1)
    check(both(op, np.int32(images.shape), filters, images, **attrs))
    assert asked == []


@pytest.mark.parametrize("keep_dims", [False, True])
def test_means_of_rows_and_columns(asked: list[str], keep_dims: bool) -> None:
    """Of images with some channels; others are sums, or numpy's."""
    images = floats(3, 20, 17, 40)
    check(both("Mean", images, np.int32([1, 2]), keep_dims=keep_dims))
    check(both("Mean", images, np.int32([2, 1]), keep_dims=keep_dims))
    assert asked == ["pool"] * 2
    check(both("Mean", images, np.int32([1]), keep_dims=keep_dims))
    check(both("Mean", images, np.int32([2, 3]), keep_dims=keep_dims))
    check(both("Mean", floats(3, 60, 60, 3), np.int32([1, 2]), keep_dims=keep_dims))
    assert asked == [*["pool"] * 2, "sums"]


@pytest.mark.parametrize("op", ["Sum", "Mean"])
@pytest.mark.parametrize("axes", [[0, 1, 2], [2], [-1, 1]])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_sums_of_many(op: str, axes: list[int], *, keep_dims: bool, asked: list[str]) -> None:
    """Along the last axes; the first ones, and what lies otherwise, are summed up as ever."""
    x = floats(20, 30, 40)
    check(both(op, x, np.int32(axes), keep_dims=keep_dims))
    assert asked == ["sums"]
    check(both(op, x, np.int32([0]), keep_dims=keep_dims))
    check(both(op, x[:9], np.int32(axes), keep_dims=keep_dims))
    check(both(op, x.astype(np.float64), np.int32(axes), keep_dims=keep_dims))
    assert asked == ["sums"]
    check(both(op, x.transpose(1, 0, 2), np.int32(axes), keep_dims=keep_dims))
    assert asked == ["sums"]


def test_softmax(asked: list[str]) -> None:
    """Along the last axis."""
    check(both("Softmax", floats(3, 5, 70)))
    assert asked == ["softmax"]


@pytest.mark.parametrize("op", ["MatMul", "BatchMatMulV2"])
def test_sizes_that_do_not_fit_are_told_as_before(op: str) -> None:
    """The library leaves them to numpy's kernels, which complain."""
    facts, flat = node_of(op, (floats(256, 96), constant(floats(95, 100))), {})
    compute = get_kernel(op, "CPU", facts.values).made(dataclasses.replace(facts, accelerate=True))
    with pytest.raises(Exception, match=r"(?i)mismatch|incompatible"):
        compute(*flat)


@pytest.mark.parametrize(
    ("op", "filters", "fused"),
    [
        ("_FusedConv2D", (3, 2, 6, 40), ("BiasAdd",)),
        ("_FusedConv2D", (3, 2, 6, 40), ("BiasAdd", "Relu")),
        ("_FusedConv2D", (3, 2, 6, 40), ("BiasAdd", "Add", "Relu6")),
        ("_FusedConv2D", (3, 2, 6, 40), ("BiasAdd", "Elu")),
        ("_FusedDepthwiseConv2dNative", (3, 2, 6, 1), ("BiasAdd", "Relu6")),
    ],
)
def test_fused_convolutions(
    op: str, filters: tuple[int, ...], fused: tuple[str, ...], asked: list[str]
) -> None:
    """A bias, a sum and an activation go along; what it has no function for comes after it."""
    count = filters[2] if filters[3] == 1 else filters[3]
    args = [floats(count)] + [floats(2, 11, 9, count)] * ("Add" in fused)
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "num_args": len(args)}
    attrs["fused_ops"] = tuple(name.encode() for name in fused)
    lists = [args, []] if op == "_FusedConv2D" else [args]  # the latter of arguments elsewhere
    check(both(op, floats(2, 11, 9, 6), floats(*filters), *lists, **attrs))
    assert len(asked) == 1


def test_filters_of_volumes_without_planes() -> None:
    """There is nothing to add up, and so no way for it in C."""
    images, filters = floats(1, 5, 13, 14, 16), constant(floats(0, 3, 3, 16, 32))
    assert convolve_volumes(images, filters, [Window(0), Window(3), Window(3)]) is None
