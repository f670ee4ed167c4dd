"""Which graphs have loops, and other regions, that become programs in C.

In:   the graph of a partition, as it is to be run.
Out:  a copy in which such regions are single nodes; None if there are none.
Not:  writes no program: the kernel of such a node does when it sees shapes.
"""

from __future__ import annotations

import importlib
from itertools import product

from penstock.config import Config, JitLevel, Level, Toggle
from penstock.core.forks import importing
from penstock.graph.extract import extract
from penstock.graph.graph import Graph
from penstock.graph.roles import Role
from penstock.kernels.c.library import library
from penstock.passes.graph_rewriter import GraphRewriter


def compiles_loops(config: Config) -> bool:
    """Whether a session's loops may become programs."""
    options = config.graph_options
    return (
        config.accelerate
        and not config.check_outputs
        and options.optimizer_options.opt_level is Level.L1
        and options.optimizer_options.global_jit_level is not JitLevel.OFF
        and options.rewrite_options.remapping is not Toggle.OFF
        and not options.rewrite_options.disable_meta_optimizer
    )


def asks_for_jit(config: Config) -> bool:
    """Whether regions without loops may, too."""
    level = config.graph_options.optimizer_options.global_jit_level
    return compiles_loops(config) and level >= JitLevel.ON_1


def with_programs(graph: Graph, min_nodes: int | None) -> Graph | None:
    """A copy with programs for loops, and for regions of so many nodes, if that is a number."""
    if min_nodes is None and not any(node.role is Role.ENTER for node in graph):
        return None
    if library() is None:
        return None
    with importing:  # hardly any graph needs it
        native = importlib.import_module("penstock.passes.native.compile_regions")
    loops = native.possible_loops(graph)
    if min_nodes is None and not loops:
        return None
    ways = (True, False) if native.has_random_numbers(graph) else (False,)
    for draws, goes_inside in product(ways, (True, False)):
        copy, copies = extract(graph, list(graph))
        if native.compile_regions(
            GraphRewriter(copy, {}),
            [form.among(copies) for form in loops],
            min_nodes,
            goes_inside=goes_inside,
            draws=draws,
        ):
            return copy
    return None
