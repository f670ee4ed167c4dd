"""Which families have the kernels of an op.

In:   ``families.txt``: one line per module that registers kernels, with their ops.
Out:  the modules to import for an op.
Not:  imports none of them, and knows no kernels.

Whoever runs a graph waits only for the families that the graph needs, not for all of them.
"""

from __future__ import annotations

import pkgutil
from typing import Final


def _read_table() -> dict[str, tuple[str, ...]]:
    """Modules by op."""
    modules: dict[str, tuple[str, ...]] = {}
    content = pkgutil.get_data(__package__, "families.txt")
    assert content is not None  # every loader of ours can read data
    for line in content.decode("ascii").splitlines():
        if line.startswith("#"):
            continue
        family, ops = line.split(":")
        module = f"penstock.kernels.{family}"
        for op in ops.split():
            modules[op] = (*modules.get(op, ()), module)
    return modules


#: Every graph asks, so it is read at once.
_TABLE: Final = _read_table()


def families_of(op: str) -> tuple[str, ...]:
    """The full names of the modules with kernels for ``op``, in alphabetical order."""
    return _TABLE.get(op, ())
