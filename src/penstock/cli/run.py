"""``penstock run``: feed, fetch, print."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from penstock.cli.feed_values import parse_feeds
from penstock.cli.fetched import check_path, print_values, write_values
from penstock.config import Config, RunOptions
from penstock.session import Session


@click.command()
@click.argument("graph", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--feed", "feeds", multiple=True, metavar="NAME=VALUE", help="Feed a tensor.")
@click.option("--fetch", "fetches", multiple=True, metavar="NAME", help="Fetch a tensor.")
@click.option("--target", "targets", multiple=True, metavar="NODE", help="Run a node as well.")
@click.option("--init", "inits", multiple=True, metavar="NODE", help="Run a node once, before.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write .npz or .npy.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Run so many times.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Fail after this time."
)
@click.option("--devices", type=click.IntRange(min=1), default=1, help="Number of CPU devices.")
def run(
    graph: Path,
    feeds: tuple[str, ...],
    fetches: tuple[str, ...],
    targets: tuple[str, ...],
    inits: tuple[str, ...],
    out: Path | None,
    repeat: int,
    timeout: float | None,
    devices: int,
) -> None:
    """Run GRAPH once or several times and show what was fetched.

    A feed's VALUE is a .npy file, an array of a .npz file (FILE.npz:key), an image (.png, .jpg,
    .bmp, .gif), - for a .npy file on stdin, or a literal such as 3, [[1, 2]], true or text. A
    string takes an image as the file is, and text as it stands, or in quotes.

    \b
    Examples:
      penstock run digits.pb --feed images:0=test.npz:images --fetch digit:0
      penstock run digits.pb --feed images:0=seven.png --fetch digit:0
      penstock run model.pb --feed x:0=[1,2] --fetch y:0 --out y.npz --repeat 100
      penstock run train.pb --init init --target train_step --fetch loss:0
    """
    if not fetches and not targets and not inits:
        raise click.UsageError("nothing to do: name something to --fetch or a --target")
    if out is not None:
        check_path(out, len(fetches))
    names = [name if ":" in name else f"{name}:0" for name in fetches]
    options = RunOptions(timeout_in_ms=round((timeout or 0) * 1000))
    with Session(str(graph), config=Config(device_count={"CPU": devices})) as session:
        feed_dict = parse_feeds(feeds, session.graph)
        for node in inits:
            session.run(node, feed_dict, options)
        seconds, values = _run_repeatedly(session, [*names, *targets], feed_dict, options, repeat)
    results = dict(zip(names, values, strict=False))
    if out is None:
        print_values(results)
    else:
        write_values(out, results)
    if not results:
        click.echo(f"ran {', '.join([*inits, *targets])}", err=True)
    if repeat > 1:
        click.echo(_timing(seconds), err=True)


def _run_repeatedly(
    session: Session, fetches: list[str], feeds: dict[str, Any], options: RunOptions, repeat: int
) -> tuple[list[float], list[Any]]:
    """Seconds of each run, and the last run's values."""
    seconds: list[float] = []
    values: list[Any] = []
    with Progress(console=Console(stderr=True), disable=repeat == 1, transient=True) as progress:
        for _ in progress.track(range(repeat if fetches else 0), description="running"):
            start = time.perf_counter()
            values = session.run(fetches, feeds, options)
            seconds.append(time.perf_counter() - start)
    return seconds, values


def _timing(seconds: list[float]) -> str:
    return (
        f"{len(seconds)} runs: median {statistics.median(seconds) * 1e3:.3f} ms, "
        f"fastest {min(seconds) * 1e3:.3f} ms, first {seconds[0] * 1e3:.3f} ms"
    )
