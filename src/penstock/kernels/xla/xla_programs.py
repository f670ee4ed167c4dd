"""Programs of StableHLO with fixed shapes, compiled and called with little ado.

In:   the text of a module with a ``main``; arrays of the types and shapes that this takes.
Out:  arrays.
Not:  knows no nodes; checks no types and no shapes: who calls has done it.

To hand an array over takes XLA longer than to add two.  So small inputs are copied into memory
that XLA has had from the beginning, and large constants are handed over once.
"""

from __future__ import annotations

import functools
import importlib.util
import io
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.xla.stablehlo_main import jaxlib, mlir_context
from penstock.kernels.xla.xla_modules import Executable, handed_over

#: XLA takes memory as it is that begins at a multiple of this.
_ALIGNMENT: Final = 64
#: Bytes of an input that is copied.
_SMALL: Final = 1 << 16


@functools.cache
def is_installed() -> bool:
    """Whether jaxlib can be found; imports nothing."""
    return importlib.util.find_spec("jaxlib") is not None


class Compiled:
    """A program, compiled; it may be called from several threads at once."""

    def __init__(
        self, text: str, specs: Sequence[tuple[np.dtype[Any], tuple[int, ...]]], constants: int = 0
    ) -> None:
        """Compile a program.

        Args:
            text: a module of MLIR, with the dialect ``stablehlo``.
            specs: the types and shapes of the parameters of its ``main``.
            constants: how many of these, at the end, get arrays into which nobody ever writes.

        Raises:
            Exception: of whatever kind jaxlib has for it.

        """
        self._executable: Final = Executable(_bytecode(text))
        self._specs: Final = tuple(specs)
        self._first_constant: Final = len(specs) - constants
        #: Inputs that no call uses just now.  Taken and given back by any thread, each at once.
        self._free: Final[list[_ProgramInputs]] = [self._new_inputs()]

    def __call__(self, values: Sequence[Value]) -> list[Array]:
        """Run the program; its results must not be written to."""
        try:
            inputs = self._free.pop()
        except IndexError:
            inputs = self._new_inputs()
        arrays = self._executable(inputs.filled(values))
        inputs.forget()
        self._free.append(inputs)
        return arrays

    def _new_inputs(self) -> _ProgramInputs:
        return _ProgramInputs(self._specs, self._first_constant)


def _bytecode(text: str) -> bytes:
    ir = jaxlib("mlir.ir")
    with mlir_context(), ir.Location.unknown():
        code = io.BytesIO()
        ir.Module.parse(text).operation.write_bytecode(code)
    return code.getvalue()


class _ProgramInputs:
    """What one call at a time hands to a program."""

    __slots__ = ("_first_constant", "_given", "_kept", "_memory")

    def __init__(
        self, specs: Sequence[tuple[np.dtype[Any], tuple[int, ...]]], first_constant: int
    ) -> None:
        self._first_constant: Final = first_constant
        sizes = [dtype.itemsize * int(np.prod(shape)) for dtype, shape in specs]
        #: Memory that XLA knows; None for large inputs.
        self._memory: Final = [
            _aligned(*spec) if size <= _SMALL else None
            for spec, size in zip(specs, sizes, strict=True)
        ]
        #: The same in XLA's hands.
        self._given: Final[list[Any]] = [
            None if memory is None else handed_over(memory) for memory in self._memory
        ]
        #: Large constants, as they were last.
        self._kept: Final[list[Value]] = [None] * len(specs)

    def filled(self, values: Sequence[Value]) -> list[Any]:
        """Values in XLA's hands."""
        for slot, (memory, value) in enumerate(zip(self._memory, values, strict=True)):
            if memory is not None:
                memory[...] = value
            elif value is not self._kept[slot]:
                self._given[slot] = handed_over(value)
                self._kept[slot] = value if slot >= self._first_constant else None
        return self._given

    def forget(self) -> None:
        """Let go of what need not be handed over in the same way again."""
        for slot, (memory, kept) in enumerate(zip(self._memory, self._kept, strict=True)):
            if memory is None and kept is None:
                self._given[slot] = None


def _aligned(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """An array that begins where XLA wants it."""
    size = dtype.itemsize * int(np.prod(shape))
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)
