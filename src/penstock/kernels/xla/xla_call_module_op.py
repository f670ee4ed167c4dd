"""The op that holds a program of XLA, as JAX exports it.

In:   arrays, and a StableHLO module in an attribute.
Out:  arrays.
Not:  compiles nothing itself; that is ``kernels/xla/xla_modules.py``.
"""

from __future__ import annotations

from typing import Final

from penstock.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.xla.stablehlo_main import XlaModule
from penstock.kernels.xla.xla_modules import runner

#: Versions of the op that are understood.
_VERSIONS: Final = range(4, 11)
#: The first version in which a node must say which platforms its module is for.
_NAMES_PLATFORMS: Final = 6
_PLATFORM: Final = "CPU"


@kernel("XlaCallModule")
def make_xla_call_module(attrs: Attrs) -> Kernel:
    """What a StableHLO module's main function gives; compiled for each new set of shapes."""
    if attrs.list("dim_args_spec"):
        raise UnimplementedError("dim_args_spec attribute is no longer supported")
    if attrs.list("function_list"):
        names = ", ".join(function.name for function in attrs.list("function_list"))
        raise UnimplementedError(
            f"A StableHLO module that calls functions of the graph ({names}) is not supported"
        )
    declared, types = attrs.list("Sout"), attrs.list("Tout")
    if len(declared) != len(types):
        raise InvalidArgumentError(
            f"The size of Sout ({len(declared)}) must match the size of Tout ({len(types)})"
        )
    asserts_shapes = b"shape_assertions" not in attrs.list("disabled_checks")
    return runner(XlaModule(attrs.bytes("module"), _platform(attrs), asserts_shapes, types))


def _platform(attrs: Attrs) -> int | None:
    """Which of the module's platforms this is; None if the module does not ask."""
    version = attrs.int("version")
    if version not in _VERSIONS:
        limit = f"anymore. Must be >= {_VERSIONS[0]}"
        other = "a newer JAX"
        if version > _VERSIONS[-1]:
            limit = f"by this build. Must be <= {_VERSIONS[-1]}"
            option = f"jax_export_calling_convention_version={_VERSIONS[-1]}"
            other = f"an older JAX, or with its option {option}"
        raise InvalidArgumentError(
            f"XlaCallModuleOp with version {version} is not supported {limit}",
            next_step=f"export the model again with {other}",
        )
    platforms = [name.decode() for name in attrs.list("platforms")]
    if not platforms and version >= _NAMES_PLATFORMS:
        raise InvalidArgumentError(
            f"XlaCallModuleOp with version {version} must have non-empty platforms."
        )
    if (
        platforms
        and _PLATFORM not in platforms
        and b"platform" not in attrs.list("disabled_checks")
    ):
        raise NotFoundError(
            f"The current platform {_PLATFORM} is not among the platforms required by the module: "
            f"[{', '.join(platforms)}]"
        )
    if len(platforms) <= 1:
        return None
    return platforms.index(_PLATFORM) if _PLATFORM in platforms else 0
