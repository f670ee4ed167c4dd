"""Arguments and results of one run of a graph.

In:   arguments, from whoever starts the run; results, from its ``_Retval`` nodes.
Out:  the same, by index.
Not:  converts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.core.dtypes import DType
from penstock.core.values import Value, describe, has_dtype
from penstock.errors import InternalError, InvalidArgumentError


class CallFrame:
    """Places for the arguments and results of one run."""

    __slots__ = ("_args", "_arg_types", "_ret_types", "_rets")

    def __init__(self, arg_types: Sequence[DType], ret_types: Sequence[DType]) -> None:
        self._arg_types: Final = arg_types
        self._ret_types: Final = ret_types
        #: Set once, before the run.
        self._args: Sequence[Value] = ()
        #: None as long as a result has not come.  Each place is written by one node only.
        self._rets: list[Value | None] = [None] * len(ret_types)

    def set_args(self, args: Sequence[Value]) -> None:
        """Provide all arguments; raises InvalidArgumentError unless number and types fit."""
        if len(args) != len(self._arg_types):
            raise InvalidArgumentError(
                f"Expects {len(self._arg_types)} arguments, but {len(args)} is provided"
            )
        for index, (arg, dtype) in enumerate(zip(args, self._arg_types, strict=True)):
            if not has_dtype(arg, dtype):
                raise InvalidArgumentError(
                    f"Expects arg[{index}] to be {dtype} but {describe(arg)} is provided"
                )
        self._args = args

    def get_arg(self, index: int) -> Value:
        """One argument; raises InvalidArgumentError if there is none."""
        if not 0 <= index < len(self._args):
            raise InvalidArgumentError(f"GetArg {index} is not within [0, {len(self._args)})")
        return self._args[index]

    def set_retval(self, index: int, value: Value) -> None:
        """Provide one result.

        Raises:
            InvalidArgumentError: there is no such result, or its type is another.
            InternalError: it is there already.
        """
        if not 0 <= index < len(self._rets):
            raise InvalidArgumentError(f"SetRetval {index} is not within [0, {len(self._rets)})")
        dtype = self._ret_types[index]
        if not has_dtype(value, dtype):
            raise InvalidArgumentError(
                f"Expects ret[{index}] to be {dtype}, but {describe(value)} is provided."
            )
        if self._rets[index] is not None:
            raise InternalError(f"Retval[{index}] has already been set.")
        self._rets[index] = value

    def consume_retvals(self, *, allow_dead: bool) -> list[Value | None]:
        """All results, None for dead ones if they are allowed; else raises InternalError."""
        rets, self._rets = self._rets, [None] * len(self._ret_types)
        if not allow_dead:
            for index, value in enumerate(rets):
                if value is None:
                    raise InternalError(f"Retval[{index}] does not have value")
        return rets
