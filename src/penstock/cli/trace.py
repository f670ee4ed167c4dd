"""``penstock trace``: run, and write down what ran when."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import click

from penstock.cli.feed_values import parse_feeds
from penstock.cli.layout import counted
from penstock.cli.model_file import (
    checkpoint_option,
    model_argument,
    parsed_tags,
    path_given,
    read_stored,
    tag_set_option,
)
from penstock.cli.suggest import nothing_to_do
from penstock.config import Config
from penstock.errors import InvalidArgumentError
from penstock.printable import printable
from penstock.saved_model.loaded_model import LoadedModel
from penstock.session import Session
from penstock.tracing.recorder import Detail
from penstock.tracing.save import check_name
from penstock.tracing.trace import Activation, Trace

#: How many nodes are shown.
_SHOWN: Final = 10


@click.command("trace", short_help="Run GRAPH, and write what ran when.")
@model_argument
@tag_set_option
@checkpoint_option
@click.option(
    "--feed", "feeds", multiple=True, metavar="NAME=VALUE", help="As penstock run has it."
)
@click.option("--fetch", "fetches", multiple=True, metavar="NAME", help="A tensor to fetch.")
@click.option("--target", "targets", multiple=True, metavar="NODE", help="A node to run as well.")
@click.option("--init", "inits", multiple=True, metavar="NODE", help="Run a node once, before.")
@click.option("-o", "--out", required=True, metavar="FILE", help=".json, .json.gz, .pftrace, .pb, "
              "events.out.tfevents.NAME; or a folder.")  # fmt: skip
@click.option("--detail", type=click.Choice([d.value for d in Detail]), default=Detail.LINES.value,
              show_default=True, help="How closely compiled regions are looked at.")  # fmt: skip
@click.option("--steps", type=click.IntRange(min=1), default=1, show_default=True,
              help="Record so many steps.")  # fmt: skip
@click.option("--warm-up", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
              help="Run so many steps before.")  # fmt: skip
@click.option("--interval", type=click.FloatRange(min=0, min_open=True), default=1.0,
              show_default=True, metavar="MS", help="Between two looks at a region.")  # fmt: skip
@click.option("--tag", default="step", show_default=True, help="What TensorBoard calls it.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Fail after this time."
)
@click.option(
    "--devices", type=click.IntRange(min=1), default=1, show_default=True, help="CPU devices."
)
@click.option("--no-files", is_flag=True, help="Refuse ops that use files: for untrusted graphs.")
def trace_command(graph: str | None, model_dir: str | None, **options: Any) -> None:
    """Run GRAPH and write what ran when: for Perfetto, Chrome, or TensorBoard.

    The name of FILE says the format. https://ui.perfetto.dev shows .json and .pftrace; TensorBoard
    a folder with events; programs read a RunMetadata message from .pb. docs/trace.md says what each
    track means.

    With --detail regions, each compiled region is one thing; with lines, somebody looks now and
    then which node it is at; with nodes, nothing is compiled to Python; with inside, neither ONNX
    Runtime nor XLA is used. A step that fails is written as well.

    \b
    Examples:
      penstock trace model.pb --feed x:0=[1,2] --fetch y:0 -o step.json
      penstock trace train.pb --init init --target train_step --steps 5 -o steps.pftrace
      penstock trace model.pb --feed x:0=in.npy --fetch y:0 --detail nodes -o logs
    """
    check_name(options["out"])
    path = path_given(graph, model_dir)
    stored = read_stored(path)
    timeout = round((options["timeout"] or 0) * 1000)
    config = Config(
        device_count={"CPU": options["devices"]},
        allow_files=not options["no_files"],
        operation_timeout_in_ms=timeout,
    )
    tags, checkpoint = parsed_tags(options["tag_set"]), options["checkpoint"] or ""
    with LoadedModel(stored, tags, checkpoint=checkpoint, config=config) as model:
        if model.function_graph is not None:
            raise InvalidArgumentError(
                f"{path} is {stored.what} with functions, which are no parts of a graph",
                next_step="convert it to a graph, by penstock convert",
            )
        if not (options["fetches"] or options["targets"]):
            raise click.UsageError(nothing_to_do(model.session.graph, path))
        run = _run(model.session, options)
    written = run.save(options["out"], tag=options["tag"])
    _show(run.trace, Path(written))
    if run.error is not None:
        raise run.error


def _run(session: Session, options: dict[str, Any]) -> Any:
    # Few commands need it.
    from penstock.session.traced import trace  # noqa: PLC0415

    feeds = parse_feeds(options["feeds"], session.graph)
    for node in options["inits"]:
        session.run(node, feeds)
    names = [name if ":" in name else f"{name}:0" for name in options["fetches"]]
    wanted = [*names, *options["targets"]]
    for _ in range(options["warm_up"]):
        session.run(wanted, feeds)
    return trace(
        session, wanted, feeds, detail=options["detail"], steps=options["steps"],
        interval=options["interval"] / 1e3,
    )  # fmt: skip


def _show(trace: Trace, path: Path) -> None:
    """What took most time, and where the file is."""
    taken = sum(end - start for start, end in trace.steps)
    click.echo(
        f"{counted(len(trace.steps), 'step')}, {taken / 1e6:.3f} ms; "
        f"{counted(len(trace.activations), 'activation')}, {len(trace.dead)} dead"
    )
    total: Counter[tuple[str, str]] = Counter()
    count: Counter[tuple[str, str]] = Counter()
    for activation in trace.activations:
        key = _kind(activation), activation.name
        total[key] += activation.op_end - activation.op_start
        count[key] += 1
    for key, nanos in total.most_common(_SHOWN):
        kind, name = key
        click.echo(f"  {nanos / 1e6:10.3f} ms  {count[key]:6} x  {printable(f'{name} ({kind})')}")
    looks = Counter((sample.op, sample.name) for sample in trace.samples)
    for (op, name), number in looks.most_common(_SHOWN):
        click.echo(f"  {number:6} of {len(trace.samples)} looks  {printable(f'{name} ({op})')}")
    click.echo(f"wrote {printable(str(path))}")


def _kind(activation: Activation) -> str:
    kind = activation.op or activation.sort.value
    return f"{kind}, waits included" if activation.is_async else kind
