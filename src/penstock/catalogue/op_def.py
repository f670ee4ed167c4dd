"""The signature of an op, and what follows from it for one node.

In:   one row of the table, in the syntax that its header explains.
Out:  ``OpDef``: arguments, attributes with defaults and constraints, flags.
Not:  knows no kernels and no graph.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.defs.attrs import Attr, FuncAttr, TensorAttr


@dataclass(frozen=True, slots=True)
class ArgDef:
    """One input or output; exactly one of ``dtype``, ``type_attr``, ``list_attr`` is set."""

    name: str
    dtype: DType | None = None
    type_attr: str = ""
    number_attr: str = ""
    list_attr: str = ""
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        """Whether the argument stands for any number of tensors."""
        return bool(self.number_attr or self.list_attr)

    def types(self, attrs: Mapping[str, Attr]) -> list[DType]:
        """The element types of the tensors it stands for, given the node's attributes."""
        if self.list_attr:
            return list(attrs[self.list_attr])
        base = self.dtype if self.dtype is not None else attrs[self.type_attr]
        one = base.ref if self.is_ref else base
        return [one] * attrs[self.number_attr] if self.number_attr else [one]


@dataclass(frozen=True, slots=True)
class AttrDef:
    """One attribute: its kind, what it may hold, and its default (None if required)."""

    name: str
    kind: str
    default: Attr = None
    allowed: frozenset[Any] | None = None
    minimum: int | None = None


@dataclass(frozen=True, slots=True)
class OpDef:
    """The signature of one op."""

    name: str
    inputs: tuple[ArgDef, ...] = ()
    outputs: tuple[ArgDef, ...] = ()
    attrs: Mapping[str, AttrDef] = field(default_factory=dict)
    is_stateful: bool = False
    is_commutative: bool = False
    is_aggregate: bool = False
    allows_uninitialized_input: bool = False
    #: The graph version that the op was removed in; 0 if it is still there.
    deprecated_in: int = 0
    #: Whether this is the signature of a function of some graph's library.
    is_function: bool = False

    @property
    def has_bare_output(self) -> bool:
        """Whether a kernel returns the output itself rather than a tuple of outputs."""
        return len(self.outputs) == 1 and not self.outputs[0].is_list

    def input_types(self, attrs: Mapping[str, Attr]) -> tuple[DType, ...]:
        """The types of all input tensors, references included."""
        return tuple(t for arg in self.inputs for t in arg.types(attrs))

    def output_types(self, attrs: Mapping[str, Attr]) -> tuple[DType, ...]:
        """The types of all output tensors, references included."""
        return tuple(t for arg in self.outputs for t in arg.types(attrs))


_ROW: Final = re.compile(r"(\w[\w>]*)\((.*?)\) -> \((.*?)\)(?: \[(.*)\])?((?: [a-z]+(?:=\d+)?)*)$")
_ATTR: Final = re.compile(r"(\w+): ([a-z]+(?:\([a-z]+\))?)(?:\{([^}]*)\})?(?: >= (-?\d+))?(?: = )?")
_JSON: Final = json.JSONDecoder()


def parse_row(row: str) -> OpDef:
    """Read one row of the table; raises ValueError for one that breaks the syntax."""
    match = _ROW.match(row)
    if match is None:
        raise ValueError(f"not a row of the op table: {row[:80]!r}")
    name, inputs, outputs, attr_text, flag_text = match.groups()
    attrs = _parse_attrs(attr_text or "")
    flags = dict(word.partition("=")[::2] for word in flag_text.split())
    return OpDef(
        name,
        _parse_args(inputs, attrs),
        _parse_args(outputs, attrs),
        attrs,
        is_stateful="stateful" in flags,
        is_commutative="commutative" in flags,
        is_aggregate="aggregate" in flags,
        allows_uninitialized_input="uninitialized" in flags,
        deprecated_in=int(flags.get("deprecated", 0)),
    )


def _parse_args(text: str, attrs: Mapping[str, AttrDef]) -> tuple[ArgDef, ...]:
    return tuple(_parse_arg(part, attrs) for part in text.split(", ") if part)


def _parse_arg(text: str, attrs: Mapping[str, AttrDef]) -> ArgDef:
    name, _, spec = text.partition(": ")
    is_ref = spec.startswith("ref ")
    spec = spec.removeprefix("ref ")
    if spec.endswith("*"):
        return ArgDef(name, list_attr=spec[:-1], is_ref=is_ref)
    number, _, base = spec.rpartition("*")
    if base in attrs:
        return ArgDef(name, type_attr=base, number_attr=number, is_ref=is_ref)
    return ArgDef(name, dtypes.as_dtype(base), number_attr=number, is_ref=is_ref)


def _parse_attrs(text: str) -> dict[str, AttrDef]:
    attrs: dict[str, AttrDef] = {}
    position = 0
    while position < len(text):
        match = _ATTR.match(text, position)
        if match is None:
            raise ValueError(f"not an attribute: {text[position : position + 80]!r}")
        name, kind, allowed, minimum = match.groups()
        position = match.end()
        default = None
        if match[0].endswith(" = "):
            json_value, position = _JSON.raw_decode(text, position)
            default = _from_json(kind, json_value)
        attrs[name] = AttrDef(
            name,
            kind,
            default,
            None if allowed is None else _allowed(kind, allowed.split()),
            None if minimum is None else int(minimum),
        )
        position += 2  # ", "
    return attrs


def _allowed(kind: str, words: list[str]) -> frozenset[Any]:
    if kind in ("type", "list(type)"):
        return frozenset(map(dtypes.as_dtype, words))
    return frozenset(word.encode() for word in words)


def _from_json(kind: str, value: Any) -> Attr:
    if kind.startswith("list("):
        return tuple(_from_json(kind[5:-1], item) for item in value)
    match kind:
        case "string":
            return value.encode("latin-1")
        case "type":
            return dtypes.as_dtype(value)
        case "shape":
            return TensorShape.of(value)
        case "func":
            return FuncAttr(value, {})
        case "float":
            return float(value)
        case "tensor":
            array = np.array(value["values"], dtypes.as_dtype(value["dtype"]).numpy)
            return TensorAttr(value=array.reshape(value["shape"]))
        case _:
            return value
