"""Layers that go through time: a cell at each step, forward, backward or both.

The loop is one While whose variables are the time, the outputs so far, the last output and the
states, as in what TensorFlow exports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.builder import ops, while_loop
from penstock.builder.tensor import Tensor
from penstock.builder.tensor_array import TensorArray
from penstock.core import dtypes
from penstock.dataclass import dataclass
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, layer
from penstock.formats.keras.layers.cells import first_states, output_state, state_count
from penstock.formats.keras.symbol import Nest, Shape, Size, Symbol, flatten, reshape

_CELLS = {
    **{name: f"{name}Cell" for name in ("LSTM", "GRU", "SimpleRNN", "CuDNNLSTM", "CuDNNGRU")},
    **{f"ConvLSTM{space}D": "ConvLSTMCell" for space in (1, 2, 3)},
}


def _cell_of(config: Config) -> Mapping[str, Config]:
    """The cell of a layer that is named after it: the settings are the same."""
    cell = replace(config, class_name=_CELLS[config.class_name], name="cell", within=config.path)
    return {"cell": cell}


@layer(*_CELLS, parts=_cell_of, masking=Masking.OWN)
def recurrent(self: Layer, x: Nest, initial_state: Nest = None, **more: Any) -> Nest:
    """The layer's own cell at each step."""
    return run_through_time(self, x, initial_state, **more)


@layer("RNN", parts=lambda config: {"cell": config.nested("cell")}, masking=Masking.OWN)
def rnn(self: Layer, x: Nest, initial_state: Nest = None, **more: Any) -> Nest:
    """The cell that the layer is given, at each step."""
    return run_through_time(self, x, initial_state, **more)


def run_through_time(self: Layer, x: Nest, initial_state: Nest, **more: Any) -> Nest:
    """The outputs of all steps or of the last, and the states if they are asked for."""
    config = self.config
    if config.flag("stateful", default=False):
        raise config.unsupported("states that outlive a step (stateful=True)")
    if more.get("constants") or config.settings.get("num_constants"):
        raise config.unsupported("constants beside the states")
    # Keras 2 gives the states together with the input.
    x, *rest = x if isinstance(x, (list, tuple)) else [x]
    states = flatten(initial_state) or rest or None
    cell = self.part("cell")
    run = _Run(self, cell, x, zero_masked=config.flag("zero_output_for_mask", default=False))
    if states is None:
        states = first_states(cell, _batch(config, x), run.shape_of_step())
    if len(states) != state_count(cell):
        raise config.error(f"it has {state_count(cell)} states, and is given {len(states)}")
    outputs, last = run.through(states)
    keeps_all = config.flag("return_sequences", default=False)
    first = outputs.masked(x.mask) if keeps_all else last[0]
    if not config.flag("return_state", default=False):
        return first
    return [first, *last[1:]]


def _batch(config: Config, x: Symbol) -> Size:
    return x.size(1 if config.flag("time_major", default=False) else 0)


@dataclass(frozen=True, slots=True)
class _Run:
    """One way through time."""

    layer: Layer
    cell: Layer
    x: Symbol
    #: Whether masked steps give zeros rather than what the step before gave.
    zero_masked: bool

    @property
    def _is_time_major(self) -> bool:
        return self.layer.config.flag("time_major", default=False)

    def through(self, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """All outputs; and the last output and the last states."""
        steps = self._steps(self.x.tensor, self.x.rank)
        mask = None if self.x.mask is None else self._steps(self.x.mask, 2)
        count: Any = self.x.size(0 if self._is_time_major else 1)
        per_step = self.shape_of_step()
        inputs = TensorArray(self.x.tensor.dtype, count, name="inputs").unstack(steps)
        masks = None if mask is None else TensorArray(dtypes.bool_, count).unstack(mask)
        # What the step before the first gave, as far as masks are concerned.
        like = states[output_state(self.cell)]
        zero, size = ops.zeros_like(like.tensor), like.shape[1:]
        outputs = TensorArray(zero.dtype, count, name="outputs")

        def body(time: Tensor, written: TensorArray, before: Tensor, *old: Tensor) -> Any:
            given = Symbol(inputs.read(time), per_step)
            held = [state.made(t) for state, t in zip(states, old, strict=True)]
            output, new = self.cell(given, held)
            made, kept = output.tensor, [state.tensor for state in new]
            if masks is not None:
                counts = masks.read(time)
                made = _where(counts, made, zero if self.zero_masked else before, output.rank)
                kept = [
                    _where(counts, n, o, s.rank) for n, o, s in zip(kept, old, states, strict=True)
                ]
            return (time + 1, written.write(time, made), made, *kept)

        first = (ops.constant(0), outputs, zero, *(state.tensor for state in states))
        result = while_loop(lambda time, *_: time < count, body, first)
        _, written, last, *ends = result
        return self._all(written, size), [
            Symbol(last, (self.x.shape[1 if self._is_time_major else 0], *size)),
            *(state.made(end) for state, end in zip(states, ends, strict=True)),
        ]

    def _steps(self, tensor: Tensor, rank: int) -> Tensor:
        """With the time first, and in the order in which the steps are made."""
        if not self._is_time_major:
            tensor = ops.transpose(tensor, np.array([1, 0, *range(2, rank)], np.int32))
        if self.layer.config.flag("go_backwards", default=False):
            tensor = ops.reverse_v2(tensor, [0])
        return tensor

    def shape_of_step(self) -> Shape:
        """The shape of the input of one step."""
        batch = self.x.shape[1 if self._is_time_major else 0]
        return (batch, *self.x.shape[2:])

    def _all(self, written: TensorArray, size: Sequence[int | None]) -> Symbol:
        time, batch = self.x.shape[1], self.x.shape[0]
        if self._is_time_major:
            return Symbol(written.stack(), (*self.x.shape[:2], *size))
        order = np.array([1, 0, *range(2, 2 + len(size))], np.int32)
        return Symbol(ops.transpose(written.stack(), order), (batch, time, *size))


def _where(mask: Tensor, chosen: Tensor, other: Tensor, rank: int) -> Tensor:
    """Row by row, one of two, by a mask of one dimension."""
    for _ in range(rank - 1):
        mask = ops.expand_dims(mask, -1)
    return ops.select_v2(mask, chosen, other)


# -- both directions ------------------------------------------------------------------------------


def _both(config: Config) -> Mapping[str, Config]:
    """The layer that goes forward, and the one that goes backward."""
    forward = config.nested("layer")
    if config.settings.get("backward_layer") is not None:
        backward = config.nested("backward_layer")
    else:
        turned = not forward.flag("go_backwards", default=False)
        backward = replace(forward, settings={**forward.settings, "go_backwards": turned})
    return {
        "forward_layer": _as_direction(forward, "forward"),
        "backward_layer": _as_direction(backward, "backward"),
    }


def _as_direction(config: Config, name: str) -> Config:
    """Under a name of its own; where all outputs are wanted, those of masked steps are zero."""
    zero = {"zero_output_for_mask": config.flag("return_sequences", default=False)}
    settings = {**config.settings, **zero}
    return replace(config, name=f"{name}_{config.name}", settings=settings)


@layer("Bidirectional", parts=_both, masking=Masking.OWN)
def bidirectional(self: Layer, x: Nest, initial_state: Nest = None, **_: Any) -> Nest:
    """One layer forward and one backward through time, and both outputs as one."""
    x, *rest = x if isinstance(x, (list, tuple)) else [x]
    states = flatten(initial_state) or rest
    half = len(states) // 2
    forward, backward = self.part("forward_layer"), self.part("backward_layer")
    first = _listed(forward(x, initial_state=states[:half] or None))
    second = _listed(backward(x, initial_state=states[half:] or None))
    ahead, back = first[0], second[0]
    if forward.config.flag("return_sequences", default=False):
        axis = 0 if forward.config.flag("time_major", default=False) else 1
        back = back.made(ops.reverse_v2(back.tensor, [axis]))
        mask = x.mask
    else:
        mask = None
    merged = [y.masked(mask) for y in _merged(self.config, ahead, back)]
    outputs = [*merged, *first[1:], *second[1:]]
    return outputs[0] if len(outputs) == 1 else outputs


def _listed(outputs: Nest) -> list[Symbol]:
    return outputs if isinstance(outputs, list) else [outputs]


def _merged(config: Config, ahead: Symbol, back: Symbol) -> list[Symbol]:
    mode = config.settings.get("merge_mode", "concat")
    if mode is None:
        return [ahead, back]
    if mode == "concat":
        units = [y.shape[-1] for y in (ahead, back)]
        last = None if None in units else sum(n or 0 for n in units)
        made = ops.concat_v2([ahead.tensor, back.tensor], ahead.rank - 1)
        return [ahead.made(made, (*ahead.shape[:-1], last))]
    total = ahead.tensor + back.tensor
    if mode == "sum":
        return [ahead.made(total)]
    if mode == "ave":
        return [ahead.made(ops.real_div(total, np.asarray(2, total.dtype.numpy)))]
    if mode == "mul":
        return [ahead.made(ahead.tensor * back.tensor)]
    raise config.unsupported(f"the merge mode {mode!r}")


# -- the same layer at each step ------------------------------------------------------------------


@layer("TimeDistributed", parts=lambda c: {"layer": c.nested("layer")}, masking=Masking.PASSES)
def time_distributed(self: Layer, x: Symbol, **_: Any) -> Nest:
    """The layer inside at each step; steps do not know each other, so they are examples to it."""
    sizes = x.sizes()
    flat = reshape(x, [sizes[0] * sizes[1], *sizes[2:]])
    made = self.part("layer")(flat)

    def apart(y: Symbol) -> Symbol:
        back = reshape(y.masked(None), [sizes[0], sizes[1], *y.sizes()[1:]])
        return back.made(back.tensor, (*x.shape[:2], *y.shape[1:]))

    if isinstance(made, Symbol):
        return apart(made)
    return [apart(y) for y in flatten(made)]
