"""Recurrent cells: one time step of an LSTM, a GRU, a plain network, or several of them stacked.

A cell is called as ``cell(x, states)`` and gives its output and new states.  The products with
what comes from below and with the state before are one where the formulas allow it, so that the
optimiser makes one node of all gates.

Sources of the formulas: Hochreiter and Schmidhuber 1997 with forget gates (LSTM), Cho et al. 2014
(GRU, ``reset_after=False``) and its variant of cuDNN (``reset_after=True``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.formats.keras.activations import activation
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, Weight, layer
from penstock.formats.keras.layers.convolutions import Windows, convolve
from penstock.formats.keras.layers.core import refuse_variants
from penstock.formats.keras.symbol import Shape, Size, Symbol, constant_like, pack


def cell_weights(config: Config) -> list[Weight]:
    """What all cells have; the bias is one array for all gates."""
    kernels = [Weight("kernel"), Weight("recurrent_kernel")]
    has_bias = config.flag("use_bias", default=True)
    return [*kernels, Weight("bias")] if has_bias else kernels


def state_count(cell: Layer) -> int:
    """How many states a cell has."""
    if cell.config.class_name == "StackedRNNCells":
        return sum(state_count(part) for part in cell.parts.values())
    return 2 if "LSTM" in cell.config.class_name else 1


def output_state(cell: Layer) -> int:
    """Which of a cell's states has the form of its output."""
    if cell.config.class_name != "StackedRNNCells":
        return 0
    last = list(cell.parts.values())[-1]
    before = _stacked(cell)[: _stacked(cell).index(last)]
    return sum(state_count(part) for part in before) + output_state(last)


def first_states(cell: Layer, batch: Size, step: Shape) -> list[Symbol]:
    """The states before the first step: zeros.  ``step`` is the shape of one step's input."""
    if cell.config.class_name == "StackedRNNCells":
        return [state for part in _stacked(cell) for state in first_states(part, batch, step)]
    if cell.config.class_name == "ConvLSTMCell":
        form = spatial_form(cell.config, step)
    else:
        form = (cell.config.integer("units", at_least=1),)
    zero = np.zeros((), cell.config.dtype.numpy)
    zeros = ops.fill(pack([batch, *form]), zero)
    return [Symbol(zeros, (step[0], *form))] * state_count(cell)


def _joined(cell: Layer, x: Symbol, state: Symbol, gates: int) -> Tensor:
    """[x, state] · [kernel, recurrent_kernel] + bias."""
    units = cell.config.integer("units", at_least=1)
    kernels = (
        cell.array("kernel", (x.shape[-1], gates * units)),
        cell.array("recurrent_kernel", (units, gates * units)),
    )
    both = cell.kept("kernels", lambda: np.concatenate(kernels))
    made = ops.mat_mul(ops.concat_v2([x.tensor, state.tensor], 1), both)
    if "bias" in cell.arrays:
        made = ops.bias_add(made, cell.weight("bias", (gates * units,)))
    return made


# -- the cells ------------------------------------------------------------------------------------


@layer("SimpleRNNCell", weights=cell_weights, masking=Masking.OWN)
def simple_step(self: Layer, x: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
    """A function of the input and the state, which is the output as well."""
    made = states[0].made(activation(self.config, default="tanh")(_joined(self, x, states[0], 1)))
    return made, [made]


@layer("LSTMCell", weights=cell_weights, masking=Masking.OWN)
def lstm_step(self: Layer, x: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
    """Gates decide what is added to a memory, what stays in it, and what is seen of it."""
    refuse_variants(self.config)
    function = activation(self.config, default="tanh")
    gate = activation(self.config, "recurrent_activation", "sigmoid")
    output, memory = states
    i, f, c, o = ops.split(1, _joined(self, x, output, 4), num_split=4)
    added = gate(i) * function(c)
    kept = gate(f) * memory.tensor + added
    made = gate(o) * function(kept)
    return output.made(made), [output.made(made), memory.made(kept)]


@layer("GRUCell", weights=cell_weights, masking=Masking.OWN)
def gru_step(self: Layer, x: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
    """Gates decide how much of the state is seen, and how much of it is replaced."""
    refuse_variants(self.config)
    units = self.config.integer("units", at_least=1)
    state = states[0]
    if self.config.flag("reset_after", default=False):
        update, candidate = _gru_reset_after(self, x, state, units)
    else:
        update, candidate = _gru_reset_before(self, x, state, units)
    rest = (constant_like(1, update) - update) * candidate
    made = state.made(update * state.tensor + rest)
    return made, [made]


def _gru_reset_after(cell: Layer, x: Symbol, state: Symbol, units: int) -> tuple[Tensor, Tensor]:
    """How much of the state stays, and what may take its place; the product comes first."""
    gate = activation(cell.config, "recurrent_activation", "sigmoid")
    below = ops.mat_mul(x.tensor, cell.weight("kernel", (x.shape[-1], 3 * units)))
    before = ops.mat_mul(state.tensor, cell.weight("recurrent_kernel", (units, 3 * units)))
    if "bias" in cell.arrays:
        first, second = cell.array("bias", (2, 3 * units))
        below = ops.bias_add(below, cell.kept("bias_below", lambda: first))
        before = ops.bias_add(before, cell.kept("bias_before", lambda: second))
    below_z, below_r, below_h = ops.split(1, below, num_split=3)
    before_z, before_r, before_h = ops.split(1, before, num_split=3)
    reset = gate(below_r + before_r)
    candidate = activation(cell.config, default="tanh")(below_h + reset * before_h)
    return gate(below_z + before_z), candidate


def _gru_reset_before(cell: Layer, x: Symbol, state: Symbol, units: int) -> tuple[Tensor, Tensor]:
    """The same, but the state is reset before the product."""
    gate = activation(cell.config, "recurrent_activation", "sigmoid")
    kernel = cell.array("recurrent_kernel", (units, 3 * units))
    below = ops.mat_mul(x.tensor, cell.weight("kernel", (x.shape[-1], 3 * units)))
    if "bias" in cell.arrays:
        below = ops.bias_add(below, cell.weight("bias", (3 * units,)))
    below_z, below_r, below_h = ops.split(1, below, num_split=3)
    gates = cell.kept("recurrent_gates", lambda: kernel[:, : 2 * units])
    before_z, before_r = ops.split(1, ops.mat_mul(state.tensor, gates), num_split=2)
    last = cell.kept("recurrent_candidate", lambda: kernel[:, 2 * units :])
    seen = ops.mat_mul(gate(below_r + before_r) * state.tensor, last)
    return gate(below_z + before_z), activation(cell.config, default="tanh")(below_h + seen)


# -- of images ------------------------------------------------------------------------------------


def spatial_form(config: Config, step: Shape) -> tuple[int, ...]:
    """The form of the states of a convolutional cell."""
    if config.is_channels_first:
        raise config.unsupported("channels before the dimensions of space")
    windows = Windows(config, len(step) - 2)
    made = windows.made_from(step, config.integer("filters", at_least=1))
    if None in made[1:]:
        raise config.unsupported("images of unknown size")
    return tuple(size for size in made[1:] if size is not None)


@layer("ConvLSTMCell", weights=cell_weights, masking=Masking.OWN)
def conv_lstm_step(self: Layer, x: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
    """An LSTM whose products are convolutions (Shi et al. 2015)."""
    function = activation(self.config, default="tanh")
    gate = activation(self.config, "recurrent_activation", "sigmoid")
    windows = Windows(self.config, x.rank - 2)
    filters = self.config.integer("filters", at_least=1)
    output, memory = states
    kernel = self.weight("kernel", (*windows.sizes, x.shape[-1], 4 * filters))
    padding = windows.padding.upper()
    below = convolve(x.tensor, kernel, windows.strides, windows.dilations, padding)
    if "bias" in self.arrays:
        below = ops.bias_add(below, self.weight("bias", (4 * filters,)))
    recurrent = self.weight("recurrent_kernel", (*windows.sizes, filters, 4 * filters))
    ones = [1] * len(windows.sizes)
    before = convolve(output.tensor, recurrent, ones, ones, "SAME")
    i, f, c, o = ops.split(x.rank - 1, below + before, num_split=4)
    kept = gate(f) * memory.tensor + gate(i) * function(c)
    made = gate(o) * function(kept)
    return output.made(made), [output.made(made), memory.made(kept)]


# -- several on top of each other -----------------------------------------------------------------


def _stacked_parts(config: Config) -> Mapping[str, Config]:
    cells = [config.inner(entry, f"cell_{n}") for n, entry in enumerate(config.items("cells"))]
    return {f"cells/{number}": cell for number, cell in enumerate(cells)}


def _stacked(cell: Layer) -> list[Layer]:
    """The cells in the order of their states."""
    cells = list(cell.parts.values())
    return cells[::-1] if cell.config.flag("reverse_state_order", default=False) else cells


@layer("StackedRNNCells", parts=_stacked_parts, masking=Masking.OWN)
def stacked_step(self: Layer, x: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
    """Each cell takes what the one below gives."""
    own: dict[int, Sequence[Symbol]] = {}
    rest = list(states)
    for cell in _stacked(self):
        count = state_count(cell)
        own[id(cell)], rest = rest[:count], rest[count:]
    new: dict[int, list[Symbol]] = {}
    for cell in self.parts.values():
        x, new[id(cell)] = cell(x, own[id(cell)])
    return x, [state for cell in _stacked(self) for state in new[id(cell)]]


# -- cuDNN's --------------------------------------------------------------------------------------


@layer("CuDNNLSTMCell", weights=cell_weights, masking=Masking.OWN)
def cudnn_lstm_step(
    self: Layer, x: Symbol, states: Sequence[Symbol]
) -> tuple[Symbol, list[Symbol]]:
    """An LSTM whose arrays lie as cuDNN wants them."""
    plain = _converted(self, "LSTMCell", gates=4)
    if "bias" in plain.arrays:
        plain.arrays["bias"] = plain.arrays["bias"].reshape(2, -1).sum(0)
    made: tuple[Symbol, list[Symbol]] = lstm_step(plain, x, states)
    return made


@layer("CuDNNGRUCell", weights=cell_weights, masking=Masking.OWN)
def cudnn_gru_step(self: Layer, x: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
    """A GRU whose arrays lie as cuDNN wants them."""
    plain = _converted(self, "GRUCell", gates=3)
    if "bias" in plain.arrays:
        plain.arrays["bias"] = plain.arrays["bias"].reshape(2, -1)
    made: tuple[Symbol, list[Symbol]] = gru_step(plain, x, states)
    return made


def _converted(cell: Layer, class_name: str, gates: int) -> Layer:
    """The same cell as Keras has it: cuDNN keeps each gate's matrix by columns."""
    functions = {"activation": "tanh", "recurrent_activation": "sigmoid", "reset_after": True}
    settings = {**cell.config.settings, **functions}
    config = replace(cell.config, class_name=class_name, settings=settings)
    units = config.integer("units", at_least=1)
    below = np.hsplit(cell.array("kernel", (None, gates * units)), gates)
    before = np.hsplit(cell.array("recurrent_kernel", (units, gates * units)), gates)
    arrays = dict(cell.arrays)
    arrays["kernel"] = np.hstack([part.reshape(part.shape[::-1]).T for part in below])
    arrays["recurrent_kernel"] = np.hstack([part.T for part in before])
    return Layer(config, cell.kind, {}, arrays)
