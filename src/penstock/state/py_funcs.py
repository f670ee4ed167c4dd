"""The Python functions that graphs may call, by token.

In:   functions that this process registers; a graph carries no code, only a token.
Out:  the function of a token, or an error that says how to register one; who calls on behalf
      of EagerPyFunc, if the host wants to do that itself.
Not:  calls nothing; a graph can name only what was registered here, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from penstock.advice import RegisterPyFunc
from penstock.core.forks import process_lock
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class EagerCall:
    """A call that an EagerPyFunc node makes."""

    token: str
    #: What is registered under the token; None if nothing is.
    function: Callable[..., Any] | None
    #: Arrays, or numpy scalars for rank 0, which must not be written into.
    inputs: tuple[Value, ...]
    #: TensorFlow's names of the element types that the results are converted to.
    output_types: tuple[str, ...]
    #: A number that the step shares with no other: a gradient is asked for in the same step.
    step_id: int
    device: str


#: Makes the calls of EagerPyFunc nodes: returns what the function is to have returned.
EagerCaller: TypeAlias = Callable[[EagerCall], Any]

#: Held while ``_functions`` changes.  Innermost.
_lock: Final = process_lock()
#: Functions by token.  Read without the lock.
_functions: Final[dict[str, Callable[..., Any]]] = {}
#: What ``register_eager_caller`` was given last, alone; or nothing.  Replaced as a whole.
_eager_callers: Final[list[EagerCaller | None]] = [None]


def register_py_func(token_to_callable: Mapping[str, Callable[..., Any] | None]) -> None:
    """Let graphs call Python functions.

    A PyFunc, PyFuncStateless or EagerPyFunc node names its function by a token, such as
    ``pyfunc_0``, which meant something only in the process that made the graph.  The functions
    are this process's and serve all its sessions; they may be called from several threads at
    once, with numpy arrays that they must not write into.

    What a function raises ends the run with TensorFlow's code for it: INVALID_ARGUMENT for
    ValueError and TypeError, OUT_OF_RANGE for StopIteration, RESOURCE_EXHAUSTED for
    MemoryError, UNIMPLEMENTED for NotImplementedError, and UNKNOWN for all others.

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


def register_eager_caller(caller: EagerCaller | None) -> None:
    """Let a host make the calls of EagerPyFunc nodes itself, so that it can find gradients.

    TensorFlow's gradient of an EagerPyFunc is another EagerPyFunc: it waits for the first one,
    gets the gradients of its outputs, and gives those of its inputs.  The two are told apart by
    their tokens alone.  A host that notes down what it computes (a *tape*) serves both.

    Args:
        caller: called with an ``EagerCall`` for each activation of an EagerPyFunc, in any
            thread; returns what the node's function is to have returned, or raises what it
            raised.  It replaces an earlier one.  None gives the calls back to the functions.

    Raises:
        InvalidArgumentError: it is neither callable nor None.

    """
    if caller is not None and not callable(caller):
        raise InvalidArgumentError("What is registered to call EagerPyFunc cannot be called")
    _eager_callers[0] = caller


def eager_caller() -> EagerCaller | None:
    """Who makes the calls of EagerPyFunc nodes; None if they are to be made plainly."""
    return _eager_callers[0]


def py_func_or_none(token: str) -> Callable[..., Any] | None:
    """The function of a token, if there is one."""
    return _functions.get(token)


def find_py_func(token: str) -> Callable[..., Any]:
    """The function of a token; raises InvalidArgumentError if there is none."""
    found = _functions.get(token)
    if found is None:
        raise InvalidArgumentError(
            f"ValueError: Could not find callback with key={token} in the registry.",
            next_step=RegisterPyFunc(token),
        )
    return found
