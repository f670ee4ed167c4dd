"""Functions of each element and softmax by PyTorch, compared with numpy's."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from penstock.kernels.accelerated import activation, library
from support.offers import assert_equal, faster, frozen

torch = pytest.importorskip("torch")

ELEMENTWISE = ["Relu", "Relu6", "Sigmoid", "Erf", "Erfc"]
STRANGE = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 88.0, -88.0, 700.0, -700.0]


def f32(*shape: int) -> Any:
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32) * np.float32(3)


@pytest.mark.parametrize("op", [*ELEMENTWISE, "Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (0, 4)])
def test_functions_agree(op: str, shape: tuple[int, ...]) -> None:
    """On arrays of any rank; a read-only one gives no warning."""
    if op in ("Erf", "Erfc"):
        pytest.importorskip("scipy")
    assert_equal(op, frozen(f32(*shape)))


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_numbers_at_the_edges_agree(op: str) -> None:
    """NaN, infinities, zeros of either sign, numbers that overflow."""
    if op in ("Erf", "Erfc"):
        pytest.importorskip("scipy")
    assert_equal(op, np.array(STRANGE, np.float32))


@pytest.mark.parametrize("op", ["Sigmoid", "Softmax"])
def test_large_arrays_in_pieces_agree(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    """Cut for several threads, also if the pieces are not equal."""
    monkeypatch.setattr(activation, "threads", lambda _torch: 3)
    monkeypatch.setattr(activation, "_PIECE", 1)
    assert_equal(op, f32(10, 11))


def test_memory_in_another_order_is_left_to_numpy() -> None:
    """Its elements are not one after the other."""
    assert faster("Relu", f32(6, 4).T) is NotImplemented


def test_a_read_only_array_shares_its_memory_with_the_tensor() -> None:
    """Nothing is copied, and nothing warns."""
    array = frozen(f32(3, 4))
    made = library.tensor(torch, array)
    assert made.data_ptr() == array.__array_interface__["data"][0]
    assert made.shape == array.shape


def test_pytorch_that_someone_else_imported_keeps_its_threads() -> None:
    """Its settings belong to whoever imported it first; then work is not cut up as well."""
    assert "torch" in sys.modules
    assert library.threads(torch) == (1 if torch.get_num_threads() > 1 else library.HELPERS + 1)
