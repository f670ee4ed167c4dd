"""Serialized sequence examples as tensors, by the ops whose keys are attributes or lists.

In:   strings that hold ``SequenceExample``; the keys of features and what they are to look like.
Out:  per feature of the context, and per list of features, a dense or sparse tensor.
Not:  parses nothing itself; ``sequence_example_ops`` does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

from penstock.core.values import Value, shape_of
from penstock.defs.schema import SequenceExample
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.parsing.examples import check_counts, parse, titles
from penstock.kernels.parsing.sequence_example_ops import in_context, in_lists, rows_of
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.strings import items_of

_RAGGED: Final = (
    "context_ragged_value_types",
    "context_ragged_split_types",
    "feature_list_ragged_value_types",
    "feature_list_ragged_split_types",
)


def _facts(attrs: Attrs) -> Attrs:
    """The attributes that the newer op would have: nothing is ragged."""
    return dataclasses.replace(attrs, values={**attrs.values, **dict.fromkeys(_RAGGED, ())})


def _texts(items: Sequence[bytes]) -> list[str]:
    return [item.decode("utf-8", "replace") for item in items]


@kernel("ParseSequenceExample")
def make_parse_sequence_example(attrs: Attrs) -> Kernel:
    """Features of a batch of sequence examples."""
    check_counts(attrs)
    facts = _facts(attrs)
    context_keys = [_texts(attrs.list(f"context_{kind}_keys")) for kind in ("sparse", "dense")]
    list_keys = [_texts(attrs.list(f"feature_list_{kind}_keys")) for kind in ("sparse", "dense")]
    may_miss = set(_texts(attrs.list("feature_list_dense_missing_assumed_empty")))
    misses = [key in may_miss for key in list_keys[1]]

    def parse_sequences(serialized: Value, names: Value, *defaults: Value) -> tuple[Value, ...]:
        if len(shape_of(serialized)) != 1:
            raise InvalidArgumentError(
                f"Expected serialized to be a vector, got shape: {shape_text(shape_of(serialized))}"
            )
        texts = items_of(serialized)
        messages = [parse(SequenceExample(), text) for text in texts]
        labels = titles(names, len(texts))
        context = rows_of([message.context.feature for message in messages], labels)
        lists = rows_of([message.feature_lists.feature_list for message in messages], labels)
        return (
            *in_context(facts, context, [*context_keys, []], defaults, is_single=False),
            *in_lists(facts, lists, [*list_keys, []], misses, is_single=False),
        )

    return parse_sequences


@kernel("ParseSingleSequenceExample")
def make_parse_single_sequence_example(attrs: Attrs) -> Kernel:
    """Features of one sequence example, whose lists need no lengths."""
    check_counts(attrs)
    facts = _facts(attrs)
    counts = [
        len(attrs.list("context_sparse_types")),
        len(attrs.list("Tcontext_dense")),
        len(attrs.list("feature_list_sparse_types")),
        len(attrs.list("feature_list_dense_types")),
    ]

    def parse_sequence(serialized: Value, missing: Value, *inputs: Value) -> tuple[Value, ...]:
        if shape_of(serialized) != ():
            raise InvalidArgumentError(
                f"Expected serialized to be a scalar, got shape: {shape_text(shape_of(serialized))}"
            )
        keys, at = [], 0
        for count in counts:
            keys.append(_texts([items_of(key)[0] for key in inputs[at : at + count]]))
            at += count
        may_miss = set(_texts(items_of(missing)))
        misses = [key in may_miss for key in keys[3]]
        message = parse(SequenceExample(), items_of(serialized)[0])
        labels = titles(inputs[-1], 1)
        context = rows_of([message.context.feature], labels)
        lists = rows_of([message.feature_lists.feature_list], labels)
        found = in_lists(facts, lists, [*keys[2:], []], misses, is_single=True)
        return (
            *in_context(facts, context, [*keys[:2], []], inputs[at:-1], is_single=True),
            *(found[: len(found) - counts[3]]),
        )

    return parse_sequence
