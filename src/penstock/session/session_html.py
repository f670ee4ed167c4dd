"""A session, as a notebook shows it.

In:   what a session is, and has.
Out:  HTML: its options that are no defaults, what it keeps, its graph.
Not:  runs nothing, and shows no values.
"""

from __future__ import annotations

import dataclasses

from penstock.config import Config
from penstock.core.byte_counts import in_units
from penstock.core.html import block, folded, table
from penstock.graph.graph import Graph
from penstock.graph.graph_html import graph_html
from penstock.state.contents import contents
from penstock.state.device_resources import DeviceResources


def session_html(title: str, config: Config, resources: DeviceResources, graph: Graph) -> str:
    """What a notebook shows of a session."""
    return block(
        title,
        table("options", ("option", "value"), _options(config)),
        table("keeps", ("resource", "kind", "device", "size"), _kept(resources)),
        folded("graph", graph_html(graph)),
    )


def _options(config: Config) -> list[tuple[str, str]]:
    """Those that are no defaults."""
    usual = Config()
    return [
        (field.name, str(getattr(config, field.name)))
        for field in dataclasses.fields(config)
        if getattr(config, field.name) != getattr(usual, field.name)
    ]


def _kept(resources: DeviceResources) -> list[tuple[str, str, str, str]]:
    return [
        (name, kind, manager.device, in_units(contents(resource).size))
        for manager in resources.managers
        for (_, kind, name), resource in manager.everything()
    ]
