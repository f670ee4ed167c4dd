"""``penstock simulate``: how long a step would take on a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from penstock.cli.feed_values import parse_feeds
from penstock.cli.model_file import (
    STDIN,
    checkpoint_option,
    model_argument,
    parsed_tags,
    path_given,
    read_stored,
    tag_set_option,
)
from penstock.cli.request import step_options
from penstock.cli.suggest import nothing_to_do
from penstock.config import Config, Tier
from penstock.core.names import parse_endpoint
from penstock.errors import InvalidArgumentError
from penstock.formats.stored_model import StoredModel
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import graph_from_def
from penstock.printable import printable
from penstock.saved_model.loaded_model import LoadedModel
from penstock.session.session import Session

_FILE: Final = click.Path(dir_okay=False, path_type=Path)
#: How many tasks, links and moved nodes are shown.
_SHOWN: Final = 10


@click.command(short_help="Predict a step's time and traffic on a cluster.")
@model_argument
@tag_set_option
@checkpoint_option
@click.option("--cluster", required=True, metavar="SPEC", help="Tasks x cores of each: 1000x8, or "
              "ps=2x8,worker=1000x8.")  # fmt: skip
@click.option("--bandwidth", default="10Gbit", show_default=True, metavar="RATE",
              help="Of each task's link, each way: Mbit, Gbit, MB, GB.")  # fmt: skip
@click.option("--latency", default="50us", show_default=True, metavar="TIME",
              help="Between two tasks: ns, us, ms, s.")  # fmt: skip
@click.option("--shared-cores", type=click.IntRange(min=0), default=0, metavar="N",
              help="All tasks are on one machine with so many cores.")  # fmt: skip
@click.option("--step-overhead", default="0s", metavar="TIME",
              help="Of a step that computes nothing, for calls and answers.")  # fmt: skip
@click.option("--replicate", "replicated", default="", metavar="JOB", help="Each task of the job "
              "runs the graph, with its own task for task 0.")  # fmt: skip
@step_options
@click.option("--costs", type=_FILE, help="What nodes cost, measured before; else it is measured.")
@click.option("--save-costs", type=_FILE, help="Write what nodes cost.")
@click.option("--search", type=click.IntRange(min=1), metavar="N",
              help="Look for a better placement, by so many simulations.")  # fmt: skip
@click.option("--placement", type=_FILE, help="With --search: write each node's device, as JSON.")
@click.option("--trace", type=_FILE, help="Write a trace for chrome://tracing or Perfetto.")
@click.option("--step-stats", type=_FILE, help="Write a StepStats message, binary.")
@click.option("--shown-replicas", type=click.IntRange(min=1), default=1, show_default=True,
              help="How many replicas --trace and --step-stats show.")  # fmt: skip
def simulate(graph: str | None, model_dir: str | None, **options: Any) -> None:
    """Predict a step of GRAPH on a cluster, its time and traffic, without running it there.

    The nodes are measured here, once, on one thread; with --costs nothing is run at all. They lie
    on the devices that the graph asks for, such as /job:ps/task:0; without a request, on the first
    task. docs/simulate.md says what is modelled.

    \b
    Examples:
      penstock simulate train.pb --feed x:0=batch.npy --target train --init init \\
          --cluster ps=4x8,worker=1000x8 --replicate worker --bandwidth 25Gbit --trace step.json
      penstock simulate net.pb --costs net.costs --feed x:0= --fetch y:0 --cluster 4x8 --search 500
    """
    # Few commands need it.
    from penstock.simulator import Forecast, Machine  # noqa: PLC0415

    machine = Machine.parse(
        options["cluster"],
        options["bandwidth"],
        options["latency"],
        shared_cores=options["shared_cores"],
        step=options["step_overhead"],
    )
    if options["placement"] and not options["search"]:
        raise click.UsageError("--placement goes with --search")
    path = path_given(graph, model_dir)
    stored = read_stored(path)
    meta_graph = stored.graph_of(parsed_tags(options["tag_set"]))
    if meta_graph.object_graph_def.nodes:
        raise InvalidArgumentError(
            f"{path} is {stored.what} with functions, which are no parts of a graph",
            next_step="convert it to a graph, by penstock convert",
        )
    whole = graph_from_def(meta_graph.graph_def)
    if not (options["fetches"] or options["targets"]):
        raise click.UsageError(nothing_to_do(whole, path))
    costs = _costs(stored, meta_graph, whole, options)
    if options["save_costs"]:
        costs.save(options["save_costs"])
    forecast = Forecast(
        whole,
        machine,
        costs,
        fetches=_endpoints(options["fetches"]),
        feeds=sorted(_endpoints([text.partition("=")[0] for text in options["feeds"]])),
        targets=options["targets"],
        replicated=options["replicated"],
    )
    prediction = forecast.predict()
    _show(prediction, forecast.replicas)
    if options["search"]:
        prediction = _search(forecast, prediction, options["search"], options["placement"])
    _write(prediction, options["trace"], options["step_stats"], options["shown_replicas"])


def _endpoints(names: Any) -> list[str]:
    return [str(parse_endpoint(name if ":" in name else f"{name}:0")) for name in names]


def _costs(stored: StoredModel, meta_graph: Any, graph: Graph, options: dict[str, Any]) -> Any:
    """What nodes cost: from a file, or measured on this machine, without the graph's devices."""
    from penstock.simulator import Costs, measure  # noqa: PLC0415

    if options["costs"]:
        return Costs.load(options["costs"])
    if any(text.endswith(f"={STDIN}") for text in options["feeds"]):
        raise click.UsageError("stdin cannot be fed here")
    for node in meta_graph.graph_def.node:
        node.ClearField("device")
    feeds = parse_feeds(options["feeds"], graph)
    wanted = [*_endpoints(options["fetches"]), *options["targets"]]
    with (
        _initialized(stored, Tier.DATAFLOW, feeds, options) as session,
        _initialized(stored, Tier.COMPILED, feeds, options) as compiled,
    ):
        return measure(
            lambda given, metadata: session.run(wanted, feeds, given, metadata),
            lambda: compiled.run(wanted, feeds),
        )


@contextmanager
def _initialized(
    stored: StoredModel, tier: Tier, feeds: Any, options: dict[str, Any]
) -> Iterator[Session]:
    """A session of one thread, in which the nodes of ``--init`` were run."""
    config = Config(tier=tier, inter_op_parallelism_threads=1)
    tags, checkpoint = parsed_tags(options["tag_set"]), options["checkpoint"] or ""
    with LoadedModel(stored, tags, checkpoint=checkpoint, config=config) as model:
        for node in options["inits"]:
            model.session.run(node, feeds)
        yield model.session


def _show(prediction: Any, replicas: int) -> None:
    """The step's time, and who is busiest."""
    click.echo(f"step      {_time(prediction.seconds)}")
    if replicas > 1 and prediction.seconds:
        click.echo(f"replicas  {replicas}, {replicas / prediction.seconds:.6g} steps a second")
    click.echo(f"traffic   {prediction.total_bytes / 1e6:.6g} MB in all")
    busy = sorted(prediction.utilisation.items(), key=lambda item: -item[1])
    for task, part in busy[:_SHOWN]:
        if part:
            click.echo(f"  {printable(task)}  busy {part:.1%}")
    links = sorted(prediction.traffic.items(), key=lambda item: -item[1])
    for (sender, receiver), size in links[:_SHOWN]:
        click.echo(f"  {printable(sender)} -> {printable(receiver)}  {size / 1e6:.6g} MB")
    if prediction.work.unmeasured:
        click.echo(
            f"warning: {prediction.work.unmeasured} activations were not measured",
            err=True,
        )


def _search(forecast: Any, first: Any, evaluations: int, placement: Path | None) -> Any:
    """A better placement, shown and perhaps written; returns its prediction."""
    from penstock.simulator import better_placement  # noqa: PLC0415

    device_of, found = better_placement(forecast, evaluations=evaluations)
    before = forecast.pruned.device_of
    nodes = {node.name: node.id for node in forecast.pruned.graph}
    moved = [name for name, number in nodes.items() if device_of[number] != before[number]]
    click.echo(f"\nproposed  {_time(found.seconds)} instead of {_time(first.seconds)}")
    for name in moved[:_SHOWN]:
        click.echo(printable(f"  {name} -> {device_of[nodes[name]]}"))
    if len(moved) > _SHOWN:
        click.echo(f"  and {len(moved) - _SHOWN} more nodes")
    if placement:
        devices = {name: device_of[number] for name, number in nodes.items()}
        placement.write_text(json.dumps(devices, indent=1) + "\n", "utf-8")
    return found


def _write(prediction: Any, trace: Path | None, step_stats: Path | None, replicas: int) -> None:
    if trace:
        trace.write_text(json.dumps(prediction.chrome_trace(replicas)) + "\n", "utf-8")
    if step_stats:
        step_stats.write_bytes(prediction.step_stats(replicas).SerializeToString())


def _time(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1e3:.3f} ms"
