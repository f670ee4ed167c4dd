"""``penstock run``: feed, fetch, print."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import Progress

from penstock.cli.feed_values import parse_feeds
from penstock.cli.fetched import check_path, print_values, write_values
from penstock.cli.graph_file import STDIN, GraphFile, read_graph_def
from penstock.cli.model_dir import dir_option, model_given, signature_option, tag_set_option
from penstock.cli.run_model import ModelRun
from penstock.cli.suggest import nothing_to_do
from penstock.config import Config, RunOptions
from penstock.graph.import_graph_def import graph_from_def
from penstock.session import Session

_FOLDER: Final = click.Path(file_okay=False, path_type=Path)


@click.command(short_help="Run GRAPH or a SavedModel, and show what was fetched.")
@click.argument("graph", type=GraphFile(), required=False)
@dir_option
@tag_set_option
@signature_option
@click.option("--inputs", default="", metavar="X=FILE[KEY];…", help="Files for its inputs.")
@click.option(
    "--input_exprs", "--input-exprs", default="", metavar="X=EXPR;…", help="Expressions for them."
)
@click.option(
    "--input_examples",
    "--input-examples",
    default="",
    metavar="X=[{…}];…",
    help="Features of tf.Examples for them.",
)
@click.option("--outdir", type=_FOLDER, help="Write a .npy for each of its outputs.")
@click.option("--overwrite", is_flag=True, help="With --outdir: replace files.")
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
    graph: str | None,
    model_dir: str | None,
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
    **of_model: Any,
) -> None:
    """Run GRAPH, or a signature of a SavedModel, once or several times and show what was fetched.

    GRAPH is a file with a GraphDef, binary or text, gzip or not; - is stdin. Without anything to
    run, its likely outputs are listed. A SavedModel's folder will do as well, as GRAPH or by
    --dir; then NAME is that of an input of the signature, and all outputs are fetched.

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
      penstock run --dir model --signature_def serving_default --feed x=[[1,2]]
      penstock run --dir model --tag_set serve --inputs 'x=in.npz[images]' --outdir out
    """
    path = model_given(graph, model_dir)
    options = RunOptions(timeout_in_ms=round((timeout or 0) * 1000))
    config = Config(
        device_count={"CPU": devices},
        allow_files=not no_files,
        operation_timeout_in_ms=options.timeout_in_ms,
    )
    if path is not None:
        _refuse(fetches=fetches, targets=targets, inits=inits)
        model = ModelRun(path=path, feeds=feeds, out=out, repeat=repeat, config=config, **of_model)
        seconds = model.run()
        if repeat > 1:
            click.echo(_timing(seconds), err=True)
        return
    _refuse(**of_model)
    assert graph is not None  # else there was a model
    from_stdin = [text for text in (graph, *feeds) if text == STDIN or text.endswith(f"={STDIN}")]
    if len(from_stdin) > 1:
        raise click.UsageError(f"stdin can be one thing, but stands for {' and '.join(from_stdin)}")
    loaded = graph_from_def(read_graph_def(graph))
    if not fetches and not targets and not inits:
        raise click.UsageError(nothing_to_do(loaded, graph))
    if out is not None:
        check_path(out, len(fetches))
    names = [name if ":" in name else f"{name}:0" for name in fetches]
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


def _refuse(**given: Any) -> None:
    """Raise click.UsageError for options that do not go with what is run."""
    for name, value in given.items():
        if value:
            kind = "a SavedModel" if name in ("fetches", "targets", "inits") else "a graph"
            option = {"fetches": "fetch", "targets": "target", "inits": "init"}.get(name, name)
            raise click.UsageError(f"--{option} does not go with {kind}")


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
