"""Attention: for each query, a mean of values, weighted by how well their keys fit.

Sources: Luong et al. 2015 (``Attention``), Bahdanau et al. 2014 (``AdditiveAttention``), Vaswani et
al. 2017 (``MultiHeadAttention``), Ainslie et al. 2023 (``GroupQueryAttention``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.dataclass import dataclass
from penstock.formats.keras.config import Config
from penstock.formats.keras.layer import Layer, Masking, Weight, layer
from penstock.formats.keras.layers.core import masked_softmax
from penstock.formats.keras.symbol import Nest, Symbol, constant_like, pack, reshape, transpose


def _causal(queries: Symbol, keys: Symbol) -> Tensor:
    """Whether a key is no later than a query, for all pairs: [1, queries, keys]."""
    rows = ops.expand_dims(ops.range(0, queries.size(1), 1), 1)
    columns = ops.expand_dims(ops.range(0, keys.size(1), 1), 0)
    return ops.expand_dims(rows >= columns, 0)


def _all_of(masks: Sequence[Tensor | None]) -> Tensor | None:
    """Where all masks that are given hold."""
    total: Tensor | None = None
    for mask in masks:
        if mask is not None:
            total = mask if total is None else ops.logical_and(total, mask)
    return total


# -- one head -------------------------------------------------------------------------------------


def _scaled(config: Config) -> list[Weight]:
    scale = [Weight("scale")] if config.flag("use_scale", default=False) else []
    is_sum = config.text("score_mode", "dot") == "concat"
    return [*scale, Weight("concat_score_weight")] if is_sum else scale


@layer("Attention", weights=_scaled, masking=Masking.OWN)
def attention(self: Layer, inputs: Sequence[Symbol], **more: Any) -> Nest:
    """Keys fit by their product with the query, or by the tanh of their sum."""
    query, value, key = _three(self.config, inputs)
    if self.config.choice("score_mode", ("dot", "concat"), "dot") == "dot":
        scores = ops.batch_mat_mul_v2(query.tensor, key.tensor, adj_y=True)
        if "scale" in self.arrays:
            scores = scores * self.weight("scale")
    else:
        total = _pairs(query, key)
        if "scale" in self.arrays:
            total = self.weight("scale") * total
        scores = self.weight("concat_score_weight") * ops.sum(ops.tanh(total), [-1])
    return _attended(self.config, (query, value, key), scores, more)


@layer(
    "AdditiveAttention",
    weights=lambda c: [Weight("scale")] if c.flag("use_scale", default=True) else [],
    masking=Masking.OWN,
)
def additive_attention(self: Layer, inputs: Sequence[Symbol], **more: Any) -> Nest:
    """Keys fit by the sum of the tanh of their sum with the query."""
    query, value, key = _three(self.config, inputs)
    total = ops.tanh(_pairs(query, key))
    if "scale" in self.arrays:
        total = self.weight("scale", (query.shape[-1],)) * total
    return _attended(self.config, (query, value, key), ops.sum(total, [-1]), more)


def _three(config: Config, inputs: Sequence[Symbol]) -> tuple[Symbol, Symbol, Symbol]:
    """Query, value and key, which is the value unless it is given."""
    if not isinstance(inputs, (list, tuple)) or len(inputs) not in (2, 3):
        raise config.error("it takes a list of query, value and key")
    if any(x.rank != 3 for x in inputs):
        raise config.unsupported("inputs of other than three dimensions")
    return inputs[0], inputs[1], inputs[-1 if len(inputs) == 3 else 1]


def _pairs(query: Symbol, key: Symbol) -> Tensor:
    """The sum of each query and each key: [batch, queries, keys, features]."""
    return ops.expand_dims(query.tensor, 2) + ops.expand_dims(key.tensor, 1)


def _attended(
    config: Config, three: tuple[Symbol, Symbol, Symbol], scores: Tensor, more: Mapping[str, Any]
) -> Nest:
    query, value, key = three
    is_causal = more.get("use_causal_mask") or config.flag("causal", default=False)
    mask = _all_of(
        [
            None if value.mask is None else ops.expand_dims(value.mask, 1),
            _causal(query, key) if is_causal else None,
        ]
    )
    if mask is not None:
        highest = 65504.0 if scores.dtype is dtypes.float16 else 1e9
        away = ops.cast(ops.logical_not(mask), scores.dtype)
        scores = scores - constant_like(highest, scores) * away
    weights = ops.softmax(scores)
    made = ops.batch_mat_mul_v2(weights, value.tensor)
    if query.mask is not None:
        made = made * ops.cast(ops.expand_dims(query.mask, -1), made.dtype)
    output = query.made(made, (*query.shape[:2], value.shape[-1])).masked(query.mask)
    if not more.get("return_attention_scores"):
        return output
    return [output, query.made(weights, (*query.shape[:2], key.shape[1]))]


# -- several heads --------------------------------------------------------------------------------

_PROJECTIONS = ("query_dense", "key_dense", "value_dense", "output_dense")


def _projections(config: Config) -> Mapping[str, Config]:
    """Four products, of which only the weights are asked for."""
    has_bias = config.flag("use_bias", default=True)
    settings = {"bias_axes": "abc" if has_bias else None, "dtype": config.settings.get("dtype")}
    return {
        name: replace(
            config, class_name="EinsumDense", name=name, settings=settings, within=config.path
        )
        for name in _PROJECTIONS
    }


@layer("MultiHeadAttention", parts=_projections, masking=Masking.PASSES)
def multi_head_attention(
    self: Layer, query: Symbol, value: Symbol, key: Symbol | None = None, **more: Any
) -> Nest:
    """Attention between several projections of the inputs at once."""
    config = self.config
    if config.flag("flash_attention", default=False):
        raise config.unsupported("flash attention")
    key = value if key is None else key
    query, key, value = _with_given_masks((query, key, value), more)
    heads = _Heads(self, config.integer("num_heads", at_least=1), config.settings)
    return heads.attended(query, key, value, more)


@layer("GroupQueryAttention", "GroupedQueryAttention", parts=_projections, masking=Masking.PASSES)
def group_query_attention(
    self: Layer, query: Symbol, value: Symbol, key: Symbol | None = None, **more: Any
) -> Nest:
    """The same with fewer keys and values than queries: several heads share them."""
    config = self.config
    key = value if key is None else key
    query, key, value = _with_given_masks((query, key, value), more)
    heads = _Heads(self, config.integer("num_query_heads", at_least=1), {})
    return heads.attended(query, key, value, more)


def _with_given_masks(three: Sequence[Symbol], more: Mapping[str, Any]) -> list[Symbol]:
    """Query, key and value with the masks that the call gives in place of their own."""
    names = ("query_mask", "key_mask", "value_mask")
    given = [more.get(name) for name in names]
    return [
        x.masked(mask.tensor) if isinstance(mask, Symbol) else x
        for x, mask in zip(three, given, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Heads:
    """The heads of one layer."""

    layer: Layer
    count: int
    settings: Mapping[str, Any]

    def attended(self, query: Symbol, key: Symbol, value: Symbol, more: Mapping[str, Any]) -> Nest:
        """The output, and the weights if they are asked for."""
        config = self.layer.config
        mask = self._mask(query, key, value, more)
        order, around = self._order(query)
        flat = [self._flat(transpose(x, order), around) for x in (query, key, value)]
        if mask is not None and query.rank != 3:
            raise config.unsupported("masks of inputs of other than three dimensions")
        projected = [
            self._projected(x, name) for x, name in zip(flat, _PROJECTIONS[:3], strict=True)
        ]
        q, k, v = (self._heads_first(x) for x in projected)
        width = q.shape[-1] or 1
        scaled = q.tensor * constant_like(1 / np.sqrt(width), q.tensor)
        scores = ops.batch_mat_mul_v2(scaled, self._shared(k).tensor, adj_y=True)
        keep = None if mask is None else ops.expand_dims(mask, 1)
        weights = self._weights(scores, q.rank, keep, more)
        made = ops.batch_mat_mul_v2(weights, self._shared(v).tensor)
        seen = q.made(made, (*q.shape[:-1], v.shape[-1]))
        output = self._put_back(self._output(seen), transpose(query, order), order)
        if not more.get("return_attention_scores"):
            return output
        return [output, q.made(weights, (*q.shape[:-1], k.shape[-2]))]

    def _weights(
        self, scores: Tensor, rank: int, keep: Tensor | None, more: Mapping[str, Any]
    ) -> Tensor:
        """The softmax of scores.

        What Keras 3 does for a query that may look at nothing depends on the way it takes: its
        function of the whole attention looks at all keys alike, its Softmax layer at none.
        """
        config = self.layer.config
        is_whole = not (
            config.number("dropout", 0.0) or more.get("return_attention_scores") or rank != 4
        )
        if keep is not None and config.is_keras_3 and is_whole:
            lowest = constant_like(-1e4 if scores.dtype is dtypes.float16 else -1e9, scores)
            return ops.softmax(ops.select_v2(keep, scores, lowest))
        return masked_softmax(scores, (rank - 1,), rank, keep, config)

    def _order(self, query: Symbol) -> tuple[list[int], int]:
        """The dimensions with those of attention behind the others; how many others there are."""
        rank = query.rank
        inner = list(range(1, rank - 1))
        along = self.settings.get("attention_axes")
        given = inner if along is None else along if isinstance(along, (list, tuple)) else [along]
        axes = [axis % rank for axis in given if isinstance(axis, int)]
        others = [axis for axis in inner if axis not in axes]
        return [0, *others, *axes, rank - 1], 1 + len(others)

    def _flat(self, x: Symbol, around: int) -> Symbol:
        """All dimensions of attention as one."""
        if x.rank == around + 2:
            return x
        sizes = x.sizes()
        steps: Any = 1
        for size in sizes[around:-1]:
            steps = size * steps
        return reshape(x, [*sizes[:around], steps, sizes[-1]])

    def _put_back(self, output: Symbol, query: Symbol, order: Sequence[int]) -> Symbol:
        """The dimensions of attention apart again, and all where they were in the query."""
        features = (
            output.shape[query.rank - 1 :]
            if output.rank == query.rank
            else (output.shape[len(order) - 1 :])
        )
        if query.rank != 3:
            features = output.shape[-1:]
            output = reshape(output, [*query.sizes()[:-1], output.size(-1)])
        output = output.made(output.tensor, (*query.shape[:-1], *features))
        if list(order) == sorted(order):
            return output
        back = [list(order).index(place) for place in range(len(order))]
        return transpose(output, back)

    def _projected(self, x: Symbol, name: str) -> Symbol:
        """X · kernel + bias: [..., steps, heads, width]."""
        part = self.layer.part(name)
        kernel = part.array("kernel", (x.shape[-1], None, None))
        wide = part.kept("matrix", lambda: kernel.reshape(kernel.shape[0], -1))
        made = ops.batch_mat_mul_v2(x.tensor, wide)
        if "bias" in part.arrays:
            bias = part.array("bias", kernel.shape[1:])
            made = made + part.kept("row", lambda: bias.reshape(-1))
        flat = x.made(made, (*x.shape[:-1], kernel.shape[1] * kernel.shape[2]))
        return reshape(flat, [*x.sizes()[:-1], *kernel.shape[1:]])

    def _heads_first(self, x: Symbol) -> Symbol:
        order = [*range(x.rank - 3), x.rank - 2, x.rank - 3, x.rank - 1]
        return transpose(x, order)

    def _shared(self, x: Symbol) -> Symbol:
        """Each head of keys or values for as many queries as share it."""
        own = x.shape[-3] or 1
        if own == self.count:
            return x
        if self.count % own:
            raise self.layer.config.error(f"{self.count} heads cannot share {own}")
        wide = ops.expand_dims(x.tensor, x.rank - 2)
        counts = [1] * (x.rank + 1)
        counts[x.rank - 2] = self.count // own
        sizes = [*x.sizes()[:-3], self.count, *x.sizes()[-2:]]
        return reshape(x.made(ops.tile(wide, np.array(counts, np.int32))), sizes)

    def _output(self, seen: Symbol) -> Symbol:
        """What all heads saw, as one: [..., steps, features]."""
        part = self.layer.part("output_dense")
        kernel = part.array("kernel")
        together = self._heads_first(seen)
        sizes = together.sizes()
        width = (together.shape[-1] or 1) * self.count
        flat = reshape(together, [*sizes[:-2], width])
        features = kernel.shape[2:]
        matrix = part.kept("matrix", lambda: kernel.reshape(width, -1))
        made = ops.batch_mat_mul_v2(flat.tensor, matrix)
        if "bias" in part.arrays:
            bias = part.array("bias", features)
            made = made + part.kept("row", lambda: bias.reshape(-1))
        shape = (*flat.shape[:-1], int(np.prod(features)))
        if len(features) == 1:
            return flat.made(made, shape)
        apart = ops.reshape(made, pack([*flat.sizes()[:-1], *features]))
        return flat.made(apart, (*flat.shape[:-1], *features))

    def _mask(
        self, query: Symbol, key: Symbol, value: Symbol, more: Mapping[str, Any]
    ) -> Tensor | None:
        """Which queries look at which keys: [batch, queries, keys]."""
        given = more.get("attention_mask")
        return _all_of(
            [
                None if query.mask is None else ops.expand_dims(query.mask, 2),
                None if value.mask is None else ops.expand_dims(value.mask, 1),
                None if key.mask is None or key is value else ops.expand_dims(key.mask, 1),
                _causal(query, key) if more.get("use_causal_mask") else None,
                ops.cast(given.tensor, dtypes.bool_) if isinstance(given, Symbol) else None,
            ]
        )
