"""Examples parsed; expected values were recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.defs.schema import Example
from support.ops import run_op
from support.recorded import plain


def example(**features: list[Any]) -> bytes:
    """A serialized example."""
    message = Example()
    for key, values in features.items():
        feature = message.features.feature[key]
        kinds = {float: feature.float_list, bytes: feature.bytes_list, int: feature.int64_list}
        found = kinds[type(values[0])] if values else feature.int64_list
        found.SetInParent()
        found.value.extend(values)
    return message.SerializeToString()


FIRST = example(a=[1, 2], b=[1.5], c=[b"x", b"y"])
SECOND = example(a=[3], b=[2.5, 3.5])
INT, FLOAT, TEXT = dtypes.int64, dtypes.float32, dtypes.string


def strings(*items: bytes) -> Any:
    """A vector of strings."""
    array = np.empty(len(items), object)
    array[:] = items
    return array


def parse(
    texts: Any,
    *,
    sparse: dict[str, Any] | None = None,
    dense: dict[str, tuple[Any, list[int | None]]] | None = None,
    ragged: dict[str, Any] | None = None,
    names: tuple[bytes, ...] = (),
) -> Any:
    """ParseExampleV2's answer."""
    sparse, dense, ragged = sparse or {}, dense or {}, ragged or {}
    keys = [strings(*(key.encode() for key in part)) for part in (sparse, dense, ragged)]
    return plain(
        run_op(
            "ParseExampleV2",
            texts,
            strings(*names),
            *keys,
            [default for default, _ in dense.values()],
            num_sparse=len(sparse),
            sparse_types=tuple(sparse.values()),
            ragged_value_types=tuple(ragged.values()),
            ragged_split_types=(dtypes.int32,) * len(ragged),
            dense_shapes=tuple(TensorShape.of(shape) for _, shape in dense.values()),
        )
    )


#: Attributes that are lists with something for each feature.
_LISTS = {
    "ParseExampleV2": ("Tdense", "ragged_value_types", "ragged_split_types", "dense_shapes"),
    "ParseSingleExample": ("Tdense", "sparse_keys", "dense_keys", "dense_shapes"),
}


@pytest.mark.parametrize("op", list(_LISTS))
def test_as_many_outputs_as_features(op: str) -> None:
    """A node with another number of them makes no sense; TensorFlow refuses it, too."""
    keys = [strings()] * 4 if op == "ParseExampleV2" else []
    attrs = dict.fromkeys(_LISTS[op], ()) | {"num_sparse": 1, "sparse_types": ()}
    with pytest.raises(errors.InvalidArgumentError, match="must match the size of sparse_types"):
        run_op(op, b"", *keys, [], **attrs)


NO_INTS, NO_FLOATS = np.zeros(0, np.int64), np.zeros(0, np.float32)


@pytest.mark.parametrize(
    ("texts", "features", "answer"),
    [
        (
            [FIRST, SECOND],
            {"sparse": {"a": INT, "zz": FLOAT}},
            [[[0, 0], [0, 1], [1, 0]], [], [1, 2, 3], [], [2, 2], [2, 0]],
        ),
        (
            [SECOND],
            {"dense": {"a": (NO_INTS, [1]), "b": (NO_FLOATS, [2])}},
            [[[3]], [[2.5, 3.5]]],
        ),
        ([FIRST, SECOND], {"dense": {"q": (np.int64([9, 8]), [2])}}, [[[9, 8], [9, 8]]]),
        ([FIRST, SECOND], {"dense": {"a": (np.int64(7), [None])}}, [[[1, 2], [3, 7]]]),
        (
            [FIRST, SECOND],
            {"dense": {"b": (np.float32(7), [None, 1])}},
            [[[[1.5], [7.0]], [[2.5], [3.5]]]],
        ),
        ([FIRST, SECOND], {"dense": {"zz": (np.float32(7), [None])}}, [[[], []]]),
        (
            [FIRST, SECOND],
            {"ragged": {"a": INT, "c": TEXT}},
            [[1, 2, 3], [b"x", b"y"], [0, 2, 3], [0, 2, 2]],
        ),
        ([b""], {"sparse": {"a": INT}}, [[], [], [1, 0]]),
        ([], {"dense": {"b": (NO_FLOATS, [1])}}, [[]]),
    ],
)
def test_batch(texts: list[bytes], features: dict[str, Any], answer: Any) -> None:
    """Features of a batch are padded, sparse or ragged, as is asked."""
    assert parse(strings(*texts), **features) == answer


def test_single() -> None:
    """A single example has no batch dimension, and no row splits."""
    answer = parse(FIRST, sparse={"a": INT}, dense={"b": (NO_FLOATS, [1])}, ragged={"c": TEXT})
    assert answer == [[[0], [1]], [1, 2], [2], [1.5], [b"x", b"y"], []]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (
            {"dense": {"a": (np.int64([9]), [1])}},
            "Name: <unknown>, Key: a, Index: 0.  Number of int64 values != expected.  "
            "Values size: 2 but output shape: [1]",
        ),
        (
            {"dense": {"q": (NO_INTS, [2])}, "names": (b"n1", b"n2")},
            "Name: n1, Feature: q (data type: int64) is required but could not be found.",
        ),
        (
            {"dense": {"b": (np.float32(7), [None, 2])}},
            "Key: b, Index: 0.  Number of float values is not a multiple of stride length. "
            "Saw 1 values but output shape is: [?,2]",
        ),
        (
            {"dense": {"a": (np.float32([7]), [1])}},
            "Data types don't match. Data type: int64 but expected type: float",
        ),
        (
            {"sparse": {"a": FLOAT}},
            "Data types don't match. Expected type: float, Actual type: int64",
        ),
        (
            {"dense": {"a": (np.int64([[1, 2]]), [2])}},
            "def_value[0].shape() == [1,2] is not compatible with dense_shapes_[0] == [2]",
        ),
    ],
)
def test_refused(features: dict[str, Any], message: str) -> None:
    """Features that are not as they should be are named."""
    with pytest.raises(errors.InvalidArgumentError) as raised:
        parse(strings(FIRST, SECOND), **features)
    assert message in str(raised.value)


def test_garbage() -> None:
    """What is no example is shown."""
    with pytest.raises(errors.InvalidArgumentError, match=r"Could not parse example.*'garbage'"):
        parse(strings(b"garbage"), sparse={"a": INT})


def test_json() -> None:
    """An example in JSON becomes a serialized one; bad JSON is refused."""
    text = b'{"features":{"feature":{"a":{"int64List":{"value":["1"]}}}}}'
    assert run_op("DecodeJSONExample", text) == example(a=[1])
    with pytest.raises(errors.InvalidArgumentError, match="Error while parsing JSON"):
        run_op("DecodeJSONExample", b"{bad")
