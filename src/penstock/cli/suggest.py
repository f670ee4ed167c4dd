"""What could be run, for those who did not say.

In:   a graph.
Out:  a text: its likely outputs, and a command that fetches one of them.
Not:  prints nothing.
"""

from __future__ import annotations

from typing import Final

from penstock.cli.advice import as_command
from penstock.cli.layout import in_rows, width_of_terminal
from penstock.cli.sample_value import sample_value
from penstock.core.shapes import UNKNOWN, type_text
from penstock.graph.endpoints import (
    ancestors_of,
    inputs_of,
    likely_outputs,
)
from penstock.graph.graph import Graph, Node
from penstock.graph.initializers import VARIABLES, initializer_of, restorer_of
from penstock.graph.roles import Role
from penstock.graph.static_shapes import declared_shape
from penstock.printable import printable

_NOTHING: Final = "nothing to do: name something to --fetch or a --target"
_MOST: Final = 20


def nothing_to_do(graph: Graph, path: str) -> str:
    """The error for a run that names nothing to run."""
    outputs = likely_outputs(graph)
    if not outputs:
        return f"{_NOTHING}; the graph has no outputs, and penstock show --nodes lists its nodes"
    rows = [
        (f"{node.name}:{slot}", type_text(dtype, UNKNOWN), node.op.name)
        for node in outputs
        for slot, dtype in enumerate(node.output_types)
    ]
    lines = [_NOTHING, "", "likely outputs", *in_rows(rows[:_MOST], width_of_terminal())]
    if len(rows) > _MOST:
        lines.append(f"  … and {len(rows) - _MOST} more, which penstock show lists")
    example = printable(as_command(_example(graph, path, outputs[0])))
    return "\n".join([*lines, "", "for example", f"  {example}"])


def _example(graph: Graph, path: str, output: Node) -> list[str]:
    """A command that fetches an output, and feeds and initializes what it needs."""
    needed = ancestors_of(output)
    words = ["penstock", "run", path, *_first(graph, needed)]
    for node in inputs_of(graph):
        if node in needed and node.role is Role.PLACEHOLDER:
            value = sample_value(node.output_types[0].base, declared_shape(graph, node))
            words += ["--feed", f"{node.name}:0={value}"]
    return [*words, "--fetch", f"{output.name}:0"]


def _first(graph: Graph, needed: set[Node]) -> list[str]:
    """Options that give variables their values: from a checkpoint, or else their first ones."""
    variable = min((n for n in needed if n.op.name in VARIABLES), key=lambda n: n.id, default=None)
    if variable is None:
        return []
    if restorer_of(graph, variable.name) is not None:
        return ["--checkpoint", "PREFIX"]
    initializer = initializer_of(graph, "variable", variable.name)
    return ["--init", initializer] if initializer is not None else []
