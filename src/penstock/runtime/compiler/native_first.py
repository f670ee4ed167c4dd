"""A region with programs in C, and what goes on without them.

In:   what the region takes.
Out:  what it gives: by the programs, unless one of them does not know.
Not:  writes no program, and no text.

What is computed by the one or by the other depends on types and shapes alone, or on an error that
the other will tell: so a step gives the same whenever it is run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.kernels.api.context import StepContext
from penstock.kernels.api.long_kernel import NoProgramError
from penstock.runtime.compiler.region import Region, Without
from penstock.runtime.compiler.source import Source
from penstock.state.interrupt import Interruptible


@dataclass(frozen=True, slots=True)
class NativeFirst(Region):
    """A region whose loops are programs; it has no effects, so that it may be begun anew."""

    #: Makes the same without programs, or gives what it has made.
    without: Callable[[], Without] = field(kw_only=True)

    def sources(self) -> list[Source]:
        """The text with programs, and what goes on where one of them does not know."""
        return [self.source, *self.without().sources()]

    def run(self, step: Interruptible, *args: Value | None) -> tuple[Value | None, ...]:
        """Like a ``Region``; but it knows what to do where there is no program."""
        try:
            return Region.run(self, step, *args)
        except NoProgramError:
            if not isinstance(step, StepContext):
                raise
            return self.without().run(step, *args)

    def without_programs(self) -> Without:
        """What knows where a program does not."""
        return self.without()


def native_first(region: Region, without: Callable[[], Without]) -> NativeFirst:
    """A region with programs, and what makes the same without them."""
    parts = region.source, region.device, region.function, region.device_of
    return NativeFirst(*parts, without=without)
