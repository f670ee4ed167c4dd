"""StableHLO modules, compiled for the shapes they are called with and run by XLA.

In:   a portable artifact or MLIR text, and arrays.
Out:  arrays.
Not:  knows no graphs and no attributes.  Needs jaxlib, but not JAX.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from threading import Lock
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from penstock import errors
from penstock.core.dtypes import DType
from penstock.core.forks import generation, held_at_forks
from penstock.core.values import Array, Value, as_value, dtype_of
from penstock.errors import OpError
from penstock.exceptions import shown_cause
from penstock.kernels.values.arrays import as_array
from penstock.kernels.xla.stablehlo_main import Spec, XlaModule, jaxlib, stand_in, wrapped

#: Shapes for which one module stays compiled; the least used go first.
_MAX_KEPT: Final = 64
#: Held while XLA's client is made, so that there is one; no other lock is taken under it but
#: Python's import locks.
_lock: Final = held_at_forks(Lock(), order=3)
_clients: Final[list[Any]] = []
#: In which process, as a number of forks; as long as the list before.
_made_in: Final[list[int]] = []


def runner(module: XlaModule) -> Callable[..., tuple[Value, ...]]:
    """The module as a function of arrays; it may be called from several threads.

    The cache has a lock of its own, which is not held while a module is compiled: of two
    threads that come first with equal shapes, one throws its work away.
    """
    client()  # A missing library is missed when the kernel is made.

    @functools.lru_cache(_MAX_KEPT)
    def compiled(*specs: Spec) -> Executable:
        return _compile(module, specs)

    def run(*inputs: Value) -> tuple[Value, ...]:
        specs = [(dtype_of(value), np.shape(value)) for value in inputs]
        return _execute(compiled(*specs), inputs, module.result_types)

    return run


def is_usable() -> bool:
    """Whether XLA works in this process: in the child of a fork, those of its threads are gone."""
    return not _made_in or _made_in[0] == generation()


def client() -> Any:
    """XLA's client for the processor; there is one for the process."""
    with _lock:
        library = _quietly_imported()
        if not _clients:
            _made_in.append(generation())
            _clients.append(library.make_cpu_client(asynchronous=False))
        return _clients[0]


def _quietly_imported() -> ModuleType:
    """The library; while it is imported it decides whether to report on stderr what it does."""
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        return jaxlib("xla_client")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
    try:
        return jaxlib("xla_client")
    finally:
        del os.environ["TF_CPP_MIN_LOG_LEVEL"]


class Executable:
    """A compiled program; it may be called from several threads at once."""

    def __init__(self, code: bytes) -> None:
        """Compile a module of StableHLO; raises whatever jaxlib has against it."""
        xla = client()
        options = jaxlib("xla_client").CompileOptions()
        self._loaded: Final = xla.compile_and_load(code, xla.local_devices()[:1], options)
        #: What makes arrays of results, one for each; known from the first call on.  Set by any
        #: thread, always to the same.
        self._handlers: list[Any] | None = None

    def __call__(self, inputs: list[Any]) -> list[Array]:
        """Run it with inputs in XLA's hands; its results must not be written to."""
        made, handlers = self._loaded.execute_sharded(inputs), self._handlers
        if handlers is not None:
            return [np.asarray(array) for array in made.consume_with_handlers(handlers)]
        shards = made.disassemble_into_single_device_arrays()
        arrays = [np.asarray(of_devices[0]) for of_devices in shards]
        self._handlers = _handlers_for(arrays)
        return arrays


class _ResultType(NamedTuple):
    """What jaxlib wants to be told of a result."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool = False


def _handlers_for(arrays: Sequence[Array]) -> list[Any] | None:
    """What makes such arrays of results; None if this jaxlib has no such thing.

    Left to itself, it asks JAX what kind of array that is to be, and looks for it each time.
    """
    library = jaxlib("_jax")
    try:
        place = library.SingleDeviceSharding(client().local_devices()[0])
        types = [_ResultType(array.shape, array.dtype) for array in arrays]
        return [library.array_result_handler(kind, place, True, True) for kind in types]  # noqa: FBT003
    except (AttributeError, TypeError):
        return None


def _compile(module: XlaModule, specs: Sequence[Spec]) -> Executable:
    """An executable for arrays of these types and shapes."""
    code = wrapped(module, specs)
    try:
        refined = jaxlib("_jax").mlir.refine_polymorphic_shapes(
            code, enable_shape_assertions=module.asserts_shapes, validate_static_shapes=True
        )
        return Executable(refined)
    except RuntimeError as cause:
        raise _canonical(cause) from shown_cause(cause)


def _execute(
    executable: Executable, inputs: Sequence[Value], types: Sequence[DType]
) -> tuple[Value, ...]:
    try:
        arrays = executable(list(map(handed_over, inputs)))
    except RuntimeError as cause:
        raise _canonical(cause) from shown_cause(cause)
    return tuple(
        as_value(array if stand_in(dtype) is None else array.view(dtype.numpy))
        for array, dtype in zip(arrays, types, strict=True)
    )


def handed_over(value: Value) -> Any:
    """An array in XLA's hands; it shares the memory if that is aligned as XLA wants it."""
    array = as_array(value)
    bits = stand_in(dtype_of(value))
    if not (array.flags.c_contiguous and array.flags.writeable):
        array = array.copy()  # DLPack has no word for memory that must not be written.
    if bits is not None:
        array = array.view(bits)
    give = jaxlib("_jax").dlpack_managed_tensor_to_buffer
    return give(array.__dlpack__(), client().local_devices()[0], None)


def _canonical(cause: RuntimeError) -> OpError:
    """XLA's errors begin with the name of their code."""
    name, _, text = str(cause).partition(": ")
    kinds = {kind.code.name: kind for kind in OpError.__subclasses__()}
    return kinds[name](text) if name in kinds else errors.InternalError(str(cause))
