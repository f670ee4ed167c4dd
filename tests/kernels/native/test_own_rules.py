"""What the optimiser's own ops become in programs, by their definitions in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.kernels.c.library import loaded
from penstock.kernels.native import traced_nodes
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.list_rules import Elements
from penstock.kernels.native.parts import Known, Loop, Traced, UnsupportedError
from penstock.kernels.native.program import Program
from penstock.kernels.native.ready_program import ReadyProgram
from penstock.kernels.native.rules import RULES, Written
from penstock.state.interrupt import NEVER

assert traced_nodes  # its import has made the rules known
if loaded() is None:
    pytest.skip("there is no library of kernels in C", allow_module_level=True)

RANDOM = np.random.default_rng(8)


def given(op: str, attrs: dict[str, Any], *arrays: Any, outputs: int = 1) -> list[Any]:
    """What a node gives; what is no array of floats is known beforehand."""
    emitter = Emitter()
    operands = [
        Traced(array.dtype, array.shape) if array.dtype.kind == "f" else Known(array)
        for array in arrays
    ]
    types = [dtypes.float32] * outputs
    made = RULES[op](Written(emitter, op, attrs, operands, types))
    results = tuple(map(emitter.traced, made if isinstance(made, list) else [made]))
    inputs = tuple(operand for operand in operands if isinstance(operand, Traced))
    program = ReadyProgram(Program(inputs, emitter.constants, emitter.block, results))
    found = program([array for array in arrays if array.dtype.kind == "f"], NEVER)
    assert found is not None
    return list(found)


def floats(*shape: int) -> Any:
    """Numbers, some of them negative."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def sigmoid(x: Any) -> Any:
    """By its definition."""
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("rows", [1, 3])
def test_gates_of_a_cell(rows: int, count: int) -> None:
    """Each part of the product with its function, of one input or of input and state."""
    xs = [floats(rows, 4 + k) for k in range(count)]
    w, bias = floats(sum(x.shape[1] for x in xs), 20), floats(20)
    attrs = {"functions": (b"Sigmoid", b"Tanh", b"", b"Relu")}
    found = given("_FusedGates", attrs, *xs, w, bias, outputs=4)
    parts = np.split(np.concatenate(xs, 1) @ w + bias, 4, 1)
    want = [sigmoid(parts[0]), np.tanh(parts[1]), parts[2], np.maximum(parts[3], 0)]
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [(), (b"Tanh",), (b"Relu6",)])
def test_a_product_with_its_bias(function: tuple[bytes, ...]) -> None:
    """And with a function, if there is one."""
    x, y, bias = floats(5, 3), floats(7, 5), floats(7)
    attrs = {"transpose_a": True, "transpose_b": True, "fused_ops": (b"BiasAdd", *function)}
    (found,) = given("_FusedMatMul", attrs, x, y, bias)
    want = x.T @ y.T + bias
    if function:
        want = {b"Tanh": np.tanh, b"Relu6": lambda z: np.clip(z, 0, 6)}[function[0]](want)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axes", [(0,), (-1,), (0, 2)])
def test_moments(axes: tuple[int, ...]) -> None:
    """The mean keeps its axes, and so does the variance."""
    x = floats(3, 4, 5)
    mean, variance = given("_Moments", {}, x, np.int32(axes), outputs=2)
    np.testing.assert_allclose(mean, x.mean(axes, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, x.var(axes, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("is_centered", [False, True])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("following", [(), (b"Mul",), (b"Add",), (b"Mul", b"Add")])
def test_a_normalisation(count: int, following: tuple[bytes, ...], is_centered: bool) -> None:
    """Of one array or of a sum, with a scale and an offset, if there are any."""
    terms, args = [floats(3, 4, 5) for _ in range(count)], [floats(5) for _ in following]
    attrs = {"N": count, "fused_ops": following, "epsilon": 0.01, "is_centered": is_centered}
    (found,) = given("_LayerNorm", attrs, *terms, np.int32([-1]), *args)
    x, parts = sum(terms), dict(zip(following, args, strict=True))
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.01)
    want = want * parts.get(b"Mul", 1) + parts.get(b"Add", 0)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_a_softmax_of_a_multiple() -> None:
    """As by its definition."""
    x = floats(3, 4)
    (found,) = given("_ScaledSoftmax", {"scale": 0.3}, x)
    powers = np.exp(x * 0.3)
    np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True), rtol=1e-5)


def test_a_slice_by_its_number() -> None:
    """Without its axis; a number out of range is none that a program knows."""
    x = floats(3, 4, 5)
    for axis in range(3):
        (found,) = given("_SliceAt", {"axis": axis}, x, np.int32(2))
        np.testing.assert_array_equal(found, x.take(2, axis))
    with pytest.raises(UnsupportedError):
        given("_SliceAt", {"axis": 0}, x, np.int32(3))


@pytest.mark.parametrize("is_turned", [False, True])
def test_products_of_a_lists_elements_are_made_before_the_loop(is_turned: bool) -> None:
    """All of them at once, if the list and the matrix are there."""
    emitter = Emitter()
    content = Traced(np.dtype(np.float32), (6, 1, 3))
    factor = Traced(np.dtype(np.float32), (4, 3) if is_turned else (3, 4))
    elements = Elements(6, content.dtype, TensorShape(None), content)
    with emitter.inside() as body:
        index = Traced(np.dtype(np.int32), (), 1)
        item = emitter.row(content, index)
        node = Written(
            emitter,
            "_ItemMatMul",
            {"transpose_b": is_turned},
            [item, factor, elements, index],
            [dtypes.float32],
        )
        made = RULES["_ItemMatMul"](node)
        total = emitter.same("add", made, Traced(np.dtype(np.float32), (1, 4), 1))
    assert total.shape == (1, 4)
    inside = [part.what for part in body.parts if not isinstance(part, Loop)]
    before = [part.what for part in emitter.block.parts if not isinstance(part, Loop)]
    assert inside == ["row", "row", "add_float32"]
    assert "product_float32" in before
