"""``penstock ops``: which ops have kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Final

import click

from penstock.catalogue.registry import all_ops
from penstock.cli.layout import print_rows
from penstock.core.dtypes import DType
from penstock.errors import NotFoundError
from penstock.kernels import types
from penstock.kernels.registry import kernels_of, ops_with_kernels

#: Names for sets of types, the larger first.
_GROUPS: Final = (
    ("any number", types.NUMBERS),
    ("any real number", types.REALS),
    ("any integer", types.INTEGERS),
    ("any float", types.FLOATS),
    ("any complex", types.COMPLEX),
)


@click.command()
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@click.option("--names", is_flag=True, help="Print the names alone, one a line.")
def ops(patterns: tuple[str, ...], *, names: bool) -> None:
    """List the ops that have kernels, with their element types.

    \b
    Examples:
      penstock ops
      penstock ops 'Conv*' MatMul
      penstock ops --names | wc -l
    """
    known = ops_with_kernels()
    chosen = [op for op in known if not patterns or _matches(op, patterns)]
    if names:
        click.echo("".join(f"{op}\n" for op in chosen), nl=False)
        return
    if not chosen:
        raise NotFoundError(f"No op with a kernel is called {' or '.join(patterns)}")
    print_rows([(op, "; ".join(_types(k.types) for k in kernels_of(op))) for op in chosen], 10_000)
    if not patterns:
        click.echo(f"{len(known)} of {len(all_ops())} ops have kernels")


def _matches(op: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(op.lower(), pattern.lower()) for pattern in patterns)


def _types(constraints: Mapping[str, Collection[DType]]) -> str:
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
