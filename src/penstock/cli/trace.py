"""``penstock trace``: run, and write down what ran when."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import click

from penstock.cli.layout import counted
from penstock.cli.request import OpenRequest, Request, request_options
from penstock.printable import printable
from penstock.tracing.recorder import Detail
from penstock.tracing.save import check_name
from penstock.tracing.trace import Activation, Trace

#: How many nodes are shown.
_SHOWN: Final = 10


@click.command("trace", short_help="Run GRAPH, and write what ran when.")
@request_options
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
def trace_command(**options: Any) -> None:
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
    with Request.of(options).opened() as opened:
        if not opened.wanted:
            raise click.UsageError("--init alone leaves nothing to trace: give --fetch or --target")
        run = _run(opened, options)
    written = run.save(options["out"], tag=options["tag"])
    _show(run.trace, Path(written))
    if run.error is not None:
        raise run.error


def _run(opened: OpenRequest, options: dict[str, Any]) -> Any:
    # Few commands need it.
    from penstock.session.traced import trace  # noqa: PLC0415

    session, wanted, feeds = opened.session, opened.wanted, opened.feeds
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
