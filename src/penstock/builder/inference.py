"""Complete the arguments of a call: which types, how many, and what every literal becomes.

In:   an op, and its inputs and attributes as the caller gave them, by name.
Out:  ``Completed``: every attribute, and for every input slot a tensor or a literal with
      its final type.
Not:  makes no nodes, except that something which stands for a tensor (a variable) is asked
      for it.

Tensors speak first: a type attribute is what the tensors say, wherever they stand among
the arguments.  Literals follow them.  Where there are only literals, the attribute's
default decides if the literals fit it, and otherwise the widest of their own types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from penstock.builder import constants
from penstock.builder.attributes import as_attr, check_attr
from penstock.builder.operators import Operators
from penstock.builder.tensor import Tensor
from penstock.catalogue.op_def import ArgDef, OpDef
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.given import has_leaf, leaves
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr
from penstock.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, to become a Const."""

    name: str
    value: Value
    dtype: DType


@dataclass(frozen=True, slots=True)
class PackedList:
    """A list in which tensors stand among literals, to become a Pack."""

    name: str
    parts: Sequence[Any]
    dtype: DType | None


Input: TypeAlias = Tensor | Constant | PackedList


@dataclass(frozen=True, slots=True)
class Completed:
    """All that a node needs but its name and its place."""

    attrs: Mapping[str, Attr]
    inputs: Sequence[Input]


def complete(op: OpDef, given: Mapping[str, Any]) -> Completed:
    """Infer what the caller left out.

    Raises:
        TypeError: an argument is of a kind that the op cannot take.
        InvalidArgumentError: the types or numbers of arguments contradict each other.

    """
    call = _OpCall(op, given)
    for arg in op.inputs:
        call.count(arg)
    for arg in op.inputs:
        call.read_tensors(arg)
    for arg in op.inputs:
        call.read_literals(arg)
    inputs = [item for arg in op.inputs for item in call.inputs(arg)]
    call.finish_attrs()
    return Completed(call.attrs, inputs)


class _OpCall:
    """One call under way."""

    def __init__(self, op: OpDef, given: Mapping[str, Any]) -> None:
        self.op = op
        #: What is known of the attributes so far; only grows.
        self.attrs: dict[str, Attr] = {
            name: as_attr(op.name, declared, given[name])
            for name, declared in op.attrs.items()
            if given.get(name) is not None
        }
        #: Which argument settled an attribute, for error messages.
        self.source: dict[str, str] = {}
        #: The items of every argument: tensors, and literals as they were given.
        self.items = {arg.name: self._items(arg, given[arg.name]) for arg in op.inputs}

    def _items(self, arg: ArgDef, given: Any) -> list[Any]:
        if not arg.is_list:
            return [self._item(arg, given)]
        if isinstance(given, Operators) or not isinstance(given, (list, tuple)):
            raise TypeError(
                f"{self.op.name} takes a list of tensors as '{arg.name}', not {given!r:.80}"
            )
        return [self._item(arg, part) for part in given]

    def _item(self, arg: ArgDef, given: Any) -> Any:
        if isinstance(given, Tensor):
            return given
        if arg.dtype is dtypes.resource and hasattr(given, "handle"):
            return given.handle
        return given.as_tensor() if isinstance(given, Operators) else given

    def count(self, arg: ArgDef) -> None:
        """Let a list's length settle its number attribute."""
        if arg.number_attr:
            self._settle(arg.number_attr, len(self.items[arg.name]), arg, "as long as")

    def read_tensors(self, arg: ArgDef) -> None:
        """Let the tensors among an argument's items settle its type attribute."""
        if arg.type_attr:
            for dtype in _tensor_types(self.items[arg.name]):
                self._settle(arg.type_attr, dtype.base, arg, "of the type of")

    def read_literals(self, arg: ArgDef) -> None:
        """Let literals settle a type attribute that no tensor has settled."""
        items = self.items[arg.name]
        if arg.list_attr and arg.list_attr not in self.attrs:
            self.attrs[arg.list_attr] = tuple(_own_type(item) for item in items)
        if not arg.type_attr or arg.type_attr in self.attrs:
            return
        literals = [
            item
            for other in self.op.inputs
            if other.type_attr == arg.type_attr
            for item in self.items[other.name]
        ]
        dtype = self.op.attrs[arg.type_attr].default
        if dtype is None or not all(_fits(item, dtype) for item in literals):
            dtype = _widest(literals) or dtype
        if dtype is None:
            raise InvalidArgumentError(
                f"{self.op.name}: nothing tells the type of '{arg.name}'",
                next_step=f"give the attribute '{arg.type_attr}'",
            )
        self.attrs[arg.type_attr] = dtype

    def _settle(self, attr: str, value: Attr, arg: ArgDef, relation: str) -> None:
        known = self.attrs.setdefault(attr, value)
        source = self.source.setdefault(attr, arg.name)
        if known != value:
            other = f"'{source}'" if source != arg.name else f"attribute '{attr}'"
            raise InvalidArgumentError(
                f"{self.op.name}: '{arg.name}' must be {relation} {other}, which is {known}, "
                f"but is {value}",
                next_step="convert one of them with ops.cast" if attr in self._types() else "",
            )

    def _types(self) -> set[str]:
        return {name for name, declared in self.op.attrs.items() if declared.kind == "type"}

    def inputs(self, arg: ArgDef) -> list[Input]:
        """The items of an argument with their final types."""
        items = self.items[arg.name]
        wanted = arg.types(self.attrs)
        if len(wanted) != len(items):
            raise InvalidArgumentError(
                f"{self.op.name}: '{arg.name}' needs {len(wanted)} tensors, but got {len(items)}"
            )
        names = [f"{arg.name}_{i}" for i in range(len(items))] if arg.is_list else [arg.name]
        return [self._input(*one) for one in zip(names, items, wanted, strict=True)]

    def _input(self, name: str, item: Any, wanted: DType) -> Input:
        if isinstance(item, Tensor):
            self._check(name, item, wanted)
            return item
        if wanted.is_ref:
            raise InvalidArgumentError(
                f"{self.op.name}: '{name}' must be a reference, such as the output of a "
                f"VariableV2, not {item!r:.80}"
            )
        if _has_tensor(item):
            return PackedList(name, item, wanted)
        try:
            return Constant(name, constants.convert(item, wanted), wanted)
        except TypeError as cause:
            raise TypeError(f"{self.op.name}: '{name}': {cause}") from cause
        except InvalidArgumentError as cause:
            raise InvalidArgumentError(
                f"{self.op.name}: '{name}': {cause.reason}", next_step=cause.advice
            ) from cause

    def _check(self, name: str, tensor: Tensor, wanted: DType) -> None:
        if tensor.dtype is not wanted and (wanted.is_ref or tensor.dtype.base is not wanted):
            raise InvalidArgumentError(
                f"{self.op.name}: '{name}' must be {wanted}, but {tensor.name} is {tensor.dtype}",
                next_step="convert it with ops.cast" if not wanted.is_ref else "",
            )

    def finish_attrs(self) -> None:
        """Fill defaults in, and check every attribute's bounds."""
        for name, declared in self.op.attrs.items():
            if name not in self.attrs:
                if declared.default is None:
                    raise TypeError(
                        f"{self.op.name} needs the attribute '{name}' ({declared.kind})"
                    )
                self.attrs[name] = declared.default
            check_attr(self.op.name, declared, self.attrs[name])


def _tensor_types(items: Sequence[Any]) -> list[DType]:
    """The types of all tensors among items, those in lists included."""
    return [leaf.dtype for leaf in leaves(items) if isinstance(leaf, Operators)]


def _has_tensor(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and has_leaf(item, Operators)


def _own_type(item: Any) -> DType:
    """The type of an item that no attribute speaks about."""
    types = _tensor_types([item])
    return types[0].base if types else constants.natural(item)[1]


def _fits(item: Any, dtype: DType) -> bool:
    """Whether a plain literal may become a ``dtype``; numpy's keep their own type."""
    if not constants.is_plain(item):
        return constants.natural(item)[1] is dtype
    try:
        constants.convert(item, dtype)
    except InvalidArgumentError:
        return False
    return True


def common_type(items: Sequence[Any]) -> DType | None:
    """The value type of the first tensor; of literals alone, the first that all may become."""
    types = _tensor_types(items)
    return types[0].base if types else _widest(items)


def _widest(literals: Sequence[Any]) -> DType | None:
    """The first type that every literal may become."""
    own = [constants.natural(literal)[1] for literal in literals]
    for dtype in own:
        if all(constants.may_become(other, dtype) for other in own):
            return dtype
    return own[0] if own else None
