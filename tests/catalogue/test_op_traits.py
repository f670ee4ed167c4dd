"""What is said of ops beside their signatures: of ops that there are, and of all that need it."""

from __future__ import annotations

import inspect

import pytest

from penstock.catalogue.op_def import OpDef, parse_row
from penstock.catalogue.op_traits import OpTraits, ResultSize, ops_with_traits, stated_size
from penstock.catalogue.registry import all_ops, find_op, get_op, is_builtin_op
from penstock.core import dtypes
from penstock.kernels.api.registry import Calling, kernels_of, ops_with_kernels


def test_only_ops_that_there_are() -> None:
    """No name in the tables is misspelt, or that of an op that went away."""
    assert sorted(op for op in ops_with_traits() if not is_builtin_op(op)) == []


def test_signatures_have_their_traits() -> None:
    """They are a field of the signature, which asks nobody; users' ops have none."""
    assert get_op("ReadFile").traits == OpTraits(is_impure=True)
    assert get_op("InplaceAdd").traits == OpTraits(is_impure=True, writes_input=True)
    assert get_op("Add").traits == OpTraits(commutes=True)
    assert get_op("Sub").traits == OpTraits()
    assert parse_row("OfOnesOwn(x: resource) -> (y: float32)").traits == OpTraits()


def _foldable(op: OpDef) -> bool:
    """Whether constants may be folded through nodes of an op."""
    objects = {dtypes.resource, dtypes.variant}
    args = (*op.inputs, *op.outputs)
    return (
        bool(op.inputs)
        and not (op.is_stateful or op.traits.is_impure)
        and not any("func" in attr.kind for attr in op.attrs.values())
        and not any(arg.is_ref or arg.dtype in objects for arg in args)
        and any(known.calling is Calling.PLAIN for known in kernels_of(op.name))
    )


def test_every_foldable_op_says_how_large_its_results_are() -> None:
    """Where a number among the inputs may be a size, the tables say whether it is."""
    ops = [op for name in ops_with_kernels() if (op := find_op(name)) is not None]
    silent = [
        op.name
        for op in ops
        if is_builtin_op(op.name)
        and _foldable(op)
        and op.result_size is ResultSize.UNKNOWN
        and stated_size(op.name) is None
        and op.name != "_SwitchN"  # is no computation
    ]

    assert silent == []


@pytest.mark.parametrize(
    ("row", "size"),
    [
        ("Own(x: float32) -> (y: float32)", ResultSize.BY_SHAPES),
        ("Own(x: T) -> (y: T) [T: type{int32 float32}]", ResultSize.BY_SHAPES),
        ("Own(x: T) -> (y: T) [T: type]", ResultSize.BY_SHAPES),
        ("Own(x: float32, n: int32) -> (y: float32)", ResultSize.UNKNOWN),
        ("Own(x: float32, n: T) -> (y: float32) [T: type{int32 int64}]", ResultSize.UNKNOWN),
        ("Own(x: T*) -> (y: float32) [T: list(type)]", ResultSize.UNKNOWN),
    ],
)
def test_a_number_may_be_a_size(row: str, size: ResultSize) -> None:
    """Of an op that nobody said anything about, the worse is assumed."""
    assert parse_row(row).result_size is size


def test_handles_are_made_from_nothing() -> None:
    """What makes a handle has no input, and a resource as its only output; all such do."""
    made = {
        name
        for name in all_ops()
        if is_builtin_op(name)
        and not get_op(name).inputs
        and [(arg.dtype, arg.is_list) for arg in get_op(name).outputs] == [(dtypes.resource, False)]
    }

    assert {name for name in all_ops() if get_op(name).traits.makes_handle} == made


def test_what_touches_files_is_more_than_a_function() -> None:
    """An op whose kernel asks for the host is stateful or impure, or works on a resource."""
    forgotten = [
        known.op
        for name in ops_with_kernels()
        for known in kernels_of(name)
        if known.is_builtin and ".host" in inspect.getsource(known.make)
        if not (op := get_op(name)).is_stateful and not op.traits.is_impure
        if not any(arg.is_ref or arg.dtype is dtypes.resource for arg in op.inputs)
        if not op.traits.calls_user_code  # which says by its name that it is a function
    ]

    assert forgotten == []


def test_what_is_impure_is_not_stateful() -> None:
    """The trait says what the catalogue's flag does not."""
    assert [
        name for name in all_ops() if get_op(name).traits.is_impure and get_op(name).is_stateful
    ] == []
