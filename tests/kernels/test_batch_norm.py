"""Batch normalisation, cross entropy and response normalisation, against definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core.values import freeze
from penstock.errors import InvalidArgumentError
from support.ops import both, make_op, run_op

RNG = np.random.default_rng(8)
NOTHING = np.zeros(0, np.float32)


def random(*shape: int) -> Any:
    """Normal numbers."""
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 8, 8, 70), (1, 1, 1, 2)])
def test_training_normalises_by_the_batch(shape: tuple[int, ...]) -> None:
    """Channels get mean 0 and variance 1; the variance that is given out is unbiased."""
    x, scale, offset = random(*shape) + 3, random(shape[-1]), random(shape[-1])
    y, mean, var, *reserve = run_op(
        "FusedBatchNormV3", x, scale, offset, NOTHING, NOTHING, epsilon=0.01
    )
    wide = x.astype(np.float64)
    own_mean, own_var = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
    expected = (wide - own_mean) / np.sqrt(own_var + 0.01) * scale + offset
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4)
    size = x.size // shape[-1]
    np.testing.assert_allclose(mean, own_mean, rtol=1e-5)
    np.testing.assert_allclose(var, own_var * size / max(size - 1, 1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(reserve[1], own_var, rtol=1e-4, atol=1e-6)


def test_averages_move_by_the_factor() -> None:
    """New averages are a part old and a part of this batch."""
    x, old = random(2, 2, 2, 1), np.float32([10])
    _, mean, *_ = run_op("FusedBatchNorm", x, *random(2, 1), old, old, exponential_avg_factor=0.25)
    np.testing.assert_allclose(mean, 7.5 + 0.25 * x.mean(), rtol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_inference_uses_what_is_given(layout: str) -> None:
    """Mean and variance are inputs, and come out again."""
    x, (scale, offset, mean) = random(2, 4, 4, 4), random(3, 4)
    var = np.abs(random(4)) + 1
    y, out_mean, out_var, *_ = run_op(
        "FusedBatchNormV2", x, scale, offset, mean, var, is_training=False, data_format=layout
    )
    along = (-1, 1, 1) if layout == "NCHW" else (-1,)
    s, o, m, v = (p.reshape(along) for p in (scale, offset, mean, var))
    np.testing.assert_allclose(y, (x - m) / np.sqrt(v + 1e-4) * s + o, rtol=1e-4, atol=1e-5)
    assert out_mean.tolist() == mean.tolist()
    assert out_var.tolist() == var.tolist()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("is_training", [True, False])
def test_gradients_are_differences(layout: str, is_training: bool) -> None:
    """The gradient along a direction is how the loss changes in it."""
    x, (scale, offset, given) = random(2, 3, 3, 3), random(3, 3)
    var, sent_back = np.abs(random(3)) + 1, random(2, 3, 3, 3)
    attrs: dict[str, Any] = {"is_training": is_training, "data_format": layout, "epsilon": 0.1}
    statistics = (NOTHING, NOTHING) if is_training else (given, var)

    def outputs(x: Any, scale: Any) -> Any:
        return run_op("FusedBatchNorm", x, scale, offset, *statistics, **attrs)

    _, mean, _, *reserve = outputs(x, scale)
    reserve = reserve if is_training else [given, var]
    of_x, of_scale, of_offset, *_ = run_op(
        "FusedBatchNormGrad", sent_back, x, scale, *reserve, **attrs
    )
    step, way = 1e-2, random(*x.shape)
    change = (outputs(x + step * way, scale)[0] - outputs(x - step * way, scale)[0]) / (2 * step)
    np.testing.assert_allclose(
        (of_x * way).sum(), (change.astype(np.float64) * sent_back).sum(), rtol=0.02, atol=0.02
    )
    way = random(3)
    change = outputs(x, scale + way)[0] - outputs(x, scale)[0]
    np.testing.assert_allclose((of_scale * way).sum(), (change * sent_back).sum(), rtol=1e-3)
    axes = (0, 2, 3) if layout == "NCHW" else (0, 1, 2)
    np.testing.assert_allclose(of_offset, sent_back.sum(axes), rtol=1e-4, atol=1e-5)
    assert mean.shape == (3,)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("shape", [(2, 9, 12, 12), (1, 12, 12, 12)])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_session_computes_what_numpy_does(
    shape: tuple[int, ...], layout: str, *, is_training: bool, is_whole: bool
) -> None:
    """In C or not, for images and gradients, with gaps in memory or none."""
    x, sent = random(2, *shape[:-1], 24)[..., : 24 if is_whole else 12] + np.float32(4)
    x, sent = (np.moveaxis(each, -1, 1) if layout == "NCHW" else each for each in (x, sent))
    scale, offset, mean = random(3, 24 if is_whole else 12)
    attrs: dict[str, Any] = {"is_training": is_training, "data_format": layout}
    given = () if is_training else (mean, np.abs(offset) + 1)
    plain, fast = both(
        "FusedBatchNormV3", x, scale, offset, *(given or (NOTHING, NOTHING)), **attrs
    )
    for one, other in zip(plain, fast, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    reserve = given or plain[3:5]
    found = both("FusedBatchNormGradV3", sent, x, scale, *reserve, np.float32(0), **attrs)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-3)


def test_no_images_have_no_statistics() -> None:
    """Of an empty batch mean and variance are NaN, and gradients zero."""
    none = np.zeros((0, 2, 2, 3), np.float32)
    y, mean, var, *_ = run_op("FusedBatchNorm", none, *random(2, 3), NOTHING, NOTHING)
    assert y.shape == none.shape
    assert np.isnan(mean).all()
    assert np.isnan(var).all()
    of_x, of_scale, *_ = run_op("FusedBatchNormGrad", none, none, *random(3, 3))
    assert of_x.shape == none.shape
    assert of_scale.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("shape", "count", "message"),
    [((2, 2, 3), 3, "input must be 4"), ((1, 2, 2, 3), 2, "same number of elements")],
)
def test_channels_must_fit(shape: tuple[int, ...], count: int, message: str) -> None:
    """There is one scale for each channel."""
    with pytest.raises(ValueError, match=message):
        run_op("FusedBatchNorm", random(*shape), random(count), random(3), NOTHING, NOTHING)


def test_cross_entropy_is_its_definition() -> None:
    """Loss and gradient, also where exponentials of logits overflow."""
    logits = np.float32([[1000, -1000, 0], [1, 2, 3]])
    labels = np.float32([[0, 1, 0], [0.5, 0.5, 0]])
    loss, grads = run_op("SoftmaxCrossEntropyWithLogits", logits, labels)
    shares = np.exp([-2.0, -1, 0]) / np.exp([-2.0, -1, 0]).sum()
    np.testing.assert_allclose(loss, [2000, -0.5 * np.log(shares[:2]).sum()], rtol=1e-6)
    np.testing.assert_allclose(grads, [[1, -1, 0], shares - [0.5, 0.5, 0]], atol=1e-6)


@pytest.mark.parametrize(
    ("logits", "labels", "shape"),
    [((2, 3), (1, 3), (2, 3)), ((2, 1), (1, 3), (2, 3)), ((0, 3), (0, 3), (0, 3)),
     ((2, 0), (2, 0), (2, 0))],
)  # fmt: skip
def test_logits_and_labels_are_broadcast(
    logits: tuple[int, ...], labels: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    """One row or column may stand for all; empty ones lose nothing."""
    loss, grads = run_op("SoftmaxCrossEntropyWithLogits", random(*logits), random(*labels))
    assert loss.shape == shape[:1]
    assert grads.shape == shape


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_sparse_labels_are_dense_ones_with_a_single_one(dtype: Any) -> None:
    """Class numbers mean probability one."""
    logits, labels = random(4, 3).astype(dtype), np.int64([2, 0, 1, 1])
    loss, grads = run_op("SparseSoftmaxCrossEntropyWithLogits", logits, labels)
    dense = run_op("SoftmaxCrossEntropyWithLogits", logits, np.eye(3, dtype=dtype)[labels])
    assert loss.dtype == dtype
    tolerance = 2e-3 if dtype == np.float16 else 1e-5
    np.testing.assert_allclose(loss, dense[0], rtol=tolerance)
    np.testing.assert_allclose(grads, dense[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ((2, 3), [0, 3], r"label value of 3 which is outside the valid range of \[0, 3\)"),
        ((2, 3), [0, -1], "label value of -1"),
        ((2, 3), [0], "must have the same first dimension"),
        ((2, 3), [[0, 1]], "labels must be 1-D"),
        ((3,), [0], "logits must be 2-D"),
        ((2, 0), [0, 0], "Must have at least one class"),
    ],
)
def test_labels_must_be_classes(logits: tuple[int, ...], labels: Any, message: str) -> None:
    """Labels that name no class are refused."""
    with pytest.raises(ValueError, match=message):
        run_op("SparseSoftmaxCrossEntropyWithLogits", random(*logits), np.int32(labels))


@pytest.mark.parametrize("radius", [0, 1, 9])
def test_response_normalisation_is_its_definition(radius: int) -> None:
    """Each element over a power of the squares around it; the gradient is a difference."""
    x, sent_back, way = random(1, 2, 2, 5), random(1, 2, 2, 5), random(1, 2, 2, 5)
    attrs = {"depth_radius": radius, "bias": 2.0, "alpha": 0.5, "beta": 0.7}
    y = run_op("LRN", x, **attrs)
    near = [(x[..., max(c - radius, 0) : c + radius + 1] ** 2).sum(-1) for c in range(5)]
    np.testing.assert_allclose(y, x / (2 + 0.5 * np.stack(near, -1)) ** 0.7, rtol=1e-5)
    ends = [run_op("LRN", x + np.float32(step) * way, **attrs) for step in (0.01, -0.01)]
    change = ((ends[0] - ends[1]) * sent_back).sum() / 0.02
    of_x = run_op("LRNGrad", sent_back, x, y, **attrs)
    np.testing.assert_allclose((of_x * way).sum(), change, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("beta", [0.5, 0.75, 1.0])
@pytest.mark.parametrize(("depth", "radius"), [(3, 5), (130, 5), (200, 70), (70, 0)])
def test_local_response_of_many_channels(depth: int, radius: int, beta: float) -> None:
    """Sums go over all channels nearby and no others, also where some are not finite."""
    x = random(2, 40, 13, depth)
    x[0, 0, 0, 1], x[1, 3, 4, 2] = np.inf, np.nan
    y = run_op("LRN", x, depth_radius=radius, bias=2.0, alpha=0.5, beta=beta)
    wide = x.astype(np.float64)
    near = [
        (wide[..., max(c - radius, 0) : c + radius + 1] ** 2).sum(-1, keepdims=True)
        for c in range(depth)
    ]
    with np.errstate(invalid="ignore"):
        expected = wide / (2 + 0.5 * np.concatenate(near, -1)) ** beta
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    finite = x[:, 5:]
    plain = run_op("LRN", finite, depth_radius=radius, bias=2.0, alpha=0.5, beta=beta)
    np.testing.assert_allclose(plain, expected[:, 5:], rtol=1e-5)


def test_inference_notices_other_statistics_and_other_shapes() -> None:
    """What is remembered of constants is not used for others, nor for what may change."""
    x = np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3)
    ones, twos = freeze(np.ones(3, np.float32)), freeze(np.full(3, 2, np.float32))
    zeros = np.zeros(3, np.float32)
    compute, _ = make_op(
        "FusedBatchNormV3", x, ones, ones, ones, ones, is_training=False, epsilon=0.0
    )
    for scale, offset, images in ((ones, ones, x), (twos, ones, x), (twos, ones, x[:, :1])):
        for _ in range(2):
            found = compute(images, scale, offset, ones, ones)[0]
            np.testing.assert_allclose(found, (images - 1) * scale + offset, rtol=1e-6)
    for offset in (1, 5):
        zeros[:] = offset
        np.testing.assert_allclose(compute(x, ones, zeros, ones, ones)[0], x - 1 + offset)
    with pytest.raises(ValueError, match="same number of elements"):
        compute(x[..., :2], ones, ones, ones, ones)


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("activation", ["Identity", "Relu"])
def test_others_are_added_before_negative_numbers_are_cut(
    is_training: bool, activation: str
) -> None:
    """The joined op is what its three parts are, one after the other."""
    x, side, (scale, offset, mean) = random(2, 3, 3, 4), random(2, 3, 3, 4), random(3, 4)
    given = (NOTHING, NOTHING) if is_training else (mean, np.abs(random(4)) + 1)
    y, *rest = run_op("FusedBatchNormV3", x, scale, offset, *given, is_training=is_training)
    joined, *other_rest = run_op(
        "_FusedBatchNormEx", x, scale, offset, *given, [side],
        is_training=is_training, activation_mode=activation,
    )  # fmt: skip
    expected = y + side if activation == "Identity" else np.maximum(y + side, 0)
    np.testing.assert_array_equal(joined, expected)
    for ours, theirs in zip(other_rest, rest, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_wrong_side_inputs() -> None:
    """What is added has the images' shape, and there is one at most."""
    x, numbers = random(1, 2, 2, 4), random(4)
    for sides, complaint in [([x[:, :1]], "side_input shape"), ([x, x], "at most one side input")]:
        with pytest.raises(InvalidArgumentError, match=complaint):
            run_op(
                "_FusedBatchNormEx", x, *[numbers] * 4, sides, is_training=False,
                activation_mode="Relu",
            )  # fmt: skip
