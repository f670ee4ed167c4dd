"""``penstock convert``: one form of a model into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from google.protobuf import text_format

from penstock.builder import Graph
from penstock.cli.advice import as_command
from penstock.cli.endpoints import sample_value
from penstock.cli.graph_file import GraphFile, read_graph_def
from penstock.cli.layout import print_rows
from penstock.cli.model_dir import (
    is_saved_model,
    parsed_tags,
    signature_in,
    signature_option,
    tag_set_option,
)
from penstock.exceptions import from_exception
from penstock.printable import printable
from penstock.saved_model.freeze import Frozen, freeze
from penstock.saved_model.loaded_model import load
from penstock.saved_model.save_model import save

_BINARY: Final = ".pb"
_TEXT: Final = ".pbtxt"


@click.command(short_help="Make a graph or another SavedModel of MODEL.")
@click.argument("model", type=GraphFile())
@click.argument("out", type=click.Path(path_type=Path))
@tag_set_option
@signature_option
@click.option("--inline", is_flag=True, help="Put functions where they are called.")
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def convert(
    model: str,
    out: Path,
    tag_set: str | None,
    signature_def: str | None,
    *,
    inline: bool,
    overwrite: bool,
) -> None:
    """Convert MODEL to OUT: a graph (.pb, or .pbtxt for text), or the folder of a SavedModel.

    MODEL is a SavedModel, of which one signature is frozen: variables become constants, and only
    what the signature needs is kept. Or it is a graph, which is written in the form of OUT.

    \b
    Examples:
      penstock convert model_folder model.pb
      penstock convert model_folder model.pb --tag_set serve --signature_def predict
      penstock convert model_folder frozen_folder
      penstock convert model.pb model.pbtxt
    """
    is_graph = out.suffix in (_BINARY, _TEXT)
    if out.exists() and is_graph and not overwrite:
        raise click.UsageError(f"{out} is there already; --overwrite replaces it")
    if not is_saved_model(model):
        if tag_set is not None or signature_def is not None or inline:
            raise click.UsageError("--tag_set, --signature_def and --inline are for SavedModels")
        if not is_graph:
            raise click.UsageError(f"a graph has no signatures: OUT must end in {_BINARY}")
        _write(out, read_graph_def(model))
        return
    with load(model, parsed_tags(tag_set)) as loaded:
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
