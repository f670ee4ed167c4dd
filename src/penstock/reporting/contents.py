"""What a report holds that not everybody should see: to be read before it is shared.

In:   a ``Report``.
Out:  ``Content``, one for each kind of thing.
Not:  hides nothing; who collects does not collect it in the first place.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.reporting.facts import Content, Report


def contents_of(report: Report) -> Iterator[Content]:
    """What is in it, and what is not."""
    step, nodes = report.step, len(report.graph.nodes)
    has_code = bool(report.code.lines or report.code.left)
    yield Content(
        "graph",
        is_there=True,
        text=f"{nodes:,} nodes with names, ops, devices and attributes, among them whatever texts "
        "and paths somebody wrote into them; long ones are cut",
    )
    yield Content(
        "weights",
        is_there=False,
        text="no values of variables and constants, only types and shapes",
    )
    yield Content(
        "fed values",
        is_there=False,
        text="no values that were fed or fetched, only names and shapes",
    )
    ran = f"what ran when in one step of {step.nanos / 1e6:,.3f} ms" if step else "nothing was run"
    yield Content("times", step is not None, ran)
    summarised = report.summaries is not None
    count = len(report.summaries or ())
    yield Content(
        "value summaries", summarised,
        f"{count:,} summaries: smallest, largest, mean, histogram" if summarised
        else "no summaries of values",
    )  # fmt: skip
    yield Content(
        "generated Python", has_code,
        f"{len(report.code.lines):,} lines of Python" if has_code else "no generated Python",
    )  # fmt: skip
    if step is not None and step.error:
        yield Content(
            "error", is_there=True, text="the text of the step's error, which may quote values"
        )
    yield Content(
        "paths of this machine",
        is_there=False,
        text="no paths, users or hosts of the machine that made it",
    )
