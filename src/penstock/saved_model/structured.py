"""The structures of arguments and results, as a SavedModel writes them down.

In:   StructuredValue messages.
Out:  nestings of tuples, lists and dictionaries, whose leaves are specifications of tensors, or
      plain values.
Not:  compares no argument with them; knows no function.

A leaf that stands for a value of several tensors is a specification as well, and says how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.defs.schema import Message
from penstock.defs.tensors import from_proto, shape_from_proto
from penstock.errors import DataLossError, InvalidArgumentError

#: Nestings of no more levels are read: a message of some bytes may hold thousands.
_MAX_DEPTH: Final = 100


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor: what type and shape it has, and what it is called, if anything."""

    dtype: DType
    shape: TensorShape
    name: str = ""

    #: How many tensors of the graph it is.
    flat_count = 1

    def __str__(self) -> str:
        return f"{self.dtype}{'' if self.shape.dims is None else self.shape}"


@dataclass(frozen=True, slots=True)
class RaggedSpec:
    """A tensor whose rows differ in length: its values, and where the rows end."""

    dtype: DType
    shape: TensorShape
    #: How many dimensions are ragged; 0 is an ordinary tensor.
    ragged_rank: int
    splits_dtype: DType

    @property
    def flat_count(self) -> int:
        """How many tensors of the graph it is."""
        return 1 + self.ragged_rank

    def __str__(self) -> str:
        return f"ragged {self.dtype}{'' if self.shape.dims is None else self.shape}"


@dataclass(frozen=True, slots=True)
class SparseSpec:
    """A tensor of which only some elements are given, with their places."""

    dtype: DType
    shape: TensorShape

    #: How many tensors of the graph it is: places, elements, sizes.
    flat_count = 3

    def __str__(self) -> str:
        return f"sparse {self.dtype}{'' if self.shape.dims is None else self.shape}"


@dataclass(frozen=True, slots=True)
class OtherSpec:
    """Something else that consists of tensors, which are given and returned one by one."""

    #: The name of its class, which is the model's text.
    class_name: str
    flat_count: int

    def __str__(self) -> str:
        return f"{self.class_name} of {self.flat_count} tensors"


Spec: TypeAlias = TensorSpec | RaggedSpec | SparseSpec | OtherSpec
_SPECS: Final = (TensorSpec, RaggedSpec, SparseSpec, OtherSpec)


class Fields(tuple[Any, ...]):
    """A tuple whose elements have names, as a namedtuple's; the names are the model's text."""

    __slots__ = ()
    _fields: tuple[str, ...]

    def __repr__(self) -> str:
        pairs = zip(self._fields, self, strict=True)
        return f"({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other)

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __getattr__(self, name: str) -> Any:
        if name in self._fields:
            return self[self._fields.index(name)]
        raise AttributeError(f"there is no field {name!r}; there are {', '.join(self._fields)}")


def with_fields(names: tuple[str, ...], values: Any) -> Fields:
    """A tuple with names.

    Not one of ``collections.namedtuple``, which would make Python text of the names.
    """
    made = type("Fields", (Fields,), {"_fields": names, "__slots__": ()})
    found: Fields = made(values)
    return found


def decode(proto: Message) -> Any:
    """The structure that a StructuredValue means; raises DataLossError if that makes no sense."""
    try:
        return _decoded(proto, 0)
    except InvalidArgumentError as error:
        raise DataLossError(f"the SavedModel is damaged: {error.reason}") from None


def _decoded(proto: Any, depth: int) -> Any:  # noqa: C901  (a table of kinds)
    kind = proto.WhichOneof("kind")
    if depth > _MAX_DEPTH:
        raise DataLossError(f"the SavedModel has structures more than {_MAX_DEPTH} deep")
    if kind in (None, "none_value"):
        return None
    value = getattr(proto, kind)
    if kind in ("list_value", "tuple_value"):
        items = [_decoded(item, depth + 1) for item in value.values]
        return items if kind == "list_value" else tuple(items)
    if kind == "dict_value":
        # In the order in which they are flattened: a map has none.
        return {key: _decoded(value.fields[key], depth + 1) for key in sorted(value.fields)}
    if kind == "named_tuple_value":
        names = tuple(pair.key for pair in value.values)
        return with_fields(names, [_decoded(pair.value, depth + 1) for pair in value.values])
    if kind in ("tensor_spec_value", "bounded_tensor_spec_value"):
        return TensorSpec(_dtype(value.dtype), shape_from_proto(value.shape), value.name)
    if kind == "type_spec_value":
        return _type_spec(value, depth)
    if kind == "tensor_shape_value":
        return shape_from_proto(value)
    if kind == "tensor_dtype_value":
        return _dtype(value)
    if kind in ("tensor_value", "numpy_value"):
        return from_proto(value)
    return value


def _dtype(number: int) -> DType:
    return dtypes.of_number(number)


def _type_spec(proto: Any, depth: int) -> Any:
    """The specification of a class of TensorFlow's; of one that is not known, how many tensors."""
    kinds = proto.DESCRIPTOR.enum_types_by_name["TypeSpecClass"].values_by_number
    kind = kinds[proto.type_spec_class].name if proto.type_spec_class in kinds else ""
    state = _decoded(proto.type_state, depth + 1)
    items = state if isinstance(state, tuple) else (state,)
    match kind, items:
        case "SPARSE_TENSOR_SPEC", (TensorShape() as shape, DType() as dtype):
            return SparseSpec(dtype, shape)
        case "RAGGED_TENSOR_SPEC", (TensorShape() as shape, DType() as dtype, int(rank), splits):
            if isinstance(splits, DType) and 0 <= rank <= _MAX_DEPTH:
                return RaggedSpec(dtype, shape, rank, splits)
        case "VARIABLE_SPEC", (TensorShape(), DType(), *_):
            return TensorSpec(dtypes.resource, TensorShape.of([]))
        case "OPTIONAL_SPEC" | "DATA_ITERATOR_SPEC" | "DATA_DATASET_SPEC", _:
            return TensorSpec(dtypes.variant, TensorShape.of([]))
    name = proto.type_spec_class_name or kind
    return OtherSpec(name, max(0, min(proto.num_flat_components, 1 << 20)))


def specs_in(structure: Any) -> Iterator[Spec]:
    """The specifications in a structure, in the order of the function's own arguments."""
    if isinstance(structure, _SPECS):
        yield structure
    elif isinstance(structure, dict):
        for key in sorted(structure):
            yield from specs_in(structure[key])
    elif isinstance(structure, (list, tuple)):
        for item in structure:
            yield from specs_in(item)


def is_spec(leaf: object) -> bool:
    """Whether a leaf of a structure stands for tensors."""
    return isinstance(leaf, _SPECS)


def arguments_text(structure: Any) -> str:
    """The arguments of a function as people read them: ``(x: float32[?,3], 2, training=False)``."""
    match structure:
        case (tuple() as args, dict() as kwargs):
            parts = [_text(arg) for arg in args]
            parts += [f"{name}={_text(arg)}" for name, arg in kwargs.items()]
            return f"({', '.join(parts)})"
    return "(…)"


def _text(structure: Any) -> str:
    """A structure with types for its specifications."""
    if isinstance(structure, dict):
        items = (f"{key!r}: {_text(part)}" for key, part in structure.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(structure, (list, tuple)):
        return f"[{', '.join(map(_text, structure))}]"
    if isinstance(structure, TensorSpec) and structure.name:
        return f"{structure.name}: {structure}"
    return str(structure) if is_spec(structure) else repr(structure)
