"""Sessions in which XLA computes whatever it can, from the first step on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import penstock as ps
from penstock.kernels.native import background, native_region_op, useless

#: Asks for regions that XLA computes.
JIT = ps.GraphOptions(
    optimizer_options=ps.OptimizerOptions(global_jit_level=ps.OptimizerOptions.ON_1)
)
#: However small they are.
ALL = ps.Limits(native_nodes=0)


@contextmanager
def at_once() -> Iterator[list[Any]]:
    """Compile when a region is first met; yields the results of programs, None where they fail."""
    given: list[Any] = []
    run = native_region_op._ReadyProgram.__call__

    def noted(self: Any, values: Any) -> Any:
        given.append(run(self, values))
        return given[-1]

    with pytest.MonkeyPatch.context() as patch:
        useless.forget()
        patch.setattr(background, "start", lambda work: work())
        patch.setattr(native_region_op._ReadyProgram, "__call__", noted)
        yield given
