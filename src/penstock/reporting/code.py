"""The generated Python of a request, line by line, with the nodes that lines are for.

In:   a prepared request.
Out:  ``Code``.
Not:  generates nothing but what a session would, and runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.core.collector import collector_paused
from penstock.explanations.compiled import explained_parts
from penstock.reporting.facts import Code, CodeLine, LeftToExecutor
from penstock.runtime.compiler.source import Source
from penstock.runtime.environment import Environment
from penstock.runtime.prepare import PreparedRequest


@collector_paused
def code_of(
    prepared: PreparedRequest, environment: Environment, shown: Callable[[str], str]
) -> Code:
    """The Python of all regions, and what is left to the executor."""
    whole = prepared.runnable.whole
    if whole is not None:
        return Code([line for source in whole.sources() for line in _lines(source, shown)])
    lines: list[CodeLine] = []
    left: list[LeftToExecutor] = []
    for _, explained in explained_parts(prepared, environment):
        for region in explained.regions:
            lines += _lines(region.source, shown)
        left += [
            LeftToExecutor(shown(node.name), node.op.name, reason)
            for node, reason in explained.reasons.items()
        ]
    return Code(lines, left)


def _lines(source: Source, shown: Callable[[str], str]) -> Iterator[CodeLine]:
    for line in source.lines:
        node = "" if line.node is None else shown(line.node.name)
        yield CodeLine(line.code, node, line.label)
