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
from typing import Any, Final

import numpy as np

from penstock import errors
from penstock.core.dtypes import DType
from penstock.core.forks import generation, held_at_forks
from penstock.core.values import Value, as_value, dtype_of
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
    def compiled(*specs: Spec) -> Any:
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


def _compile(module: XlaModule, specs: Sequence[Spec]) -> Any:
    """An executable for arrays of these types and shapes."""
    xla = client()
    code = wrapped(module, specs)
    try:
        refined = jaxlib("_jax").mlir.refine_polymorphic_shapes(
            code, enable_shape_assertions=module.asserts_shapes, validate_static_shapes=True
        )
        return xla.compile_and_load(
            refined, xla.local_devices()[:1], jaxlib("xla_client").CompileOptions()
        )
    except RuntimeError as cause:
        raise _canonical(cause) from shown_cause(cause)


def _execute(executable: Any, inputs: Sequence[Value], types: Sequence[DType]) -> tuple[Value, ...]:
    try:
        results = executable.execute_sharded(list(map(handed_over, inputs)))
        shards = results.disassemble_into_single_device_arrays()
        arrays = [np.asarray(of_devices[0]) for of_devices in shards]
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
