"""Write which module registers kernels for which ops, as the table ``kernels/api/families.txt``.

In:   the families as they are.
Out:  one line per module: its name, and the ops for which it registers kernels.
Not:  needs no TensorFlow.

    python tools/make_families.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from penstock.kernels.api import registry
from penstock.kernels.api.registry import KernelDef

PACKAGE = "penstock.kernels."
TABLE = Path(registry.__file__).with_name("families.txt")
HEADER = """\
# The ops that each family has kernels for.  Made by tools/make_families.py; not edited by hand.
"""


def registering_module() -> str:
    """The module whose import is under way: whoever calls a decorator, it does so for this one."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        name = str(frame.f_globals["__name__"])
        if frame.f_code.co_name == "<module>" and name.startswith(PACKAGE):
            return name.removeprefix(PACKAGE)
        frame = frame.f_back
    raise RuntimeError("a kernel was registered while no family was imported")


def read_families() -> dict[str, set[str]]:
    """Ops by module, as they register themselves, or did when the package was imported."""
    ops_of: dict[str, set[str]] = {}
    for op, known in registry._kernels.items():
        for one in known:
            ops_of.setdefault(one.make.__module__.removeprefix(PACKAGE), set()).add(op)
    add = registry._add

    def noted(new: KernelDef) -> None:
        ops_of.setdefault(registering_module(), set()).add(new.op)
        add(new)

    registry._add = noted
    registry.load_families()
    return ops_of


def table() -> str:
    """The whole table."""
    lines = [f"{family}: {' '.join(sorted(ops))}" for family, ops in read_families().items()]
    return HEADER + "\n".join(sorted(lines)) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
