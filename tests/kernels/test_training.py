"""Optimisers: one step, recorded from TensorFlow; rows; locks and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from penstock import Session, errors
from penstock.catalogue.registry import find_op, get_op
from penstock.core import dtypes
from penstock.kernels.training.training_formulas import FORMULAS
from penstock.kernels.training.training_in_place import FILLS
from support.sketch import sketch

#: What variables and slots start with, and what all other inputs are, by name.
STARTS = {
    "var": [1.0, -2.0],
    "linear": [0.3, -0.2],
    "m": [0.1, -0.2],
    "mg": [0.1, 0.2],
    "ms": [1.0, 2.0],
    "v": [0.5, 0.25],
    "vhat": [0.1, 0.9],
}
OTHERS: dict[str, Any] = {
    "lr": 0.1,
    "alpha": 0.1,
    "l1": 0.05,
    "l2": 0.2,
    "l2_shrinkage": 0.3,
    "lr_power": -0.5,
    "rho": 0.9,
    "momentum": 0.8,
    "epsilon": 0.01,
    "beta": 0.7,
    "beta1": 0.9,
    "beta2": 0.99,
    "beta1_power": 0.9,
    "beta2_power": 0.99,
    "logbase": 1.0,
    "sign_decay": 0.5,
    "global_step": 2,
    "grad": [0.5, -1.5],
    "delta": [0.5, -1.5],
}
RECORDED: list[tuple[str, dict[str, bool], list[list[float]]]] = [
    ("AdaMax", {}, [[0.72549, -1.781457], [0.14, -0.33], [0.5, 1.5]]),
    ("Adadelta", {}, [[0.948728, -1.853592], [0.475, 1.575], [0.476289, 1.564353]]),
    ("Adagrad", {}, [[0.942265, -1.92254], [0.75, 3.75]]),
    ("Adagrad", {"update_slots": False}, [[0.929289, -1.877526], [0.5, 1.5]]),
    ("AdagradDA", {}, [[-0.099335, -0.0], [1.0, 0.0], [0.75, 3.75]]),
    ("AdagradV2", {}, [[0.942924, -1.922938], [0.75, 3.75]]),
    ("AdagradV2", {"update_slots": False}, [[0.930275, -1.878517], [0.5, 1.5]]),
    ("Adam", {}, [[0.980429, -1.937691], [0.14, -0.33], [0.4975, 0.27]]),
    ("Adam", {"use_nesterov": True}, [[0.975396, -1.915599], [0.14, -0.33], [0.4975, 0.27]]),
    ("AdamWithAmsgrad", {}, [[0.980429, -1.965578], [0.14, -0.33], [0.4975, 0.27], [0.4975, 0.9]]),
    ("AddSign", {}, [[0.97, -1.91], [0.22, -0.59]]),
    (
        "CenteredRMSProp",
        {},
        [[0.547741, -3.094827], [0.14, 0.03], [0.925, 2.025], [0.452259, 1.094827]],
    ),
    ("Ftrl", {}, [[0.081586, -0.631672], [0.75, 3.75], [-0.789186, 12.534936]]),
    (
        "Ftrl",
        {"multiply_linear_by_lr": True},
        [[-0.205382, -0.540601], [0.75, 3.75], [0.191081, 1.073494]],
    ),
    ("FtrlV2", {}, [[0.015362, -0.570958], [0.75, 3.75], [-0.189186, 11.334936]]),
    (
        "FtrlV2",
        {"multiply_linear_by_lr": True},
        [[-0.271605, -0.479888], [0.75, 3.75], [0.251081, 0.953494]],
    ),
    ("GradientDescent", {}, [[0.95, -1.85]]),
    ("KerasMomentum", {}, [[1.35, -0.65], [0.35, 1.35]]),
    ("KerasMomentum", {"use_nesterov": True}, [[1.23, -0.77], [0.35, 1.35]]),
    ("Momentum", {}, [[0.91, -1.97], [0.9, -0.3]]),
    ("Momentum", {"use_nesterov": True}, [[0.878, -1.826], [0.9, -0.3]]),
    ("PowerSign", {}, [[0.917564, -1.752692], [0.22, -0.59]]),
    ("ProximalAdagrad", {}, [[0.915352, -1.900332], [0.75, 3.75]]),
    ("ProximalGradientDescent", {}, [[0.926471, -1.808824]]),
    ("RMSProp", {}, [[0.548291, -3.09485], [0.925, 2.025], [0.451709, 1.09485]]),
]


def recorded(*prefixes: str) -> list[tuple[str, dict[str, bool], list[list[float]]]]:
    """What was recorded, for those of the ops with these prefixes that there are."""
    return [
        (prefix + name, flags, expected)
        for prefix in prefixes
        for name, flags, expected in RECORDED
        if find_op(prefix + name) is not None
    ]


def trained(
    op_name: str, inputs: Mapping[str, Any], flags: Mapping[str, bool], starts: Any = STARTS
) -> list[Any]:
    """Variable and slots after one step."""
    op, flag_text = get_op(op_name), " ".join(f"{k}={v}" for k, v in flags.items())
    is_resource = op_name.startswith("Resource")
    rows, feeds, slots = [], {}, []
    for arg in op.inputs:
        if arg.is_ref or arg.dtype is dtypes.resource:
            slots.append(arg.name)
            value = np.float32(starts.get(arg.name, starts.get("other", [0.5, 1.5])))
            feeds[f"{arg.name}_start:0"] = value
            rows.append(f"{arg.name}_start = Placeholder() dtype=float32")
            if is_resource:
                rows.append(f"{arg.name} = VarHandleOp() dtype=float32 shape=[]")
                rows.append(f"{arg.name}_init = AssignVariableOp({arg.name}, {arg.name}_start)")
                rows.append(f"{arg.name}_now = ReadVariableOp({arg.name}) dtype=float32")
            else:
                rows.append(f"{arg.name} = VariableV2() dtype=float32 shape=[]")
                rows.append(
                    f"{arg.name}_init = Assign({arg.name}, {arg.name}_start) validate_shape=False"
                )
                rows.append(f"{arg.name}_now = Identity({arg.name})")
            continue
        kind = {"global_step": "int64", "indices": "int32"}.get(arg.name, "float32")
        feeds[f"{arg.name}:0"] = np.array(inputs[arg.name], kind)
        rows.append(f"{arg.name} = Placeholder() dtype={kind}")
    names = ", ".join(arg.name for arg in op.inputs)
    rows.append(f"step = {op_name}({names}) T=float32 {flag_text}")
    session = Session(sketch("\n".join(rows)))
    session.run([f"{slot}_init" for slot in slots], feeds)
    session.run(["step"], {k: v for k, v in feeds.items() if not k.endswith("_start:0")})
    return list(session.run([f"{slot}_now:0" for slot in slots]))


@pytest.mark.parametrize(("op", "flags", "expected"), recorded("Apply", "ResourceApply"))
def test_step_is_tensorflows(op: str, flags: dict[str, bool], expected: list[list[float]]) -> None:
    """Variable and slots are what TensorFlow recorded, behind references and handles."""
    got = trained(op, OTHERS, {**flags, "use_locking": True})
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("op", "flags", "expected"), recorded("SparseApply", "ResourceSparseApply")
)
def test_rows_make_the_same_step(
    op: str, flags: dict[str, bool], expected: list[list[float]]
) -> None:
    """A row whose number is given makes the step of a whole variable; others stay."""
    starts = {k: [[9.0, 9.0], v] for k, v in {**STARTS, "other": [0.5, 1.5]}.items()}
    inputs = {**OTHERS, "indices": [1], "grad": [OTHERS["grad"]]}
    got = trained(op, inputs, flags, starts)
    for slot, row in zip(got, expected, strict=True):
        np.testing.assert_allclose(slot[1], row, rtol=2e-5, atol=2e-6)
        assert slot[0].tolist() == [9, 9]


def test_a_row_that_comes_twice_makes_two_steps() -> None:
    """Steps of one row follow each other in the order of the numbers."""
    inputs = {**OTHERS, "lr": 1.0, "momentum": 0.5, "indices": [1, 0, 1]}
    inputs["grad"] = [[1.0], [10.0], [2.0]]
    starts = {"var": [[0.0], [0.0]], "accum": [[0.0], [0.0]]}
    var, accum = trained("ResourceSparseApplyMomentum", inputs, {}, starts)
    assert accum.tolist() == [[10], [2.5]]  # 1, then 1 * 0.5 + 2
    assert var.tolist() == [[-10], [-3.5]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"grad": [1.0]}, "do not have the same shape"),
        ({"lr": [0.1]}, "lr is not a scalar"),
    ],
)
def test_shapes_must_fit(changed: dict[str, Any], message: str) -> None:
    """Gradients have the variable's shape, rates are scalars."""
    with pytest.raises(errors.InvalidArgumentError, match=message):
        trained("ApplyMomentum", {**OTHERS, **changed}, {})


@pytest.mark.parametrize(
    ("indices", "grad", "message"),
    [
        ([2], [[1.0]], r"Index 2 at offset 0 in indices is out of range"),
        ([0, -1], [[1.0], [1.0]], r"Index -1 at offset 1 in indices is out of range"),
        ([0], [[1.0], [1.0]], "grad must be the same size as indices"),
        ([0], [[1.0, 2.0]], "var and grad must match in dimension 1"),
        ([[0]], [[1.0]], "indices must be one-dimensional"),
    ],
)
def test_rows_must_fit(indices: Any, grad: Any, message: str) -> None:
    """Numbers of rows are checked before anything changes."""
    inputs = {**OTHERS, "indices": indices, "grad": grad}
    starts = {"var": [[1.0], [2.0]], "accum": [[0.0], [0.0]]}
    with pytest.raises(errors.InvalidArgumentError, match=message):
        trained("SparseApplyMomentum", inputs, {}, starts)


def test_each_formula_stands_in_one_place() -> None:
    """An optimiser is a formula, or one that is written in place, and never both."""
    assert FORMULAS.keys().isdisjoint(FILLS)
    assert len(FORMULAS) + len(FILLS) == 18


def test_what_was_read_stays() -> None:
    """A step makes new values: an array that was fetched before does not change."""
    session = Session(
        sketch("""
            x = Placeholder() dtype=float32
            v = VariableV2() dtype=float32 shape=[]
            init = Assign(v, x) validate_shape=False
            now = Identity(v)
            step = ApplyGradientDescent(v, x, x) T=float32
        """)
    )
    session.run("init:0", {"x:0": np.float32(3)})
    before = session.run("now:0")
    session.run("step:0", {"x:0": np.float32(1)})
    assert before == 3
    assert session.run("now:0") == 2
