"""What nodes cost: how long they take, how often they run in a step, how much they give.

In:   step stats of traced runs on one machine; or a file.
Out:  ``Costs``, by the names of nodes.
Not:  knows no cluster; measures nothing by itself but the time of whole steps.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any, Final

from penstock.config import RunMetadata, RunOptions, TraceLevel
from penstock.core.files import FileSystem, file_errors
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError

_FORMAT: Final = "penstock costs 1"


@dataclass(frozen=True, slots=True)
class NodeCost:
    """One node's, in a step."""

    #: Of one activation.
    seconds: float
    #: How many live activations a step has, on average.
    count: float = 1.0
    #: Bytes of each output: of its largest value.
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """What the nodes of one request cost."""

    nodes: Mapping[str, NodeCost] = field(default_factory=dict)
    #: Seconds that the executor itself takes for each activation.
    overhead: float = 0.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them to a file, as JSON."""
        nodes = {name: asdict(cost) for name, cost in self.nodes.items()}
        content = {"format": _FORMAT, "overhead": self.overhead, "nodes": nodes}
        text = json.dumps(content, indent=1) + "\n"
        with file_errors(os.fspath(path)):
            FileSystem().write(os.fspath(path), text.encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Costs:
        """Read what ``save`` wrote; raises InvalidArgumentError if the file holds anything else."""
        try:
            content = json.loads(_read(os.fspath(path)))
            if content["format"] != _FORMAT:
                raise ValueError(content["format"])
            nodes = {str(name): _node_cost(cost) for name, cost in content["nodes"].items()}
            return cls(nodes, _not_negative(content["overhead"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidArgumentError(
                f"{path} holds no costs of nodes: {error!r}",
                next_step="penstock simulate --save-costs writes such a file",
            ) from None

    @classmethod
    def of_steps(cls, traced: Sequence[Any], seconds: float) -> Costs:
        """What some steps took.

        Args:
            traced: their StepStats messages; medians count.
            seconds: how long such a step takes when nobody traces it, on one thread.

        """
        steps = [_totals(stats) for stats in traced]
        names = dict.fromkeys(name for step in steps for name in step)
        nodes = {
            name: _summed_up([step[name] for step in steps if name in step], len(steps))
            for name in names
        }
        traced_costs = cls(nodes)
        activations, computed = traced_costs.activations, traced_costs.seconds
        return cls(nodes, max(0.0, (seconds - computed) / activations) if activations else 0.0)

    @property
    def activations(self) -> float:
        """How many live activations a step has."""
        return sum(cost.count for cost in self.nodes.values())

    @property
    def seconds(self) -> float:
        """What all of them take, one after the other."""
        computed = sum(cost.seconds * cost.count for cost in self.nodes.values())
        return computed + self.overhead * self.activations

    def spread(self, seconds: float) -> Costs:
        """The same costs, but for a step that takes so long, each by as much more or less."""
        factor = seconds / self.seconds if self.seconds else 1.0
        nodes = {
            name: replace(cost, seconds=cost.seconds * factor) for name, cost in self.nodes.items()
        }
        return Costs(nodes, self.overhead * factor)


def measure(
    run: Callable[[RunOptions, RunMetadata | None], object],
    run_whole: Callable[[], object] | None = None,
    *,
    steps: int = 5,
) -> Costs:
    """What nodes cost in a request.

    Args:
        run: runs it once, on one device and one thread of the dataflow tier; for example
            ``lambda options, metadata: session.run(fetches, feeds, options, metadata)``.
        run_whole: does so as the tasks will, on the compiled tier; what it takes is spread over the
            nodes, since compiled steps have none.  Run as often as ``run``.  None if the tasks have
            the dataflow tier as well.
        steps: how many steps are traced, and how many are timed untraced.

    """
    costs = _measured_by_node(run, steps)
    return costs if run_whole is None else costs.spread(_whole_seconds(run_whole, steps))


def _whole_seconds(run: Callable[[], object], steps: int) -> float:
    """What a step takes when it has settled."""
    seconds = []
    for _ in range(2 * steps + 1):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[-steps:])


def _measured_by_node(run: Callable[[RunOptions, RunMetadata | None], object], steps: int) -> Costs:
    run(RunOptions(), None)
    options = RunOptions(trace_level=TraceLevel.FULL_TRACE)
    found, seconds = [], []
    for _ in range(steps):
        metadata = RunMetadata()
        run(options, metadata)
        found.append(metadata.step_stats)
        start = time.perf_counter()
        run(RunOptions(), None)
        seconds.append(time.perf_counter() - start)
    return Costs.of_steps(found, statistics.median(seconds))


@dataclass(slots=True)
class _Total:
    """What one node did in one step."""

    seconds: float = 0.0
    count: int = 0
    outputs: dict[int, int] = field(default_factory=dict)


def _totals(stats: Any) -> dict[str, _Total]:
    found: defaultdict[str, _Total] = defaultdict(_Total)
    for device in stats.dev_stats:
        for record in device.node_stats:
            total = found[record.node_name]
            total.seconds += record.op_end_rel_nanos * 1e-9
            total.count += 1
            for output in record.output:
                size = output.tensor_description.allocation_description.requested_bytes
                total.outputs[output.slot] = max(total.outputs.get(output.slot, 0), size)
    return found


def _summed_up(totals: Sequence[_Total], steps: int) -> NodeCost:
    seconds = statistics.median(total.seconds / total.count for total in totals)
    count = sum(total.count for total in totals) / steps
    last = max((slot for total in totals for slot in total.outputs), default=-1)
    sizes = (_largest(total.outputs.get(slot, 0) for total in totals) for slot in range(last + 1))
    return NodeCost(seconds, count, tuple(sizes))


def _largest(sizes: Iterable[int]) -> int:
    return max(sizes)


def _node_cost(content: Mapping[str, Any]) -> NodeCost:
    outputs = tuple(int(_not_negative(size)) for size in content["outputs"])
    return NodeCost(_not_negative(content["seconds"]), _not_negative(content["count"]), outputs)


def _not_negative(number: Any) -> float:
    if not 0 <= float(number) < float("inf"):
        raise ValueError(number)
    return float(number)


def _read(path: str) -> bytes:
    with file_errors(path):
        return FileSystem().read(path)
