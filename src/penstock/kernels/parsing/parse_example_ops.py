"""Serialized examples as tensors.

In:   strings that hold ``Example``; the keys of features and what they are to look like.
Out:  per feature a dense, a sparse or a ragged tensor.
Not:  reads no files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, starmap
from typing import Any

from google.protobuf import json_format

from penstock.core.values import Array, Value, as_value, shape_of
from penstock.defs.schema import Example
from penstock.errors import InvalidArgumentError
from penstock.exceptions import shown_cause
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.parsing.examples import (
    Dense,
    Row,
    check_counts,
    checked_titles,
    parse,
    ragged_batch,
    sparse_batch,
)
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import each_string, items_of

#: Keys of sparse, dense and ragged features.
_Keys = tuple[list[str], list[str], list[str]]


def _reader(attrs: Attrs) -> Callable[..., tuple[Value, ...]]:
    """What turns examples into tensors, apart from the keys, which may be inputs."""
    check_counts(attrs)
    sparse_types = attrs.list("sparse_types")
    dense_types, dense_shapes = attrs.list("Tdense"), attrs.list("dense_shapes")
    is_v2 = attrs.op.name == "ParseExampleV2"
    ragged_types = attrs.list("ragged_value_types") if is_v2 else ()
    split_types = attrs.list("ragged_split_types") if is_v2 else ()

    def read(
        rows: Sequence[Row], keys: _Keys, defaults: Sequence[Value], *, is_single: bool
    ) -> tuple[Value, ...]:
        sparse_keys, dense_keys, ragged_keys = keys
        for name, given, types in zip(
            ("sparse", "dense", "ragged"), keys, (sparse_types, dense_types, ragged_types),
            strict=True,
        ):  # fmt: skip
            if len(given) != len(types):
                other = "num_sparse" if is_v2 and name == "sparse" else f"len({name}_types)"
                raise InvalidArgumentError(
                    f"Expected len({name}_keys) == {other} but got: {len(given)} vs. {len(types)}"
                )
        rows = _without_twins(rows, keys)
        facts = zip(dense_keys, dense_types, dense_shapes, map(as_array, defaults), strict=True)
        dense = list(starmap(Dense, facts))
        for at, feature in enumerate(dense):
            feature.check(at)
        batches = [feature.batch(rows) for feature in dense]
        pairs = zip(sparse_keys, sparse_types, strict=True)
        sparse = [sparse_batch(key, dtype, rows) for key, dtype in pairs]
        triples = zip(ragged_keys, ragged_types, split_types, strict=True)
        ragged = [ragged_batch(*triple, rows) for triple in triples]
        if is_single:
            batches = [batch[0] for batch in batches]
            sparse = [(places[:, 1:], values, shape[1:]) for places, values, shape in sparse]
            ragged = [(values, splits[:0]) for values, splits in ragged]
        return (*_by_column(sparse, 3), *map(as_value, batches), *_by_column(ragged, 2))

    return read


def _without_twins(rows: Sequence[Row], keys: _Keys) -> Sequence[Row]:
    """The same, where keys that are asked for twice are not found, which is so in TensorFlow."""
    counts = Counter(chain.from_iterable(keys))
    twins = frozenset(key for key, count in counts.items() if count > 1)
    return [replace(row, unseen=twins) for row in rows] if twins else rows


def _by_column(rows: Sequence[Sequence[Array]], width: int) -> list[Array]:
    """First the first items of all rows, then the second ones, and so on."""
    return [row[at] for at in range(width) for row in rows]


def _texts(value: Value) -> list[str]:
    return [key.decode("utf-8", "replace") for key in as_array(value).ravel().tolist()]


def _rows(serialized: Value, names: Value) -> list[Row]:
    found = zip(items_of(serialized), checked_titles(names, serialized), strict=True)
    return [
        Row(parse(Example(), text).features.feature, title, at)
        for at, (text, title) in enumerate(found)
    ]


@kernel("ParseExampleV2")
def make_parse_example_v2(attrs: Attrs) -> Kernel:
    """Features of a batch of examples, or of a single one."""
    read = _reader(attrs)

    def parse_example(
        serialized: Value,
        names: Value,
        sparse: Value,
        dense: Value,
        ragged: Value,
        *defaults: Value,
    ) -> tuple[Value, ...]:
        if len(shape_of(serialized)) > 1:
            raise InvalidArgumentError(
                "Expected serialized to be a scalar or vector, got shape: "
                f"{shape_text(shape_of(serialized))}"
            )
        keys = _texts(sparse), _texts(dense), _texts(ragged)
        rows = _rows(serialized, names)
        is_single = shape_of(serialized) == ()
        if is_single:
            rows = [Row(row.features) for row in rows]
        return read(rows, keys, defaults, is_single=is_single)

    return parse_example


@kernel("ParseExample")
def make_parse_example(attrs: Attrs) -> Kernel:
    """Features of a batch of examples."""
    read = _reader(attrs)
    sparse_count, dense_count = attrs.int("Nsparse"), attrs.int("Ndense")

    def parse_example(serialized: Value, names: Value, *rest: Value) -> tuple[Value, ...]:
        if len(shape_of(serialized)) != 1:
            raise InvalidArgumentError(
                f"Expected serialized to be a vector, got shape: {shape_text(shape_of(serialized))}"
            )
        keys = [key for value in rest[: sparse_count + dense_count] for key in _texts(value)]
        split = keys[:sparse_count], keys[sparse_count:], list[str]()
        rows = _rows(serialized, names)
        return read(rows, split, rest[sparse_count + dense_count :], is_single=False)

    return parse_example


@kernel("ParseSingleExample")
def make_parse_single_example(attrs: Attrs) -> Kernel:
    """Features of one example."""
    read = _reader(attrs)
    sparse, dense = (
        [key.decode("utf-8", "replace") for key in attrs.list(name)]
        for name in ("sparse_keys", "dense_keys")
    )
    keys = sparse, dense, list[str]()

    def parse_example(serialized: Value, *defaults: Value) -> tuple[Value, ...]:
        if shape_of(serialized) != ():
            raise InvalidArgumentError(
                f"Expected serialized to be a scalar, got shape: {shape_text(shape_of(serialized))}"
            )
        features = parse(Example(), as_array(serialized).item()).features.feature
        return read([Row(features)], keys, defaults, is_single=True)

    return parse_example


@kernel("DecodeJSONExample")
def make_decode_json_example(_attrs: Attrs) -> Kernel:
    """Examples in JSON as serialized messages."""
    return each_string(_from_json)


def _from_json(text: bytes) -> bytes:
    try:
        message: Any = json_format.Parse(text, Example())
    except (json_format.ParseError, UnicodeDecodeError) as cause:
        raise InvalidArgumentError(f"Error while parsing JSON: {cause}") from shown_cause(cause)
    serialized: bytes = message.SerializeToString(deterministic=True)
    return serialized
