"""``penstock run``: feed, fetch, print."""

from __future__ import annotations

import signal
import statistics
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final

import click

from penstock.cli.model_file import refuse
from penstock.cli.request import Request, request_options
from penstock.cli.run_graph import GraphRun
from penstock.cli.run_model import ModelRun
from penstock.config import RunOptions
from penstock.printable import printable_lines

_FOLDER: Final = click.Path(file_okay=False, path_type=Path)


@click.command(short_help="Run GRAPH or a model, and show what was fetched.")
@request_options
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
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write .npz or .npy.")
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, show_default=True, help="Run so many times."
)
@click.option("--live", is_flag=True, help="Show how far it is; runs node by node.")
@click.option(
    "--stalls",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Say what a step waits for that has not moved for so long; or at SIGUSR1.",
)
def run(out: Path | None, repeat: int, stalls: float | None, *, live: bool, **options: Any) -> None:
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
      penstock run train.pb --target train_step --repeat 1000 --live --stalls 10
      penstock run --no-files --timeout 10 unknown.pb --fetch y:0
      penstock run model.keras --feed x=[[1,2]]
      penstock run graph.pb --checkpoint model.ckpt-7 --feed x:0=[1,2] --fetch y:0
      penstock run --dir model --tag_set serve --signature_def serving_default --feed x=[[1,2]]
      penstock run --dir model --inputs 'x=in.npz[images]' --outdir out
    """
    request, of_model = Request.of(options), options
    job: GraphRun | ModelRun
    if request.is_of_graph:
        refuse("a graph", signature_def=request.signature_def, **of_model)
        timeout = RunOptions(timeout_in_ms=request.config.operation_timeout_in_ms)
        job = GraphRun(request=request, out=out, repeat=repeat, options=timeout, is_live=live)
    else:
        refuse("a model that has signatures", checkpoint=request.checkpoint, live=live)
        job = ModelRun(request=request, out=out, repeat=repeat, **of_model)
    with _stalls_told(stalls):
        seconds = job.run()
    if repeat > 1:
        click.echo(_timing(seconds), err=True)


def _stalls_told(seconds: float | None) -> AbstractContextManager[object]:
    """Say on stderr what steps wait for that have not moved for so long, or at a signal."""
    if seconds is None:
        return nullcontext()
    # Few runs need it.
    from penstock.session.stall_watch import watch_stalls  # noqa: PLC0415

    def report(text: str) -> None:
        click.echo(printable_lines(text), err=True)

    return watch_stalls(seconds, report, signal_number=getattr(signal, "SIGUSR1", None))


def _timing(seconds: list[float]) -> str:
    return (
        f"{len(seconds)} runs: median {statistics.median(seconds) * 1e3:.3f} ms, "
        f"fastest {min(seconds) * 1e3:.3f} ms, first {seconds[0] * 1e3:.3f} ms"
    )
