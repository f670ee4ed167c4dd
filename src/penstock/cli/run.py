"""``penstock run``: feed, fetch, print."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any, Final

import click

from penstock.cli.model_file import (
    STDIN,
    checkpoint_option,
    model_argument,
    path_given,
    read_stored,
    refuse,
    signature_option,
    tag_set_option,
)
from penstock.cli.run_graph import GraphRun
from penstock.cli.run_model import ModelRun
from penstock.config import Config, RunOptions

_FOLDER: Final = click.Path(file_okay=False, path_type=Path)


@click.command(short_help="Run GRAPH or a model, and show what was fetched.")
@model_argument
@tag_set_option
@signature_option
@checkpoint_option
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
    checkpoint: str | None,
    out: Path | None,
    repeat: int,
    timeout: float | None,
    devices: int,
    *,
    no_files: bool,
    **of_model: Any,
) -> None:
    """Run GRAPH, or a signature of a model, once or several times and show what was fetched.

    GRAPH is a graph or a model, of whichever format: a GraphDef (binary or text, gzip or not), a
    SavedModel, a .meta file with its checkpoint, a file of Keras, a model of TensorFlow.js; - is
    stdin.

    Of what has signatures one is run: then NAME is that of an input of it, and all outputs are
    fetched. With --fetch, --target or --init, tensors and nodes of the graph itself are meant.
    Without anything to run, a graph's likely outputs are listed.

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
      penstock run model.keras --feed x=[[1,2]]
      penstock run graph.pb --checkpoint model.ckpt-7 --feed x:0=[1,2] --fetch y:0
      penstock run --dir model --tag_set serve --signature_def serving_default --feed x=[[1,2]]
      penstock run --dir model --inputs 'x=in.npz[images]' --outdir out
    """
    path = path_given(graph, model_dir)
    from_stdin = [text for text in (path, *feeds) if text == STDIN or text.endswith(f"={STDIN}")]
    if len(from_stdin) > 1:
        raise click.UsageError(f"stdin can be one thing, but stands for {' and '.join(from_stdin)}")
    options = RunOptions(timeout_in_ms=round((timeout or 0) * 1000))
    config = Config(
        device_count={"CPU": devices},
        allow_files=not no_files,
        operation_timeout_in_ms=options.timeout_in_ms,
    )
    stored = read_stored(path)
    job: GraphRun | ModelRun
    if stored.is_bare or fetches or targets or inits:
        tag_set = of_model.pop("tag_set")
        refuse("a graph", **of_model)
        job = GraphRun(
            path=path, stored=stored, tag_set=tag_set, checkpoint=checkpoint, feeds=feeds,
            fetches=fetches, targets=targets, inits=inits, out=out, repeat=repeat, options=options,
            config=config,
        )  # fmt: skip
    else:
        refuse("a model that has signatures", checkpoint=checkpoint)
        job = ModelRun(
            path=path, stored=stored, feeds=feeds, out=out, repeat=repeat, config=config, **of_model
        )
    seconds = job.run()
    if repeat > 1:
        click.echo(_timing(seconds), err=True)


def _timing(seconds: list[float]) -> str:
    return (
        f"{len(seconds)} runs: median {statistics.median(seconds) * 1e3:.3f} ms, "
        f"fastest {min(seconds) * 1e3:.3f} ms, first {seconds[0] * 1e3:.3f} ms"
    )
