"""``penstock ops``: which ops have kernels."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table

from penstock.catalogue.registry import all_ops
from penstock.kernels.registry import kernels_of, ops_with_kernels


@click.command()
@click.option("--names", is_flag=True, help="Print the names alone, one a line.")
def ops(*, names: bool) -> None:
    """List the ops that have kernels, with their element types.

    \b
    Examples:
      penstock ops
      penstock ops --names | wc -l
    """
    known = ops_with_kernels()
    if names:
        click.echo("\n".join(known))
        return
    table = Table("op", "kernels", box=None)
    for op in known:
        table.add_row(op, "; ".join(_types(kernel.types) for kernel in kernels_of(op)))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{len(known)} of {len(all_ops())} ops have kernels")


def _types(types: object) -> str:
    """Constraints as text: ``T: float32 float64``."""
    assert isinstance(types, dict)
    parts = [f"{name}: {' '.join(sorted(map(str, allowed)))}" for name, allowed in types.items()]
    return ", ".join(parts) or "any type"
