"""The table of ops says what TensorFlow's own registry says."""

from __future__ import annotations

import pytest

from penstock.catalogue.op_def import parse_row
from penstock.catalogue.registry import all_ops, find_op, get_op, register_op
from penstock.core import dtypes
from penstock.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError


def test_every_row_can_be_read() -> None:
    """About 1,900 ops, each with a signature."""
    ops = [get_op(name) for name in all_ops()]

    assert len(ops) > 1900
    assert all(op.name for op in ops)


def test_plain_signature() -> None:
    """Types by attribute, defaults, allowed values."""
    op = get_op("MatMul")

    assert [arg.name for arg in op.inputs] == ["a", "b"]
    assert op.attrs["transpose_a"].default is False
    assert op.input_types({"T": dtypes.float32}) == (dtypes.float32,) * 2
    assert op.attrs["T"].allowed is not None
    assert dtypes.string not in op.attrs["T"].allowed
    assert op.has_bare_output


def test_lists_and_references() -> None:
    """Lists by number and by type list; references are 100 higher."""
    merge, identity_n, assign = get_op("Merge"), get_op("IdentityN"), get_op("Assign")

    assert merge.input_types({"N": 3, "T": dtypes.int8}) == (dtypes.int8,) * 3
    assert identity_n.output_types({"T": (dtypes.bool_, dtypes.string)})[1] is dtypes.string
    assert not identity_n.has_bare_output
    assert assign.input_types({"T": dtypes.float32})[0].number == 101
    assert assign.allows_uninitialized_input


def test_flags_and_constraints() -> None:
    """Statefulness, deprecation, minimum, list defaults."""
    assert get_op("VariableV2").is_stateful
    assert get_op("TopK").deprecated_in == 7
    assert get_op("AddN").is_commutative
    assert get_op("AddN").attrs["N"].minimum == 1
    assert get_op("Conv2D").attrs["dilations"].default == (1, 1, 1, 1)
    assert get_op("ImageSummary").attrs["bad_color"].default.value.tolist() == [255, 0, 0, 255]


def test_a_string_may_be_allowed_to_be_empty() -> None:
    """Two spaces have nothing between them, and that is a value."""
    assert get_op("EncodeJpeg").attrs["format"].allowed == {b"", b"grayscale", b"rgb"}


def test_strangers_are_named_with_their_neighbours() -> None:
    """An unknown name gets the nearest known ones."""
    assert find_op("Matmul") is None
    with pytest.raises(NotFoundError, match=r"(?s)not registered 'Matmul'.*MatMul"):
        get_op("Matmul")


def test_users_register_ops() -> None:
    """A row in the same syntax adds an op; the same row again is harmless."""
    row = 'TestScale(x: T) -> (y: T) [T: type{float32 float64} = "float32", by: float = 2.0]'
    op = register_op(row)

    assert register_op(row) == op
    assert get_op("TestScale").attrs["by"].default == 2.0
    with pytest.raises(AlreadyExistsError, match="TestScale"):
        register_op("TestScale(x: T) -> (y: T) [T: type]")
    with pytest.raises(AlreadyExistsError, match="MatMul"):
        register_op("MatMul() -> ()")


@pytest.mark.parametrize(
    "row",
    [
        "",
        "Bad",
        "Bad(x) -> (y)",
        "Bad(x: T) -> (y: T) [T type]",
        "Bad() -> () [s: shape = 3]",
        "Bad() -> () [t: tensor = 3]",
        "Bad() -> () [t: tensor = {}]",
        "Bad() -> () [l: list(int) = 3]",
    ],
)
def test_bad_rows_are_refused(row: str) -> None:
    """A row that breaks the syntax is an InvalidArgumentError."""
    with pytest.raises(InvalidArgumentError):
        register_op(row)


def test_rows_are_parsed_alone() -> None:
    """A row needs no other row."""
    op = parse_row(
        "Op(a: N*int32, b: ref T, c: L*) -> () [N: int >= 0, T: type, L: list(type)] stateful"
    )

    assert op.is_stateful
    assert op.input_types({"N": 1, "T": dtypes.int8, "L": (dtypes.bool_,)})[2] is dtypes.bool_
