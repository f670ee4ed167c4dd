"""Rows of a table for numbers, and the way back."""

from __future__ import annotations

from typing import Any

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, Weight, layer
from penstock.formats.keras.layers.core import multiplied, refuse_variants
from penstock.formats.keras.symbol import Symbol, constant_like


@layer(
    "Embedding",
    weights=lambda _: [Weight("embeddings")],
    masking=Masking.OWN,
    converts=False,
)
def embedding(self: Layer, x: Symbol) -> Symbol:
    """The row of a table for each number; with ``mask_zero``, number 0 is no part of a text."""
    table = _table(self)
    numbers = x.tensor
    if numbers.dtype not in (dtypes.int32, dtypes.int64):
        numbers = ops.cast(numbers, dtypes.int32)
    width = self.config.integer("output_dim", at_least=1)
    rows = x.made(ops.gather_v2(table, numbers, 0), (*x.shape, width))
    if not self.config.flag("mask_zero", default=False):
        return rows
    return rows.masked(ops.not_equal(x.tensor, constant_like(0, x.tensor)))


def _table(self: Layer) -> Tensor:
    refuse_variants(self.config)
    size = self.config.integer("input_dim", at_least=1)
    return self.weight("embeddings", (size, self.config.integer("output_dim", at_least=1)))


def _two_tables(config: Config) -> list[Weight]:
    is_tied = config.flag("tie_weights", default=True)
    names = ["embeddings"] if is_tied else ["embeddings", "reverse_embeddings"]
    return [Weight(name) for name in names]


@layer("ReversibleEmbedding", weights=_two_tables, masking=Masking.OWN, converts=False)
def reversible_embedding(self: Layer, x: Symbol, *, reverse: Any = False) -> Symbol:
    """Rows for numbers; in reverse, for each row how well it fits each number."""
    if reverse is not True:
        rows: Symbol = embedding(self, x)
        return rows
    config = self.config
    size, width = (config.integer(key, at_least=1) for key in ("input_dim", "output_dim"))
    wanted = config.type_of("reverse_dtype", config.dtype.name)
    kernel: Tensor = (
        ops.transpose(_table(self), [1, 0])
        if config.flag("tie_weights", default=True)
        else self.weight("reverse_embeddings", (width, size))
    )
    fits = multiplied(_as(x, wanted), ops.cast(kernel, wanted), size)
    cap = config.get("logit_soft_cap", None)
    if cap is None:
        return fits
    most = constant_like(config.number("logit_soft_cap"), fits.tensor)
    capped: Tensor = ops.tanh(ops.real_div(fits.tensor, most)) * most
    return fits.made(capped)


def _as(x: Symbol, wanted: DType) -> Symbol:
    return x if x.tensor.dtype is wanted else x.made(ops.cast(x.tensor, wanted))
