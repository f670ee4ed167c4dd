"""Who makes sessions that run somewhere else.

In:   a session's target, such as ``grpc://host:2222``.
Out:  the class of such sessions, from a module that is loaded when it is first needed.
Not:  connects to nobody.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from penstock.core.forks import importing
from penstock.errors import InvalidArgumentError, NotFoundError

#: Module and class by what targets begin with.
_CLASSES: Final = {"grpc": ("penstock.cluster.grpc_session", "GrpcSession")}


def session_class(target: Any) -> Any:
    """The class of sessions with a target.

    Raises:
        InvalidArgumentError: the target is no text.
        NotFoundError: nobody makes sessions with such a target.

    """
    if not isinstance(target, str):
        raise InvalidArgumentError(f"A session's target is text, not a {type(target).__name__}")
    found = _CLASSES.get(target.partition("://")[0])
    if found is None:
        raise NotFoundError(
            f"No session factory registered for the given session options: {{target: {target!r}}}",
            next_step="sessions of this process have the empty target, others 'grpc://host:port'",
        )
    module, name = found
    with importing:
        return getattr(importlib.import_module(module), name)
