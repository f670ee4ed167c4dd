"""What a kernel may reach outside of its graph: files, and functions of Python.

In:   whether the session's configuration lets graphs out.
Out:  ``Host``, which makers find in their node's ``Attrs``.
Not:  registers no kernel; there is no other way to a file or to a function of Python.

A maker that is told of no host has a closed one, which refuses everything: so what runs graphs
before their time, as the optimiser does, touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.advice import AllowFiles
from penstock.core.files import FileSystem, NoFiles
from penstock.dataclass import dataclass
from penstock.errors import PermissionDeniedError
from penstock.state.py_funcs import EagerCaller, eager_caller, find_py_func


@dataclass(frozen=True, slots=True)
class Host:
    """What lies around the graph."""

    files: FileSystem
    #: The Python function of a token; raises InvalidArgumentError if there is none.
    find_function: Callable[[str], Callable[..., Any]]
    #: Who makes the calls of EagerPyFunc nodes, if not they themselves.
    find_eager_caller: Callable[[], EagerCaller | None]


def _no_function(token: str) -> Callable[..., Any]:
    raise PermissionDeniedError(
        f"The graph may not call Python functions here, and wants the one of token {token!r}",
        next_step=AllowFiles("call functions that are registered"),
    )


#: The machine's files, and the functions that this process has registered.
OPEN: Final = Host(FileSystem(), find_py_func, eager_caller)
#: The functions alone: what is computed early, and perhaps for nothing, touches no file.
WITHOUT_FILES: Final = Host(NoFiles(), find_py_func, eager_caller)
#: Neither.
CLOSED: Final = Host(NoFiles(), _no_function, lambda: None)
