"""Arguments and results of one run of a graph.

In:   arguments, from whoever starts the run; results, from its ``_Retval`` nodes.
Out:  the same, by index.
Not:  converts nothing.

It takes no lock: arguments are set before the run and only read in it, each result's place
has one writer, and results are consumed when the run is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.core.dtypes import DType
from penstock.core.values import Value, describe, has_dtype
from penstock.errors import InternalError, InvalidArgumentError


class CallFrame:
    """Places for the arguments and results of one run."""

    __slots__ = ("_arg_types", "_args", "_ret_types", "_rets")

    def __init__(self, arg_types: Sequence[DType], ret_types: Sequence[DType]) -> None:
        self._arg_types: Final = arg_types
        self._ret_types: Final = ret_types
        #: All arguments, of the right types; empty before ``set_args``.
        self._args: Sequence[Value] = ()
        #: One place per result; None as long as it has not come, and after it was consumed.
        self._rets: list[Value | None] = [None] * len(ret_types)

    def set_args(self, args: Sequence[Value]) -> None:
        """Provide all arguments; raises InvalidArgumentError unless number and types fit."""
        types = self._arg_types
        if len(args) != len(types):
            raise InvalidArgumentError(
                f"Expects {len(types)} arguments, but {len(args)} is provided"
            )
        for index, (arg, dtype) in enumerate(zip(args, types, strict=True)):
            if not _has_dtype(arg, dtype):
                raise InvalidArgumentError(
                    f"Expects arg[{index}] to be {dtype} but {describe(arg)} is provided"
                )
        self._args = args

    @property
    def args(self) -> Sequence[Value]:
        """All arguments; empty before ``set_args``."""
        return self._args

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
        rets = self._rets
        if not 0 <= index < len(rets):
            raise InvalidArgumentError(f"SetRetval {index} is not within [0, {len(rets)})")
        dtype = self._ret_types[index]
        if not _has_dtype(value, dtype):
            raise InvalidArgumentError(
                f"Expects ret[{index}] to be {dtype}, but {describe(value)} is provided."
            )
        if rets[index] is not None:
            raise InternalError(f"Retval[{index}] has already been set.")
        rets[index] = value

    def consume_retvals(self, *, allow_dead: bool) -> list[Value | None]:
        """Take all results out; None for dead ones if they are allowed.

        Raises:
            InternalError: a result is missing, and ``allow_dead`` is false.

        """
        rets = self._rets
        if not allow_dead:
            for index, value in enumerate(rets):
                if value is None:
                    raise InternalError(f"Retval[{index}] does not have value")
        self._rets = [None] * len(rets)
        return rets


def _has_dtype(value: Value, dtype: DType) -> bool:
    # Nearly always it is the very same numpy dtype, which is a third of the cost to see.
    is_same = getattr(value, "dtype", None) is dtype.numpy and not dtype.is_ref
    return is_same or has_dtype(value, dtype)
