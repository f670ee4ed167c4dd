"""``penstock check``: mistakes in a graph, found without running it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import click

from penstock import __version__
from penstock.checks.check_graph import NAMES, check
from penstock.checks.finding import Finding, Severity
from penstock.checks.sarif import as_json, as_sarif
from penstock.cli.layout import counted
from penstock.cli.model_file import (
    model_argument,
    parsed_tags,
    path_given,
    read_stored,
    tag_set_option,
    title_of,
)
from penstock.printable import printable

_COLORS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}
#: The exit status when something was found.
_FOUND: Final = 1


@click.command("check", short_help="Find mistakes in a graph without running it.")
@model_argument
@tag_set_option
@click.option("--fetch", "fetches", multiple=True, metavar="NAME", help="What one step runs; else "
              "each node that nobody reads counts as a step.")  # fmt: skip
@click.option("--feed-names", "feeds", multiple=True, metavar="NAME", help="What the step feeds.")
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text",
              show_default=True, help="How findings are written.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Fail because of warnings, too.")
def check_command(
    graph: str | None,
    model_dir: str | None,
    tag_set: str | None,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    *,
    form: str,
    strict: bool,
) -> None:
    """Find mistakes in GRAPH without running it: races, dead fetches, endless loops, deadlocks.

    docs/check.md says what each code means. The exit status is 1 if there is an error.

    \b
    Examples:
      penstock check model.pb
      penstock check model.pb --fetch train --feed-names x:0
      penstock check model.pb --format sarif > check.sarif
    """
    path = path_given(graph, model_dir)
    findings = check(read_stored(path).graph_of(parsed_tags(tag_set)).graph_def, fetches, feeds)
    if form == "text":
        _print(findings)
    else:
        click.echo(json.dumps(_as(form, findings, title_of(path)), indent=2))
    bad = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    if any(found.severity in bad for found in findings):
        sys.exit(_FOUND)


def _as(form: str, findings: Sequence[Finding], path: str) -> Any:
    if form == "json":
        return as_json(findings)
    return as_sarif(findings, NAMES, path, __version__)


def _print(findings: Sequence[Finding]) -> None:
    for found in findings:
        severity = click.style(found.severity.value, fg=_COLORS[found.severity])
        place = f"{found.function}: {found.node}" if found.function else found.node
        click.echo(f"{found.code} {severity}  {printable(place)}  {printable(found.message)}")
        if found.next_step:
            click.echo(f"  next  {printable(found.next_step)}")
    counts = Counter(found.severity for found in findings)
    parts = [counted(counts[s], s.value) for s in Severity if counts[s]]
    click.echo(", ".join(parts) if parts else "nothing found")
