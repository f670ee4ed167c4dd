"""A report as compressed columns.

In:   a ``Report``.
Out:  text in base64: gzip of JSON, which the page unpacks with what browsers have.
Not:  knows nothing of the page but the names of columns, which ``page/decode.js`` reads.

Rows become columns, since alike things lie side by side then, and compress well.  Texts that
occur often are numbers of a table of strings.  A node is its number; what only the step has, such
as a Send, or a node that the optimiser made, has a number behind those of the graph's nodes.  Times
are distances from the row before.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from penstock.core.collector import collector_paused
from penstock.reporting.contents import contents_of
from penstock.reporting.facts import Activity, Cost, GraphFacts, Report, StepFacts, Summary

#: What the page must be able to read.
VERSION: Final = 1
#: Fast; the best would take three times as long for a twentieth less.
_LEVEL: Final = 6


@collector_paused
def encoded(report: Report) -> str:
    """What the page holds."""
    text = json.dumps(columns_of(report), separators=(",", ":"), allow_nan=False)
    packed = gzip.compress(text.encode("utf-8", "surrogatepass"), _LEVEL, mtime=0)
    return base64.b64encode(packed).decode("ascii")


def columns_of(report: Report) -> dict[str, Any]:
    """All facts as lists of numbers and texts."""
    tables = _Tables(report.graph)
    step, graph = report.step, report.graph
    found: dict[str, Any] = {
        "version": VERSION,
        "title": report.title,
        "trouble": graph.trouble,
        "contents": [list(one) for one in contents_of(report)],
        "nodes": tables.nodes(graph),
        "fates": tables.fates(graph),
        "leftOut": tables.rows(graph.left_out, ("name", "op"), texts=("op",)),
        "code": tables.rows(report.code.lines, ("text", "node", "label"), nodes=("node",)),
        "left": tables.rows(
            report.code.left, ("name", "op", "reason"), nodes=("name",), texts=("op", "reason")
        ),
        "step": None if step is None else tables.step(step),
        "summaries": None if report.summaries is None else tables.summaries(report.summaries),
    }
    # Last, when all is known that they hold.
    return found | {"strings": list(tables.strings), "others": list(tables.others)}


class _Tables:
    """Numbers for texts and for nodes."""

    def __init__(self, graph: GraphFacts) -> None:
        self.strings: Final[dict[str, int]] = {"": 0}
        self._nodes: Final = {node.name: number for number, node in enumerate(graph.nodes)}
        #: Nodes that only the step has.
        self.others: Final[dict[str, int]] = {}

    def text(self, text: str) -> int:
        """The number of a text."""
        return self.strings.setdefault(text, len(self.strings))

    def node(self, name: str) -> int:
        """The number of a node; -1 for none."""
        if not name:
            return -1
        number = self._nodes.get(name)
        if number is None:
            number = len(self._nodes) + self.others.setdefault(name, len(self.others))
        return number

    def rows(
        self,
        rows: Sequence[Any],
        fields: Sequence[str],
        *,
        nodes: Iterable[str] = (),
        texts: Iterable[str] = (),
        times: Iterable[str] = (),
    ) -> dict[str, list[Any]]:
        """Columns of some rows; some of nodes, of texts that occur often, and of times."""
        columns = {field: [getattr(row, field) for row in rows] for field in fields}
        for field in nodes:
            columns[field] = [self.node(name) for name in columns[field]]
        for field in texts:
            columns[field] = [self.text(text) for text in columns[field]]
        for field in times:
            columns[field] = _distances(columns[field])
        return columns

    def nodes(self, graph: GraphFacts) -> dict[str, list[Any]]:
        """The graph's nodes, and their edges one after the other."""
        fields = ("name", "op", "device", "frame", "function")
        columns = self.rows(graph.nodes, fields, texts=fields[1:])
        columns["outputs"] = [self.text("\n".join(node.outputs)) for node in graph.nodes]
        columns["attrs"] = [self.text("\n".join(node.attrs)) for node in graph.nodes]
        columns["inputs"] = [len(node.inputs) for node in graph.nodes]
        edges = [(n - src, slot) for n, node in enumerate(graph.nodes) for src, slot in node.inputs]
        # Most nodes read one that is not far away.
        columns["sources"] = [distance for distance, _ in edges]
        columns["slots"] = [slot for _, slot in edges]
        return columns

    def fates(self, graph: GraphFacts) -> dict[str, list[Any]]:
        """What became of nodes."""
        fates = graph.fates
        columns = self.rows(
            fates, ("name", "op", "by", "text"), nodes=("name",), texts=("op", "by", "text")
        )
        columns["instead"] = [[self.node(name) for name in fate.instead[:4]] for fate in fates]
        return columns

    def step(self, step: StepFacts) -> dict[str, Any]:
        """What ran when, and what it took."""
        return {
            "nanos": step.nanos,
            "more": step.more_activities,
            "moreLifetimes": step.more_lifetimes,
            "error": step.error,
            "activities": self.rows(
                step.activities, Activity._fields,
                nodes=("name",), texts=("op", "device", "thread", "frame"), times=("start",),
            ),
            "costs": self.rows(
                step.costs, Cost._fields,
                nodes=("name",), texts=("op",),
            ),
            "lifetimes": self.rows(
                step.lifetimes, ("name", "size", "start", "duration"), nodes=("name",),
                times=("start",),
            ),
            "iterations": self.rows(
                step.iterations,
                ("frame", "number", "device", "start", "duration", "runs", "dead"),
                texts=("frame", "device"), times=("start",),
            ),
            "critical": _distances(step.critical),
        }  # fmt: skip

    def summaries(self, summaries: Sequence[Summary]) -> dict[str, list[Any]]:
        """What values are like."""
        return self.rows(summaries, Summary._fields, nodes=("name",), texts=("frame", "type"))


def _distances(numbers: Sequence[int]) -> list[int]:
    """Each number less the one before it."""
    return [after - before for before, after in pairwise([0, *numbers])]
