"""What to write instead of a name that Penstock has not.

In:   a name that somebody looked for in ``penstock`` or in ``penstock.ops``.
Out:  the end of an error message, which may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock import habits
from penstock.builder.spelling import find_spelling, near_spellings, snake_case
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.similar import similar


def hint_for(name: str, public: Sequence[str]) -> str:
    """What to write instead of ``ps.name``; ``public`` are the names that there are."""
    known = habits.hint("penstock", name)
    if known:
        return f"; {known}"
    dtype = "bool_" if name == "bool" else name
    if isinstance(getattr(dtypes, dtype, None), DType):
        return f"; use ps.dtypes.{dtype}"
    op = find_spelling(habits.function_here(name) or name)
    if op is not None:
        return f"; use ps.ops.{snake_case(op)}"
    near = similar(name, public, n=1)
    return f"; did you mean ps.{near[0]}?" if near else ""


def hint_for_op(name: str) -> str:
    """What to write instead of ``ps.ops.name``."""
    here = habits.function_here(name)
    if here:
        return f"; TensorFlow's {name} is ops.{here} here"
    near = near_spellings(name)
    return f"; did you mean {' or '.join(near)}?" if near else ""
