"""What a run tells about itself.

In:   the options of a run and what its step recorded.
Out:  ``RunMetadata``, filled; and whether a run is watched although nobody asked.
Not:  records nothing itself.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from penstock.config import RunMetadata, RunOptions, TraceLevel
from penstock.defs.schema import Message
from penstock.graph.export import graph_to_def
from penstock.runtime.cost_model import CostModel
from penstock.runtime.prepare import PreparedRequest
from penstock.runtime.stats import StatsCollector


def watched(options: RunOptions, costs: CostModel) -> RunOptions:
    """The options of the next run, which the cost model may want to see."""
    if not costs.is_due() or options.trace_level > TraceLevel.NO_TRACE or options.recorder:
        return options
    return dataclasses.replace(options, trace_level=TraceLevel.SOFTWARE_TRACE)


def record(
    prepared: PreparedRequest,
    stats: StatsCollector | None,
    options: RunOptions,
    metadata: RunMetadata | None,
) -> None:
    """Note what a run did, whether it succeeded or not."""
    if stats is not None and stats.recording.detail.is_by_node and prepared.costs.every > 0:
        prepared.costs.add(stats.recording)
    if metadata is None:
        return
    if stats is not None:
        metadata.step_stats_later(stats.step_stats)
        prepared.is_lent = True
        metadata.cost_graph_later(partial(_cost_graph, prepared, stats))
    if options.output_partition_graphs:
        metadata.partition_graphs = [
            graph_to_def(part.graph, dict.fromkeys((n.id for n in part.graph), part.device))
            for part in prepared.partitions
        ]


def _cost_graph(prepared: PreparedRequest, stats: StatsCollector) -> Message:
    """What is known of the nodes' costs, this run included."""
    costs = prepared.costs
    # Steps that are watched for the costs have been added already.
    if costs.every <= 0 and stats.recording.detail.is_by_node:
        costs.add(stats.recording)
    return costs.to_proto(prepared.partitions)
