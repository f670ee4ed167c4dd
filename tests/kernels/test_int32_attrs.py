"""Attributes beyond 32 bits: refused where TensorFlow's kernels refuse them, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Session, errors
from penstock.catalogue.registry import get_op
from penstock.kernels.api.int32_attrs import check_int32
from penstock.kernels.api.registry import kernels_of
from support.sketch import sketch

#: Recorded from TensorFlow, see the file.
RECORDED = [
    (op, attr)
    for line in (Path(__file__).parent / "int32_attrs.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
    for op, _, listed in [line.partition(": ")]
    for attr in listed.split()
]
#: Frames are the executor's business, which checks the number of iterations itself; a count of 64
#: bits has a limit of 64 bits, whatever TensorFlow's kernel for 32 bits says.
ELSEWHERE = {
    ("Enter", "parallel_iterations"),
    ("RefEnter", "parallel_iterations"),
    ("CountUpTo", "limit"),
}
#: TensorFlow's kernel for a processor does not read it.
UNREAD = {("DepthwiseConv2dNativeBackpropInput", "-dilations")}


@pytest.mark.parametrize(("op", "attr"), RECORDED)
def test_numbers_that_tensorflow_keeps_in_32_bits(op: str, attr: str) -> None:
    """2^31 is refused in TensorFlow's words where TensorFlow refuses it, and nowhere else."""
    name, definition = attr.removeprefix("-"), get_op(op)
    is_list = definition.attrs[name].kind == "list(int)"
    for number in (2**31, -(2**31) - 1, 2**62):
        values = {name: (1, number) if is_list else number}
        if (op, attr) in UNREAD:
            continue
        if attr.startswith("-") or (op, attr) in ELSEWHERE or not kernels_of(op):
            check_int32(definition, values)
            continue
        with pytest.raises(errors.InvalidArgumentError) as caught:
            check_int32(definition, values)
        assert caught.value.reason == f"Attr {name} has value {number} out of range for an int32"
    for number in (2**31 - 1, -(2**31)):
        check_int32(definition, {name: (1, number) if is_list else number})


def test_it_is_said_when_a_node_runs() -> None:
    """The error names the node, and comes neither before it is needed nor from the optimiser."""
    graph = sketch("x = Const() value=[1, 2]\ny = AsString(x) width=2147483648\nz = Neg(x)")
    with Session(graph) as session:
        assert session.run("z:0").tolist() == [-1, -2]
        says = "Attr width has value 2147483648 out of range for an int32"
        with pytest.raises(errors.InvalidArgumentError, match=says) as caught:
            session.run("y:0")
    assert caught.value.node_name == "y"
