"""Convolutions with what comes before them in one op."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.ops import run_op

RNG = np.random.default_rng(9)


def test_fused_convolutions_are_their_parts() -> None:
    """Resized, mirrored and convolved, as three ops would do it."""
    images = RNG.uniform(-1, 1, (2, 5, 6, 2)).astype(np.float32)
    filters = RNG.uniform(-1, 1, (3, 2, 2, 4)).astype(np.float32)
    size, paddings = np.int32([7, 9]), np.int32([[0, 0], [1, 2], [2, 0], [0, 0]])
    attrs: dict[str, Any] = {"strides": [1, 2, 2, 1], "padding": "VALID"}
    got = run_op("FusedResizeAndPadConv2D", images, size, paddings, filters, mode="REFLECT",
                 **attrs)  # fmt: skip
    resized = run_op("ResizeBilinear", images, size)
    mirrored = run_op("MirrorPad", resized, paddings, mode="REFLECT")
    np.testing.assert_allclose(got, run_op("Conv2D", mirrored, filters, **attrs), rtol=1e-5)
    plain = run_op("FusedPadConv2D", images, paddings, filters, mode="REFLECT", **attrs)
    mirrored = run_op("MirrorPad", images, paddings, mode="REFLECT")
    np.testing.assert_allclose(plain, run_op("Conv2D", mirrored, filters, **attrs), rtol=1e-5)
    many = run_op("Conv", images[None], filters, batch_dims=2, **attrs)
    np.testing.assert_allclose(many[0], run_op("Conv2D", images, filters, **attrs), rtol=1e-5)
