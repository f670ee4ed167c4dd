"""Libraries that only some kernels need and that may be missing.

In:   a module's name, and the extra of Penstock that brings it.
Out:  the module, or an error that says what to install.
Not:  imports nothing before a kernel is made that needs it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from penstock.core.forks import importing
from penstock.errors import UnimplementedError


def require(module: str, extra: str, what: str = "This op") -> ModuleType:
    """The module; raises UnimplementedError with the way to install it if it is missing.

    ``what`` says in the error what needs it.
    """
    try:
        with importing:
            return importlib.import_module(module)
    except ImportError as cause:
        raise UnimplementedError(
            f"{what} needs {module.partition('.')[0]}, which is not installed",
            next_step=f"pip install 'penstock[{extra}]'",
        ) from cause
