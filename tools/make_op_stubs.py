"""Write the types of the functions of ``penstock.ops``, as ``builder/ops.pyi``.

In:   the catalogue.
Out:  one line per op that users call: its arguments and what it returns.
Not:  needs no TensorFlow.

    python tools/make_op_stubs.py
"""

from __future__ import annotations

import keyword
from inspect import Parameter
from pathlib import Path

from penstock.builder import ops
from penstock.builder.op_function import function_name
from penstock.builder.signatures import inferred_attrs, signature_of
from penstock.catalogue.op_def import ArgDef, AttrDef, OpDef
from penstock.catalogue.registry import get_op, is_builtin_op, listed_ops

STUB = Path(ops.__file__).with_suffix(".pyi")
#: What is written out by hand, by module.
BY_HAND = {
    "branches": ("case", "cond", "switch_case"),
    "groups": ("group", "tuple_", "with_dependencies"),
    "loops": ("while_loop",),
    "sources": ("constant", "placeholder"),
    "tensor_array": ("TensorArray",),
    "variable": ("Variable", "global_variables_initializer"),
}
HEADER = '''\
"""The functions of ops, with types.  Made by tools/make_op_stubs.py; not edited by hand.

Only the spelling that ``dir(ops)`` lists is here, of the ops that the catalogue has; functions of
the user's own ops are called by ``graph.apply``, whose result has any type.
"""

import builtins as _b
from collections.abc import Sequence as _Sequence
from typing import Any as _Any, NamedTuple as _NamedTuple, SupportsFloat, SupportsIndex, TypeAlias

import numpy as _np
import numpy.typing as _npt

'''
ALIASES = """\
from penstock.builder.operators import Operators as _Operators
from penstock.builder.tensor import Operation as _Operation, Tensor as _T
from penstock.core.dtypes import DType as _DType
from penstock.core.shapes import TensorShape as _TensorShape
from penstock.defs.attrs import FuncAttr as _FuncAttr, TensorAttr as _TensorAttr

# A tensor or variable, or what becomes a constant; several of them.
_In: TypeAlias = (
    _Operators | _b.bool | _b.int | _b.float | _b.complex | _b.str | _b.bytes
    | _np.generic | _npt.NDArray[_Any] | _Sequence[_In]
)
_Ins: TypeAlias = _Sequence[_In]
# Attributes, by their kind.
_int: TypeAlias = SupportsIndex
_float: TypeAlias = SupportsFloat
_bool: TypeAlias = _b.bool
_string: TypeAlias = _b.str | _b.bytes
_type: TypeAlias = _DType | _b.str | _b.int | _npt.DTypeLike
_shape: TypeAlias = _TensorShape | _Sequence[_b.int | None] | _b.int | None
_tensor: TypeAlias = _In | _TensorAttr
_func: TypeAlias = _b.str | _FuncAttr
_name: TypeAlias = _b.str | None

"""


def main() -> None:
    """Write the stub."""
    STUB.write_text(stub(), "utf-8")


def stub() -> str:
    """The whole file."""
    results: dict[tuple[tuple[str, str], ...], str] = {}
    own = filter(is_builtin_op, listed_ops())
    lines = [function(op, results) for op in map(get_op, own)]
    tuples = [named_tuple(name, fields) for fields, name in results.items()]
    by_hand = [
        f"from penstock.builder.{module} import {', '.join(f'{n} as {n}' for n in names)}\n"
        for module, names in BY_HAND.items()
    ]
    return HEADER + "".join(by_hand) + ALIASES + "".join(tuples) + "\n" + "".join(lines)


def function(op: OpDef, results: dict[tuple[tuple[str, str], ...], str]) -> str:
    """The line of one op; ``results`` collects the named tuples that are returned."""
    name = function_name(op.name)
    if name in ops.__all__:
        name = op.name  # what is written out by hand has the better right
    inputs = {arg.name: arg for arg in op.inputs}
    inferred = inferred_attrs(op)
    parameters: list[str] = []
    for parameter in signature_of(op).parameters.values():
        if parameter.kind is Parameter.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        bare = (
            parameter.name.removesuffix("_") if parameter.name not in op.attrs else parameter.name
        )
        if parameter.name == "name":
            parameters.append("name: _name = ...")
        elif bare in inputs:
            parameters.append(f"{parameter.name}: {input_type(inputs[bare])}")
        else:
            attr = op.attrs[bare]
            text = attr_type(attr, is_optional=attr.default is None and attr.name in inferred)
            given = " = ..." if parameter.default is not Parameter.empty else ""
            parameters.append(f"{parameter.name}: {text}{given}")
    return f"def {name}({', '.join(parameters)}) -> {result_type(op, results)}: ...\n"


def input_type(arg: ArgDef) -> str:
    """What an input takes."""
    return "_Ins" if arg.is_list else "_In"


def attr_type(attr: AttrDef, *, is_optional: bool) -> str:
    """What an attribute takes."""
    kind = attr.kind
    text = f"_Sequence[_{kind[5:-1]}]" if kind.startswith("list(") else f"_{kind}"
    return f"{text} | None" if is_optional else text


def result_type(op: OpDef, results: dict[tuple[tuple[str, str], ...], str]) -> str:
    """What an op returns."""
    if not op.outputs:
        return "_Operation"
    types = [f"{'_b.list[_T]' if arg.is_list else '_T'}" for arg in op.outputs]
    if len(types) == 1:
        return types[0]
    names = [arg.name for arg in op.outputs]
    if any(keyword.iskeyword(name) or name.startswith("_") for name in names):
        return f"_b.tuple[{', '.join(types)}]"
    fields = tuple(zip(names, types, strict=True))
    return results.setdefault(fields, f"_{op.name.replace('>', '_')}")


def named_tuple(name: str, fields: tuple[tuple[str, str], ...]) -> str:
    """The class of some results."""
    lines = [f"class {name}(_NamedTuple):"]
    for field, kind in fields:
        hidden = "  # type: ignore[assignment]" if hasattr(tuple, field) else ""
        lines.append(f"    {field}: {kind}{hidden}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
