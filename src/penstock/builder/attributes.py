"""Attributes as an author writes them, made into attribute values.

In:   the declaration of an attribute, and any Python value.
Out:  the value that a node holds: bytes for text, DType, TensorShape, tuples for lists.
Not:  infers nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock.builder import constants
from penstock.catalogue.op_def import AttrDef
from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.defs.attrs import Attr, FuncAttr, TensorAttr
from penstock.errors import InvalidArgumentError


def as_attr(op: str, declared: AttrDef, given: Any) -> Attr:
    """``given`` as a value of the attribute.

    Raises:
        TypeError: it is not of the attribute's kind.

    """
    kind = declared.kind
    try:
        if kind.startswith("list("):
            if isinstance(given, (str, bytes)):
                raise TypeError("text is no list")
            return tuple(_AS_KIND[kind[5:-1]](item) for item in given)
        return _AS_KIND[kind](given)
    except (TypeError, ValueError, InvalidArgumentError) as cause:
        raise TypeError(
            f"{op}: attribute '{declared.name}' is a {kind}, but got {given!r:.80}"
        ) from cause


def check_attr(op: str, declared: AttrDef, value: Attr) -> None:
    """Raise InvalidArgumentError unless the value keeps the attribute's bounds."""
    if declared.minimum is not None:
        size = len(value) if isinstance(value, tuple) else value
        if size < declared.minimum:
            raise InvalidArgumentError(
                f"{op}: attribute '{declared.name}' is {size}, but must be at least "
                f"{declared.minimum}"
            )
    if declared.allowed is None:
        return
    for item in value if isinstance(value, tuple) else (value,):
        if item not in declared.allowed:
            allowed = ", ".join(sorted(map(_show, declared.allowed)))
            raise InvalidArgumentError(
                f"{op}: attribute '{declared.name}' cannot be {_show(item)}",
                next_step=f"it may be {allowed}",
            )


def _show(item: Any) -> str:
    return f"'{item.decode()}'" if isinstance(item, bytes) else str(item)


def _text(given: Any) -> bytes:
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, bytes):
        return given
    raise TypeError("no text")


def _truth(given: Any) -> bool:
    if isinstance(given, (bool, int)) or hasattr(given, "dtype"):
        return bool(given)
    raise TypeError("no truth value")


def _real(given: Any) -> float:
    if isinstance(given, (str, bytes)):
        raise TypeError("no number")
    return float(given)


def _shape(given: Any) -> TensorShape:
    if isinstance(given, TensorShape):
        return given
    return TensorShape.of((given,) if isinstance(given, int) else given)


def _tensor(given: Any) -> TensorAttr:
    return given if isinstance(given, TensorAttr) else TensorAttr(value=constants.natural(given)[0])


def _function(given: Any) -> FuncAttr:
    if isinstance(given, FuncAttr):
        return given
    if isinstance(given, str):
        return FuncAttr(given, {})
    raise TypeError("no function")


_AS_KIND: Final[Mapping[str, Callable[[Any], Attr]]] = {
    "int": operator.index, "float": _real, "bool": _truth, "string": _text,
    "type": dtypes.as_dtype, "shape": _shape, "tensor": _tensor, "func": _function,
}  # fmt: skip
