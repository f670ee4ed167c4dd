"""Fractional pooling: what the borders say is what is joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.ops import run_op

RNG = np.random.default_rng(9)


@pytest.mark.parametrize("is_overlapping", [False, True])
@pytest.mark.parametrize("kind", ["Max", "Avg"])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_fractional_pools_join_the_parts_they_name(
    is_overlapping: bool, kind: str, dtype: Any
) -> None:
    """Each result is the greatest or the mean between two borders."""
    images = RNG.integers(0, 50, (2, 17, 13, 3)).astype(dtype)
    result, rows, columns = run_op(
        f"Fractional{kind}Pool", images, pooling_ratio=[1.0, 1.7, 1.3, 1.0],
        overlapping=is_overlapping, deterministic=True, seed=3,
    )  # fmt: skip
    assert result.shape == (2, 10, 10, 3)
    assert (rows[0], rows[-1], columns[-1]) == (0, 17, 13)
    assert set(np.diff(rows)) <= {1, 2}
    part = images[:, rows[4] : rows[5] + is_overlapping, columns[9] :]
    expected = part.max((1, 2)) if kind == "Max" else part.mean((1, 2)).astype(dtype)
    np.testing.assert_allclose(result[:, 4, 9], expected, rtol=1e-6)
