"""Random graphs of Switch, Merge and control edges, compared with tables of what is live.

A graph is made together with its answers: for each outcome of its three predicates, which
outputs are live, and their values.  No rule of the runtime is used for that, but the words of
TensorFlow's documentation: a node runs if all its inputs are live, a Merge if one is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.config import GraphOptions
from support.sketch import sketch
from support.tiers import leave_some_out

WORLDS = list(itertools.product([False, True], repeat=3))
X = 3
Table = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One output: its endpoint, where its node is done live, where it is live, its values."""

    name: str
    done: Table
    live: Table
    values: Table

    @property
    def node(self) -> str:
        return self.name.partition(":")[0]


class Maker:
    """A graph under construction, with its answers."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.rows = ["x = Placeholder() dtype=int32"]
        self.rows += [f"p{i} = Placeholder() dtype=bool" for i in range(3)]
        always = (True,) * len(WORLDS)
        self.ints = [Output("x:0", always, always, (X,) * len(WORLDS))]
        self.bools = [
            Output(f"p{i}:0", always, always, tuple(world[i] for world in WORLDS)) for i in range(3)
        ]
        #: Nodes without outputs.
        self.others: list[Output] = []

    def grow(self) -> None:
        """Add one node of any kind."""
        kinds = ["add", "neg", "less", "switch", "switch", "merge", "merge"]
        kinds += ["group", "trigger", "const"]
        getattr(self, f"_{self.draw(st.sampled_from(kinds))}")(f"n{len(self.rows)}")

    def _one(self, outputs: Sequence[Output]) -> Output:
        return outputs[self.draw(st.integers(0, len(outputs) - 1))]

    def _controls(self, most: int = 1) -> list[Output]:
        every = [*self.ints, *self.bools, *self.others]
        return [self._one(every) for _ in range(self.draw(st.integers(0, most)))]

    def _row(self, name: str, op: str, data: Sequence[Output], after: Sequence[Output]) -> None:
        inputs = [output.name for output in data]
        inputs += dict.fromkeys(f"^{output.node}" for output in after)
        attrs = " value=7" if op == "Const" else ""
        self.rows.append(f"{name} = {op}({', '.join(inputs)}){attrs}")

    def _live(self, data: Sequence[Output], after: Sequence[Output]) -> Table:
        tables = [output.live for output in data] + [output.done for output in after]
        return tuple(all(table[w] for table in tables) for w in range(len(WORLDS)))

    def _add(self, name: str) -> None:
        data, after = [self._one(self.ints), self._one(self.ints)], self._controls()
        live = self._live(data, after)
        values = tuple(a + b for a, b in zip(data[0].values, data[1].values, strict=True))
        self._row(name, "Add", data, after)
        self.ints.append(Output(f"{name}:0", live, live, values))

    def _neg(self, name: str) -> None:
        data, after = [self._one(self.ints)], self._controls()
        live = self._live(data, after)
        self._row(name, "Neg", data, after)
        self.ints.append(Output(f"{name}:0", live, live, tuple(-a for a in data[0].values)))

    def _less(self, name: str) -> None:
        data, after = [self._one(self.ints), self._one(self.ints)], self._controls()
        live = self._live(data, after)
        values = tuple(a < b for a, b in zip(data[0].values, data[1].values, strict=True))
        self._row(name, "Less", data, after)
        self.bools.append(Output(f"{name}:0", live, live, values))

    def _switch(self, name: str) -> None:
        value, pred, after = self._one(self.ints), self._one(self.bools), self._controls()
        done = self._live([value, pred], after)
        self._row(name, "Switch", [value, pred], after)
        for slot, side in enumerate([False, True]):
            live = tuple(d and p == side for d, p in zip(done, pred.values, strict=True))
            self.ints.append(Output(f"{name}:{slot}", done, live, value.values))

    def _merge(self, name: str) -> None:
        """A Merge of outputs of which never two are live."""
        first = self._one(self.ints)
        chosen, live = [first], first.live
        for _ in range(self.draw(st.integers(1, 3))):
            apart = [
                o for o in self.ints if not any(a and b for a, b in zip(o.live, live, strict=True))
            ]
            if apart:
                chosen.append(self._one(apart))
                live = tuple(a or b for a, b in zip(live, chosen[-1].live, strict=True))
        values, slots = [], []
        for world in range(len(WORLDS)):
            slot = next((i for i, output in enumerate(chosen) if output.live[world]), 0)
            slots.append(slot)
            values.append(chosen[slot].values[world])
        self._row(name, "Merge", chosen, self._controls())
        self.ints.append(Output(f"{name}:0", live, live, tuple(values)))
        self.ints.append(Output(f"{name}:1", live, live, tuple(slots)))

    def _group(self, name: str) -> None:
        after = self._controls(3)
        live = self._live([], after)
        self._row(name, "NoOp", [], after)
        self.others.append(Output(f"{name}:0", live, live, ()))

    def _trigger(self, name: str) -> None:
        always = (True,) * len(WORLDS)
        self._row(name, "ControlTrigger", [], self._controls(3))
        self.others.append(Output(f"{name}:0", always, always, ()))

    def _const(self, name: str) -> None:
        after = self._controls(2)
        live = self._live([], after)
        self._row(name, "Const", [], after)
        self.ints.append(Output(f"{name}:0", live, live, (7,) * len(WORLDS)))


@st.composite
def graphs(draw: st.DrawFn) -> Maker:
    """Graphs of up to twenty-five nodes."""
    made = Maker(draw)
    for _ in range(draw(st.integers(3, 25))):
        made.grow()
    return made


def check(made: Maker, **config: Any) -> None:
    """Fetch everything in every world."""
    outputs = [*made.ints[1:], *made.bools[3:]]
    if not outputs:
        return
    with ps.Session(sketch("\n".join(made.rows)), config=ps.Config(**config)) as session:
        call = session.make_callable([o.name for o in outputs], ["x", "p0", "p1", "p2"])
        for index, world in enumerate(WORLDS):
            got = call(X, *world)
            for output, value in zip(outputs, got, strict=True):
                seen = value.item() if np.shape(value) == () else None
                want = output.values[index] if output.live[index] else None
                assert seen == want, f"{output.name} in {world}"


@given(graphs())
def test_the_executor_gives_the_answers(made: Maker) -> None:
    """The dataflow tier does what the documentation says."""
    check(made, tier=ps.Tier.DATAFLOW, graph_options=GraphOptions.nothing())


@given(graphs())
def test_compiled_code_gives_the_answers(made: Maker) -> None:
    """So does the compiled tier, with checked kernels and with operators."""
    check(made, graph_options=GraphOptions.nothing())
    check(made, graph_options=GraphOptions.nothing(), check_outputs=True, check_graphs=True)


@given(graphs(), st.integers(0, 2**16))
def test_mixtures_give_the_answers(made: Maker, seed: int) -> None:
    """So do regions among nodes that the executor runs, in any order."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        leave_some_out(monkeypatch, seed)
        check(made, graph_options=GraphOptions.nothing(), ready_order_seed=seed)


@given(graphs())
def test_optimised_graphs_give_the_answers(made: Maker) -> None:
    """So does whatever the optimiser makes of it."""
    check(made, check_graphs=True)
