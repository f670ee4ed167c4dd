"""``penstock record``: run a step, and note all that it takes to run it again."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli.fetched import print_values
from penstock.cli.request import Request, request_options
from penstock.printable import printable


@click.command("record", short_help="Run a step, and write what it takes to run it again exactly.")
@request_options
@click.option("-o", "--out", required=True, metavar="FILE", help="The recording; usually "
              ".penstock-step.")  # fmt: skip
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True,
              help="Threads that race for what has effects.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Choose among what could run "
              "next; else what is ready first runs first.")  # fmt: skip
def record_command(**options: Any) -> None:
    """Run GRAPH once, and write its order, feeds, random numbers and the state before it to FILE.

    penstock replay runs it again from that file alone, on any machine. Each node is run by itself;
    what is not in FILE is what lies outside of the graph: files and functions of Python. A step
    that fails is written as well. docs/replay.md says more.

    \b
    Examples:
      penstock record model.pb --feed x:0=[1,2] --fetch y:0 -o step.penstock-step
      penstock record train.pb --init init --target step -o racy.penstock-step --threads 4
    """
    # Few commands need it.
    from penstock.replays.record import record  # noqa: PLC0415

    with Request.of(options).opened() as opened:
        if not opened.wanted:
            raise click.UsageError(
                "--init alone leaves nothing to record: give --fetch or --target"
            )
        recording = record(
            opened.session, opened.wanted, opened.feeds, options["out"],
            threads=options["threads"], seed=options["seed"],
        )  # fmt: skip
    print_values(recording.results)
    click.echo(f"wrote {printable(str(options['out']))}: {recording.described}")
    if recording.error is not None:
        raise recording.error
