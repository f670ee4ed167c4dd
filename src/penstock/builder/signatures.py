"""The Python signature and docstring of an op's function.

In:   the OpDef.
Out:  an ``inspect.Signature`` that a call is bound to, and a text for ``help``.
Not:  looks at no values.

Inputs come first, then the attributes that a caller has to give; both may be positional.
Attributes with a default, those that follow from the inputs, and ``name`` are
keyword-only.  An argument whose name Python keeps for itself gets an underscore behind.
"""

from __future__ import annotations

import keyword
from inspect import Parameter, Signature
from typing import Any, Final

from penstock.catalogue.op_def import ArgDef, AttrDef, OpDef

_EITHER = Parameter.POSITIONAL_OR_KEYWORD
_KEYWORD = Parameter.KEYWORD_ONLY


#: Signatures made so far, by name; with the op, since graphs may share a function's name.
_made: Final[dict[str, tuple[OpDef, Signature]]] = {}


def signature_of(op: OpDef) -> Signature:
    """The signature of the function that calls ``op``."""
    made = _made.get(op.name)
    if made is None or made[0] is not op:
        made = _made[op.name] = op, _make_signature(op)
    return made[1]


def _make_signature(op: OpDef) -> Signature:
    inferred = inferred_attrs(op)
    required = [a for a in op.attrs.values() if a.default is None and a.name not in inferred]
    optional = [a for a in op.attrs.values() if a not in required]
    parameters = [Parameter(_safe(arg.name), _EITHER) for arg in op.inputs]
    parameters += [Parameter(_safe(attr.name), _EITHER) for attr in required]
    parameters += [Parameter(_safe(a.name), _KEYWORD, default=a.default) for a in optional]
    parameters.append(Parameter("name", _KEYWORD, default=None))
    return Signature(parameters)


def inferred_attrs(op: OpDef) -> set[str]:
    """The attributes that follow from the inputs."""
    names = {name for arg in op.inputs for name in (arg.type_attr, arg.number_attr, arg.list_attr)}
    return names - {""}


def docstring_of(op: OpDef) -> str:
    """What ``help`` says: arguments, attributes, results."""
    inferred = inferred_attrs(op)
    lines = [f"Make a node of op {op.name}.", ""]
    lines += [f"{_safe(arg.name)}: {_describe_arg(arg)}" for arg in op.inputs]
    lines += [f"{_safe(a.name)}: {_describe_attr(a, inferred)}" for a in op.attrs.values()]
    results = [f"{arg.name}: {_describe_arg(arg)}" for arg in op.outputs]
    lines += ["", "Returns " + ("; ".join(results) if results else "the operation") + "."]
    if op.is_stateful:
        lines += ["", "Has state: two nodes of it are never merged into one."]
    if op.deprecated_in:
        lines += ["", f"Removed in graphs of version {op.deprecated_in} and later."]
    return "\n".join(lines)


def _safe(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) or name == "name" else name


def _describe_arg(arg: ArgDef) -> str:
    kind = str(arg.dtype) if arg.dtype is not None else arg.type_attr or arg.list_attr
    text = f"list of {kind}" if arg.is_list else kind
    return f"reference to {text}" if arg.is_ref else text


def _describe_attr(attr: AttrDef, inferred: set[str]) -> str:
    text = attr.kind
    if attr.allowed is not None:
        text += " of " + " ".join(sorted(map(_show, attr.allowed)))
    if attr.minimum is not None:
        text += f", at least {attr.minimum}"
    if attr.name in inferred:
        return text + "; follows from the inputs"
    return text if attr.default is None else text + f"; default {_show(attr.default)}"


def _show(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
