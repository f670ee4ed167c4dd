"""ONNX Runtime: whether it is there, and models made ready to run.

In:   a model's bytes, and the arrays of its large constants.
Out:  a function from arrays to arrays.
Not:  knows no op, and registers nothing.

The threads of ONNX Runtime spin for 200 microseconds before they sleep, as those of the kernels in
C do, since by then the next piece of work, or the next step, often is there.  As it comes, they
would spin for milliseconds, and take their cores from everybody else.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, TypeAlias

from penstock.core.denormals import in_own_setting
from penstock.core.forks import held_at_forks
from penstock.core.values import Array

#: The module ``onnxruntime``.  No checker knows it where it is not installed.
Onnx: TypeAlias = Any
#: Computes a model: arrays by the names of inputs in, arrays in the order of outputs out.
Compute: TypeAlias = Callable[[Mapping[str, Array]], Sequence[Array]]

#: Only what fails is reported, by an exception.
_SILENT: Final = "4"
#: How threads wait for their next piece of work; versions before 1.26 do not know the second entry.
_SPINNING: Final = {
    "session.intra_op.allow_spinning": "1",
    "session.intra_op.spin_duration_us": "200",
    "session.inter_op.allow_spinning": "0",
}
#: Guards ``_loaded``.  Taken before Python's import lock.
_lock: Final = held_at_forks(Lock(), order=3)
#: The module once it was imported, or None if that failed; grows once.
_loaded: Final[list[Onnx | None]] = []


@functools.cache
def is_installed() -> bool:
    """Whether ONNX Runtime can be found; imports nothing."""
    return importlib.util.find_spec("onnxruntime") is not None


def load() -> Onnx | None:
    """ONNX Runtime; None if it is not installed, or cannot be imported."""
    if not _loaded:
        with _lock:
            if not _loaded:
                _loaded.append(in_own_setting(_import))
    return _loaded[0]


def _import() -> Onnx | None:
    try:
        return importlib.import_module("onnxruntime")
    except (ImportError, OSError):  # a library that does not fit this machine
        return None


def ready(onnx: Onnx, model: bytes, weights: Mapping[str, Array], threads: int) -> Compute:
    """A model that can be run, by any number of threads at once.

    Args:
        onnx: the module.
        model: a ModelProto.
        weights: elements of the initializers that the model names and does not hold.
        threads: how many work on a run, whoever calls it included.

    Raises:
        Exception: whatever ONNX Runtime has against the model.

    """
    session = in_own_setting(lambda: _session(onnx, model, weights, threads))
    names = [output.name for output in session.get_outputs()]
    # What ``session.run`` calls after it has looked at its arguments.
    run = session._sess.run  # noqa: SLF001
    return lambda feeds: run(names, feeds, None)


def _session(onnx: Onnx, model: bytes, weights: Mapping[str, Array], threads: int) -> Any:
    options = onnx.SessionOptions()
    options.log_severity_level = int(_SILENT)
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # What is kept for later takes up to twice the memory, and saves no time that can be measured.
    options.enable_cpu_mem_arena = False
    for entry, value in _SPINNING.items():
        options.add_session_config_entry(entry, value)
    if weights:
        values = [onnx.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    return onnx.InferenceSession(model, options, providers=["CPUExecutionProvider"])
