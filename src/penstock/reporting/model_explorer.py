"""How long nodes took, for Google's Model Explorer to colour its own picture of the graph.

In:   a ``Report`` with a step.
Out:  its *node data*: JSON with a number for each node.
Not:  has no graph: Model Explorer reads the model itself.
"""

from __future__ import annotations

import json
from typing import Any, Final

from penstock.errors import InvalidArgumentError
from penstock.reporting.facts import Report

#: From what takes least to what takes most.
_GRADIENT: Final = ((0, "#fff5eb"), (0.5, "#fd8d3c"), (1, "#a63603"))


def node_data(report: Report) -> str:
    """Milliseconds by node, of the graph's own nodes.

    Raises:
        InvalidArgumentError: nothing was run.

    """
    if report.step is None:
        raise InvalidArgumentError(
            "Nothing was run, so no node took any time", next_step="say what is to be fetched"
        )
    own = {node.name for node in report.graph.nodes}
    milliseconds: dict[str, float] = {}
    for cost in report.step.costs:
        if cost.name in own and cost.runs:
            milliseconds[cost.name] = milliseconds.get(cost.name, 0.0) + cost.nanos / 1e6
    data: dict[str, Any] = {
        "results": {name: {"value": value} for name, value in milliseconds.items()},
        "gradient": [{"stop": stop, "bgColor": color} for stop, color in _GRADIENT],
    }
    return json.dumps(data, indent=1)
