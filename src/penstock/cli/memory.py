"""``penstock memory``: run, and say what takes memory."""

from __future__ import annotations

import json
from typing import Any

import click

from penstock.cli.request import Request, request_options


@click.command("memory", short_help="Run GRAPH, and say which tensors take memory, and what grows.")
@request_options
@click.option("--steps", type=click.IntRange(min=1), default=4, show_default=True,
              help="Run so many steps; three or more tell what grows.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How the answer is written.")  # fmt: skip
def memory_command(*, steps: int, form: str, **options: Any) -> None:
    """Run some steps of GRAPH node by node, and say what takes memory.

    Which tensors are alive when they are most, by the node that made them; what variables, queues
    and tables keep between steps; and what grows from each step to the next.

    \b
    Examples:
      penstock memory model.pb --feed x:0=in.npy --fetch y:0
      penstock memory train.pb --init init --target train_step --steps 10
    """
    # Few commands need it.
    from penstock.memory_use.measure_memory import measure_memory  # noqa: PLC0415

    with Request.of(options).opened() as opened:
        if not opened.wanted:
            raise click.UsageError("--init alone takes one step: give --fetch or --target")
        found = measure_memory(opened.session, opened.wanted, opened.feeds, steps=steps)
    click.echo(json.dumps(found.as_json(), indent=2) if form == "json" else str(found))
