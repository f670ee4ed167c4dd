"""Check one NodeDef against the signature of its op.

In:   a NodeDef and the OpDef of its op.
Out:  the node's attributes as Python values, defaults filled in; or an error that names the
      attribute and what it may be.
Not:  knows no other node; attributes that the op does not declare are kept as far as they can be
      read, and ignored.

An attribute that is there but holds no value counts as absent: merely reading ``node.attr["T"]``
in Python leaves such an entry behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from penstock.catalogue.op_def import ArgDef, AttrDef, OpDef
from penstock.core.dtypes import DType
from penstock.defs.attrs import FIELD_OF_KIND, Attr, PlaceholderAttr, decoded
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError

#: More inputs or outputs than this are taken for a damaged graph.
MAX_ARGS: Final = 1 << 20
_KIND_OF_FIELD: Final = {field: kind for kind, field in FIELD_OF_KIND.items()}
#: So many types are named in a message.
_MOST_SHOWN: Final = 50


def _types_of_args(node: Any, attrs: Mapping[str, Attr]) -> Attr:
    """As many times the type of the image as there are arguments; None if that makes no sense."""
    match attrs.get("T"), attrs.get("num_args"):
        case DType() as dtype, int(count) if 0 <= count <= len(node.input):
            return (dtype,) * count
    return None


#: Attributes without a default that ops got when there were graphs with them (such as those that
#: TensorFlow.js's converter writes), and what they are in these.
_NEWER: Final[Mapping[str, tuple[str, Callable[[Any, Mapping[str, Attr]], Attr]]]] = {
    "_FusedConv2D": ("TArgs", _types_of_args),
}


def validated_attrs(  # noqa: C901  (asked of each node: calls would cost a tenth of a load)
    node: Message, op: OpDef
) -> dict[str, Attr]:
    """The attributes of ``node``, decoded, checked, and completed with defaults.

    Raises:
        InvalidArgumentError: an attribute is missing, of the wrong kind, or out of bounds.

    """
    attrs: dict[str, Attr] = {}
    encoded = node.attr
    for name in encoded:  # its items come from a generator in Python
        proto = encoded[name]
        field = proto.WhichOneof("value")
        if field is None:
            continue
        declared = op.attrs.get(name)
        if declared is None:
            _keep_undeclared(attrs, name, proto, field)
            continue
        if field != FIELD_OF_KIND.get(declared.kind):
            _check_kind(node, declared, proto)
        try:
            attrs[name] = value = decoded(proto, field)
        except InvalidArgumentError as cause:
            raise _unreadable(node, declared, cause) from None
        if field == "type" and value.is_ref:
            raise _misfit(node, declared, f"must not have reference type value of {value}")
        if declared.allowed is not None or declared.minimum is not None:
            _check_value(node, declared, value)
    missing = [name for name in op.attrs if name not in attrs]
    for name in missing:
        attrs[name] = op.attrs[name].default
    if op.name in _NEWER and _NEWER[op.name][0] in missing:
        name, derive = _NEWER[op.name]
        attrs[name] = derive(node, attrs)
    missing = [name for name in missing if attrs[name] is None] if missing else missing
    if missing:
        raise _without(node, op, missing)
    _check_counts(node, op, attrs)
    return attrs


def check_input_count(node: Message, types: tuple[DType, ...], data_inputs: int) -> None:
    """Raise unless the node lists as many data inputs as its op takes."""
    if len(types) != data_inputs:
        expected = listed_types(types)
        raise _error(
            node,
            f"NodeDef expected inputs '{expected}' do not match {data_inputs} inputs specified",
        )


def _keep_undeclared(attrs: dict[str, Attr], name: str, proto: Message, field: str) -> None:
    """Keep an attribute that the op does not declare, if it can be read."""
    # What is of a type or shape that we do not know, nobody is going to ask for.
    with suppress(InvalidArgumentError):
        value = decoded(proto, field)
        if name != "_class" or _are_texts(value):
            attrs[name] = value


def _are_texts(value: Attr) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, bytes) for item in value)


def listed_types(types: Sequence[DType]) -> str:
    """Types for an error message, which need not name a million."""
    shown = ", ".join(map(str, types[:_MOST_SHOWN]))
    return shown if len(types) <= _MOST_SHOWN else f"{shown}, ... ({len(types)} in all)"


def _check_kind(node: Message, attr: AttrDef, proto: Message) -> None:
    """Compare the field that is set with the one that the attribute's kind asks for."""
    field, kind = proto.WhichOneof("value"), attr.kind
    if field == "placeholder":
        return
    if field != "list":
        raise _unlike(node, attr, _KIND_OF_FIELD[field])
    found = [f"list({_KIND_OF_FIELD[inner.name]})" for inner, _ in proto.list.ListFields()]
    wrong = [inner for inner in found if inner != kind]
    if wrong:
        raise _unlike(node, attr, wrong[0])
    if not kind.startswith("list("):
        raise _empty(node, attr)


def _without(node: Message, op: OpDef, missing: list[str]) -> InvalidArgumentError:
    """What to say of a node that lacks attributes; an entry without value is said to be one."""
    for name in missing:
        if name in node.attr:
            return _empty(node, op.attrs[name])
    listed = ", ".join(f"'{name}'" for name in missing)
    word = "attr" if len(missing) == 1 else "attrs"
    return _error(node, f"NodeDef missing {word} {listed} from Op<{op.name}>")


def _unlike(node: Message, attr: AttrDef, found: str) -> InvalidArgumentError:
    return _misfit(node, attr, f"had value with type '{found}' when '{attr.kind}' expected")


def _empty(node: Message, attr: AttrDef) -> InvalidArgumentError:
    return _misfit(node, attr, f"missing value with expected type '{attr.kind}'")


def _unreadable(node: Message, attr: AttrDef, cause: InvalidArgumentError) -> InvalidArgumentError:
    if "type" in attr.kind:
        return _misfit(node, attr, f"has {cause.reason}")
    return _error(node, f"{cause.reason} for attr '{attr.name}'")


def _misfit(node: Message, attr: AttrDef, what: str) -> InvalidArgumentError:
    return _error(node, f"AttrValue {what} for attr '{attr.name}'")


def _check_value(node: Message, attr: AttrDef, value: Attr) -> None:
    """Check an attribute's bounds and its list of allowed values."""
    if isinstance(value, PlaceholderAttr):
        return
    if attr.minimum is not None:
        size = len(value) if isinstance(value, tuple) else value
        if size < attr.minimum:
            what = "Length for" if isinstance(value, tuple) else "Value for"
            raise _error(
                node, f"{what} attr '{attr.name}' of {size} must be at least minimum {attr.minimum}"
            )
    if attr.allowed is not None:
        for item in value if isinstance(value, tuple) else (value,):
            if item not in attr.allowed and getattr(item, "base", item) not in attr.allowed:
                raise _error(
                    node,
                    f"Value for attr '{attr.name}' of {_show(item)} is not in the list of "
                    f"allowed values: {', '.join(sorted(map(_show, attr.allowed)))}",
                )


def _check_counts(node: Message, op: OpDef, attrs: dict[str, Attr]) -> None:
    """Refuse list arguments of absurd length before anything is made of them."""
    for arg in op.counted_args:
        count = _count(arg, attrs)
        if count is not None and not 0 <= count <= MAX_ARGS:
            raise _error(node, f"Argument '{arg.name}' cannot stand for {count} tensors")


def _count(arg: ArgDef, attrs: dict[str, Attr]) -> int | None:
    value = attrs.get(arg.number_attr)
    return value if isinstance(value, int) else None


def _show(item: Any) -> str:
    return f'"{item.decode(errors="backslashreplace")}"' if isinstance(item, bytes) else str(item)


def _error(node: Message, text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{text}; NodeDef: {{{{node {node.name}}}}} (op: {node.op})")
