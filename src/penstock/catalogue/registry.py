"""Find the signature of an op by name.

In:   an op's name.
Out:  its ``OpDef``; rows are read from ``ops.txt``, and for ops that only the optimiser makes
      from ``own_ops.txt``, when first asked for.
Not:  knows no kernels.

Users add ops of their own with ``register_op`` and a row in the same syntax; packages that
do so are found when an op is missing (``plugins``).
"""

from __future__ import annotations

import dataclasses
import functools
import pkgutil
from typing import Final

from penstock.advice import RegisterOp
from penstock.catalogue.op_def import OpDef, parse_row
from penstock.catalogue.op_traits import traits_of
from penstock.catalogue.plugins import load_plugins
from penstock.core.similar import similar
from penstock.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError

#: How the row of an op ends that only TensorFlow's own tests use.
_FOR_TESTS: Final = " test"
#: Ops that users registered.  Shares no name with the table; only ever grows.
_custom: Final[dict[str, OpDef]] = {}


@functools.cache
def _rows() -> dict[str, str]:
    """The tables, by op; a row is parsed only when its op is looked up."""
    return _table("ops.txt") | _table("own_ops.txt")


def _table(name: str) -> dict[str, str]:
    content = pkgutil.get_data(__package__, name)
    assert content is not None  # every loader of ours can read data
    lines = content.decode("utf-8").splitlines()
    return {line[: line.index("(")]: line for line in lines if line[0] != "#"}


@functools.cache
def _parsed(name: str) -> OpDef:
    return dataclasses.replace(parse_row(_rows()[name]), traits=traits_of(name))


def find_op(name: str) -> OpDef | None:
    """The signature of an op, or None for a stranger."""
    if name in _custom:
        return _custom[name]
    return _parsed(name) if name in _rows() else None


def get_op(name: str) -> OpDef:
    """The signature of an op; raises NotFoundError, with near names, for a stranger."""
    found = find_op(name)
    if found is None and load_plugins():
        found = find_op(name)
    if found is None:
        near = similar(name, all_ops())
        raise NotFoundError(
            f"Op type not registered '{name}' in Penstock",
            next_step=RegisterOp(tuple(near)),
        )
    return found


def is_builtin_op(name: str) -> bool:
    """Whether the table has the op: users' own and functions it has not."""
    return name in _rows()


def all_ops() -> list[str]:
    """The names of all ops, in alphabetical order."""
    return sorted(_rows().keys() | _custom.keys())


def count_ops() -> int:
    """How many ops there are; it grows with those that users register."""
    return len(_rows()) + len(_custom)


def listed_ops() -> list[str]:
    """The ops that users call: neither the runtime's own nor those of TensorFlow's tests."""
    rows = _rows()
    return [
        op
        for op in all_ops()
        if not op.startswith("_") and not rows.get(op, "").endswith(_FOR_TESTS)
    ]


def register_op(row: str) -> OpDef:
    """Add an op of the user's own, given as a row of the table.

        ps.register_op("Scale(x: T) -> (y: T) [T: type{float32 float64}, by: float = 2.0]")

    Raises:
        InvalidArgumentError: the row breaks the syntax.
        AlreadyExistsError: another op has the name.

    """
    try:
        op = parse_row(row)
    except (ValueError, TypeError, LookupError) as cause:  # a default of another kind
        raise InvalidArgumentError(
            f"not a row of the op table: {row!r} ({cause})", next_step="see docs/add-an-op.md"
        ) from cause
    known = find_op(op.name)
    if known is not None and known != op:
        raise AlreadyExistsError(f"An op called '{op.name}' is registered already")
    if known is None:
        _custom[op.name] = op
    return op
