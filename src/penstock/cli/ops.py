"""``penstock ops``: which ops have kernels, and which have none."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from penstock.catalogue.registry import all_ops
from penstock.cli.layout import counted, print_items, print_rows
from penstock.cli.model_file import STDIN, read_stored, title_of
from penstock.core.dtypes import DType
from penstock.errors import NotFoundError
from penstock.kernels.api import types
from penstock.kernels.api.registry import kernels_of, ops_with_kernels
from penstock.printable import printable
from penstock.session.missing import missing_in

_Types: TypeAlias = Mapping[str, Collection[DType]]
#: Names for sets of types, the larger first.
_GROUPS: Final = (
    ("any type", types.ALL),
    ("any number", types.NUMBERS),
    ("any real number", types.REALS),
    ("any integer", types.INTEGERS),
    ("any float", types.FLOATS),
    ("any complex", types.COMPLEX),
)


def _completions(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ops that begin so, and whatever files there are."""
    found = [CompletionItem(op) for op in all_ops() if incomplete and op.startswith(incomplete)]
    return [*found, CompletionItem(incomplete, type="file")]


@click.command(short_help="List the ops that have kernels, or what GRAPH lacks.")
@click.argument("patterns", nargs=-1, shell_complete=_completions, metavar="[PATTERN | GRAPH]...")
@click.option("--names", is_flag=True, help="Print the names alone, one a line.")
@click.option("--missing", is_flag=True, help="List what has no kernel; of GRAPH, if one is given.")
@click.option(
    "--fetch", "fetches", multiple=True, metavar="NAME", help="Of GRAPH, only what this needs."
)
@click.option(
    "--feed-names", "feeds", multiple=True, metavar="NAME", help="With --fetch: feed this."
)
def ops(
    patterns: tuple[str, ...],
    *,
    names: bool,
    missing: bool,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
) -> None:
    """List the ops that have kernels, with their element types.

    A PATTERN is the name of an op, with * and ? for what is open.  A GRAPH is a graph or a model
    of any format, or - for stdin.

    \b
    Examples:
      penstock ops
      penstock ops 'Conv*' MatMul
      penstock ops --names | wc -l
      penstock ops --missing 'Sparse*'
      penstock ops --missing model.pb
      penstock ops --missing model.pb --fetch y:0
    """
    files = [pattern for pattern in patterns if _is_path(pattern)]
    if files and not missing:
        raise click.UsageError(f"what {files[0]} lacks is listed with --missing")
    if (fetches and not files) or (feeds and not fetches):
        raise click.UsageError("--fetch goes with --missing GRAPH, and --feed-names with --fetch")
    if files:
        _print_lacks(files, fetches, feeds, Listing(names))
    elif missing:
        _print_missing(patterns, Listing(names))
    else:
        _print_known(patterns, Listing(names))


class Listing(enum.Enum):
    """How much of each op is printed."""

    ROWS = False
    NAMES = True


def _print_known(patterns: tuple[str, ...], listing: Listing) -> None:
    known = ops_with_kernels()
    chosen = [op for op in known if not patterns or _matches(op, patterns)]
    if listing is Listing.NAMES:
        _print_names(chosen)
        return
    if not chosen:
        raise NotFoundError(f"No op with a kernel is called {' or '.join(patterns)}")
    print_rows([(op, "; ".join(types_of(op))) for op in chosen], 10_000)
    if not patterns:
        click.echo(f"{len(known)} of {len(all_ops())} ops have kernels")


def _print_missing(patterns: tuple[str, ...], listing: Listing) -> None:
    missing = sorted(set(all_ops()) - set(ops_with_kernels()))
    chosen = [op for op in missing if not patterns or _matches(op, patterns)]
    if listing is Listing.NAMES:
        _print_names(chosen)
        return
    if not chosen:
        raise NotFoundError(f"No op without a kernel is called {' or '.join(patterns)}")
    print_items(chosen)
    if not patterns:
        click.echo(f"{len(missing)} of {len(all_ops())} ops have no kernels")


def _print_lacks(
    files: Sequence[str], fetches: Sequence[str], feeds: Sequence[str], listing: Listing
) -> None:
    for file in files:
        lacks = missing_in(read_stored(file).graph_of(None).graph_def, fetches, feeds)
        if listing is Listing.NAMES:
            _print_names(sorted({op for op, _ in lacks}))
        elif lacks:
            click.echo(f"{printable(title_of(file))} lacks")
            rows = [(op, counted(count, "node"), why) for (op, why), count in sorted(lacks.items())]
            print_rows(rows, 10_000)
        else:
            click.echo(f"{printable(title_of(file))} lacks nothing: every op has a kernel")


def _is_path(pattern: str) -> bool:
    """Whether a graph is meant: no op has a dot or a slash in its name."""
    return pattern == STDIN or bool(re.search(r"[./\\]", pattern)) or Path(pattern).is_file()


def _print_names(names: Sequence[str]) -> None:
    click.echo("".join(f"{printable(name)}\n" for name in names), nl=False)


def _matches(op: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(op.lower(), pattern.lower()) for pattern in patterns)


def types_of(op: str) -> list[str]:
    """The element types of an op's kernels as text; without kernels that add no type."""
    constraints = [kernel.types for kernel in kernels_of(op)]
    widest = [mine for mine in constraints if not any(_covers(c, mine) for c in constraints)]
    return list(dict.fromkeys(map(_types, widest)))


def _covers(a: _Types, b: _Types) -> bool:
    """Whether all that fits ``b`` fits ``a``, and more does."""
    return a != b and all(name in b and frozenset(b[name]) <= frozenset(a[name]) for name in a)


def _types(constraints: _Types) -> str:
    """Constraints as text: ``T: any float, int32``."""
    parts = [f"{name}: {_listed(frozenset(allowed))}" for name, allowed in constraints.items()]
    return ", ".join(parts) or "any type"


def _listed(allowed: frozenset[DType]) -> str:
    words = []
    for word, group in _GROUPS:
        if group <= allowed:
            words.append(word)
            allowed -= group
    return " ".join([*words, *sorted(map(str, allowed))])
