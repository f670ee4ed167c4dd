"""Objects on variant edges: read from messages if they can be what these say."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.values import EncodedVariant
from penstock.errors import InvalidArgumentError
from penstock.kernels.values.variants import EMPTY, Variant, decoded
from support.ops import run_op

CSR = "tensorflow::CSRSparseMatrix"
LIST = "tensorflow::TensorList"
SCALAR = (dtypes.int32, np.int32(0))


def int32(*items: int) -> tuple[Any, Any]:
    """A vector, with its type."""
    return dtypes.int32, np.array(items, np.int32)


def matrix(*changes: tuple[int, Any], kind: int = 1) -> EncodedVariant:
    """Two matrices of 2 x 3, with some parts changed."""
    parts = [
        (dtypes.int64, np.array([2, 2, 3])),
        int32(0, 1, 3),
        int32(0, 0, 1, 0, 1, 2),
        int32(2, 0, 1),
        (dtypes.float32, np.array([1, 2, 3], np.float32)),
    ]
    for place, part in changes:
        parts[place] = part
    return EncodedVariant(CSR, struct.pack("<?3xi", True, kind), tuple(parts))


def test_matrices_are_read() -> None:
    """Sizes, ends, starts, columns and values make up the matrices."""
    dense = run_op("CSRSparseMatrixToDense", decoded(matrix()), type=dtypes.float32)

    assert dense.tolist() == [[[0, 0, 0], [0, 0, 1]], [[2, 0, 0], [0, 3, 0]]]


def test_matrices_are_written_as_they_were_read() -> None:
    """The parts come back, those of a batch one behind the other."""
    back = decoded(matrix()).encoded()

    assert back.metadata == matrix().metadata
    for (kind, part), (wanted, given) in zip(back.tensors, matrix().tensors, strict=True):
        assert kind is wanted
        np.testing.assert_array_equal(part, given)


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (EncodedVariant(CSR, matrix().metadata, matrix().tensors[:4]), "4 tensors"),
        (EncodedVariant(CSR, b"\1", matrix().tensors), "are not the parts"),
        (matrix(kind=2), "other types"),
        (matrix((1, (dtypes.int64, np.array([0, 1, 3])))), "other types"),
        (matrix((0, (dtypes.int64, np.array([3])))), "not the sizes"),
        (matrix((0, (dtypes.int64, np.array([2, 2, -3])))), "not the sizes"),
        (matrix((0, (dtypes.int64, np.array([3, 2, 3])))), "an end for each matrix"),
        (matrix((0, (dtypes.int64, np.array([2, 1, 3])))), "a start for each row"),
        (matrix((1, int32(0, 4, 3))), "ends of matrices are out of order"),
        (matrix((1, int32(1, 1, 3))), "ends of matrices are out of order"),
        (matrix((1, int32(0, 1, 2))), "ends of matrices are out of order"),
        (matrix((2, int32(0, 2, 1, 0, 1, 2))), "starts of rows are out of order"),
        (matrix((2, int32(1, 1, 1, 0, 1, 2))), "starts of rows are out of order"),
        (matrix((2, int32(0, 0, 1, 0, 1, 1))), "starts of rows are out of order"),
        (matrix((3, int32(2, 0, 3))), "a column is out of bounds"),
        (matrix((3, int32(2, 0, -1))), "a column is out of bounds"),
        (matrix((3, int32(2, 0))), "a column for each value"),
        (EncodedVariant(LIST, b"\0\3\5\x18\1", ((dtypes.float32, np.float32(1)),)), "type int32"),
        (EncodedVariant(LIST, b"\1\5\3\5\x18\1"), r"a list of 1 elements cannot lack those at \[5"),
        (EncodedVariant(LIST, b"\2\0\0\3\5\x18\1"), r"2 elements cannot lack those at \[0, 0"),
        (EncodedVariant(LIST, b"\0\x63\5\x18\1"), "invalid DataType enum: 99"),
        (EncodedVariant(LIST, b"\0\3\5\xff"), "metadata is damaged"),
        (EncodedVariant(LIST), "cut off"),
        (EncodedVariant("RaggedTensorVariant", b"", (SCALAR, int32(1))), "must be vectors"),
        (EncodedVariant("tensorflow::Tensor"), "no tensor"),
    ],
)
def test_what_cannot_be_is_refused(damaged: EncodedVariant, why: str) -> None:
    """A message of parts that do not fit is refused before anything is done with them."""
    with pytest.raises(InvalidArgumentError, match=f"Could not decode variant with.*{why}"):
        decoded(damaged)


def test_objects_in_tensors_of_objects_are_read() -> None:
    """An array of messages becomes an array of objects, those inside of them included."""
    inner = EncodedVariant("int", b"\7\0\0\0")
    outer = EncodedVariant("tensorflow::Tensor", b"", ((dtypes.variant, inner),))
    array = np.array([[outer, EncodedVariant()]], object)
    read = decoded(array)

    assert read.shape == (1, 2)
    assert str(read[0, 0].value) == "7"
    assert read[0, 1] is EMPTY


def test_objects_without_a_form_travel_as_their_name() -> None:
    """A message says of what class such an object was, which is as much as TensorFlow writes."""

    class Handle(Variant):
        type_name = "tests::Handle"

    assert Handle().encoded() == EncodedVariant("tests::Handle")
    with pytest.raises(InvalidArgumentError, match='type_name: "tests::Handle": such objects'):
        decoded(EncodedVariant("tests::Handle"))
