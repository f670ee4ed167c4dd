"""How a kernel is written: as an operator where it is one, otherwise as a call.

In:   a bound kernel and the texts of its arguments.
Out:  an expression.
Not:  knows no graph.

Kernels of arithmetic and comparison are functions of the ``operator`` module; written as
operators they cost a third less.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.core.values import Value
from penstock.errors import InvalidArgumentError

_OPERATORS: Final[Mapping[Callable[..., Any], str]] = {
    operator.add: "{} + {}",
    operator.sub: "{} - {}",
    operator.mul: "{} * {}",
    operator.truediv: "{} / {}",
    operator.mod: "{} % {}",
    operator.pow: "{} ** {}",
    operator.neg: "-{}",
    operator.pos: "+{}",
    operator.invert: "~{}",
    operator.and_: "{} & {}",
    operator.or_: "{} | {}",
    operator.xor: "{} ^ {}",
    operator.lt: "{} < {}",
    operator.le: "{} <= {}",
    operator.gt: "{} > {}",
    operator.ge: "{} >= {}",
    operator.eq: "{} == {}",
    operator.ne: "{} != {}",
    operator.matmul: "{} @ {}",
}


def operator_text(compute: Callable[..., Any], arguments: Sequence[str]) -> str | None:
    """A kernel's call as an operator, or None if there is none for it."""
    try:
        template = _OPERATORS.get(compute)
    except TypeError:  # a kernel that has no hash
        return None
    if template is None or template.count("{}") != len(arguments):
        return None
    return template.format(*arguments)


def as_pred(value: Value) -> np.bool_:
    """The predicate of a Switch as one of numpy's two booleans; raises for a tensor."""
    if isinstance(value, np.ndarray) and value.ndim:
        raise InvalidArgumentError(
            f"The second input must be a scalar, but it has shape {list(value.shape)}"
        )
    return np.True_ if value else np.False_
