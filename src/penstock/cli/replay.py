"""``penstock replay``: run a recorded step again."""

from __future__ import annotations

import json
import time

import click

from penstock.cli.fetched import print_values
from penstock.cli.layout import counted
from penstock.replays.recording import Recording
from penstock.replays.replay import replay
from penstock.replays.shrink import Shrunk, shrink


@click.command(
    "replay", short_help="Run a recorded step again exactly, or say which order matters."
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--times", type=click.IntRange(min=1), default=1, show_default=True,
              help="How often.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS",
              help="Fail if one time takes longer.")  # fmt: skip
@click.option("--files", is_flag=True, help="Let the step use files and Python functions.")
@click.option("--shrink", "shrinks", is_flag=True, help="Find the fewest pairs of nodes that "
              "have to be exchanged for this result.")  # fmt: skip
@click.option("-o", "--out", metavar="FILE", help="With --shrink, write the step with these "
              "exchanges alone.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How the answer of --shrink is written.")  # fmt: skip
def replay_command(
    file: str,
    times: int,
    timeout: float | None,
    out: str | None,
    form: str,
    *,
    files: bool,
    shrinks: bool,
) -> None:
    """Run the step of FILE, which penstock record wrote, in the same order, and compare all of it.

    The first node that is not ready when it should be, or that gives something else, is an error.

    \b
    Examples:
      penstock replay step.penstock-step --times 1000
      penstock replay racy.penstock-step --shrink
    """
    if out is not None and not shrinks:
        raise click.UsageError("--out is what --shrink writes")
    recording = Recording.load(file)
    if shrinks:
        found = shrink(recording, allow_files=files)
        click.echo(_json(found) if form == "json" else str(found))
        if out is not None:
            found.recording.save(out)
        return
    start = time.perf_counter()
    milliseconds = round((timeout or 0) * 1000)
    results = replay(recording, times=times, allow_files=files, timeout_in_ms=milliseconds)
    taken = time.perf_counter() - start
    print_values(results)
    click.echo(f"{times} of {counted(times, 'replay')} as recorded, {taken / times * 1e3:.2f} ms "
               f"each: {recording.described}")  # fmt: skip


def _json(found: Shrunk) -> str:
    rows = [
        {"first": exchange.first.node, "second": exchange.second.node, "text": str(exchange)}
        for exchange in found.exchanges
    ]
    content = {"exchanges": rows, "is_minimal": found.is_minimal, "runs": found.runs}
    return json.dumps(content, indent=2)
