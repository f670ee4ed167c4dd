"""``penstock show`` of a model that has signatures: these, its functions and variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click

from penstock.cli.layout import counted, heading, print_items, print_rows
from penstock.cli.model_file import parsed_tags, signature_in
from penstock.errors import NotFoundError
from penstock.formats.stored_model import StoredModel
from penstock.printable import printable
from penstock.saved_model.describe import GraphFacts, SignatureFacts, describe
from penstock.saved_model.structured import Spec


def show_model(
    title: str,
    model: StoredModel,
    tag_set: str | None,
    signature_def: str | None,
    *,
    every: bool,
    ops: bool,
) -> None:
    """Print what is in a model.

    Args:
        title: what to call it.
        model: the model.
        tag_set: tags of the graph that is meant; None for all graphs.
        signature_def: the signature that is meant; None for all.
        every: whether functions and variables are listed, and not only counted.
        ops: whether ops are listed.

    Raises:
        NotFoundError: there are no such tags, or no such signature.

    """
    graphs = describe(model)
    chosen = _chosen(graphs, tag_set)
    written = sorted({graph.tensorflow_version for graph in graphs} - {""})
    by = f", written by TensorFlow {', '.join(map(printable, written))}" if written else ""
    graphs_text = f" with {counted(len(graphs), 'graph')}" if len(graphs) > 1 else ""
    click.echo(
        f"{click.style(printable(title), bold=True)}  {printable(model.what)}{graphs_text}{by}"
    )
    for graph in chosen:
        if signature_def is not None:
            name, signature = signature_in(graph.signatures, signature_def)
            _print_signature(name, signature)
            continue
        _print_graph(graph, every=every)
        if ops or every:
            heading("ops")
            print_items([f"{count} {op}" for op, count in sorted(graph.ops.items())])


def _chosen(graphs: Sequence[GraphFacts], tag_set: str | None) -> Sequence[GraphFacts]:
    tags = parsed_tags(tag_set)
    chosen = [graph for graph in graphs if tags is None or graph.tags == tuple(tags)]
    if not chosen:
        listed = ", ".join(_tags(graph) for graph in graphs)
        raise NotFoundError(f"No graph of the model has the tags {tag_set!r}; there are {listed}")
    return chosen


def _tags(graph: GraphFacts) -> str:
    return f"'{','.join(graph.tags)}'"


def _print_graph(graph: GraphFacts, *, every: bool) -> None:
    heading(f"tags {printable(_tags(graph))}")
    for name, signature in graph.signatures.items():
        _print_signature(name, signature)
    functions = [(path, trace) for path, traces in graph.functions.items() for trace in traces]
    _print_part("functions", [f"{path}{trace}" for path, trace in functions], every=every)
    variables = [f"{name}  {spec}" for name, spec in graph.variables.items()]
    _print_part("variables", variables, every=every)
    _print_part("assets", graph.assets, every=True)
    _print_missing(graph.missing)


def _print_signature(name: str, signature: SignatureFacts) -> None:
    method = f"  ({printable(signature.method)})" if signature.method else ""
    heading(f"signature {printable(name)}{method}")
    print_rows([*_rows("input", signature.inputs), *_rows("output", signature.outputs)], 10_000)


def _rows(what: str, specs: Mapping[str, Spec]) -> Iterable[tuple[str, str, str]]:
    return [(what, name, str(spec)) for name, spec in specs.items()]


def _print_part(title: str, lines: Sequence[str], *, every: bool) -> None:
    if lines and every:
        heading(title)
        print_rows([[line] for line in lines], 10_000)
    elif lines:
        heading(f"{len(lines)} {title if len(lines) > 1 else title[:-1]}, which --all lists")


def _print_missing(missing: Mapping[tuple[str, str], int]) -> None:
    if not missing:
        heading("every op has a kernel")
        return
    heading("not supported (the model loads; only what needs these ops fails)")
    rows = [(op, counted(count, "node"), why) for (op, why), count in sorted(missing.items())]
    print_rows(rows, 10_000)
