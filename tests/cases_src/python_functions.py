"""Graphs that call Python functions, by tokens that both sides know."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, graph, i32, s, steps


def _double(x: Any) -> Any:
    return x + x


def _sorted_and_size(x: Any) -> Any:
    return np.sort(np.asarray(x), axis=None), np.int64(np.size(x))


def _greeting(name: Any) -> Any:
    return b"Hello " + name


def _nothing(x: Any) -> None:
    del x


def _refusing(x: Any) -> Any:
    raise ValueError(f"{x} is refused")


#: What tokens stand for; a test has them registered while it runs.
FUNCTIONS = {
    "cases_double": _double,
    "cases_sorted_and_size": _sorted_and_size,
    "cases_greeting": _greeting,
    "cases_nothing": _nothing,
    "cases_refusing": _refusing,
}
#: What TensorFlow's registry holds only weakly.
_KEPT: list[Any] = []


def called(tf: Any, op: str, name: str, types: str, *arrays: Any) -> Any:
    """One call for each of several inputs."""
    token = f"cases_{name}"
    declared = types.split()
    _register(op, token, declared)
    holder = tf.placeholder(tf.as_dtype(arrays[0].dtype))
    results = getattr(tf.raw_ops, op)(input=[holder], token=token, Tout=declared)
    return steps(*(({holder: array}, [results]) for array in arrays))


def _register(op: str, token: str, types: list[str]) -> None:
    from tensorflow.python.ops import script_ops

    function = FUNCTIONS[token]
    if op == "EagerPyFunc":
        function = script_ops.EagerFunc(function, types, is_grad_func=False)
        _KEPT.append(function)
    script_ops._py_funcs._funcs[token] = function


_PAIRS = f32([3, 1]), f32([[5, 2], [4, 9]])

CASES = [
    *(
        graph(called, op, *call)
        for op in ("PyFunc", "PyFuncStateless", "EagerPyFunc")
        for call in (
            ("double", "float32", *_PAIRS),
            ("double", "int32", i32(4)),
            ("sorted_and_size", "float32 int64", *_PAIRS),
            ("nothing", "", f32(1)),
        )
    ),
    graph(called, "PyFunc", "greeting", "string", s(b"you")),
    graph(called, "PyFunc", "double", "int64", f32(1), says="expects int64"),
    graph(called, "PyFunc", "refusing", "float32", f32(1), says="ValueError: 1.0 is refused"),
    graph(called, "EagerPyFunc", "refusing", "float32", i32(1), says="is refused"),
    graph(called, "PyFunc", "double", "float32 float32", f32(1), says="expects to see 2 values"),
]
