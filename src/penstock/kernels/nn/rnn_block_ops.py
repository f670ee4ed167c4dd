"""Cells of recurrent networks, each as one op: LSTM and GRU.

In:   an input, the state before, weights; for gradients also all that the cell found on its way.
Out:  the gates and the new state, of one step or of all; gradients.
Not:  no loops of the graph, no variables.

Hochreiter and Schmidhuber, Long short-term memory, 1997, with peepholes as in Gers and
Schmidhuber, 2000; Cho et al., Learning phrase representations, 2014.  i, f and o are the gates
of input, forgetting and output, ci is what may come in, cs the state, co what may go out.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.dataclass import dataclass
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.parallel.products import batch_product, matrix_product
from penstock.kernels.values.arrays import shape_text

_TYPES: Final = {"T": frozenset({dtypes.float16, dtypes.float32})}
_ONE: Final = np.float32(1)
#: Weights of the peepholes of input, forgetting and output.
_Peepholes: TypeAlias = tuple[Array, Array, Array]


class _LstmStep(NamedTuple):
    """What an LSTM finds in one step, in the order of the ops' outputs."""

    i: Array
    cs: Array
    f: Array
    o: Array
    ci: Array
    co: Array
    h: Array


@dataclass(frozen=True, slots=True)
class _Lstm:
    """How a node's cell differs from others."""

    forget_bias: np.float32
    #: The state is kept this close to zero; 0 for no limit.
    clip: np.float32
    has_peepholes: bool
    #: Where the columns of the weights hold the parts i, ci, f and o.
    order: tuple[int, int, int, int]

    @classmethod
    def of(cls, attrs: Attrs) -> _Lstm:
        """The cell that a node's attributes describe."""
        values = attrs.values
        is_new = attrs.op.name.endswith("V2")
        return cls(
            np.float32(values.get("forget_bias", 0.0)),
            np.float32(values.get("cell_clip", 0.0)),
            attrs.bool("use_peephole"),
            (0, 2, 1, 3) if is_new else (0, 1, 2, 3),
        )

    def step(self, gates: Array, cs_prev: Array, peepholes: _Peepholes) -> _LstmStep:
        """One step, from the product of weights with input and last output."""
        i, ci, f, o = self.split(gates)
        if self.has_peepholes:
            i, f = i + cs_prev * peepholes[0], f + cs_prev * peepholes[1]
        i, f, ci = _sigmoid(i), _sigmoid(f + self.forget_bias), np.tanh(ci)
        cs = ci * i + cs_prev * f
        if self.clip > 0:
            cs = np.clip(cs, -self.clip, self.clip)
        o = _sigmoid(o + cs * peepholes[2]) if self.has_peepholes else _sigmoid(o)
        co = np.tanh(cs)
        return _LstmStep(i, cs, f, o, ci, co, co * o)

    def back(
        self, step: _LstmStep, cs_prev: Array, cs_grad: Array, h_grad: Array, peepholes: _Peepholes
    ) -> tuple[Array, Array]:
        """Gradients of the state before, and of i, ci, f and o before their functions."""
        i, _, f, o, ci, co, _ = step
        do = o * (_ONE - o) * h_grad * co
        dcs = (_ONE - co * co) * h_grad * o + cs_grad
        if self.has_peepholes:
            dcs = dcs + do * peepholes[2]
        dci = (_ONE - ci * ci) * dcs * i
        df = f * (_ONE - f) * dcs * cs_prev
        di = i * (_ONE - i) * dcs * ci
        before = dcs * f
        if self.has_peepholes:
            before = before + di * peepholes[0] + df * peepholes[1]
        return before, np.concatenate([(di, dci, df, do)[n] for n in self.order], -1)

    def split(self, joined: Array) -> list[Array]:
        """The parts i, ci, f and o of columns."""
        parts = np.split(joined, 4, -1)
        return [parts[place] for place in self.order]

    def of_peepholes(self, joined: Array, cs_prev: Array, cs: Array) -> list[Array]:
        """Gradients of the weights of peepholes."""
        di, _, df, do = self.split(joined)
        if not self.has_peepholes:
            return [np.zeros(cs.shape[1], np.float32)] * 3
        return [(di * cs_prev).sum(0), (df * cs_prev).sum(0), (do * cs).sum(0)]


def _sigmoid(x: Array) -> Array:
    return np.asarray(_ONE / (_ONE + np.exp(-x)))


def _check_state(cs_prev: Value, h_prev: Value, batch: int) -> int:
    """The number of cells; raises ValueError unless both are [batch, cells]."""
    for name, state in (("cs_prev", cs_prev), ("h_prev", h_prev)):
        if state.ndim != 2 or state.shape != (batch, cs_prev.shape[-1]):
            raise ValueError(
                f"{name}.dims(0) != batch_size, or its cells differ: "
                f"{shape_text(state.shape)} for a batch of {batch}"
            )
    return int(cs_prev.shape[1])


def _check_weights(w: Value, b: Value, rows: int, columns: int) -> None:
    if w.shape != (rows, columns):
        raise ValueError(
            f"w.dim_size(0) != input_size + cell_size, or w.dim_size(1) != cell_size * 4: "
            f"{shape_text(w.shape)} instead of {shape_text((rows, columns))}"
        )
    if b.shape != (columns,):
        raise ValueError(f"b.dim_size(0) != cell_size * 4: {shape_text(b.shape)}")


def _check_peepholes(lstm: _Lstm, peepholes: tuple[Value, ...], cells: int) -> None:
    if lstm.has_peepholes and any(p.shape != (cells,) for p in peepholes):
        shapes = ", ".join(shape_text(p.shape) for p in peepholes)
        raise ValueError(f"wci, wcf and wco must have cell_size = {cells} elements: {shapes}")


def _wide(*values: Value) -> list[Array]:
    return [value.astype(np.float32, copy=False) for value in values]


@kernel("LSTMBlockCell", types=_TYPES)
def make_lstm_block_cell(attrs: Attrs) -> Kernel:
    """One step of an LSTM."""
    lstm, dtype = _Lstm.of(attrs), attrs.dtype("T").numpy

    def cell(x: Value, cs_prev: Value, h_prev: Value, w: Value, *rest: Value) -> tuple[Array, ...]:
        if x.ndim != 2:
            raise ValueError(f"x must be rank 2 but is rank {x.ndim}")
        cells = _check_state(cs_prev, h_prev, len(x))
        _check_weights(w, rest[3], x.shape[1] + cells, cells * 4)
        _check_peepholes(lstm, rest[:3], cells)
        x, cs_prev, h_prev, w, wci, wcf, wco, b = _wide(x, cs_prev, h_prev, w, *rest)
        gates = matrix_product(np.concatenate([x, h_prev], 1), w) + b
        step = lstm.step(gates, cs_prev, (wci, wcf, wco))
        return tuple(part.astype(dtype, copy=False) for part in step)

    return cell


@kernel("BlockLSTM", "BlockLSTMV2", types=_TYPES)
def make_block_lstm(attrs: Attrs) -> Kernel:
    """All steps of an LSTM, up to the longest sequence; zeros behind it."""
    lstm, dtype = _Lstm.of(attrs), attrs.dtype("T").numpy

    def block(
        length: Value, x: Value, cs_prev: Value, h_prev: Value, w: Value, *rest: Value
    ) -> tuple[Array, ...]:
        cells = _check_block(lstm, length, x, (cs_prev, h_prev), (w, *rest))
        x, cs, h, w, wci, wcf, wco, b = _wide(x, cs_prev, h_prev, w, *rest)
        # All steps at once; only h waits for the step before.
        from_x = batch_product(x, w[: x.shape[2]]) + b
        found = np.zeros((7, *x.shape[:2], cells), np.float32)
        for time in range(int(length)):
            step = lstm.step(from_x[time] + matrix_product(h, w[x.shape[2] :]), cs, (wci, wcf, wco))
            found[:, time] = step
            cs, h = step.cs, step.h
        return tuple(found.astype(dtype, copy=False))

    return block


def _check_block(
    lstm: _Lstm, length: Value, x: Value, state: tuple[Value, Value], weights: tuple[Value, ...]
) -> int:
    """The number of cells; raises ValueError for inputs that do not fit."""
    if np.ndim(length):
        raise ValueError(f"seq_len_max must be a scalar: {shape_text(length.shape)}")
    if x.ndim != 3:
        raise ValueError(f"x must be 3D: {shape_text(x.shape)}")
    if not 0 <= length <= len(x):
        raise ValueError(f"seq_len_max must be in [0, {len(x)}], got {length}")
    cells = _check_state(*state, x.shape[1])
    w, *peepholes, b = weights
    _check_weights(w, b, x.shape[2] + cells, cells * 4)
    _check_peepholes(lstm, tuple(peepholes), cells)
    return cells


@kernel("LSTMBlockCellGrad", types=_TYPES)
def make_lstm_block_cell_grad(attrs: Attrs) -> Kernel:
    """Gradients of one step: of the state before, of the gates, of the peepholes."""
    lstm, dtype = _Lstm.of(attrs), attrs.dtype("T").numpy

    def cell_grad(x: Value, cs_prev: Value, h_prev: Value, *rest: Value) -> tuple[Array, ...]:
        cells = _check_state(cs_prev, h_prev, len(x))
        _check_like((len(x), cells), rest[5:])
        wide = _wide(cs_prev, *rest)
        before, _w, wci, wcf, wco, _b, i, cs, f, o, ci, co, cs_grad, h_grad = wide
        step = _LstmStep(i, cs, f, o, ci, co, co)
        state, gates = lstm.back(step, before, cs_grad, h_grad, (wci, wcf, wco))
        results = (state, gates, *lstm.of_peepholes(gates, before, cs))
        return tuple(result.astype(dtype, copy=False) for result in results)

    return cell_grad


def _check_like(shape: tuple[int, ...], values: tuple[Value, ...]) -> None:
    for value in values:
        if value.shape != shape:
            raise ValueError(
                f"gates, states and gradients must have shape {shape_text(shape)}, "
                f"got {shape_text(value.shape)}"
            )


@kernel("BlockLSTMGrad", "BlockLSTMGradV2", types=_TYPES)
def make_block_lstm_grad(attrs: Attrs) -> Kernel:
    """Gradients of all steps, the last one first."""
    lstm, dtype = _Lstm.of(attrs), attrs.dtype("T").numpy

    def block_grad(length: Value, x: Value, *rest: Value) -> tuple[Array, ...]:
        cells = _check_block(lstm, length, x, (rest[0], rest[1]), rest[2:7])
        _check_like((*x.shape[:2], cells), rest[7:])
        wide = _wide(x, *rest)
        return tuple(
            result.astype(dtype, copy=False) for result in _back_through(lstm, int(length), wide)
        )

    return block_grad


def _back_through(lstm: _Lstm, length: int, inputs: list[Array]) -> list[Array]:
    """Gradients of x, of the first state and of all weights."""
    x, first_cs, first_h, w, wci, wcf, wco, _b, *found, cs_grads, h_grads = inputs
    cs, h = found[1], found[6]
    gates = np.zeros((*x.shape[:2], w.shape[1]), np.float32)
    of_cs, of_h = np.zeros_like(first_cs), np.zeros_like(first_h)
    of_peepholes = np.zeros((3, first_cs.shape[1]), np.float32)
    back_to_h = w[x.shape[2] :].T
    for time in reversed(range(length)):
        before = cs[time - 1] if time else first_cs
        step = _LstmStep(*(part[time] for part in found))
        of_cs, gates[time] = lstm.back(
            step, before, of_cs + cs_grads[time], of_h + h_grads[time], (wci, wcf, wco)
        )
        of_h = matrix_product(gates[time], back_to_h)
        of_peepholes += lstm.of_peepholes(gates[time], before, cs[time])
    last_h = np.concatenate([first_h[None], h])[: len(x)]
    rows = np.concatenate([x, last_h], -1).reshape(-1, len(w))
    flat = gates.reshape(-1, w.shape[1])
    of_x = batch_product(gates, w[: x.shape[2]].T)
    return [of_x, of_cs, of_h, matrix_product(rows.T, flat), *of_peepholes, flat.sum(0)]


# -- GRU ---------------------------------------------------------------------------------------


@kernel("GRUBlockCell", types={"T": {dtypes.float32}})
def make_gru_block_cell(_attrs: Attrs) -> Kernel:
    """One step of a GRU: its reset and update gates, the candidate and the new state."""

    def cell(
        x: Value, h_prev: Value, w_ru: Value, w_c: Value, b_ru: Value, b_c: Value
    ) -> tuple[Array, ...]:
        cells = _check_gru(x, h_prev, w_ru, w_c)
        _check_weights(w_ru, b_ru, x.shape[1] + cells, cells * 2)
        _check_weights(w_c, b_c, x.shape[1] + cells, cells)
        r, u = np.split(_sigmoid(matrix_product(np.concatenate([x, h_prev], 1), w_ru) + b_ru), 2, 1)
        c = np.tanh(matrix_product(np.concatenate([x, h_prev * r], 1), w_c) + b_c)
        return r, u, c, u * h_prev + (_ONE - u) * c

    return cell


def _check_gru(x: Value, h_prev: Value, *weights: Value) -> int:
    if any(value.ndim != 2 for value in (x, h_prev, *weights)):
        raise ValueError("x, h_prev, w_ru and w_c must have rank 2")
    return _check_state(h_prev, h_prev, len(x))


@kernel("GRUBlockCellGrad", types={"T": {dtypes.float32}})
def make_gru_block_cell_grad(_attrs: Attrs) -> Kernel:
    """Gradients of the input and the state, and of the gates before their functions."""

    def cell_grad(x: Value, h_prev: Value, *rest: Value) -> tuple[Array, ...]:
        w_ru, w_c, _b_ru, _b_c, r, u, c, d_h = rest
        cells = _check_gru(x, h_prev, w_ru, w_c)
        _check_like((len(x), cells), (r, u, c, d_h))
        d_c_bar = d_h * (_ONE - u) * (_ONE - c * c)
        d_u_bar = d_h * (h_prev - c) * u * (_ONE - u)
        through_c = matrix_product(d_c_bar, w_c.T)
        d_h_reset = through_c[:, x.shape[1] :]
        d_r_bar = d_h_reset * h_prev * r * (_ONE - r)
        d_ru_bar = np.concatenate([d_r_bar, d_u_bar], 1)
        through_ru = matrix_product(d_ru_bar, w_ru.T)
        d_x = through_c[:, : x.shape[1]] + through_ru[:, : x.shape[1]]
        d_h_prev: Any = through_ru[:, x.shape[1] :] + d_h_reset * r + d_h * u
        return d_x, d_h_prev, d_c_bar, d_ru_bar

    return cell_grad
