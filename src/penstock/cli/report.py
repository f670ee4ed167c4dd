"""``penstock report``: a graph, and a step of it, as one page for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from penstock.cli.model_file import STDIN, title_of
from penstock.cli.request import Request, request_options
from penstock.core.byte_counts import in_units
from penstock.printable import printable
from penstock.tracing.recorder import Detail

#: What a report can look at: single nodes.
_DETAILS: Final = [detail.value for detail in Detail if detail.is_by_node]


@click.command("report", short_help="Show GRAPH, and a step of it, as one page for the browser.")
@request_options
@click.option("-o", "--out", required=True, metavar="FILE", help="The page, such as report.html.")
@click.option("--values", is_flag=True, help="Have summaries of values in it: smallest, largest, "
              "mean, NaNs, histogram.")  # fmt: skip
@click.option("--detail", type=click.Choice(_DETAILS), default=Detail.NODES.value,
              show_default=True, help="With inside, neither ONNX Runtime nor XLA is "
              "used.")  # fmt: skip
@click.option("--warm-up", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
              help="Run so many steps before.")  # fmt: skip
@click.option("--title", metavar="TEXT", help="What the page calls it; the model's name otherwise.")
@click.option("--node-data", metavar="FILE", help="Also write the nodes' times, as JSON for Model "
              "Explorer.")  # fmt: skip
def report_command(**options: Any) -> None:
    """Show GRAPH, and a step of it, as one page that opens in a browser without a network.

    The page has the graph, folded by scope, function, loop or device; what ran when; what took time
    and memory; iterations of loops; what was optimised away, and why; and the generated Python.
    Without --fetch and --target nothing is run, and it has the graph alone.

    No weights and no fed values are in it; its first lines, and this command, say what is.

    \b
    Examples:
      penstock report model.pb -o graph.html
      penstock report model.pb --feed x:0=[1,2] --fetch y:0 -o report.html
      penstock report model.pb --feed x:0=in.npy --fetch y:0 --values -o report.html
    """
    # Few commands need them.
    from penstock.reporting.contents import contents_of  # noqa: PLC0415
    from penstock.reporting.make_report import report, write, write_text  # noqa: PLC0415
    from penstock.reporting.model_explorer import node_data  # noqa: PLC0415

    own = {name: options.pop(name) for name in ("out", "values", "detail", "title", "node_data")}
    warm_up = options.pop("warm_up")
    request = Request.of(options)
    title = own["title"] or _title(request.path)
    with request.opened(needs_step=False) as opened:
        for _ in range(warm_up if opened.wanted else 0):
            opened.session.run(opened.wanted, opened.feeds)
        found = report(
            opened.session, opened.wanted or None, opened.feeds, values=own["values"],
            detail=own["detail"], title=title,
        )  # fmt: skip
    write(found, own["out"])
    if own["node_data"]:
        write_text(own["node_data"], node_data(found))
    contents = list(contents_of(found))
    there = ", ".join(one.what for one in contents if one.is_there)
    missing = ", ".join(one.what for one in contents if not one.is_there)
    click.echo(f"wrote {printable(own['out'])} ({in_units(Path(own['out']).stat().st_size)})")
    click.echo(f"it contains {there}; not {missing}")


def _title(path: str) -> str:
    """The model's name: not where it is."""
    return title_of(path) if path == STDIN else Path(path).resolve().name
