"""``penstock show``: what is in a graph, and what of it cannot run here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from penstock.cli.layout import counted, heading, print_items, print_rows
from penstock.cli.model_file import (
    model_argument,
    parsed_tags,
    path_given,
    read_stored,
    refuse,
    signature_option,
    tag_set_option,
    title_of,
)
from penstock.cli.python_text import python_text
from penstock.cli.show_model import show_model
from penstock.core.shapes import type_text
from penstock.errors import InvalidArgumentError, OpError
from penstock.graph.endpoints import inputs_of, likely_outputs, outputs_of
from penstock.graph.frames import Frame, build_control_flow_info
from penstock.graph.graph import Graph, Node
from penstock.graph.import_graph_def import graph_from_def
from penstock.graph.initializers import VARIABLES
from penstock.kernels.api.registry import kernels_of
from penstock.printable import printable
from penstock.shapes.infer import Shapes, infer_shapes


@click.command(short_help="Show what is in GRAPH, and what cannot run.")
@model_argument
@tag_set_option
@signature_option
@click.option("--all", "every", is_flag=True, help="Of a model: functions, variables, ops.")
@click.option("--list_ops", "--list-ops", is_flag=True, help="Of a model: its ops.")
@click.option("--nodes", is_flag=True, help="List every node with its inputs.")
@click.option("--python", is_flag=True, help="Show the Python text that a request is compiled to.")
@click.option(
    "--fetch", "fetches", multiple=True, metavar="NAME", help="With --python: fetch this, not all."
)
@click.option(
    "--feed-names", "feeds", multiple=True, metavar="NAME", help="With --python: feed this."
)
def show(
    graph: str | None,
    model_dir: str | None,
    tag_set: str | None,
    signature_def: str | None,
    *,
    every: bool,
    list_ops: bool,
    nodes: bool,
    python: bool,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
) -> None:
    """Show what GRAPH contains: inputs, outputs, ops, loops, and what is not supported.

    GRAPH is a graph or a model, of whichever format: a GraphDef (binary or text, gzip or not), a
    SavedModel, a .meta file, a Keras file, a model of TensorFlow.js; - is stdin. What has
    signatures is shown by these, with functions and variables.

    \b
    Examples:
      penstock show model.pb
      penstock show model.pb --nodes | grep Conv2D
      penstock show model.pb --python --fetch y:0 --feed-names x:0
      penstock show --dir model --all
    """
    path = path_given(graph, model_dir)
    model = read_stored(path)
    if (fetches or feeds) and not python:
        raise click.UsageError("--fetch and --feed-names go with --python")
    if not (model.is_bare or nodes or python):
        show_model(title_of(path), model, tag_set, signature_def, every=every, ops=list_ops)
        return
    refuse("a graph", signature_def=signature_def, every=every, list_ops=list_ops)
    loaded = graph_from_def(model.graph_of(parsed_tags(tag_set)).graph_def)
    if python:
        click.echo(python_text(loaded, fetches, feeds), nl=False)
        return
    count = counted(len(loaded), "node")
    title = click.style(printable(title_of(path)), bold=True)
    what = printable(model.what)
    click.echo(f"{title}  {what}: {count}, version {loaded.versions.producer}")
    shapes = infer_shapes(loaded)
    _section("inputs", _endpoints(shapes, inputs_of(loaded)))
    outputs = likely_outputs(loaded)
    _section("outputs", _endpoints(shapes, outputs))
    chores = len(outputs_of(loaded)) - len(outputs)
    if chores:
        click.echo(
            f"  … and {counted(chores, 'node')} that nobody reads: they save, train or check"
        )
    _section("variables", _variables(loaded))
    _section("loops", _loops(loaded))
    _section("devices", _devices(loaded))
    _section("functions", _functions(loaded))
    heading("ops")
    counts = Counter(node.op.name for node in loaded).most_common()
    width = len(str(max((n for _, n in counts), default=0)))
    print_items([f"{n:>{width}} {op}" for op, n in counts])
    _show_unsupported(loaded)
    _section("shapes do not fit (only what needs these nodes fails)", _misfits(shapes))
    if nodes:
        heading("nodes")
        for node in loaded:
            click.echo(f"  {printable(_node_line(node, shapes))}")


def _section(title: str, rows: Sequence[Sequence[str]]) -> None:
    if rows:
        heading(title)
        print_rows(rows)


def _endpoints(shapes: Shapes, nodes: Sequence[Node]) -> list[tuple[str, str, str]]:
    return [
        (f"{node.name}:{slot}", type_text(dtype, shapes.shape(node, slot)), node.op.name)
        for node in nodes
        for slot, dtype in enumerate(node.output_types)
    ]


def _misfits(shapes: Shapes) -> list[tuple[str, str]]:
    """Nodes whose inputs have shapes that their ops cannot take."""
    for node in shapes.graph:
        shapes.facts(node)
    names = {node.id: node.name for node in shapes.graph}
    found = sorted(shapes.errors.items(), key=lambda item: item[0])
    return [
        (names[key], error.reason)
        for key, error in found
        if isinstance(error, InvalidArgumentError)
    ]


def _variables(graph: Graph) -> list[tuple[str, str, str]]:
    return [
        (node.name, type_text(node.attrs["dtype"], node.attrs["shape"]), node.op.name)
        for node in graph
        if node.op.name in VARIABLES
    ]


def _loops(graph: Graph) -> list[tuple[str, ...]]:
    """Loops, with the number of nodes that run inside each."""
    try:
        info = build_control_flow_info(graph)
    except OpError as error:
        return [(f"malformed: {error.message}",)]
    inside = Counter(frame for frame in info.frame_of.values() if frame.parent is not None)
    return [
        ("  " * (_depth(frame) - 1) + frame.name, counted(n, "node")) for frame, n in inside.items()
    ]


def _depth(frame: Frame) -> int:
    """How many loops a node of the frame runs in."""
    depth = 0
    while frame.parent is not None:
        frame, depth = frame.parent, depth + 1
    return depth


def _devices(graph: Graph) -> list[tuple[str, str]]:
    asked = Counter(node.requested_device for node in graph if node.requested_device)
    return [(device, f"asked for by {counted(n, 'node')}") for device, n in asked.items()]


def _functions(graph: Graph) -> list[tuple[str, str]]:
    protos = [graph.library.get(name) for name in graph.library]
    return [(_signature(proto), counted(len(proto.node_def), "node")) for proto in protos]


def _signature(proto: Any) -> str:
    """A function with the names of what it takes and gives."""
    args = ", ".join(arg.name for arg in proto.signature.input_arg)
    results = ", ".join(arg.name for arg in proto.signature.output_arg)
    return f"{proto.signature.name}({args}) -> ({results})"


def _unsupported(graph: Graph) -> Counter[str]:
    """Ops without any kernel, with the number of their nodes, function bodies included."""
    counts = Counter(node.op.name for node in graph if not node.op.is_function)
    for name in graph.library:
        counts.update(node.op for node in graph.library.get(name).node_def)
    return Counter(
        {op: n for op, n in counts.items() if op not in graph.library and not kernels_of(op)}
    )


def _show_unsupported(graph: Graph) -> None:
    missing = _unsupported(graph)
    if not missing:
        heading("every op has a kernel")
        return
    heading("not supported (the graph loads; only what needs these ops fails)")
    print_rows([(op, counted(n, "node")) for op, n in sorted(missing.items())], limit=1000)


def _node_line(node: Node, shapes: Shapes) -> str:
    inputs = [str(e.src.name) + (f":{e.src_slot}" if e.src_slot else "") for e in node.inputs if e]
    inputs += [f"^{edge.src.name}" for edge in node.control_inputs]
    device = f" @{node.requested_device}" if node.requested_device else ""
    types = enumerate(node.output_types)
    made = ", ".join(type_text(dtype, shapes.shape(node, slot)) for slot, dtype in types)
    result = f" -> {made}" if made else ""
    return f"{node.name} = {node.op.name}({', '.join(inputs)}){result}{device}"
