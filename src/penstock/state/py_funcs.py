"""The Python functions that graphs may call, by token.

In:   functions that this process registers; a graph carries no code, only a token.
Out:  the function of a token, or an error that says how to register one.
Not:  calls nothing; a graph can name only what was registered here, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

from penstock.advice import RegisterPyFunc
from penstock.errors import InvalidArgumentError

#: Held while ``_functions`` changes.  Innermost.
_lock: Final = Lock()
#: Functions by token.  Read without the lock.
_functions: Final[dict[str, Callable[..., Any]]] = {}


def register_py_func(token_to_callable: Mapping[str, Callable[..., Any] | None]) -> None:
    """Let graphs call Python functions.

    A PyFunc, PyFuncStateless or EagerPyFunc node names its function by a token, such as
    ``pyfunc_0``, which meant something only in the process that made the graph.  The functions
    are this process's and serve all its sessions; they may be called from several threads at
    once, with numpy arrays that they must not write into.

    Args:
        token_to_callable: functions by token; they replace earlier ones.  None takes one away.

    Raises:
        InvalidArgumentError: something is neither callable nor None; nothing is changed then.

    """
    for token, function in token_to_callable.items():
        if function is not None and not callable(function):
            raise InvalidArgumentError(f"What is registered as {token} cannot be called")
    with _lock:
        for token, function in token_to_callable.items():
            if function is None:
                _functions.pop(token, None)
            else:
                _functions[token] = function


def find_py_func(token: str) -> Callable[..., Any]:
    """The function of a token; raises InvalidArgumentError if there is none."""
    found = _functions.get(token)
    if found is None:
        raise InvalidArgumentError(
            f"ValueError: Could not find callback with key={token} in the registry.",
            next_step=RegisterPyFunc(token),
        )
    return found
