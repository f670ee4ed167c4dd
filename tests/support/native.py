"""Sessions in which programs in C compute whatever they can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import penstock as ps
from penstock.kernels.native.ready_program import ReadyProgram

#: Asks for programs of regions without loops, too.
JIT = ps.GraphOptions(
    optimizer_options=ps.OptimizerOptions(global_jit_level=ps.OptimizerOptions.ON_1)
)
#: However small they are.
ALL = ps.Limits(native_nodes=0)
#: Asks for none at all.
WITHOUT = ps.GraphOptions(
    optimizer_options=ps.OptimizerOptions(global_jit_level=ps.OptimizerOptions.OFF)
)


@contextmanager
def watched() -> Iterator[list[Any]]:
    """Yields the results of programs, None where something does not hold that they need."""
    given: list[Any] = []
    run = ReadyProgram.__call__

    def noted(self: Any, *args: Any) -> Any:
        given.append(run(self, *args))
        return given[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadyProgram, "__call__", noted)
        yield given
