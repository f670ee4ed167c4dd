"""``penstock run``: feed, fetch, print."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress

from penstock.cli.feed_values import parse_feed
from penstock.config import Config, RunOptions
from penstock.session import Session


@click.command()
@click.argument("graph", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--feed", "feeds", multiple=True, metavar="NAME=VALUE", help="Feed a tensor.")
@click.option("--fetch", "fetches", multiple=True, metavar="NAME", help="Fetch a tensor.")
@click.option("--target", "targets", multiple=True, metavar="NODE", help="Run a node first.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write .npz or .npy.")
@click.option("--repeat", type=click.IntRange(min=1), default=1, help="Run so many times.")
@click.option("--timeout", type=float, default=0, metavar="SECONDS", help="Fail after this time.")
@click.option("--devices", type=click.IntRange(min=1), default=1, help="Number of CPU devices.")
def run(
    graph: Path,
    feeds: tuple[str, ...],
    fetches: tuple[str, ...],
    targets: tuple[str, ...],
    out: Path | None,
    repeat: int,
    timeout: float,
    devices: int,
) -> None:
    """Run GRAPH once or several times and show what was fetched.

    A feed's VALUE is a .npy file, an array of a .npz file (FILE.npz:key), a .png image, or a
    literal such as 3, [[1, 2]], true or plain text.

    \b
    Examples:
      penstock run digits.pb --feed images:0=test.npz:images --fetch digit:0
      penstock run digits.pb --feed images:0=seven.png --fetch digit:0
      penstock run model.pb --feed x:0=[1,2] --fetch y:0 --out y.npz --repeat 100
    """
    if not fetches and not targets:
        raise click.UsageError("nothing to do: name something to --fetch or a --target")
    with Session(str(graph), config=Config(device_count={"CPU": devices})) as session:
        feed_dict = dict(parse_feed(text, session.graph) for text in feeds)
        names = [name if ":" in name else f"{name}:0" for name in fetches]
        options = RunOptions(timeout_in_ms=round(timeout * 1000))
        seconds, values = _run_repeatedly(session, [*names, *targets], feed_dict, options, repeat)
    results = dict(zip(names, values, strict=False))
    if out is not None:
        _write(out, results)
    else:
        _print(results)
    if repeat > 1:
        click.echo(
            f"{repeat} runs: median {statistics.median(seconds) * 1e3:.3f} ms, "
            f"fastest {min(seconds) * 1e3:.3f} ms, first {seconds[0] * 1e3:.3f} ms",
            err=True,
        )


def _run_repeatedly(
    session: Session, fetches: list[str], feeds: dict[str, Any], options: RunOptions, repeat: int
) -> tuple[list[float], list[Any]]:
    """Seconds of each run, and the last run's values."""
    seconds: list[float] = []
    values: list[Any] = []
    with Progress(console=Console(stderr=True), disable=repeat == 1, transient=True) as progress:
        for _ in progress.track(range(repeat), description="running"):
            start = time.perf_counter()
            values = session.run(fetches, feeds, options)
            seconds.append(time.perf_counter() - start)
    return seconds, values


def _write(path: Path, results: dict[str, Any]) -> None:
    """One .npy, or a .npz with an array per fetch."""
    if path.suffix == ".npy" and len(results) == 1:
        np.save(path, next(iter(results.values())), allow_pickle=False)
    elif path.suffix == ".npz":
        np.savez(path, allow_pickle=False, **results)
    else:
        raise click.UsageError("--out takes a .npz file, or a .npy file for a single fetch")
    click.echo(f"wrote {path}", err=True)


def _print(results: dict[str, Any]) -> None:
    with np.printoptions(threshold=1000, edgeitems=4, linewidth=100, suppress=True):
        for name, value in results.items():
            array = np.asarray(value)
            kind = "string" if array.dtype.hasobject or array.dtype.kind == "S" else array.dtype
            click.echo(f"{name}  {kind}{list(array.shape)}")
            click.echo(str(value))
