"""``penstock explain``: why a node is what it is."""

from __future__ import annotations

import json

import click

from penstock.cli.feed_values import parse_feeds
from penstock.cli.model_file import (
    MODEL_PATH,
    parsed_tags,
    read_stored,
    tag_set_option,
)
from penstock.config import Config
from penstock.explanations import explain
from penstock.graph.import_graph_def import graph_from_def


@click.command("explain", short_help="Say why a node is dead, pruned, fused, or where it is.")
@click.argument("graph", type=MODEL_PATH)
@click.argument("node")
@tag_set_option
@click.option("--fetch", "fetches", multiple=True, metavar="NAME", help="What one step runs; else "
              "all that nobody reads.")  # fmt: skip
@click.option(
    "--feed", "feeds", multiple=True, metavar="NAME=VALUE", help="As penstock run has it."
)
@click.option("--devices", type=click.IntRange(1, 1024), default=1, show_default=True,
              help="How many CPU devices.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text",
              show_default=True, help="How the answer is written.")  # fmt: skip
def explain_command(
    graph: str,
    node: str,
    tag_set: str | None,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    *,
    devices: int,
    form: str,
) -> None:
    """Say why NODE of GRAPH is dead, pruned, folded, merged, fused, compiled or not, and where.

    Nothing is run but the predicates of branches, and those only if values are fed.

    \b
    Examples:
      penstock explain model.pb branch/add --fetch out --feed x:0=[1,2] --feed flag:0=true
      penstock explain model.pb conv1 --fetch logits --format json
    """
    whole = graph_from_def(read_stored(graph).graph_of(parsed_tags(tag_set)).graph_def)
    config = Config(device_count={"CPU": devices})
    found = explain(whole, node, fetches, parse_feeds(feeds, whole), config=config)
    click.echo(json.dumps(found.as_json(), indent=2) if form == "json" else str(found))
