"""``tf.Example`` and ``tf.SequenceExample``: TensorFlow's, and our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock import errors
from penstock.core.shapes import TensorShape
from penstock.defs.schema import Example
from support.ops import run_op
from support.record_values import CONTEXT, EXAMPLES, STEPS

FILES = Path(__file__).parent / "files"


def equal(one: Any, other: Any) -> bool:
    """Whether two features are the same arrays."""
    return (
        one.dtype == other.dtype and one.shape == other.shape and bool(np.array_equal(one, other))
    )


def same(one: Any, other: Any) -> bool:
    """Whether two dicts of features are the same."""
    return set(one) == set(other) and all(equal(one[name], other[name]) for name in one)


def test_reads_what_tensorflow_wrote() -> None:
    """All types, extreme numbers, bytes that are no text, no features at all."""
    found = list(ps.records.read_examples(FILES / "examples"))

    assert len(found) == len(EXAMPLES)
    assert all(map(same, found, EXAMPLES))


def test_reads_sequences_of_tensorflow() -> None:
    """Features of the whole, and a list of arrays for each feature of the steps."""
    found = ps.records.decode_sequence_example((FILES / "sequence").read_bytes())

    assert same(found.context, CONTEXT)
    assert set(found.steps) == set(STEPS)
    for name, arrays in STEPS.items():
        assert all(map(equal, found.steps[name], arrays))


def test_what_is_encoded_is_decoded() -> None:
    """By our own functions, and by the op with which graphs read examples."""
    record = ps.records.encode_example(
        {
            "f": [[1.5, 2], [3, 4]],
            "i": True,
            "s": ["ü", b"\xff\0"],
            "b": np.ones(2, ml_dtypes.bfloat16),
        }
    )
    found = ps.records.decode_example(record)

    assert found["f"].tolist() == [1.5, 2, 3, 4]
    assert (found["i"].tolist(), found["i"].dtype) == ([1], np.int64)
    assert found["s"].tolist() == ["ü".encode(), b"\xff\0"]
    assert (found["b"].tolist(), found["b"].dtype) == ([1, 1], np.float32)
    parsed = run_op(
        "ParseSingleExample", record, [np.float32([])], num_sparse=0, sparse_keys=[],
        dense_keys=["f"], sparse_types=[], dense_shapes=[TensorShape((4,))],
    )  # fmt: skip
    assert np.ravel(parsed[-1]).tolist() == [1.5, 2, 3, 4]


def test_equal_examples_are_equal_bytes() -> None:
    """Whatever the order of their features."""
    features = {f"n{n}": n for n in range(50)}

    assert ps.records.encode_example(features) == ps.records.encode_example(
        dict(reversed(features.items()))
    )


FEATURES = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.lists(st.integers(-(2**63), 2**63 - 1)) | st.lists(st.binary())
    | st.lists(st.floats(width=32, allow_nan=False)),
    max_size=4,
)  # fmt: skip


@given(FEATURES, st.dictionaries(st.text("ab"), st.lists(st.lists(st.integers(0, 9)))))
def test_any_values_survive(features: Any, steps: Any) -> None:
    """Names, numbers, bytes; an empty list too, whose type numpy does not know."""
    found = ps.records.decode_example(ps.records.encode_example(features))
    assert {name: array.tolist() for name, array in found.items()} == features
    sequence = ps.records.decode_sequence_example(
        ps.records.encode_sequence_example(features, steps)
    )
    assert {name: [a.tolist() for a in arrays] for name, arrays in sequence.steps.items()} == steps
    assert {name: array.tolist() for name, array in sequence.context.items()} == features


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (1j, "Feature x: values of type complex128 are no feature"),
        (None, "Feature x: a NoneType is neither number nor text"),
        (2**64, "Feature x: "),
        (np.uint64([2**63]), "Feature x: 9223372036854775808 is no int64"),
        ([[1], [1, 2]], "Feature x: rows differ in length"),
    ],
)
def test_what_is_no_feature_is_named(value: Any, says: str) -> None:
    """The error says which, and why."""
    with pytest.raises(errors.InvalidArgumentError, match=says):
        ps.records.encode_example({"x": value})


def test_what_is_no_example_is_refused() -> None:
    """The error says what was expected."""
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse Example of 3 bytes"):
        ps.records.decode_example(b"\xff\xff\xff")
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse SequenceExample"):
        ps.records.decode_sequence_example(b"\xff\xff\xff")


def test_a_feature_without_a_list_is_empty() -> None:
    """It has a name, and nothing that would tell its type."""
    message = Example()
    message.features.feature["x"].SetInParent()
    found = ps.records.decode_example(message.SerializeToString())

    assert found["x"].shape == (0,)
