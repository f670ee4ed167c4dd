"""StableHLO modules are compiled for each set of shapes, and run from any thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.defs.attrs import FuncAttr
from penstock.errors import InvalidArgumentError, UnimplementedError
from support.ops import make_op

DOUBLE = """
    module attributes {jax.uses_shape_polymorphism = true} {
      func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
        %y = stablehlo.add %x, %x : tensor<?xf32>
        return %y : tensor<?xf32>
      }
    }
"""


def kernel(text: str = DOUBLE, **changed: Any) -> Callable[..., Any]:
    """The kernel of a node that calls a module with one array."""
    attrs: dict[str, Any] = {
        "version": 9,
        "module": text,
        "platforms": ("CPU",),
        "Sout": (TensorShape(None),),
        "Tout": (dtypes.float32,),
    }
    attrs |= changed
    attrs["platforms"] = tuple(name.encode() for name in attrs["platforms"])
    return make_op("XlaCallModule", [np.float32([0])], **attrs)[0]


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without jaxlib, the error says which extra brings it."""
    monkeypatch.setitem(sys.modules, "jaxlib.xla_client", None)

    with pytest.raises(UnimplementedError) as error:
        kernel()

    assert "This op needs jaxlib, which is not installed" in error.value.message
    assert "pip install 'penstock[xla]'" in error.value.message


def test_functions_of_the_graph_are_refused() -> None:
    """A module that would call back into TensorFlow is refused, and the functions are named."""
    with pytest.raises(UnimplementedError, match=r"calls functions of the graph \(cube\)"):
        kernel(function_list=(FuncAttr("cube", {}),))


@pytest.mark.parametrize(
    ("version", "limit", "advice"),
    [
        (11, "by this build. Must be <= 10", "with an older JAX"),
        (3, "anymore. Must be >= 4", "with a newer JAX"),
    ],
)
def test_a_version_that_is_not_understood_is_named(version: int, limit: str, advice: str) -> None:
    """The error says the module's version, which ones are understood, and how to come by one."""
    with pytest.raises(InvalidArgumentError) as error:
        kernel(version=version)

    assert f"XlaCallModuleOp with version {version} is not supported {limit}" in error.value.message
    assert advice in error.value.advice


def test_threads_share_what_is_compiled() -> None:
    """Calls from many threads with several shapes at once give each its own answer."""
    pytest.importorskip("jaxlib")
    double = kernel()
    arrays = [np.arange(size, dtype=np.float32) + size for size in (1, 2, 3, 70, 1000)] * 8

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda x: double(x)[0], arrays))

    assert all((result == 2 * x).all() for result, x in zip(results, arrays, strict=True))


def test_inputs_may_be_any_arrays() -> None:
    """Read-only arrays, reversed ones and those of odd strides are read as they are."""
    pytest.importorskip("jaxlib")
    double = kernel()
    x = np.arange(100, dtype=np.float32)
    fixed = x.copy()
    fixed.flags.writeable = False

    for given in (x, fixed, x[::-1], x[5:60:7], x.reshape(10, 10)[:, 3]):
        before = given.copy()
        assert (double(given)[0] == 2 * before).all()
        assert (given == before).all()


def test_results_stay() -> None:
    """What a call gave is not overwritten by the next one, nor by a change of its input."""
    pytest.importorskip("jaxlib")
    double = kernel()
    x = np.ones(64, np.float32)

    first = double(x)[0]
    x[:] = 5
    second = double(x)[0]

    assert (first == 2).all()
    assert (second == 10).all()


def test_types_must_be_the_declared_ones() -> None:
    """A module whose result has another type than the node declares is refused."""
    pytest.importorskip("jaxlib")

    with pytest.raises(InvalidArgumentError, match=r"\[f32\], but the node declares \[float64\]"):
        kernel(Tout=(dtypes.float64,))(np.float32([1]))
