"""``penstock checkpoint``: what is in a checkpoint, and in what two of them differ."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import click

from penstock.checkpoint import Checkpoint, Difference, Kind, TensorSpec, diff, load
from penstock.cli.fetched import check_path, print_values, write_values
from penstock.cli.layout import counted, print_rows
from penstock.core.shapes import TensorShape, type_text
from penstock.core.values import Value
from penstock.errors import DataLossError, InvalidArgumentError, NotFoundError
from penstock.formats.place import Place
from penstock.formats.read_model import is_known, read_place
from penstock.printable import printable

_DIFFERENT: Final = 1
#: What a tensor in several parts says of them on one line.
_MOST_PARTS: Final = 4


@click.group(short_help="List, read and compare checkpoints.")
def checkpoint() -> None:
    """List, read and compare checkpoints, without a graph.

    CHECKPOINT is what the names of its files begin with (model.ckpt-7), one of the files, a folder,
    for the latest checkpoint in it, or a SavedModel.

    \b
    Examples:
      penstock checkpoint list model.ckpt-7
      penstock checkpoint get model.ckpt-7 'dense/*' --out dense.npz
      penstock checkpoint diff model.ckpt-7 model.ckpt-8
    """


@checkpoint.command("list", short_help="List names, types, shapes and sizes.")
@click.argument("path", metavar="CHECKPOINT")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--names", is_flag=True, help="Print the names alone, one a line.")
def list_tensors(path: str, patterns: tuple[str, ...], *, names: bool) -> None:
    """List the tensors of CHECKPOINT: names, types, shapes, bytes, and parts if there are some.

    PATTERN leaves those whose names fit one of them; * and ? stand for anything. Elements are
    not read.
    """
    found = _opened(path)
    chosen = _chosen(found, patterns)
    if names:
        for name in chosen:
            click.echo(printable(name))
        return
    specs = {name: found.spec(name) for name in chosen}
    total = sum(spec.stored_bytes or 0 for spec in specs.values())
    title = click.style(printable(found.prefix), bold=True)
    click.echo(
        f"{title}  format V{found.version}, {counted(len(chosen), 'tensor')}, "
        f"{counted(total, 'byte')}"
    )
    print_rows([_row(name, spec) for name, spec in specs.items()], limit=len(specs))


def _row(name: str, spec: TensorSpec) -> tuple[str, ...]:
    size = "" if spec.stored_bytes is None else f"{spec.stored_bytes:,}"
    shown = ", ".join(spec.parts[:_MOST_PARTS])
    more = f" and {len(spec.parts) - _MOST_PARTS} more" if len(spec.parts) > _MOST_PARTS else ""
    parts = (f"in parts: {shown}{more}",) if spec.parts else ()
    return name, type_text(spec.dtype, TensorShape(spec.shape)), size, *parts


@checkpoint.command("get", short_help="Print tensors, or write them to a file.")
@click.argument("path", metavar="CHECKPOINT")
@click.argument("patterns", nargs=-1, required=True, metavar="NAME | PATTERN...")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write .npz or .npy.")
def get_tensors(path: str, patterns: tuple[str, ...], *, out: Path | None) -> None:
    """Print tensors of CHECKPOINT by their names or by patterns, or write them to a file.

    The exit code is 1, and nothing is printed, if what is stored is damaged.
    """
    found = _opened(path)
    chosen = _chosen(found, patterns)
    if out is not None:
        check_path(out, len(chosen), "tensor")
    values: Mapping[str, Value] = {name: found[name] for name in chosen}
    if out is None:
        print_values(values)
    else:
        write_values(out, values)


@checkpoint.command("diff", short_help="Compare two checkpoints.")
@click.argument("first", metavar="CHECKPOINT")
@click.argument("second", metavar="CHECKPOINT")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Numbers may differ by so much.",
)
def compare(first: str, second: str, tolerance: float) -> None:
    """Compare two checkpoints: names, types, shapes and elements.

    The exit code is 0 if they are the same, and 1 if they differ.
    """
    one, other = _opened(first), _opened(second)
    found = list(diff(one, other, tolerance))
    print_rows([(item.name, _told(item, one, other)) for item in found], limit=len(found))
    if found:
        sys.exit(_DIFFERENT)
    click.echo(f"the same {counted(len(one), 'tensor')}")


def _opened(path: str) -> Checkpoint:
    """The checkpoint that is meant; of a model, its own."""
    try:
        return load(path)
    except (DataLossError, NotFoundError):
        place = Place.at(path)
        if not is_known(place):
            raise
        model = read_place(place)
        if not model.companions.checkpoint:
            raise InvalidArgumentError(
                f"{path} is {model.what}, which has no checkpoint",
                next_step="its values are constants: penstock convert makes a graph of it",
            ) from None
        return load(model.companions.checkpoint)


def _told(item: Difference, one: Checkpoint, other: Checkpoint) -> str:
    """In what a tensor differs."""
    match item.kind:
        case Kind.ONLY_FIRST | Kind.ONLY_SECOND:
            side = one if item.kind is Kind.ONLY_FIRST else other
            return f"only in {side.prefix}"
        case Kind.DTYPE | Kind.SHAPE:
            types = [
                type_text(side.dtype(item.name), TensorShape(side.shape(item.name)))
                for side in (one, other)
            ]
            return f"{types[0]} and {types[1]}"
        case Kind.VALUE:
            most = "" if item.largest is None else f", by up to {item.largest:.5g}"
            return f"{counted(item.count, 'element')} {_verb(item.count)}{most}"


def _verb(count: int) -> str:
    return "differs" if count == 1 else "differ"


def _chosen(found: Checkpoint, patterns: Sequence[str]) -> list[str]:
    """Names that fit one of the patterns, or all; each pattern must fit some.

    A pattern that is a name means that alone, whatever characters are in it.
    """
    if not patterns:
        return list(found)
    chosen: dict[str, None] = {}
    for pattern in patterns:
        fits = [pattern] if pattern in found else [n for n in found if fnmatchcase(n, pattern)]
        if not fits:
            raise NotFoundError(
                f"Key {pattern} not found in checkpoint {found.prefix}",
                next_step="penstock checkpoint list CHECKPOINT shows all names",
            )
        chosen |= dict.fromkeys(fits)
    return list(chosen)
