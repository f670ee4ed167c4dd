"""The library of functions that a graph carries.

In:   FunctionDef messages.
Out:  their signatures as ops, and the definitions by name.
Not:  instantiates no body; that is ``graph/instantiate.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from penstock.catalogue.op_def import ArgDef, AttrDef, OpDef
from penstock.catalogue.registry import find_op, get_op
from penstock.core import dtypes
from penstock.core.names import is_legal_internal_name
from penstock.defs import attrs as attr_codec
from penstock.defs.schema import FunctionDefLibrary, Message
from penstock.errors import InvalidArgumentError, NotFoundError

#: The attribute of functions, and of nodes that call them, that are to be compiled by XLA.
MUST_COMPILE: Final = "_XlaMustCompile"


class FunctionLibrary:
    """Functions by name, with the gradients registered for them."""

    def __init__(self) -> None:
        #: Definitions by name; replaced never, only added.
        self._functions: dict[str, Message] = {}
        #: Signatures of the same functions, made when first asked for.
        self._signatures: dict[str, OpDef] = {}
        #: Gradient functions by the name of the function they belong to.
        self._gradients: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._functions))

    def __len__(self) -> int:
        return len(self._functions)

    def add_library(self, library: Message) -> None:
        """Add every function of a FunctionDefLibrary, or none of them.

        Raises:
            InvalidArgumentError: a name is taken by another function, or by an op; a name in a
                body is malformed, or a signature contradicts itself.

        """
        new: dict[str, Message] = {}
        for function in library.function:
            name = function.signature.name
            _check_names(function)
            _check_signature(function.signature)
            self._check_new(function, self._functions.get(name, new.get(name)))
            new.setdefault(name, function)
        gradients = {g.function_name: g.gradient_func for g in library.gradient}
        for name, gradient in gradients.items():
            if self._gradients.get(name, gradient) != gradient:
                raise InvalidArgumentError(
                    f"Cannot assign gradient function '{gradient}' to '{name}' because it "
                    f"already has gradient function '{self._gradients[name]}'"
                )
        for name, function in new.items():
            self._functions.setdefault(name, function)
        self._gradients |= gradients

    @staticmethod
    def _check_new(function: Message, known: Message | None) -> None:
        name = function.signature.name
        if known is not None and known != function:
            raise InvalidArgumentError(
                f"Cannot add function '{name}' because a different function with the same "
                "name already exists."
            )
        if known is None and find_op(name) is not None:
            raise InvalidArgumentError(
                f"Cannot add function '{name}' because an op with the same name already exists."
            )

    def get(self, name: str) -> Message:
        """The FunctionDef called ``name``; raises NotFoundError if there is none."""
        found = self._functions.get(name)
        if found is None:
            raise NotFoundError(f"Function {name} is not defined.")
        return found

    def gradient_of(self, name: str) -> str | None:
        """The gradient function registered for a function, or None."""
        return self._gradients.get(name)

    def op_def(self, op: str) -> OpDef:
        """The signature of a function of this library, or of an op of the catalogue."""
        if op not in self._functions:
            return get_op(op)
        if op not in self._signatures:
            self._signatures[op] = signature_of(self._functions[op].signature)
        return self._signatures[op]

    def to_proto(self, names: Iterable[str] | None = None) -> Message:
        """A FunctionDefLibrary of all functions, or of those named."""
        chosen = set(self._functions if names is None else names)
        proto = FunctionDefLibrary()
        for name, function in self._functions.items():
            if name in chosen:
                proto.function.add().CopyFrom(function)
        for name, gradient in self._gradients.items():
            if name in chosen:
                proto.gradient.add(function_name=name, gradient_func=gradient)
        return proto


def _check_names(function: Message) -> None:
    """Refuse a function whose body has a node, argument or result with a malformed name.

    As in TensorFlow, a body may have names that begin with an underscore, and what a function
    itself is called may be any text.
    """
    signature = function.signature
    names = [node.name for node in function.node_def]
    names += [arg.name for arg in signature.input_arg]
    names += [f"{arg.name}_RetVal" for arg in signature.output_arg]
    for name in names:
        if not is_legal_internal_name(name):
            raise InvalidArgumentError(
                f"Function '{signature.name}': Node '{name}': Node name contains invalid characters"
            )


def _check_signature(signature: Any) -> None:
    """Refuse attributes of no kind, and arguments whose type does not follow from an attribute."""
    kinds = {attr.name: attr.type for attr in signature.attr}
    for attr in signature.attr:
        if attr.type.removeprefix("list(").removesuffix(")") not in attr_codec.FIELD_OF_KIND:
            raise InvalidArgumentError(
                f"Function '{signature.name}': attr '{attr.name}' has unknown type '{attr.type}'"
            )
    for arg in (*signature.input_arg, *signature.output_arg):
        wanted = ((arg.type_attr, "type"), (arg.type_list_attr, "list(type)"))
        given = [kinds.get(name) == kind for name, kind in wanted if name]
        is_sound = len(given) + bool(arg.type) == 1 and all(given)
        if not is_sound or (arg.number_attr and kinds.get(arg.number_attr) != "int"):
            raise InvalidArgumentError(
                f"Function '{signature.name}': argument '{arg.name}' needs one type, or one "
                "attr of the function that says it"
            )


def signature_of(proto: Message) -> OpDef:
    """The OpDef message of a function as a signature."""
    attrs = {a.name: _attr_def(a) for a in proto.attr}
    return OpDef(
        proto.name,
        tuple(map(_arg_def, proto.input_arg)),
        tuple(map(_arg_def, proto.output_arg)),
        attrs,
        is_stateful=proto.is_stateful,
        is_commutative=proto.is_commutative,
        is_aggregate=proto.is_aggregate,
        allows_uninitialized_input=proto.allows_uninitialized_input,
        is_function=True,
    )


def _arg_def(proto: Any) -> ArgDef:
    return ArgDef(
        proto.name,
        dtypes.of_number(proto.type) if proto.type else None,
        proto.type_attr,
        proto.number_attr,
        proto.type_list_attr,
        proto.is_ref,
    )


def _attr_def(proto: Any) -> AttrDef:
    default = (
        attr_codec.from_proto(proto.default_value) if proto.HasField("default_value") else None
    )
    allowed = None
    if proto.HasField("allowed_values"):
        allowed = frozenset(attr_codec.from_proto(proto.allowed_values))
    minimum = proto.minimum if proto.has_minimum else None
    return AttrDef(proto.name, proto.type, default, allowed, minimum)
