"""An If as Switches, the nodes of both branches, and Merges.

In:   the Site of an If, and the bodies of its branches.
Out:  what takes the If's place.
Not:  decides nothing about whether it may.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.graph.graph import Node
from penstock.graph.instantiate import FunctionBody
from penstock.passes.site import Endpoint, Replacement, Site, type_of, used_args


def lower_if(site: Site, bodies: Sequence[FunctionBody]) -> Replacement:
    """What takes the place of an If whose branches are given, the one for true first."""
    pred, *inputs = site.inputs()
    pred = site.gated(pred)
    asked = site.add("switch_pred", "Switch", {"T": type_of(pred)}, [pred, pred], site.waits_for())
    switches = {
        index: site.add("switch", "Switch", {"T": type_of(value)}, [value, pred])
        for index, value in enumerate(inputs)
        if any(index in used_args(body) for body in bodies)
    }
    branches = []
    for name, side, body in zip(("then", "else"), (1, 0), bodies, strict=True):
        pivot = site.identity(f"pivot_{name}", (asked, side))
        args = {index: (switch, side) for index, switch in switches.items()}
        branches.append(site.inline(f"{name}/", body, args, pivot))

    def merge(either: Sequence[Endpoint]) -> Node:
        return site.add("merge", "Merge", {"T": type_of(either[0]), "N": len(either)}, either)

    def add_end() -> Node:
        taken = [
            site.identity("taken", (asked, side), branch.ends())
            for side, branch in zip((1, 0), branches, strict=True)
        ]
        return merge([(node, 0) for node in taken])

    results = zip(*(branch.results for branch in branches), strict=True)
    return Replacement([(merge(either), 0) for either in results], branches, add_end)
