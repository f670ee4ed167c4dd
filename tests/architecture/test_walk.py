"""The walk in docs/architecture.md is the way that a run really takes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import penstock as ps

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "penstock"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
STOP = r"^(\d)\. `(\S+\.py): (\S+)`"


def stops(mark: str) -> list[tuple[int, str, str]]:
    """Number, module and function of each stop of a walk."""
    text = PAGE.partition(f"<!-- {mark} -->")[2].partition("<!-- end of")[0]
    found = re.findall(STOP, text, re.MULTILINE)
    return [(int(number), module, name) for number, module, name in found]


def calls(tier: ps.Tier) -> list[tuple[str, str]]:
    """Module and function of each first call of a run, in order; lambdas count for their makers."""
    graph, seen = ps.Graph(), {}
    with graph.as_default():
        ps.ops.softsign(ps.placeholder("float32", [], name="x"), name="y")

    def note(frame: FrameType, event: str, _arg: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            name = code.co_qualname.replace(".<locals>.<lambda>", "()")
            seen.setdefault((str(Path(code.co_filename).relative_to(SOURCE)), name))

    config = ps.Config(tier=tier, inter_op_parallelism_threads=1)
    with ps.Session(graph, config=config) as session:
        sys.setprofile(note)
        try:
            session.run("y:0", {"x:0": np.float32(1)})
        finally:
            sys.setprofile(None)
    return list(seen)


@pytest.mark.parametrize("tier", list(ps.Tier))
def test_the_walk_is_the_way_of_a_run(tier: ps.Tier) -> None:
    """Each stop is met, in the order of the page, and the last one is the kernel's own code."""
    walk = stops("walk")
    if tier is ps.Tier.COMPILED:
        walk = [stop for stop in walk if stop[0] < 6] + stops("compiled walk")
    met = calls(tier)
    *way, (_, module, maker) = walk
    places = [met.index((place, name)) for _, place, name in way]
    places.append(met.index((module, f"{maker}()")))

    assert [number for number, _, _ in walk] == list(range(1, 9))
    assert len({place for _, place, _ in walk}) == 8
    assert places == sorted(places)
