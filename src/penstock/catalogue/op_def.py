"""The signature of an op, and what follows from it for one node.

In:   one row of the table, in the syntax that its header explains.
Out:  ``OpDef``: arguments, attributes with defaults and constraints, flags.
Not:  knows no kernels and no graph.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.catalogue.op_traits import OpTraits, ResultSize, stated_size
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr, FuncAttr, TensorAttr

#: Element types of inputs, and of outputs.
_Types: TypeAlias = "tuple[tuple[DType, ...], tuple[DType, ...]]"
#: How many signatures an op remembers, and how many tensors such a signature may have.
_MAX_KNOWN: Final = 256


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

    def may_be_size(self, attrs: Mapping[str, AttrDef]) -> bool:
        """Whether it holds whole numbers and nothing else, or nobody knows what."""
        if self.list_attr:
            return True
        if self.dtype is not None:
            return self.dtype.is_integer
        allowed = attrs[self.type_attr].allowed
        return allowed is not None and all(dtype.is_integer for dtype in allowed)

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
    #: What is true of the op besides; nothing of users' own, and of functions.
    traits: OpTraits = field(default=OpTraits(), compare=False, repr=False)
    #: The arguments that stand for a number of tensors that an attribute tells.
    counted_args: tuple[ArgDef, ...] = field(init=False, compare=False, repr=False)
    #: Whether an attribute is a function, or several.
    takes_functions: bool = field(init=False, compare=False, repr=False)
    #: The attributes that the types of the arguments depend on.
    _type_attrs: tuple[str, ...] = field(init=False, compare=False, repr=False)
    #: Types that were asked for before, by the values of these attributes.
    _known_types: dict[tuple[Attr, ...], _Types] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        args = (*self.inputs, *self.outputs)
        names = [name for a in args for name in (a.type_attr, a.number_attr, a.list_attr) if name]
        object.__setattr__(self, "counted_args", tuple(a for a in args if a.number_attr))
        takes_functions = any("func" in attr.kind for attr in self.attrs.values())
        object.__setattr__(self, "takes_functions", takes_functions)
        object.__setattr__(self, "_type_attrs", tuple(dict.fromkeys(names)))

    @property
    def has_bare_output(self) -> bool:
        """Whether a kernel returns the output itself rather than a tuple of outputs."""
        return len(self.outputs) == 1 and not self.outputs[0].is_list

    @property
    def only_computes(self) -> bool:
        """Whether a node has no effects, calls no function, and takes and gives no references."""
        return (
            not (self.is_stateful or self.is_function or self.traits.is_impure)
            and not self.takes_functions
            and not any(arg.is_ref for arg in (*self.inputs, *self.outputs))
        )

    @property
    def result_size(self) -> ResultSize:
        """What says how large results are, before they are there.

        Where nobody said, an argument that may only be whole numbers may well be a size.
        """
        stated = stated_size(self.name)
        if stated is not None:
            return stated
        is_told = any(arg.may_be_size(self.attrs) for arg in self.inputs)
        return ResultSize.UNKNOWN if is_told else ResultSize.BY_SHAPES

    def input_types(self, attrs: Mapping[str, Attr]) -> tuple[DType, ...]:
        """The types of all input tensors, references included."""
        return self.types(attrs)[0]

    def output_types(self, attrs: Mapping[str, Attr]) -> tuple[DType, ...]:
        """The types of all output tensors, references included."""
        return self.types(attrs)[1]

    def types(self, attrs: Mapping[str, Attr]) -> _Types:
        """The types of all input and of all output tensors; equal ones are the same object."""
        key = tuple([attrs[name] for name in self._type_attrs])
        try:
            known = self._known_types.get(key)
        except TypeError:  # a list, from a caller who is not particular
            return self._make_types(attrs)
        if known is None:
            known = self._make_types(attrs)
            if len(self._known_types) < _MAX_KNOWN and len(known[0] + known[1]) < _MAX_KNOWN:
                self._known_types[key] = known
        return known

    def _make_types(self, attrs: Mapping[str, Attr]) -> _Types:
        return (
            tuple([t for arg in self.inputs for t in arg.types(attrs)]),
            tuple([t for arg in self.outputs for t in arg.types(attrs)]),
        )


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
            None if allowed is None else _allowed(kind, allowed),
            None if minimum is None else int(minimum),
        )
        position += 2  # ", "
    return attrs


def _allowed(kind: str, text: str) -> frozenset[Any]:
    if kind in ("type", "list(type)"):
        return frozenset(map(dtypes.as_dtype, text.split()))
    # A string may be empty: EncodeJpeg has a format that is called "".
    return frozenset(word.encode() for word in text.split(" "))


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
