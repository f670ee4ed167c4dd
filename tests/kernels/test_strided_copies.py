"""Copies of arrays with short runs are equal to them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.kernels.parallel import strided_copies
from penstock.kernels.parallel.strided_copies import gathered, put


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays count, too."""
    monkeypatch.setattr(strided_copies, "_FEW", 1)


VIEWS = [
    np.s_[:, ::2],
    np.s_[1:, 1::3],
    np.s_[:, 2:3],
    np.s_[:, :0],
    np.s_[:, ::-1],
    np.s_[:, ::2, ::2],
    np.s_[:, ::2, :1],
    np.s_[:],
    np.s_[::2],
]


@pytest.mark.parametrize("view", VIEWS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int64])
@pytest.mark.parametrize("depth", [1, 2, 5, 300])
def test_gathered_and_put_back(view: Any, dtype: Any, depth: int) -> None:
    """What is gathered is what the view has; what is put there is found there, and nowhere else."""
    array = np.arange(4 * 7 * depth).reshape(4, 7, depth).astype(dtype)
    found = gathered(array[view])
    np.testing.assert_array_equal(found, array[view])

    expected, target = array.copy(), array.copy()
    expected[view] = expected[view] + expected[view]
    put(target[view], found + found)
    np.testing.assert_array_equal(target, expected)
