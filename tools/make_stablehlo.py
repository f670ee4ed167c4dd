"""Export the small JAX programs that the cases of XlaCallModule call.

    python tools/make_stablehlo.py

Writes ``tests/cases_src/files/*.stablehlo``: portable artifacts, without the places in source
files that JAX notes in them.  Needs JAX.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import export, lax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import chlo, stablehlo

FILES = Path(__file__).parents[1] / "tests" / "cases_src" / "files"
#: The oldest format that all that understand portable artifacts can read.
FORMAT = "1.0.0"


def main() -> None:
    f32 = jnp.float32
    (rows,) = export.symbolic_shape("rows")
    long, short = export.symbolic_shape("long, short", constraints=["long >= 2*short"])
    programs = {
        "layer": (layer, ["cpu"], [(2, 3), (3, 4)]),
        "by_platform": (by_platform, ["tpu", "cpu", "cuda"], [(2,)]),
        "any_rows": (any_rows, ["cpu"], [(rows, 3)]),
        "constrained": (lambda x, y: x.sum() + y, ["cpu"], [(long,), (short,)]),
    }
    for name, (function, platforms, shapes) in programs.items():
        arguments = [jax.ShapeDtypeStruct(shape, f32) for shape in shapes]
        exported = export.export(jax.jit(function), platforms=platforms)(*arguments)
        artifact = stripped(exported.mlir_module_serialized)
        (FILES / f"{name}.stablehlo").write_bytes(artifact)
        print(f"{name}: {len(artifact)} bytes")


def layer(x: Any, w: Any) -> Any:
    return jnp.sin(x) @ w + 1


def by_platform(x: Any) -> Any:
    return lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x + 2, cuda=lambda x: x + 3)


def any_rows(x: Any) -> Any:
    count = x.shape[0]
    ranked = jnp.sort(x, axis=0).astype(jnp.bfloat16)
    return jnp.reshape(x, (-1,)), jnp.mean(x, 0), count * jnp.ones((count,), jnp.int32), ranked


def stripped(artifact: bytes) -> bytes:
    with ir.Context() as context, ir.Location.unknown():
        stablehlo.register_dialect(context)
        chlo.register_dialect(context)
        module = stablehlo.deserialize_portable_artifact(context, artifact)
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
        return stablehlo.serialize_portable_artifact(module, FORMAT)


if __name__ == "__main__":
    main()
