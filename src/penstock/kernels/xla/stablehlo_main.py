"""A ``main`` of our own around that of a StableHLO module.

In:   a portable artifact or MLIR text, and the types and shapes of arrays.
Out:  MLIR bytecode whose ``main`` takes exactly these arrays.
Not:  compiles and runs nothing; parses no MLIR itself, which jaxlib does.

The new ``main`` has static parameters, from which all other shapes can be told.  It makes what
no array stands for (the platform's number, tokens), and types that cannot be handed over travel
as integers of their bits.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.exceptions import shown_cause
from penstock.kernels.api.extras import require

#: Element types: what MLIR and XLA call them.
_ELEMENTS: Final[dict[DType, tuple[str, str]]] = {
    dtypes.bool_: ("i1", "pred"),
    **{dtypes.as_dtype(f"int{n}"): (f"i{n}", f"s{n}") for n in (8, 16, 32, 64)},
    **{dtypes.as_dtype(f"uint{n}"): (f"ui{n}", f"u{n}") for n in (8, 16, 32, 64)},
    **{dtypes.as_dtype(f"float{n}"): (f"f{n}", f"f{n}") for n in (16, 32, 64)},
    dtypes.bfloat16: ("bf16", "bf16"),
    dtypes.as_dtype("float8_e5m2"): ("f8E5M2", "f8e5m2"),
    dtypes.as_dtype("float8_e4m3fn"): ("f8E4M3FN", "f8e4m3fn"),
    dtypes.complex64: ("complex<f32>", "c64"),
    dtypes.complex128: ("complex<f64>", "c128"),
}
_XLA_NAMES: Final = dict(_ELEMENTS.values())
#: Types that numpy does not hand over by itself, and the integers that stand for them.
_BITS: Final[dict[str, tuple[str, np.dtype[Any]]]] = {
    "bf16": ("ui16", np.dtype(np.uint16)),
    "f8E5M2": ("ui8", np.dtype(np.uint8)),
    "f8E4M3FN": ("ui8", np.dtype(np.uint8)),
}
_TOKEN: Final = "!stablehlo.token"
#: What the module's own main is called inside ours.
_INNER: Final = "main_of_module"

#: A type and a shape.
Spec = tuple[DType, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class XlaModule:
    """A StableHLO module before it is compiled."""

    code: bytes
    #: The platform's index among those that the module is for, where there are several.
    platform_index: int | None
    #: Whether the module may refuse shapes by assertions of its own.
    asserts_shapes: bool
    result_types: tuple[DType, ...]


def wrapped(module: XlaModule, specs: Sequence[Spec]) -> bytes:
    """The module with a ``main`` for these arrays around its own."""
    ir = jaxlib("mlir.ir")
    with mlir_context() as context, ir.Location.unknown():
        parsed = _parsed(context, module.code)
        symbols = ir.SymbolTable(parsed.operation)
        if "main" not in symbols:
            raise InvalidArgumentError("Cannot find 'main' in module")
        main = symbols["main"]
        parameters, results = list(map(str, main.type.inputs)), list(map(str, main.type.results))
        symbols.set_symbol_name(main, _INNER)
        symbols.set_visibility(main, "private")
        text = _main(_arguments(module, parameters, specs), parameters, results, module)
        declared = f"func.func private @{_INNER}({', '.join(parameters)}) -> ({', '.join(results)})"
        made = ir.Module.parse(f"{declared}\n{text}")
        parsed.body.append(ir.SymbolTable(made.operation)["main"].detach_from_parent())
        code = io.BytesIO()
        parsed.operation.write_bytecode(code)
        return code.getvalue()


def jaxlib(module: str) -> ModuleType:
    """A module of the library; raises UnimplementedError if it is not installed."""
    return require(f"jaxlib.{module}", "xla")


def mlir_context() -> Any:
    """MLIR with the dialects that modules are made of."""
    ir = jaxlib("mlir.ir")
    registry = ir.DialectRegistry()
    jaxlib("mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    jaxlib("mlir.dialects.sdy").register_dialect(context)
    jaxlib("mlir.dialects.chlo").register_dialect(context)
    jaxlib("mlir.dialects.stablehlo").register_dialect(context)
    return context


def _parsed(context: Any, code: bytes) -> Any:
    """An artifact, which is bytecode of a versioned dialect, or plain MLIR."""
    complaints: list[str] = []

    def note(complaint: Any) -> bool:
        complaints.append(complaint.message)
        return True  # Else MLIR writes it to stderr.

    handler = context.attach_diagnostic_handler(note)
    try:
        return jaxlib("mlir.dialects.stablehlo").deserialize_portable_artifact(context, code)
    except (ValueError, RuntimeError) as cause:
        reason = "; ".join(complaints) or cause
        raise InvalidArgumentError(f"Cannot deserialize computation: {reason}") from shown_cause(
            cause
        )
    finally:
        handler.detach()


def _arguments(module: XlaModule, parameters: list[str], specs: Sequence[Spec]) -> list[str | Spec]:
    """What each parameter of the module gets: an array, or what ``main`` itself makes."""
    made: list[str | Spec] = []
    left = list(specs)
    tokens = parameters.count(_TOKEN)
    platforms = int(module.platform_index is not None)
    if len(left) + tokens + platforms != len(parameters):
        raise InvalidArgumentError(
            f"Incorrect number of arguments passed to XlaCallModule = {len(left)}. The module "
            f"main function takes {len(parameters)} arguments of which {platforms} platform "
            f"index arguments, and {tokens} token arguments."
        )
    for index, parameter in enumerate(parameters):
        if parameter == _TOKEN:
            made.append("stablehlo.create_token")
        elif index == 0 and module.platform_index is not None:
            made.append(f"stablehlo.constant dense<{module.platform_index}>")
        else:
            spec = left.pop(0)
            _check(index, parameter, spec)
            made.append(spec)
    return made


def _check(index: int, parameter: str, spec: Spec) -> None:
    """Refuse an array that a parameter cannot be."""
    sizes, element = _dissected(parameter)
    wanted = [None if size == "?" else int(size) for size in sizes]
    dtype, shape = spec
    if (
        _element(dtype) == element
        and len(wanted) == len(shape)
        and all(size in (None, given) for size, given in zip(wanted, shape, strict=True))
    ):
        return
    if None in wanted:
        raise InvalidArgumentError(
            f"Error refining argument shapes: invalid refinement for argument {index}, sizes, "
            f"rank and element type must match in {parameter} -> {_type(dtype, shape)}"
        )
    raise InvalidArgumentError(
        f"Call parameter must match argument; got parameter {index} shape: "
        f"{_XLA_NAMES.get(element, element)}[{','.join(sizes)}], argument shape: "
        f"{_XLA_NAMES[_element(dtype)]}[{','.join(map(str, shape))}]."
    )


def _main(
    arguments: list[str | Spec], parameters: list[str], results: list[str], module: XlaModule
) -> str:
    """MLIR of a function that calls the module's main."""
    heads, lines = [], []
    for index, (argument, parameter) in enumerate(zip(arguments, parameters, strict=True)):
        if isinstance(argument, str):
            lines.append(f"%c{index} = {argument} : {parameter}")
            continue
        own, given = _type(*argument), _carried(_type(*argument))
        heads.append(f"%a{index}: {given}")
        kind = "convert" if own == given else "bitcast_convert"
        lines.append(f"%b{index} = stablehlo.{kind} %a{index} : ({given}) -> {own}")
        lines.append(f"%c{index} = stablehlo.convert %b{index} : ({own}) -> {parameter}")
    values = ", ".join(f"%c{index}" for index in range(len(parameters)))
    types = f"({', '.join(parameters)}) -> ({', '.join(results)})"
    bound = f"%r:{len(results)} = " if results else ""
    lines.append(f"{bound}func.call @{_INNER}({values}) : {types}")
    kept = _kept(results, module.result_types)
    for index in kept:
        kind = "convert" if _carried(results[index]) == results[index] else "bitcast_convert"
        signature = f"({results[index]}) -> {_carried(results[index])}"
        lines.append(f"%o{index} = stablehlo.{kind} %r#{index} : {signature}")
    outs = ", ".join(_carried(results[index]) for index in kept)
    returned = ", ".join(f"%o{index}" for index in kept)
    lines.append(f"func.return {returned} : {outs}" if kept else "func.return")
    body = "\n  ".join(lines)
    return f"func.func public @main({', '.join(heads)}) -> ({outs}) {{\n  {body}\n}}"


def _kept(results: list[str], types: Sequence[DType]) -> list[int]:
    """The places of results that are no tokens; their types must be the declared ones."""
    kept = [index for index, result in enumerate(results) if result != _TOKEN]
    given = [_dissected(results[index])[1] for index in kept]
    if given != [_element(dtype) for dtype in types]:
        raise InvalidArgumentError(
            f"The module's main function gives [{', '.join(given)}], but the node declares "
            f"[{', '.join(map(str, types))}]"
        )
    return kept


def _type(dtype: DType, shape: Sequence[int]) -> str:
    """An array's type in MLIR."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{_element(dtype)}>"


def _carried(tensor: str) -> str:
    """The type as which arrays of ``tensor``'s type cross the border."""
    element = _dissected(tensor)[1]
    return tensor.replace(element, _BITS[element][0]) if element in _BITS else tensor


def _dissected(tensor: str) -> tuple[list[str], str]:
    """The sizes and the element type in a type of MLIR."""
    found = re.fullmatch(r"tensor<((?:[0-9?]+x)*)([^,]+?)(?:, .*)?>", tensor)
    if found is None:
        raise UnimplementedError(f"XlaCallModule cannot hand over values of type {tensor}")
    return found[1].split("x")[:-1], found[2]


def stand_in(dtype: DType) -> np.dtype[Any] | None:
    """The integers as which arrays of ``dtype`` cross the border; None if as they are."""
    bits = _BITS.get(_element(dtype))
    return None if bits is None else bits[1]


def _element(dtype: DType) -> str:
    """MLIR's name of an element type."""
    if dtype not in _ELEMENTS:
        raise UnimplementedError(f"XlaCallModule cannot hand over values of type {dtype}")
    return _ELEMENTS[dtype][0]
