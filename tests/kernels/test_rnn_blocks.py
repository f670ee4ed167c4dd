"""Recurrent cells, temporal classification and dilation, against definitions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.ops import run_op

RNG = np.random.default_rng(6)
BATCH, WIDTH, CELLS, STEPS = 2, 3, 4, 3


def random(*shape: int) -> Any:
    """Numbers from -1 to 1."""
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("has_peepholes", [False, True])
def test_lstm_cell_is_its_equations(has_peepholes: bool) -> None:
    """Columns of the weights hold i, ci, f and o; the state may be clipped."""
    x, cs, h = random(BATCH, WIDTH), random(BATCH, CELLS), random(BATCH, CELLS)
    w, peep, b = random(WIDTH + CELLS, 4 * CELLS), random(3, CELLS), random(4 * CELLS)
    got = run_op(
        "LSTMBlockCell", x, cs, h, w, *peep, b,
        forget_bias=0.5, cell_clip=0.6, use_peephole=has_peepholes,
    )  # fmt: skip
    wci, wcf, wco = peep if has_peepholes else np.zeros((3, CELLS))
    i, ci, f, o = np.split(np.concatenate([x, h], 1) @ w + b, 4, 1)
    i, f, ci = sigmoid(i + cs * wci), sigmoid(f + 0.5 + cs * wcf), np.tanh(ci)
    new = np.clip(ci * i + cs * f, -0.6, 0.6)
    o, co = sigmoid(o + new * wco), np.tanh(new)
    for part, expected in zip(got, (i, new, f, o, ci, co, co * o), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-5, atol=1e-6)


def block_inputs() -> tuple[Any, ...]:
    """x, state and weights of a block."""
    return (
        random(STEPS, BATCH, WIDTH), random(BATCH, CELLS), random(BATCH, CELLS),
        random(WIDTH + CELLS, 4 * CELLS), *random(3, CELLS), random(4 * CELLS),
    )  # fmt: skip


def test_block_is_cells_in_a_row() -> None:
    """Each step sees the state of the one before; behind the longest sequence are zeros."""
    x, cs, h, *weights = block_inputs()
    attrs: dict[str, Any] = {"use_peephole": True, "forget_bias": 0.5, "cell_clip": 3.0}
    block = run_op("BlockLSTM", np.int64(2), x, cs, h, *weights, **attrs)
    for step in range(2):
        cell = run_op("LSTMBlockCell", x[step], cs, h, *weights, **attrs)
        for part, expected in zip(block, cell, strict=True):
            np.testing.assert_allclose(part[step], expected, rtol=1e-5, atol=1e-6)
        cs, h = cell[1], cell[6]
    assert not any(part[2].any() for part in block)


@pytest.mark.parametrize("has_peepholes", [False, True])
@pytest.mark.parametrize("op", ["BlockLSTM", "BlockLSTMV2"])
def test_block_gradients_are_differences(op: str, has_peepholes: bool) -> None:
    """Along any direction of any input the loss changes as the gradient says."""
    inputs = block_inputs()
    attrs: dict[str, Any] = {"use_peephole": has_peepholes, "cell_clip": 0.0}
    sent_back = random(2, STEPS, BATCH, CELLS)

    def loss(*inputs: Any) -> float:
        found = run_op(op, np.int64(STEPS), *inputs, **attrs)
        pairs = zip((found[1], found[6]), sent_back, strict=True)
        return float(sum((part.astype(np.float64) * back).sum() for part, back in pairs))

    found = run_op(op, np.int64(STEPS), *inputs, **attrs)
    gradients = run_op(
        op.replace("LSTM", "LSTMGrad"), np.int64(STEPS), *inputs, *found, *sent_back,
        use_peephole=has_peepholes,
    )  # fmt: skip
    for place, gradient in enumerate(gradients):
        way = random(*inputs[place].shape)
        moved = [list(inputs), list(inputs)]
        for sign, values in zip((1, -1), moved, strict=True):
            values[place] = inputs[place] + np.float32(sign * 1e-2) * way
        change = (loss(*moved[0]) - loss(*moved[1])) / 2e-2
        np.testing.assert_allclose((gradient * way).sum(), change, rtol=0.01, atol=0.01)


def test_gru_cell_and_its_gradient() -> None:
    """The new state mixes the old one and the candidate; gradients are differences."""
    x, h, w_ru = random(BATCH, WIDTH), random(BATCH, CELLS), random(WIDTH + CELLS, 2 * CELLS)
    w_c, b_ru, b_c = random(WIDTH + CELLS, CELLS), random(2 * CELLS), random(CELLS)
    r, u, c, new = run_op("GRUBlockCell", x, h, w_ru, w_c, b_ru, b_c)
    gates = sigmoid(np.concatenate([x, h], 1) @ w_ru + b_ru)
    candidate = np.tanh(np.concatenate([x, h * gates[:, :CELLS]], 1) @ w_c + b_c)
    mixed = gates[:, CELLS:] * h + (1 - gates[:, CELLS:]) * candidate
    np.testing.assert_allclose(new, mixed, rtol=1e-5, atol=1e-6)
    back = random(BATCH, CELLS)
    of_x, of_h, *_ = run_op("GRUBlockCellGrad", x, h, w_ru, w_c, b_ru, b_c, r, u, c, back)
    for place, gradient in enumerate((of_x, of_h)):
        way = random(*gradient.shape) * np.float32(1e-2)
        up, down = ([x, h], [x, h])
        up[place], down[place] = up[place] + way, down[place] - way
        ends = [run_op("GRUBlockCell", *s, w_ru, w_c, b_ru, b_c)[3] for s in (up, down)]
        change = ((ends[0] - ends[1]) * back).sum() / 2
        np.testing.assert_allclose((gradient * way).sum(), change, rtol=0.01, atol=1e-4)


def test_weights_must_fit() -> None:
    """Sizes that do not belong together are refused."""
    x, cs = random(BATCH, WIDTH), random(BATCH, CELLS)
    with pytest.raises(ValueError, match=r"w\.dim_size"):
        run_op("LSTMBlockCell", x, cs, cs, random(9, 16), *random(3, CELLS), random(16))
    with pytest.raises(ValueError, match="batch_size"):
        run_op("LSTMBlockCell", x, cs[:1], cs, random(7, 16), *random(3, CELLS), random(16))


def meaning(path: tuple[int, ...], blank: int) -> list[int]:
    """The labels of a path: repeats count once, blanks not at all."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def test_ctc_loss_is_the_sum_over_all_paths() -> None:
    """Every path is tried; the gradient is a difference."""
    inputs, labels, lengths = random(4, 2, 3) * 2, [[0, 0], [1]], np.int32([4, 3])
    indices, values = np.int64([[0, 0], [0, 1], [1, 0]]), np.int32([0, 0, 1])
    loss, gradient = run_op("CTCLoss", inputs, indices, values, lengths)
    shares = np.exp(inputs.astype(np.float64))
    shares /= shares.sum(-1, keepdims=True)
    for number, (wanted, length) in enumerate(zip(labels, lengths, strict=True)):
        total = sum(
            np.prod([shares[frame, number, label] for frame, label in enumerate(path)])
            for path in itertools.product(range(3), repeat=int(length))
            if meaning(path, 2) == wanted
        )
        np.testing.assert_allclose(loss[number], -np.log(total), rtol=1e-5)
    way = random(4, 2, 3) * np.float32(1e-2)
    ends = [run_op("CTCLoss", inputs + s * way, indices, values, lengths)[0] for s in (1, -1)]
    change = (ends[0] - ends[1]).sum() / 2
    np.testing.assert_allclose((gradient * way).sum(), change, rtol=0.02, atol=1e-5)
    assert not gradient[3, 1].any()


@pytest.mark.parametrize(
    ("labels", "lengths", "message"),
    [
        ([0, 0, 1], [1, 4], "Not enough time for target transition sequence"),
        ([2, 0, 1], [4, 4], "labels"),
        ([0, 0, 1], [4, 5], "sequence_length"),
        ([0, 0, 1], [4], "batch_size"),
    ],
)
def test_ctc_labels_must_fit(labels: Any, lengths: Any, message: str) -> None:
    """Labels need frames; after the blank's class, which ends them, there must be none."""
    indices = np.int64([[0, 0], [0, 1], [1, 0]])
    with pytest.raises(ValueError, match=message):
        run_op("CTCLoss", random(4, 2, 3), indices, np.int32(labels), np.int32(lengths))


@pytest.mark.parametrize(("merges", "expected"), [(True, [0, 1]), (False, [0, 0, 1])])
def test_greedy_decoding(merges: bool, expected: list[int]) -> None:
    """The best class of each frame, without blanks; repeats count once if wanted."""
    scores = np.float32(np.eye(3)[[0, 0, 2, 1]])[:, None]
    indices, values, shape, log = run_op(
        "CTCGreedyDecoder", scores, np.int32([4]), merge_repeated=merges
    )
    assert values.tolist() == expected
    assert indices.tolist() == [[0, n] for n in range(len(expected))]
    assert shape.tolist() == [1, len(expected)]
    assert log.tolist() == [[-4]]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilation_is_the_greatest_sum(padding: str) -> None:
    """By its definition; gradients go where the greatest sum came from."""
    images, filters = random(1, 5, 4, 2), random(2, 3, 2)
    attrs: dict[str, Any] = {
        "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": padding,
    }  # fmt: skip
    result = run_op("Dilation2D", images, filters, **attrs)
    first = (0, 1) if padding == "SAME" else (0, 0)
    padded = np.pad(images, ((0, 0), (0, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    seen = padded[0, 2:4, 1 + 1 - first[1] : 4 + 1 - first[1]]
    np.testing.assert_allclose(result[0, 2, 1], (seen + filters).max((0, 1)))
    back = random(*result.shape)
    of_images = run_op("Dilation2DBackpropInput", images, filters, back, **attrs)
    of_filters = run_op("Dilation2DBackpropFilter", images, filters, back, **attrs)
    for gradient in (of_images, of_filters):
        np.testing.assert_allclose(gradient.sum(), back.sum(), rtol=1e-4)
    total = (of_images * images).sum() + (of_filters * filters).sum()
    np.testing.assert_allclose(total, (result * back).sum(), rtol=1e-4)
