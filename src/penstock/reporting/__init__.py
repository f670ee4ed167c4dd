"""A graph, and a step of it, as one page that needs no network.

    facts            all that a report holds, as plain values
    make_report      ``ps.report``: from a session to the page
    collect_graph    the graph as it is run, with functions where they are called
    fates            what the optimiser made of its nodes
    collect_step     what a step did: what ran when, and what took time and memory
    critical_path    which nodes the step's end waited for
    code             the generated Python, line by line
    summaries        what values are like: smallest, largest, mean, NaNs, histogram
    contents         what a report holds that not everybody should see
    encode           facts as compressed columns
    write_page       the file
    model_explorer   times of nodes, for Google's Model Explorer
    page/            what runs in the browser: modules of plain JavaScript, a style, a frame

Nothing of what runs asks anything here.
"""

from __future__ import annotations

from penstock.reporting.facts import Report
from penstock.reporting.make_report import report

__all__ = ["Report", "report"]
