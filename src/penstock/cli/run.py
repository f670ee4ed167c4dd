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
from penstock.cli.graph_file import STDIN, GraphFile, read_graph_def
from penstock.cli.suggest import nothing_to_do
from penstock.config import Config, RunOptions
from penstock.graph.import_graph_def import graph_from_def
from penstock.session import Session


@click.command(short_help="Run GRAPH and show what was fetched.")
@click.argument("graph", type=GraphFile())
@click.option(
    "--feed", "feeds", multiple=True, metavar="NAME=VALUE", help="Feed a tensor; may be repeated."
)
@click.option(
    "--fetch", "fetches", multiple=True, metavar="NAME", help="Fetch a tensor; may be repeated."
)
@click.option("--target", "targets", multiple=True, metavar="NODE", help="Run a node as well.")
@click.option("--init", "inits", multiple=True, metavar="NODE", help="Run a node once, before.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write .npz or .npy.")
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Run so many times."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Fail after this time."
)
@click.option(
    "--devices", type=click.IntRange(min=1), default=1, show_default=True, help="CPU devices."
)
@click.option("--no-files", is_flag=True, help="Refuse ops that use files: for untrusted graphs.")
def run(
    graph: str,
    feeds: tuple[str, ...],
    fetches: tuple[str, ...],
    targets: tuple[str, ...],
    inits: tuple[str, ...],
    out: Path | None,
    repeat: int,
    timeout: float | None,
    devices: int,
    *,
    no_files: bool,
) -> None:
    """Run GRAPH once or several times and show what was fetched.

    GRAPH is a file with a GraphDef, binary or text, gzip or not; - is stdin. Without anything to
    run, its likely outputs are listed.

    A feed's VALUE is a .npy file, an array of a .npz file (FILE.npz:key), an image (.png, .jpg,
    .bmp, .gif), - for a .npy file on stdin, or a literal such as 3, [[1, 2]], true or text. A
    string takes an image as the file is, and text as it stands, or in quotes.

    \b
    Examples:
      penstock run digits.pb --feed images:0=test.npz:images --fetch digit:0
      penstock run digits.pb --feed images:0=seven.png --fetch digit:0
      penstock run model.pb --feed x:0=[1,2] --fetch y:0 --out y.npz --repeat 100
      penstock run train.pb --init init --target train_step --fetch loss:0
      penstock run --no-files --timeout 10 unknown.pb --fetch y:0
    """
    from_stdin = [text for text in (graph, *feeds) if text == STDIN or text.endswith(f"={STDIN}")]
    if len(from_stdin) > 1:
        raise click.UsageError(f"stdin can be one thing, but stands for {' and '.join(from_stdin)}")
    loaded = graph_from_def(read_graph_def(graph))
    if not fetches and not targets and not inits:
        raise click.UsageError(nothing_to_do(loaded, graph))
    if out is not None:
        check_path(out, len(fetches))
    names = [name if ":" in name else f"{name}:0" for name in fetches]
    options = RunOptions(timeout_in_ms=round((timeout or 0) * 1000))
    config = Config(device_count={"CPU": devices}, allow_files=not no_files)
    with Session(loaded, config=config) as session:
        feed_dict = parse_feeds(feeds, loaded)
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
