"""Expressions mean what Python's mean, and can do nothing but compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.debugger.expressions import parse

TENSORS = {"x:0": np.float32([[1, 2], [3, 4]]), "a/b:1": np.int32(7)}
NAMES: dict[str, Any] = {"iteration": 11, "op": "Log", "value": np.float32([1, np.nan])}


def value(text: str) -> Any:
    return parse(text).evaluate(TENSORS.__getitem__, NAMES.__getitem__)


@pytest.mark.parametrize(
    "text",
    [
        "iteration > 10",
        "iteration > 10 and op == 'Log'",
        "iteration < 10 or not iteration",
        "10 < iteration <= 11",
        "op in ['Log', 'Exp']",
        "iteration if iteration % 2 else -iteration",
        "2 ** 3 ** 2 // 5 - ~1",
        "[1, 2, 3][1:]",
        "(1, 2)[-1]",
        "len(op) * 2.5e3",
        "True and 3",
        "0 or 0",
    ],
)
def test_as_in_python(text: str) -> None:
    """Precedence, chains and short circuits are Python's own."""
    assert value(text) == eval(text, {}, NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean(`x:0`) * 2", 5.0),
        ("np.max(`x:0`, axis=0)", [3, 4]),
        ("`x:0`[0, :] @ `x:0`[:, 1]", 10),
        ("`a/b:1` + 1", 8),
        ("any(isnan(value))", True),
        ("sum(where(`x:0` > 2, 0, `x:0`))", 3),
        ("`x:0` == 1", [[True, False], [False, False]]),
        ("-inf", -np.inf),
    ],
)
def test_over_tensors(text: str, expected: Any) -> None:
    """Tensors stand between backticks; functions are numpy's."""
    np.testing.assert_array_equal(value(text), expected)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "`x:0`.tofile('file')",
        "`x:0`.__class__",
        "(lambda: 1)()",
        "[x for x in value]",
        "{1: 2}",
        "f'{op}'",
        "open('file')",
        "mean.__self__",
        "np.load('file')",
        "np.lib.format.open_memmap('file')",
        "op.format(iteration)",
        "(iteration := 3)",
        "value[mean]",
        "_tensor_[0]",
        "nothing",
        "mean",
        "max()",
        "1 / 0",
        "`y:0`",
        "iteration >",
        "",
        "(" * 500 + "1" + ")" * 500,
        "exec('1')",
        "getattr(op, 'upper')()",
        "value.dtype",
    ],
)
def test_nothing_else_is_understood(text: str) -> None:
    """No attribute, no import, no function beyond the table; mistakes are errors of one kind."""
    with pytest.raises(errors.InvalidArgumentError):
        value(text)


def test_what_it_needs_is_known_before() -> None:
    """Tensors in the order in which they stand there, and names."""
    found = parse("`b:0` + `a:1` * iteration + np.mean(`b:0`) + inf")
    assert found.tensors == ("b:0", "a:1", "b:0")
    assert found.names == {"iteration"}
