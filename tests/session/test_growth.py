"""Loading, preparing and running take work in proportion to the graph.

Work is counted, not timed: a further node must not take more in a graph of many than in one
of few.  Long texts are cut into functions early here, since what a function costs must not depend
on how much is around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import builder
from penstock.builder import ops
from penstock.session.fetches import FetchPlan
from support.counted_work import counted_work
from support.sampling import sampled

#: What is fed and what is fetched of a graph of about so many nodes; what initialises it.
Built = tuple[Mapping[Any, Any], Sequence[Any], Sequence[Any]]

_SIZES = (40, 120, 360)
#: Some names get longer, and are read in more pieces.
_ALLOWED = 1.035
_ONES = np.ones(4, np.float32)
_LIMITS = ps.Limits(statements=5)


def _placeholder() -> Any:
    return builder.placeholder("float32", [4])


def _chain(size: int) -> Built:
    y = x = _placeholder()
    for _ in range(size):
        y = ops.add_v2(y, x)
    return {x: _ONES}, [y], []


def _wide(size: int) -> Built:
    x = _placeholder()
    return {x: _ONES}, [ops.add_n([ops.mul(x, float(i)) for i in range(size)])], []


def _unpacked(size: int) -> Built:
    x = builder.placeholder("float32", [size])
    parts = ops.unpack(x, size)
    return {x: np.ones(size, np.float32)}, [ops.add_n([ops.neg(part) for part in parts])], []


def _fed_and_fetched(size: int) -> Built:
    given = [_placeholder() for _ in range(size)]
    return dict.fromkeys(given, _ONES), [ops.neg(x) for x in given], []


def _fetched_everywhere(size: int) -> Built:
    y = x = _placeholder()
    found = [y := ops.maximum(y, x) for _ in range(size)]
    return {x: _ONES}, found, []


def _constants(size: int) -> Built:
    y = x = _placeholder()
    for i in range(size):
        y = ops.mul(y, builder.constant(_ONES * (i + 2)))
    return {x: _ONES}, [y], []


def _folded(size: int) -> Built:
    x = _placeholder()
    parts = [ops.mul(x, ops.tanh(builder.constant(_ONES * i))) for i in range(size)]
    return {x: _ONES}, [ops.add_n(parts)], []


def _equal(size: int) -> Built:
    x = _placeholder()
    return {x: _ONES}, [ops.add_n([ops.tanh(x) for _ in range(size)])], []


def _waiting(size: int) -> Built:
    x = _placeholder()
    with builder.control_dependencies([ops.tanh(x) for _ in range(size)]):
        return {x: _ONES}, [ops.neg(x)], []


def _branches(size: int) -> Built:
    y = x = builder.placeholder("float32", [])
    for _ in range(size // 4):
        y = builder.cond(y > 0.0, lambda: y - 1.0, lambda: y + 1.0)  # noqa: B023  (called at once)
    return {x: np.float32(0.5)}, [y], []


def _branch_of_many_results(size: int) -> Built:
    x = _placeholder()
    found = builder.cond(
        ops.sum(x, 0) > 0.0,
        lambda: [x * float(i) for i in range(size // 4)],
        lambda: [x + float(i) for i in range(size // 4)],
    )
    return {x: _ONES}, [ops.add_n(list(found))], []


def _loops(size: int) -> Built:
    y = x = builder.placeholder("float32", [])
    for _ in range(size // 2):
        _, y = builder.while_loop(
            lambda i, _: i < 2, lambda i, y: (i + 1, y * 0.5), (builder.constant(0), y)
        )
    return {x: np.float32(0.5)}, [y], []


def _loop_of_many_variables(size: int) -> Built:
    x = builder.placeholder("float32", [])
    _, *found = builder.while_loop(
        lambda i, *_: i < 2,
        lambda i, *values: (i + 1, *[value * 0.5 for value in values]),
        (builder.constant(0), *[x + float(i) for i in range(size // 4)]),
    )
    return {x: np.float32(0.5)}, [ops.add_n(found)], []


def _variables(size: int) -> Built:
    y = x = _placeholder()
    made = [builder.Variable(_ONES * 0.5, name=f"v{i}") for i in range(size // 2)]
    for variable in made:
        y = y * variable
    return {x: _ONES}, [y], [variable.initializer for variable in made]


def _queued(size: int) -> Built:
    x = _placeholder()
    queue = ops.fifo_queue_v2(component_types=["float32"], capacity=-1)
    last: list[Any] = []
    for _ in range(size):
        with builder.control_dependencies(last):
            last = [ops.queue_enqueue_v2(queue, [x])]
    with builder.control_dependencies(last):
        return {x: _ONES}, [ops.queue_size_v2(queue)], []


def _on_two_devices(size: int) -> Built:
    y = x = _placeholder()
    for i in range(size // 2):
        with builder.device(f"/cpu:{i % 2}"):
            y = ops.add_v2(y, x)
    return {x: _ONES}, [y], []


_SHAPES: list[Callable[[int], Built]] = [
    _chain,
    _wide,
    _unpacked,
    _fed_and_fetched,
    _fetched_everywhere,
    _constants,
    _folded,
    _equal,
    _waiting,
    _branches,
    _branch_of_many_results,
    _loops,
    _loop_of_many_variables,
    _variables,
    _queued,
    _on_two_devices,
]


@pytest.mark.parametrize("shape", sampled(_SHAPES, every=4))
@pytest.mark.parametrize("tier", [ps.Tier.COMPILED, ps.Tier.DATAFLOW])
def test_a_node_of_a_large_graph_costs_what_one_of_a_small_one_does(
    shape: Callable[[int], Built], tier: ps.Tier
) -> None:
    """To load, to prepare and to run: a further node takes as much work among many as among few."""
    _work(shape, _SIZES[0], tier)  # what is imported and looked up for the first time
    few, some, many = (_work(shape, size, tier) for size in _SIZES)

    for stage in ("load", "first step", "step", "callable"):
        first = (some[stage] - few[stage]) / (some["nodes"] - few["nodes"])
        then = (many[stage] - some[stage]) / (many["nodes"] - some["nodes"])
        assert then <= _ALLOWED * first + 1, stage


def _work(shape: Callable[[int], Built], size: int, tier: ps.Tier) -> dict[str, int]:
    """The work of each stage, and the number of nodes."""
    with builder.Graph().as_default() as graph:
        fed, fetched, initial = shape(size)
    data = graph.as_graph_def().SerializeToString()
    feeds, fetches = {x.name: value for x, value in fed.items()}, [y.name for y in fetched]
    nodes = len(graph.get_operations())
    config = ps.Config(
        device_count={"CPU": 2},
        inter_op_parallelism_threads=1,
        tier=tier,
        limits=_LIMITS,
        adaptive=False,
    )
    with counted_work() as load:
        session = ps.Session(data, config=config)
    with session:
        for initializer in initial:
            session.run(initializer.name)
        with counted_work() as first:
            session.run(fetches, feeds)
        with counted_work() as step:
            session.run(fetches, feeds)
        with counted_work() as callable_:
            session.make_callable(fetches, list(feeds))
    stages = {"load": load, "first step": first, "step": step, "callable": callable_}
    return {stage: count[0] for stage, count in stages.items()} | {"nodes": nodes}


def test_what_is_fed_is_looked_up() -> None:
    """Whether a fetch is fed is looked up: it is not compared with one feed after the other."""
    fetches = tuple(_Name(f"y{i}") for i in range(_SIZES[-1]))
    fed = tuple(_Name(f"x{i}") for i in range(_SIZES[-1]))
    with builder.Graph().as_default() as graph:
        _fed_and_fetched(1)
    plan = FetchPlan(fetches, (), list)
    _Name.comparisons = 0
    with ps.Session(graph) as session, pytest.raises(ps.errors.OpError):
        session._requests.prepared_for(plan, fed)

    assert _Name.comparisons < 2 * _SIZES[-1]


class _Name(str):
    """A name that counts how often one is compared with another."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        _Name.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("tier", [ps.Tier.COMPILED, ps.Tier.DATAFLOW])
def test_who_runs_a_graph_while_building_it_pays_for_what_is_new(tier: ps.Tier) -> None:
    """A node that is added and run takes as much work in a graph of many nodes as of few."""
    taken = []
    with builder.Graph().as_default() as graph:
        x = _placeholder()
        with ps.Session(graph, config=ps.Config(tier=tier, adaptive=False)) as session:
            for _ in range(_SIZES[1]):
                y = ops.neg(x)
                with counted_work() as work:
                    session.run(y, {x: _ONES})
                taken.append(work[0])
    few, many = taken[20:60], taken[-40:]

    assert sum(many) <= 1.01 * sum(few)


def test_what_is_added_to_a_graph_is_placed_as_in_a_new_one() -> None:
    """Of nodes added after a run, too, one that asks for a device that is not there is refused."""
    config = ps.Config(allow_soft_placement=False)
    with builder.Graph().as_default() as graph, ps.Session(graph, config=config) as s:
        x = _placeholder()
        assert (s.run(ops.neg(x), {x: _ONES}) == -1).all()
        with builder.device("/device:GPU:7"):
            lost = ops.abs(x)
        found = ops.tanh(x)
        with pytest.raises(ps.errors.InvalidArgumentError, match="GPU:7"):
            s.run(lost, {x: _ONES})
        with pytest.raises(ps.errors.InvalidArgumentError, match="GPU:7"):
            s.run(found, {x: _ONES})
