"""Every test of the builder has a graph of its own, as the default."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.builder import Graph


@pytest.fixture(name="graph", autouse=True)
def _graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph
