"""Check that a benchmark graph's answer changes whenever the result of a large node does.

    python -m benchmarks.sensitivity [NAME ...] [--share 0.02]

Otherwise an engine could get a large node wrong, and nobody would notice.  A node is large if it
takes a fiftieth of the time that all nodes take; and so are all nodes of one op, taken together.
Of what is large and gives floating-point numbers, each x is made x + (|x| + x cos 1000x) / 5, by
nodes right behind it, also in loops; then the answers that ``compare`` looks at must no longer
agree.  What only others wait for need not matter.  Functions are put where they are called before,
but not in graphs with variables, of whose functions only what they give is changed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

import penstock as ps
from benchmarks.cases import Case, agree, all_cases

#: Large is what takes this part of the time.
SHARE: Final = 0.02
#: How much is changed, and how differently.  The size of x moves sums, the cosine changes the order
#: of numbers, and what is no multiple of x is seen where the scale of numbers is not.
_PART, _SPREAD = 0.2, 1000.0
_FLOATS: Final = {ps.dtypes.float32.number: np.float32, ps.dtypes.float64.number: np.float64}
#: How many steps are timed.
_TIMES: Final = 3
#: How long a changed graph may take: a loop may be another now.
_TIMEOUT: Final = 120_000
#: What computes nothing, and what gives places or tokens: arrays of tensors, say, or variables.
_NO_RESULTS: Final = re.compile(
    "Const|Placeholder|Identity|Switch|Merge|Enter|Exit|NextIteration|Var|Assign|Ref|TensorArray"
    "|.*(Apply|Scatter)"
)
#: What is there for what it does.
_CHANGES: Final = re.compile(".*(Apply|Scatter|Assign|Enqueue)|TensorArray.*Write")
_OFF: Final = ps.RewriterConfig.OFF
_LOWERING: Final = ps.GraphOptions(
    optimizer_options=ps.OptimizerOptions(opt_level=ps.OptimizerOptions.L0),
    rewrite_options=ps.RewriterConfig(
        function_optimization=ps.RewriterConfig.ON,
        constant_folding=_OFF,
        common_subgraph_elimination=_OFF,
        arithmetic_optimization=_OFF,
        dependency_optimization=_OFF,
        remapping=_OFF,
    ),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A graph, and what to ask of it."""

    graph: Any
    feeds: Mapping[str, Any]
    fetches: list[str]
    init_op: str
    steps: int
    devices: int

    @classmethod
    def of(cls, case: Case) -> Asked:
        """A case with its functions opened, if it has some and no variables."""
        graph = ps.load_graph_def(case.graph_bytes)
        feeds = dict(zip(case.feeds, case.fed(), strict=True))
        asked = cls(graph, feeds, case.fetches, case.init_op, case.steps, case.devices)
        return asked._lowered() if graph.library.function and not case.init_op else asked

    def _lowered(self) -> Asked:
        """The same without functions; what is fed and fetched are nodes of their own there."""
        (done,) = self.traced(_LOWERING)
        (graph,) = done.partition_graphs
        feeds, fetches = {}, {}
        for node in graph.node:
            # Names of Penstock's own begin with an underscore, which is for nobody else.
            node.name = node.name.removeprefix("_")
            node.attr.pop("_class", None)  # may name what is gone
            for index, given in enumerate(node.input):
                node.input[index] = re.sub(r"^(\^?)_", r"\1", given)
            name, _, place = node.name.rpartition("_")
            if node.op == "_Arg":
                feeds[f"{node.name}:0"] = self.feeds[re.sub(r"^arg_(.*)_(\d+)$", r"\1:\2", name)]
                node.op, dtype = "Placeholder", node.attr["T"].type
                node.attr.clear()
                node.attr["dtype"].type = dtype
            elif node.op == "_Retval":
                fetches[int(place)] = f"{node.name}:0"
                node.op = "Identity"
                del node.attr["index"]
        named = [fetches[place] for place in sorted(fetches)]
        return replace(self, graph=graph, feeds=feeds, fetches=named)

    def answers(self) -> list[Any]:
        """What ``compare`` looks at; raises OpError, also if a changed loop has no end."""
        options = ps.RunOptions(timeout_in_ms=_TIMEOUT)
        with self._session(ps.GraphOptions.nothing()) as session:
            return [
                np.asarray(value)
                for _ in range(self.steps)
                for value in session.run(self.fetches, self.feeds, options)
            ]

    def traced(self, graph_options: ps.GraphOptions, steps: int = 1) -> list[ps.RunMetadata]:
        """What ran in some steps, and how long."""
        options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE, output_partition_graphs=True)
        done = [ps.RunMetadata() for _ in range(steps)]
        with self._session(graph_options) as session:
            for metadata in done:
                session.run(self.fetches, self.feeds, options, metadata)
        return done

    def _session(self, graph_options: ps.GraphOptions) -> ps.Session:
        config = ps.Config(
            device_count={"CPU": self.devices}, graph_options=graph_options, accelerate=False
        )
        session = ps.Session(self.graph, config=config)
        if self.init_op:
            session.run(self.init_op)
        return session

    def changed(self, results: Sequence[Result]) -> Asked:
        """The same with other numbers in some places."""
        graph = type(self.graph)()
        graph.CopyFrom(self.graph)
        instead = {}
        for result in results:
            instead[f"{result.node}:{result.slot}"] = result.changed
            if result.slot == 0:
                instead[result.node] = result.changed
        for node in graph.node:
            for place, given in enumerate(node.input):
                if given in instead:
                    node.input[place] = instead[given]
        for result in results:
            _add_change(graph, result)
        return replace(self, graph=graph)


class Result(NamedTuple):
    """Numbers that a node gives."""

    node: str
    slot: int
    #: The number of their type.
    dtype: int
    device: str

    @property
    def changed(self) -> str:
        """The name of the node that gives others."""
        return f"{self.node}/changed_{self.slot}"


def _add_change(graph: Any, result: Result) -> None:
    """The nodes of x + part (|x| + x cos (spread x))."""
    old, new = f"{result.node}:{result.slot}", result.changed

    def node(name: str, op: str, *inputs: str) -> str:
        made = graph.node.add(name=name, op=op, input=inputs, device=result.device)
        made.attr["T"].type = result.dtype
        return name

    def constant(name: str, value: float) -> str:
        # In a loop it must come once in each iteration.
        made = graph.node.add(name=name, op="Const", device=result.device)
        made.input.append(f"^{result.node}")
        made.attr["dtype"].type = made.attr["value"].tensor.dtype = result.dtype
        made.attr["value"].tensor.tensor_content = _FLOATS[result.dtype](value).tobytes()
        made.attr["value"].tensor.tensor_shape.SetInParent()
        return name

    spread = node(f"{new}/spread", "Mul", old, constant(f"{new}/how_differently", _SPREAD))
    waves = node(f"{new}/waves", "Mul", old, node(f"{new}/cos", "Cos", spread))
    both = node(f"{new}/both", "AddV2", waves, node(f"{new}/size", "Abs", old))
    change = node(f"{new}/change", "Mul", both, constant(f"{new}/how_much", _PART))
    node(new, "AddV2", old, change)


def large_results(asked: Asked, share: float = SHARE) -> dict[str, list[Result]]:
    """What gives numbers that somebody reads, by the name of a large node, or by a large op."""
    nodes = _used(asked)
    read = {given for node in nodes.values() for given in node.input}
    steps = [
        [record for device in done.step_stats.dev_stats for record in device.node_stats]
        for done in asked.traced(ps.GraphOptions.nothing(), _TIMES)
    ]
    seconds = _least([_seconds(records) for records in steps])
    units: dict[str, dict[Result, None]] = defaultdict(dict)
    taken: Counter[str] = Counter()
    for name, time in seconds.items():
        if name in nodes and not _NO_RESULTS.match(nodes[name].op):
            taken[name] += time
            taken[f"all {nodes[name].op}"] += time
    for record in steps[0]:
        node = nodes.get(record.node_name)
        for output in record.output if node is not None and record.node_name in taken else ():
            name, dtype = f"{node.name}:{output.slot}", output.tensor_description.dtype
            if dtype in _FLOATS and (name in read or (output.slot == 0 and node.name in read)):
                result = Result(node.name, output.slot, dtype, node.device)
                units[node.name][result] = units[f"all {node.op}"][result] = None
    least = share * sum(seconds.values())
    return {unit: list(results) for unit, results in units.items() if taken[unit] >= least}


def _used(asked: Asked) -> dict[str, Any]:
    """The nodes whose results come, by way of others, to an answer or a change of state."""
    nodes = {node.name: node for node in asked.graph.node}
    used: dict[str, Any] = {}
    todo = [name.partition(":")[0] for name in asked.fetches]
    todo += [node.name for node in asked.graph.node if _CHANGES.match(node.op)]
    while todo:
        name = todo.pop()
        if name not in used:
            used[name] = nodes[name]
            todo += [given.partition(":")[0] for given in used[name].input if given[0] != "^"]
    return used


def _seconds(records: Sequence[Any]) -> Counter[str]:
    """What each node took in a step."""
    taken: Counter[str] = Counter()
    for record in records:
        taken[record.node_name] += record.all_end_rel_nanos
    return taken


def _least(counted: Sequence[Counter[str]]) -> dict[str, int]:
    """The least of several times: the first step takes memory, and others may be interrupted."""
    return {name: min(times[name] for times in counted) for name in counted[0]}


def unnoticed(asked: Asked, share: float = SHARE) -> tuple[list[str], int]:
    """What is large and whose change the answers do not show, and how much is large."""
    right, large = asked.answers(), large_results(asked, share)
    silent = [
        unit for unit, results in large.items() if agree(asked.changed(results).answers(), right)
    ]
    return silent, len(large)


def main() -> None:
    """Check and print, graph by graph; the exit status says whether all changes are noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="graphs to check; all, if there are none")
    parser.add_argument("--share", type=float, default=SHARE, help="of the time, for a large node")
    args = parser.parse_args()
    failed = 0
    for case in all_cases(args.names):
        silent, count = unnoticed(Asked.of(case), args.share)
        failed += bool(silent)
        told = f"NOT NOTICED: {', '.join(silent)}" if silent else "all noticed"
        print(f"{case.name:24} {count:4} large nodes and ops, {told}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
