"""``penstock show``: what is in a graph, and what of it cannot run here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from penstock.defs.codec import load_graph_def
from penstock.errors import OpError
from penstock.graph.frames import build_control_flow_info
from penstock.graph.graph import Graph, Node
from penstock.graph.import_graph_def import graph_from_def
from penstock.graph.roles import Role
from penstock.kernels.registry import kernels_of
from penstock.session.feeds import declared_shape


@click.command()
@click.argument("graph", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--nodes", is_flag=True, help="List every node with its inputs.")
def show(graph: Path, *, nodes: bool) -> None:
    """Show what GRAPH contains: inputs, outputs, ops, loops, devices, what is not supported.

    \b
    Examples:
      penstock show model.pb
      penstock show model.pb --nodes
    """
    loaded = graph_from_def(load_graph_def(str(graph)))
    console = Console(highlight=False, soft_wrap=True)
    versions = loaded.versions
    console.print(f"{graph}: {len(loaded)} nodes, graph version {versions.producer}")
    _show_endpoints(console, "inputs", _inputs(loaded), loaded)
    _show_endpoints(console, "outputs", _outputs(loaded), loaded)
    _show_frames(console, loaded)
    _show_devices(console, loaded)
    if len(loaded.library):
        console.print("functions: " + ", ".join(loaded.library))
    _show_ops(console, loaded)
    _show_unsupported(console, loaded)
    if nodes:
        for node in loaded:
            console.print(_node_line(node), markup=False)


def _inputs(graph: Graph) -> list[Node]:
    """Placeholders: what is meant to be fed."""
    placeholders = {Role.PLACEHOLDER}
    return [n for n in graph if n.role in placeholders or n.op.name == "PlaceholderWithDefault"]


def _outputs(graph: Graph) -> list[Node]:
    """Nodes with results that nobody in the graph uses: what is probably meant to be fetched."""
    return [n for n in graph if n.output_types and not any(not e.is_control for e in n.out_edges)]


def _show_endpoints(console: Console, title: str, nodes: list[Node], graph: Graph) -> None:
    if not nodes:
        return
    console.print(f"{title}:")
    for node in nodes[:50]:
        for slot, dtype in enumerate(node.output_types):
            shape = declared_shape(graph, node)
            text = f"  {node.name}:{slot}  {dtype}{shape if shape.dims is not None else ''}"
            console.print(f"{text}  ({node.op.name})", markup=False)
    if len(nodes) > 50:
        console.print(f"  … and {len(nodes) - 50} more")


def _show_frames(console: Console, graph: Graph) -> None:
    """Loops, with the number of nodes that run inside each."""
    try:
        info = build_control_flow_info(graph)
    except OpError as error:
        console.print(f"frames: malformed: {error.message}", markup=False)
        return
    inside = Counter(frame for frame in info.frame_of.values() if frame.parent is not None)
    if inside:
        console.print("frames:")
    for frame, count in inside.items():
        parent = f" inside {frame.parent}" if frame.parent and frame.parent.parent else ""
        console.print(f"  {frame.name}  {count} nodes{parent}", markup=False)


def _show_devices(console: Console, graph: Graph) -> None:
    devices = Counter(node.requested_device for node in graph if node.requested_device)
    for device, count in devices.items():
        console.print(f"device {device} is asked for by {count} nodes", markup=False)


def _show_ops(console: Console, graph: Graph) -> None:
    table = Table("op", "nodes", box=None)
    for op, count in sorted(Counter(node.op.name for node in graph).items()):
        table.add_row(op, str(count))
    console.print(table)


def _unsupported(graph: Graph) -> Counter[str]:
    """Ops without any kernel, with the number of their nodes, function bodies included."""
    ops = Counter(node.op.name for node in graph if not node.op.is_function)
    for name in graph.library:
        ops.update(node.op for node in graph.library.get(name).node_def)
    return Counter(
        {op: n for op, n in ops.items() if op not in graph.library and not kernels_of(op)}
    )


def _show_unsupported(console: Console, graph: Graph) -> None:
    missing = _unsupported(graph)
    if not missing:
        console.print("every op has a kernel")
        return
    console.print("not supported (the graph loads; only what needs these ops fails):")
    for op, count in sorted(missing.items()):
        console.print(f"  {op}  {count} nodes")


def _node_line(node: Node) -> str:
    inputs = [str(e.src.name) + (f":{e.src_slot}" if e.src_slot else "") for e in node.inputs if e]
    inputs += [f"^{edge.src.name}" for edge in node.control_inputs]
    return f"{node.name} = {node.op.name}({', '.join(inputs)})"
