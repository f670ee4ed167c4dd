"""Every encoding of a tensor in a message is read and written as TensorFlow does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import EncodedVariant, ResourceHandle, has_dtype
from penstock.defs import tensors
from penstock.defs.schema import Message, TensorProto, VariantTensorDataProto
from penstock.defs.varint import write_varint
from penstock.errors import InvalidArgumentError, ResourceExhaustedError


def proto(dtype: DType, shape: list[int], **fields: Any) -> Message:
    """A TensorProto with the given fields."""
    message = TensorProto(dtype=dtype.number, **fields)
    for size in shape:
        message.tensor_shape.dim.add(size=size)
    return message


NUMERIC = [d for d in dtypes.ALL if not d.is_object]


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)], ids=str)
def test_numbers_survive_the_way_there_and_back(dtype: DType, shape: tuple[int, ...]) -> None:
    """Whatever is written as content bytes is read back, type and shape included."""
    kind = dtype.numpy[0] if dtype.numpy.names else dtype.numpy
    array = (np.arange(np.prod(shape, dtype=int)) % 2).astype(kind).reshape(shape).view(dtype.numpy)
    back = tensors.from_proto(tensors.to_proto(array, dtype))

    assert has_dtype(back, dtype)
    np.testing.assert_array_equal(np.asarray(back), array)


@pytest.mark.parametrize(
    ("dtype", "field", "stored", "want"),
    [
        (dtypes.float32, "float_val", [1.5, -2.0], [1.5, -2.0, -2.0]),
        (dtypes.float64, "double_val", [1.5], [1.5, 1.5, 1.5]),
        (dtypes.int32, "int_val", [-7], [-7, -7, -7]),
        (dtypes.int16, "int_val", [-7], [-7, -7, -7]),
        (dtypes.int8, "int_val", [-7, 7], [-7, 7, 7]),
        (dtypes.uint8, "int_val", [255], [255, 255, 255]),
        (dtypes.uint16, "int_val", [65535], [65535, 65535, 65535]),
        (dtypes.uint32, "uint32_val", [2**32 - 1], [2**32 - 1] * 3),
        (dtypes.uint64, "uint64_val", [2**64 - 1], [2**64 - 1] * 3),
        (dtypes.int64, "int64_val", [-(2**62)], [-(2**62)] * 3),
        (dtypes.bool_, "bool_val", [True, False], [True, False, False]),
        (dtypes.complex64, "scomplex_val", [1, 2, 3, 4], [1 + 2j, 3 + 4j, 3 + 4j]),
        (dtypes.complex128, "dcomplex_val", [1, 2], [1 + 2j] * 3),
    ],
)
def test_lists_repeat_their_last_element(
    dtype: DType, field: str, stored: list[Any], want: list[Any]
) -> None:
    """A list shorter than the shape says is stretched by its last element."""
    got = tensors.from_proto(proto(dtype, [3], **{field: stored}))

    assert got.dtype == dtype.numpy
    assert got.tolist() == want


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize(
    ("dtype", "number", "want"),
    [(dtypes.qint8, 300, 44), (dtypes.int8, 300, 44), (dtypes.uint8, -1, 255)],
)
def test_numbers_that_are_too_large_lose_their_upper_bits(
    dtype: DType, number: int, want: int, count: int
) -> None:
    """However many there are; narrow integers are stored as wider ones."""
    got = tensors.from_proto(proto(dtype, [count], int_val=[number] * count))
    plain = got.view(got.dtype[0]) if got.dtype.names else got
    assert plain.tolist() == [want] * count


@pytest.mark.parametrize("count", [7, 8, 9, 40])
@pytest.mark.parametrize(
    ("dtype", "field", "first"),
    [
        (dtypes.float32, "float_val", 0.5),
        (dtypes.float64, "double_val", 0.5),
        (dtypes.int32, "int_val", -20),
        (dtypes.int8, "int_val", -20),
        (dtypes.uint16, "int_val", 65000),
        (dtypes.int64, "int64_val", -20),
        (dtypes.uint64, "uint64_val", 1 << 63),
        (dtypes.bool_, "bool_val", False),
    ],
)
def test_lists_of_numbers_may_be_long(dtype: DType, field: str, first: Any, count: int) -> None:
    """Short ones are read in another way, to the same end."""
    numbers = [type(first)(first + place) for place in range(count)]
    got = tensors.from_proto(proto(dtype, [count], **{field: numbers}))
    assert got.dtype == dtype.numpy
    assert got.tolist() == numbers


@pytest.mark.parametrize(
    ("message", "want"),
    [
        (proto(dtypes.float32, [2], float_val=[1, 2, 3]), [1, 2]),
        (proto(dtypes.float32, [0, 2], float_val=[1]), []),
        (proto(dtypes.string, [0], string_val=[b"x"]), []),
        (proto(dtypes.float32, [0], tensor_content=b"123"), []),
        (proto(dtypes.complex64, [2], scomplex_val=[1, 2, 3]), [1 + 2j, 1 + 2j]),
        (proto(dtypes.complex64, [1], scomplex_val=[1]), [0]),
    ],
)
def test_what_is_too_much_is_not_looked_at(message: Message, want: list[Any]) -> None:
    """Elements beyond those that the shape asks for, and half a complex number, are none."""
    assert tensors.from_proto(message).tolist() == want


def test_strings_may_be_content() -> None:
    """All lengths, and then all texts."""
    message = proto(dtypes.string, [2], tensor_content=b"\1\2abb", string_val=[b"x"])

    assert tensors.from_proto(message).tolist() == [b"a", b"bb"]
    assert tensors.to_content_proto(np.array([b"a", b"bb"], object), dtypes.string) == proto(
        dtypes.string, [2], tensor_content=b"\1\2abb"
    )


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_lists_survive_the_way_there_and_back(dtype: DType) -> None:
    """Whatever is written into the list of its type is read back."""
    kind = dtype.numpy[0] if dtype.numpy.names else dtype.numpy
    array = np.array([[0, 1], [1, 1]]).astype(kind).view(dtype.numpy)
    message = tensors.to_list_proto(array, dtype)
    back = tensors.from_proto(message)

    assert not message.tensor_content
    assert has_dtype(back, dtype)
    np.testing.assert_array_equal(np.asarray(back), array)


NUMBER = EncodedVariant("int", b"\7\0\0\0")
LIST = EncodedVariant("list", b"", ((dtypes.int32, np.int32(3)), (dtypes.variant, NUMBER)))


@pytest.mark.parametrize("write", [tensors.to_proto, tensors.to_list_proto])
@pytest.mark.parametrize("shape", [(), (2,), (2, 0)], ids=str)
def test_variants_survive_the_way_there_and_back(write: Any, shape: tuple[int, ...]) -> None:
    """Objects in variants, and objects in these, are read as they were written."""
    array = np.full(shape, LIST, object)
    back = tensors.from_proto(write(array, dtypes.variant))

    assert np.array_equal(back, array) if shape else back == LIST


def test_a_list_of_variants_is_not_stretched() -> None:
    """What is missing is empty, unlike numbers and strings."""
    message = tensors.to_list_proto(np.array([NUMBER], object), dtypes.variant)
    message.tensor_shape.dim[0].size = 3

    assert tensors.from_proto(message).tolist() == [NUMBER, EncodedVariant(), EncodedVariant()]


def nested(depth: int) -> Message:
    """A variant in a variant in a variant ..., each as content bytes."""
    message = proto(dtypes.variant, [])
    for _ in range(depth):
        text = VariantTensorDataProto(type_name="x", tensors=[message]).SerializeToString()
        message = proto(dtypes.variant, [], tensor_content=write_varint(len(text)) + text)
    return message


def test_variants_in_variants_have_an_end() -> None:
    """A small message that nests thousands of objects is refused, not followed to its end."""
    assert tensors.from_proto(nested(100)).type_name == "x"
    with pytest.raises(InvalidArgumentError, match="more than 100 deep"):
        tensors.from_proto(nested(5000))


def test_half_lists_hold_bits() -> None:
    """16-bit floats are stored as the integers of their bits."""
    half = proto(dtypes.float16, [2], half_val=[0x3C00, 0xC000])
    brain = proto(dtypes.bfloat16, [2], half_val=[0x3F80, 0xC000])

    assert tensors.from_proto(half).tolist() == [1.0, -2.0]
    assert tensors.from_proto(brain).astype(np.float32).tolist() == [1.0, -2.0]


def test_small_floats_are_bytes() -> None:
    """8-bit floats are stored as one byte each."""
    message = proto(dtypes.as_dtype("float8_e5m2"), [2], float8_val=b"\x3c\xc0")
    want = np.array([1.0, -2.0], ml_dtypes.float8_e5m2)

    assert tensors.from_proto(message).tolist() == want.tolist()


def test_quantised_lists() -> None:
    """Quantised integers stand in the list of integers, and keep their own type."""
    got = tensors.from_proto(proto(dtypes.qint8, [2], int_val=[-128, 127]))

    assert got.dtype == dtypes.qint8.numpy
    assert got.view(np.int8).tolist() == [-128, 127]


def test_empty_lists_mean_zeros() -> None:
    """No elements at all stand for zeros, or empty strings."""
    assert tensors.from_proto(proto(dtypes.float32, [2])).tolist() == [0.0, 0.0]
    assert tensors.from_proto(proto(dtypes.string, [2])).tolist() == [b"", b""]
    assert tensors.from_proto(proto(dtypes.string, [])) == b""


def test_strings() -> None:
    """Strings are bytes of any content, a scalar is bare bytes."""
    array = np.array([[b"a", b"\xff\x00"]], object)

    assert tensors.from_proto(tensors.to_proto(array)).tolist() == array.tolist()
    assert tensors.from_proto(tensors.to_proto(b"x")) == b"x"


def test_resource_handles() -> None:
    """A handle survives with its names."""
    handle = ResourceHandle("/cpu:0", "localhost", "v", "Var", 7)

    assert tensors.from_proto(tensors.to_proto(handle)) == handle


def test_values_are_read_only() -> None:
    """A constant cannot be changed by accident."""
    got = tensors.from_proto(proto(dtypes.float32, [2], float_val=[1, 2]))

    assert not got.flags.writeable


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (proto(dtypes.float32, [-1], float_val=[1]), InvalidArgumentError),
        (proto(dtypes.float32, [-5], float_val=[1]), InvalidArgumentError),
        (proto(dtypes.float32, [2], tensor_content=b"1234"), InvalidArgumentError),
        (proto(dtypes.bool_, [1], tensor_content=b"\2"), InvalidArgumentError),
        (proto(dtypes.string, [2], tensor_content=b"\1\5abb"), InvalidArgumentError),
        (proto(dtypes.string, [2], tensor_content=b"\1\1abb"), InvalidArgumentError),
        (proto(dtypes.string, [2**40], tensor_content=b"\1"), ResourceExhaustedError),
        (proto(dtypes.variant, [2], tensor_content=b"\1\1ab"), InvalidArgumentError),
        (proto(dtypes.float32.ref, [1], float_val=[1]), InvalidArgumentError),
        (proto(dtypes.float32, [2**40, 2**40], float_val=[1]), ResourceExhaustedError),
        (proto(dtypes.float32, [0, 2**62]), ResourceExhaustedError),
        (proto(dtypes.int8, [2**62, 2**62, 0]), ResourceExhaustedError),
        (TensorProto(dtype=99), InvalidArgumentError),
    ],
)
def test_damaged_tensors_are_refused(message: Message, error: type[Exception]) -> None:
    """A message that contradicts itself, or asks for the moon, is an error and no crash."""
    with pytest.raises(error):
        tensors.from_proto(message)


def test_nothing_may_be_large() -> None:
    """A tensor without elements takes no memory, whatever its other sizes are."""
    assert tensors.from_proto(proto(dtypes.float32, [0, 2**60])).shape == (0, 2**60)


def test_a_few_bytes_do_not_fill_the_memory() -> None:
    """A repeated element that would take most of this machine's memory is refused."""
    size = tensors.MAX_BYTES // 8 + 1

    with pytest.raises(ResourceExhaustedError):
        tensors.from_proto(proto(dtypes.string, [size], string_val=[b"x"]))


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_content_has_numpys_own_type(dtype: DType) -> None:
    """Not only an equal one, for which ``ufunc.at`` takes thirty times as long."""
    content = np.zeros(3, dtype.numpy).tobytes()
    array = tensors.from_proto(proto(dtype, [3], tensor_content=content))
    assert array.dtype is dtype.numpy
