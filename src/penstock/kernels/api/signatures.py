"""Types and signatures as TensorFlow's messages spell them.

In:   data types.
Out:  text, and the error for inputs that do not fit a resource.
Not:  registers no kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.core.dtypes import DType
from penstock.errors import InvalidArgumentError

#: Types that TensorFlow calls by C's names.
_NAMES: Final = {"float16": "half", "float32": "float", "float64": "double"}


def type_text(dtype: DType) -> str:
    """A type's name in messages."""
    name = _NAMES.get(dtype.base.name, dtype.base.name)
    return f"{name}_ref" if dtype.is_ref else name


def types_text(types: Iterable[DType]) -> str:
    """Names of several types."""
    return ", ".join(map(type_text, types))


def signature_mismatch(
    given: tuple[Iterable[DType], Iterable[DType]],
    expected: tuple[Iterable[DType], Iterable[DType]],
) -> InvalidArgumentError:
    """The error for a node that does not fit its resource; inputs and outputs of each."""
    have, want = (
        f"{types_text(inputs)}->{types_text(outputs)}" for inputs, outputs in (given, expected)
    )
    return InvalidArgumentError(f"Signature mismatch, have: {have} expected: {want}")
