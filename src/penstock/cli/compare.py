"""``penstock compare``: the first node whose values differ in two steps."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from penstock.cli.feed_values import parse_feeds
from penstock.cli.layout import counted
from penstock.cli.model_file import parsed_tags, read_stored, tag_set_option
from penstock.comparison.compare import Comparison, compare, compare_tiers
from penstock.defs.schema import Message
from penstock.graph.import_graph_def import graph_from_def
from penstock.printable import printable

#: The exit status when something differs.
_DIFFERENT = 1
_SHOWN = 10


@click.command("compare", short_help="Find the first node whose values differ in two steps.")
@click.argument("one", metavar="GRAPH")
@click.argument("other", metavar="[OTHER]", required=False)
@tag_set_option
@click.option("--tiers", is_flag=True, help="Compare the two tiers: there is no OTHER.")
@click.option("--fetch", "fetches", multiple=True, required=True, metavar="NAME",
              help="A tensor to fetch, or a node to run.")  # fmt: skip
@click.option(
    "--feed", "feeds", multiple=True, metavar="NAME=VALUE", help="As penstock run has it."
)
@click.option("--rtol", type=click.FloatRange(min=0), default=0.0, show_default=True,
              help="Numbers may differ by so much of themselves, …")  # fmt: skip
@click.option("--atol", type=click.FloatRange(min=0), default=0.0, show_default=True,
              help="… and by so much.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How the answer is written.")  # fmt: skip
def compare_command(
    one: str,
    other: str | None,
    tag_set: str | None,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    *,
    tiers: bool,
    rtol: float,
    atol: float,
    form: str,
) -> None:
    """Run the same step of GRAPH and OTHER node by node, and say which node differs first.

    OTHER may also be the prefix of a checkpoint with values of nodes, as ps.dump_all writes it. The
    exit status is 1 if something differs, or nothing could be compared.

    \b
    Examples:
      penstock compare old.pb new.pb --fetch logits --feed images:0=digits.npz:images
      penstock compare model.pb values/step --fetch logits --feed x:0=[1,2] --rtol 1e-5
      penstock compare model.pb --tiers --fetch logits --feed x:0=[1,2]
    """
    if tiers == (other is not None):
        raise click.UsageError("give OTHER, or --tiers")
    first = _graph(one, tag_set)
    values = parse_feeds(feeds, graph_from_def(first))
    wanted = list(fetches)
    if other is None:
        found = compare_tiers(first, wanted, values, rtol=rtol, atol=atol)
    else:
        against = other if Path(f"{other}.index").is_file() else _graph(other, tag_set)
        found = compare(first, against, wanted, values, rtol=rtol, atol=atol)
    click.echo(_json(found) if form == "json" else "\n".join(_lines(found)))
    if not found:
        sys.exit(_DIFFERENT)


def _graph(path: str, tag_set: str | None) -> Message:
    return read_stored(path).graph_of(parsed_tags(tag_set)).graph_def


def _lines(found: Comparison) -> list[str]:
    counts = f"{counted(found.compared, 'value')} compared, {len(found.differences)} differ"
    lines = [counts]
    if found.first is not None:
        lines.append(f"first  {found.first}")
    lines += [f"       {one}" for one in found.differences[1:_SHOWN]]
    if len(found.differences) > _SHOWN:
        lines.append(f"       … and {len(found.differences) - _SHOWN} more")
    for what, keys in (("GRAPH", found.only_in_one), ("OTHER", found.only_in_other)):
        if keys:
            shown = ", ".join(map(printable, keys[:_SHOWN]))
            more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
            lines.append(f"only in {what}: {shown}{more}")
    return lines


def _json(found: Comparison) -> str:
    rows = [
        {
            "key": one.key,
            "op": one.op,
            "text": one.difference.text,
            "absolute": one.difference.absolute,
            "relative": one.difference.relative,
            "count": one.difference.count,
        }
        for one in found.differences
    ]
    content = {
        "compared": found.compared,
        "differences": rows,
        "only_in_one": found.only_in_one,
        "only_in_other": found.only_in_other,
    }
    return json.dumps(content, indent=2)
