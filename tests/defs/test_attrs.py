"""Attribute values survive the way to a message and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.defs import attrs
from penstock.defs.attrs import FuncAttr, PlaceholderAttr, TensorAttr

VALUES = [
    ("int", -3),
    ("bool", True),
    ("float", 0.5),
    ("string", b"\xff"),
    ("type", dtypes.bfloat16),
    ("shape", TensorShape((2, None))),
    ("shape", TensorShape(None)),
    ("shape", TensorShape(())),
    ("func", FuncAttr("f", {"T": dtypes.int32, "n": 1})),
    ("list(int)", (1, 2)),
    ("list(int)", ()),
    ("list(type)", (dtypes.int8, dtypes.string)),
    ("list(shape)", (TensorShape((1,)), TensorShape(None))),
    ("list(string)", (b"a", b"")),
    ("list(bool)", (True, False)),
    ("list(float)", (0.5, 1.5)),
    ("list(func)", (FuncAttr("f", {}), FuncAttr("g", {}))),
    ("func", FuncAttr("f", {"unset": None})),
    ("int", PlaceholderAttr("N")),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda v: str(v)[:30])
def test_values_survive(kind: str, value: Any) -> None:
    """What is encoded as its kind is decoded as an equal value."""
    assert attrs.from_proto(attrs.to_proto(kind, value)) == value


def test_tensors_are_decoded_when_asked_for() -> None:
    """A tensor attribute keeps its message, knows its type, and gives the value once."""
    made = attrs.from_proto(attrs.to_proto("tensor", TensorAttr(value=np.arange(3))))

    assert made.dtype is dtypes.int64
    assert made.value.tolist() == [0, 1, 2]
    assert made.value is made.value


def test_nothing_is_none() -> None:
    """An AttrValue that holds nothing decodes to None."""
    assert attrs.from_proto(attrs.AttrValue()) is None
