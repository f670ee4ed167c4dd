"""Programs of JAX inside graphs: portable artifacts, and MLIR written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cases_src.casebook import b1, bf16, f32, f64, graph, i32, i64, normal, steps

FILES = Path(__file__).parent / "files"
_TYPES = {
    "bool": "i1", "int8": "i8", "uint8": "ui8", "int16": "i16", "uint16": "ui16", "int32": "i32",
    "uint32": "ui32", "int64": "i64", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16",
    "float32": "f32", "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>",
}  # fmt: skip


def module(tf: Any, name: str, types: str, *arrays: Any, **changed: Any) -> Any:
    """One call of a program, with the types of its results."""
    return _call(name, types, list(map(tf.constant, arrays)), changed)


def fed(tf: Any, name: str, types: str, *shapes: tuple[int, ...]) -> Any:
    """The same node is called with arrays of one shape after the other."""
    holder = tf.placeholder("float32")
    results = _call(name, types, [holder], {})
    return steps(*(({holder: normal(*shape)}, results) for shape in shapes))


def _call(name: str, types: str, args: list[Any], changed: dict[str, Any]) -> Any:
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    path = FILES / f"{name}.stablehlo"
    declared = types.split()
    attrs = {
        "version": 9, "platforms": ["CPU"], "Tout": declared, "Sout": [None] * len(declared),
        "module": path.read_bytes() if path.exists() else _TEXTS[name],
    }  # fmt: skip
    return gen_xla_ops.xla_call_module(args=args, **{**attrs, **changed})


def _program(head: str, *lines: str) -> str:
    body = "\n    ".join(lines)
    refined = "attributes {jax.uses_shape_polymorphism = true}" if "?" in head else ""
    return f"module {refined} {{\n  func.func public @main{head} {{\n    {body}\n  }}\n}}"


_TEXTS = {
    "sum": _program(
        "(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32>",
        "%z = stablehlo.add %x, %y : tensor<2xf32>",
        "return %z : tensor<2xf32>",
    ),
    "all_types": _program(
        f"({', '.join(f'%{t}: tensor<2x{m}>' for t, m in _TYPES.items())}) -> "
        f"({', '.join(f'tensor<2x{m}>' for m in _TYPES.values())})",
        f"return {', '.join('%' + t for t in _TYPES)} : "
        f"{', '.join(f'tensor<2x{m}>' for m in _TYPES.values())}",
    ),
    "half": _program(
        "(%x: tensor<?x2xbf16>) -> tensor<?x2xbf16>",
        "%z = stablehlo.add %x, %x : tensor<?x2xbf16>",
        "return %z : tensor<?x2xbf16>",
    ),
    "tokens": _program(
        "(%t: !stablehlo.token, %x: tensor<f32>) -> (!stablehlo.token, tensor<f32>)",
        "%z = stablehlo.sine %x : tensor<f32>",
        "return %t, %z : !stablehlo.token, tensor<f32>",
    ),
    "nothing_in": _program(
        "() -> tensor<3xi64>",
        "%z = stablehlo.iota dim = 0 : tensor<3xi64>",
        "return %z : tensor<3xi64>",
    ),
    "doubling": _program(
        "(%n: tensor<i32>, %x: tensor<2xf64>) -> tensor<2xf64>",
        "%zero = stablehlo.constant dense<0> : tensor<i32>",
        "%one = stablehlo.constant dense<1> : tensor<i32>",
        "%r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<2xf64>",
        "cond {",
        "  %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "  stablehlo.return %go : tensor<i1>",
        "} do {",
        "  %j = stablehlo.add %i, %one : tensor<i32>",
        "  %z = stablehlo.add %y, %y : tensor<2xf64>",
        "  stablehlo.return %j, %z : tensor<i32>, tensor<2xf64>",
        "}",
        "return %r#1 : tensor<2xf64>",
    ),
    "calling": _program(
        "(%x: tensor<f32>) -> tensor<f32>",
        "%z = func.call @cube(%x) : (tensor<f32>) -> tensor<f32>",
        "return %z : tensor<f32>",
        "}",
        "func.func private @cube(%x: tensor<f32>) -> tensor<f32> {",
        "%y = stablehlo.multiply %x, %x : tensor<f32>",
        "%z = stablehlo.multiply %y, %x : tensor<f32>",
        "return %z : tensor<f32>",
    ),
    "stranger": _program(
        "(%x: tensor<f32>) -> tensor<f32>",
        "%z = stablehlo.custom_call @no_such_target(%x) : (tensor<f32>) -> tensor<f32>",
        "return %z : tensor<f32>",
    ),
    "mainless": "module { func.func public @mein() { return } }",
    "junk": "no module at all",
}
_PAIR = (f32([1, 2]), f32([10, 20]))
_LAYER = ("layer", "float32", normal(2, 3), normal(3, 4))
_SAMPLES = [np.array([0, 1]).astype(bf16(0).dtype if t == "bfloat16" else t) for t in _TYPES]

CASES = [
    graph(module, *_LAYER),
    graph(fed, "any_rows", "float32 float32 int32 bfloat16", (2, 3), (5, 3), (2, 3), (1, 3)),
    graph(module, "constrained", "float32", f32([1, 2, 3, 4]), f32([5, 6])),
    graph(module, "sum", "float32", *_PAIR),
    graph(module, "all_types", " ".join(_TYPES), *_SAMPLES),
    graph(module, "half", "bfloat16", bf16([[1, 2], [3, 4], [5, 6]])),
    graph(module, "half", "bfloat16", bf16(np.zeros((0, 2)))),
    graph(module, "tokens", "float32", f32(0.5)),
    graph(module, "nothing_in", "int64"),
    graph(module, "doubling", "float64", i32(5), f64([1, -3])),
    graph(module, "calling", "float32", f32(3)),
    graph(module, "any_rows", "float32 float32 int32 bfloat16", f32(np.zeros((0, 3))),
          says="Expected value >= 1 for dimension variable 'rows'"),
    graph(module, "any_rows", "float32 float32 int32 bfloat16", f32([[1, 2]]),
          says="invalid refinement for argument 0"),
    graph(module, "any_rows", "float32 float32 int32 bfloat16", f32([1, 2, 3]),
          says="invalid refinement for argument 0"),
    graph(module, "any_rows", "float32 float32 int32 bfloat16", f64([[1, 2, 3]]),
          says="invalid refinement for argument 0"),
    graph(module, "constrained", "float32", f32([1, 2, 3]), f32([5, 6]),
          says="Module shape refinement failed"),
    graph(module, "sum", "float32", _PAIR[0], says="Incorrect number of arguments passed to "
          "XlaCallModule = 1"),
    graph(module, "sum", "float32", _PAIR[0], f32([1]),
          says="got parameter 1 shape: f32[2], argument shape: f32[1]"),
    graph(module, "sum", "float32", _PAIR[0], i64([1, 2]),
          says="got parameter 1 shape: f32[2], argument shape: s64[2]"),
    graph(module, "sum", "float32", b1([True, False]), _PAIR[0],
          says="got parameter 0 shape: f32[2], argument shape: pred[2]"),
    graph(module, "stranger", "float32", f32(1), says="no_such_target"),
    graph(module, "mainless", "float32", says="Cannot find 'main' in module"),
    graph(module, "junk", "float32", says="Cannot deserialize computation"),
]  # fmt: skip


def changed(name: str, types: str, *arrays: Any, says: str = "", **attrs: Any) -> Any:
    """A case with other attributes."""

    def module_with(tf: Any, _name: str, _attrs: str) -> Any:
        return module(tf, name, types, *arrays, **attrs)

    return graph(module_with, name, "_".join(attrs), says=says)


_CUDA = {"platforms": ["TPU", "CUDA", "ROCM"]}
CASES += [
    changed("by_platform", "float32", _PAIR[0], platforms=["TPU", "CPU", "CUDA"]),
    changed("by_platform", "float32", _PAIR[0], platforms=["CPU", "TPU"], version=10),
    changed("by_platform", "float32", _PAIR[0], **_CUDA, disabled_checks=["platform"]),
    changed("by_platform", "float32", _PAIR[0], **_CUDA,
            says="CPU is not among the platforms required by the module: [TPU, CUDA, ROCM]"),
    changed("constrained", "float32", _PAIR[0], _PAIR[1], disabled_checks=["shape_assertions"]),
    changed("tokens", "float32", f32(0.5), has_token_input_output=True),
    changed(*_LAYER, version=4, platforms=[]),
    changed(*_LAYER, version=5),
    changed(*_LAYER, version=6, platforms=[], says="must have non-empty platforms"),
    changed(*_LAYER, version=3, says="not supported anymore. Must be >= 4"),
    changed(*_LAYER, version=11, says="not supported by this build. Must be <= 10"),
    changed(*_LAYER, dim_args_spec=["0.0"], says="dim_args_spec attribute is no longer supported"),
    changed(*_LAYER, Sout=[], says="The size of Sout (0) must match the size of Tout (1)"),
]  # fmt: skip
