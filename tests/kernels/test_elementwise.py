"""Which kernels work element by element, by trying all that say so."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.kernels.api import elementwise as module
from penstock.kernels.api.elementwise import is_elementwise

OPERATORS = sorted(module._OPERATORS, key=lambda function: function.__name__)
VALUES: dict[str, Any] = {
    "float32": np.random.default_rng(1).uniform(0.5, 3.0, 24).astype(np.float32),
    "int32": np.random.default_rng(2).integers(1, 9, 24, np.int32),
    "bool": np.random.default_rng(3).integers(0, 2, 24).astype(bool),
}


@pytest.mark.parametrize("function", OPERATORS)
def test_operators_work_on_parts(function: Callable[..., Any]) -> None:
    """An operator of a part is that part of the operator's result, and never a view."""
    assert is_elementwise(function)
    tried = 0
    for array in VALUES.values():
        for args in ((array,), (array, array[::-1].copy()), (array, array[3])):
            with np.errstate(divide="ignore", invalid="ignore"):
                try:
                    whole = function(*args)
                except TypeError:
                    continue
                tried += 1
                parts = [
                    function(*[arg[i : i + 6] if np.ndim(arg) else arg for arg in args])
                    for i in range(0, 24, 6)
                ]
            np.testing.assert_array_equal(np.concatenate(parts), whole, strict=True)
            assert not any(np.shares_memory(whole, arg) for arg in args)
    assert tried


def test_universal_functions() -> None:
    """Functions of single numbers are; those of vectors, or with two results, are not."""
    for ufunc in (np.exp, np.add, np.maximum, np.isnan, np.frompyfunc(abs, 1, 1)):
        assert is_elementwise(ufunc)
    for other in (np.matmul, np.modf, np.divmod, np.frexp):
        assert not is_elementwise(other)


def test_other_functions_do_not_count() -> None:
    """Of other functions nothing is known: their traits have to say it."""

    def twice(x: Any) -> Any:
        return x + x

    assert not is_elementwise(twice)
    for other in (np.sum, np.sort, np.cumsum, operator.matmul, operator.getitem, len):
        assert not is_elementwise(other)


def test_anything_may_be_asked() -> None:
    """A kernel without a hash just does not count."""

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self) -> None:
            """Do nothing."""

    assert not is_elementwise(Unhashable())
    assert not is_elementwise([].append)
