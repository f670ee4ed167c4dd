"""``penstock convert``: one form of a model into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from google.protobuf import text_format

from penstock.builder import Graph
from penstock.cli.advice import as_command
from penstock.cli.layout import print_rows
from penstock.cli.model_file import (
    MODEL_PATH,
    checkpoint_option,
    parsed_tags,
    read_stored,
    refuse,
    signature_in,
    signature_option,
    tag_set_option,
)
from penstock.cli.sample_value import sample_value
from penstock.exceptions import from_exception
from penstock.formats.stored_model import DEFAULT_SIGNATURE
from penstock.printable import printable
from penstock.saved_model.freeze import Frozen, freeze, freeze_tensors
from penstock.saved_model.loaded_model import LoadedModel
from penstock.saved_model.save_model import save

_BINARY: Final = ".pb"
_TEXT: Final = ".pbtxt"


@click.command(short_help="Make a graph or a SavedModel of MODEL.")
@click.argument("model", type=MODEL_PATH)
@click.argument("out", type=click.Path(path_type=Path))
@tag_set_option
@signature_option
@click.option(
    "--fetch", "fetches", multiple=True, metavar="NAME", help="Of a graph: keep what this needs."
)
@checkpoint_option
@click.option("--inline", is_flag=True, help="Put functions where they are called.")
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def convert(
    model: str,
    out: Path,
    tag_set: str | None,
    signature_def: str | None,
    fetches: tuple[str, ...],
    checkpoint: str | None,
    *,
    inline: bool,
    overwrite: bool,
) -> None:
    """Convert MODEL to OUT: a graph (.pb, or .pbtxt for text), or the folder of a SavedModel.

    MODEL may have any of the formats that are known. Of what has signatures, one is frozen:
    variables become constants, and only what the signature needs is kept. Of a graph, so is what
    --fetch needs; without it, the graph is written as it is.

    \b
    Examples:
      penstock convert model_folder model.pb
      penstock convert model.keras saved_model_folder
      penstock convert model_folder model.pb --tag_set serve --signature_def predict
      penstock convert model.ckpt-7.meta model.pb --fetch logits
      penstock convert graph.pb model.pb --checkpoint model.ckpt-7 --fetch logits
      penstock convert model.pb model.pbtxt
    """
    is_graph = out.suffix in (_BINARY, _TEXT)
    if out.exists() and is_graph and not overwrite:
        raise click.UsageError(f"{out} is there already; --overwrite replaces it")
    stored = read_stored(model)
    if stored.is_bare and not fetches:
        refuse("a graph", tag_set=tag_set, signature_def=signature_def, inline=inline)
        refuse("a graph of which all is kept; say what by --fetch", checkpoint=checkpoint)
        if not is_graph:
            raise click.UsageError(f"say by --fetch what is computed, or have OUT end in {_BINARY}")
        _write(out, stored.graph_of(None).graph_def)
        return
    tags = parsed_tags(tag_set)
    with LoadedModel(stored, tags, checkpoint=checkpoint or "") as loaded:
        if fetches:
            refuse("--fetch", signature_def=signature_def)
            name = DEFAULT_SIGNATURE
            frozen = freeze_tensors(loaded, fetches, inline=inline)
        else:
            name, _ = signature_in(loaded.signatures, signature_def)
            frozen = freeze(loaded, name, inline=inline)
    if is_graph:
        _write(out, frozen.graph_def)
        _explain(frozen, out)
    else:
        _save(frozen, name, out)


def _write(path: Path, graph_def: Any) -> None:
    is_text = path.suffix == _TEXT
    content = (
        text_format.MessageToString(graph_def).encode()
        if is_text
        else graph_def.SerializeToString()
    )
    try:
        path.write_bytes(content)
    except OSError as cause:
        raise from_exception(cause) from cause
    click.echo(f"wrote {path}", err=True)


def _save(frozen: Frozen, signature: str, path: Path) -> None:
    graph = Graph()
    graph.import_graph_def(frozen.graph_def, name="")
    signatures = {signature: (frozen.inputs, frozen.outputs)}
    save(path, signatures, graph=graph, init=frozen.init or None, assets=frozen.assets)
    click.echo(f"wrote {path}", err=True)


def _explain(frozen: Frozen, path: Path) -> None:
    """Print how the graph is fed and fetched, and a command that does it."""
    rows = [("feed", name, tensor) for name, tensor in frozen.inputs.items()]
    rows += [("fetch", name, tensor) for name, tensor in frozen.outputs.items()]
    print_rows(rows, 10_000)
    graph = Graph()
    graph.import_graph_def(frozen.graph_def, name="")
    words = ["penstock", "run", str(path), *(["--init", frozen.init] if frozen.init else [])]
    for endpoint in frozen.inputs.values():
        tensor = graph.tensor(endpoint)
        words += ["--feed", f"{endpoint}={sample_value(tensor.dtype, tensor.shape)}"]
    for endpoint in frozen.outputs.values():
        words += ["--fetch", endpoint]
    click.echo(printable(as_command(words)))
