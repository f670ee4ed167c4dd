"""A compiled function that is run, and noted by whoever records the step.

In:   a region, what calls it, and a recorder.
Out:  what the call gives.
Not:  looks at no single line; a recorder may have somebody do that meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from time import perf_counter_ns
from typing import Final, ParamSpec, TypeVar

from penstock.core.values import Value
from penstock.runtime.compiler.region import Region
from penstock.tracing.described import Noted, described
from penstock.tracing.recorder import Event, Recorder
from penstock.tracing.watching import Watched

#: As a plain integer: to look up the member of an enumeration takes as long as to make the event.
_REGION: Final = int(Event.REGION)
_Given = ParamSpec("_Given")
_Results = TypeVar("_Results", bound=Sequence[Value | None])


def run_noted(
    recorder: Recorder,
    region: Region,
    compute: Callable[_Given, _Results],
    *given: _Given.args,
    **named: _Given.kwargs,
) -> _Results:
    """What ``compute`` gives, which runs the region on this thread; raises what it raises."""
    note, thread = recorder.lane(region.device, region.function).note, get_ident()
    seen: Noted = ()
    with Watched(recorder, note):
        start = perf_counter_ns()
        try:
            results = compute(*given, **named)
            seen = described(results)
        finally:
            note((_REGION, region, "python", start, perf_counter_ns(), thread, seen))
    return results
