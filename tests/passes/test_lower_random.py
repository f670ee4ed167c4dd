"""Random programs of functions, compared with the same programs in Python.

A program has a few numbers and some fuel, which loops burn, so that it ends.  Its functions
call each other, branch and loop; now and then they note a number, which is an effect that they
name (``control_ret``), and some nodes ask for a device.  However and wherever functions are run,
the results are Python's, and so are the notes: in their order if each waits for the one before,
and otherwise in any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.kernels.api.registry import kernel
from penstock.passes import lower, lowerable
from support.custom import custom_kernels
from support.functions import graph_def_with

NUMBERS = 3
ALL = NUMBERS + 1
TYPES = "|".join(["int32"] * ALL)
ARGS = ", ".join(f"a{i}: int32" for i in range(ALL))
RESULTS = ", ".join(f"r{i}: int32" for i in range(ALL))

#: Steps that may have effects; the last of their nodes has the step's name.
_EFFECTS = ("note", "if", "while", "call", "case")
#: What a node may ask for; most ask for nothing.
_PLACES = ("", "", " @/device:CPU:0", " @/device:CPU:1")

Numbers = list[int]
Run = Callable[[Numbers, Numbers], Numbers]


class Program:
    """Functions as text, each with the same function in Python."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.texts: list[str] = []
        #: Whether each effect waits for the one before, so that they come in Python's order.
        self.is_ordered = draw(st.booleans())
        self.main, self.run = self.function(3)

    def __repr__(self) -> str:
        return "\n\n".join([self.main, *self.texts])

    def pick(self, most: int = NUMBERS - 1) -> int:
        """A number up to and with ``most``."""
        return self.draw(st.integers(0, most))

    def function(self, depth: int) -> tuple[str, Run]:
        """A new function's name, and what it does: (numbers, notes) to numbers."""
        lines, at = [], [f"a{i}" for i in range(ALL)]
        steps: list[Run] = []
        named: list[str] = []
        last = ""
        for number in range(self.draw(st.integers(1, 3))):
            kinds = ["add", "constant", "note", "swap"]
            kinds += ["if", "while", "call", "if", "while", "case"] if depth else []
            kind = self.draw(st.sampled_from(kinds))
            made, step = getattr(self, f"_{kind}")(f"s{number}", at, depth)
            if kind in _EFFECTS:
                made[-1] = made[-1].removesuffix(")") + f"{last})"
                last = f", ^s{number}" if self.is_ordered else ""
                named.append(f"control s{number} = s{number}")
            lines += [line + self.draw(st.sampled_from(_PLACES)) for line in made]
            steps.append(step)
        name = f"F{len(self.texts)}"
        returns = [f"return r{i} = {endpoint}" for i, endpoint in enumerate(at)]
        head = f"{name}({ARGS}) -> ({RESULTS}) stateful"
        self.texts.append("\n".join([head, *lines, *returns, *named]))

        def run(numbers: Numbers, notes: Numbers) -> Numbers:
            for step in steps:
                numbers = step(numbers, notes)
            return numbers

        return name, run

    def _add(self, name: str, at: list[str], _depth: int) -> tuple[list[str], Run]:
        target, one, other = self.pick(), self.pick(), self.pick()
        lines = [
            f"{name}_sum = Add[T=int32]({at[one]}, {at[other]})",
            f"{name}_most = Const[value=255; dtype=int32]",
            f"{name} = BitwiseAnd[T=int32]({name}_sum:z, {name}_most:output)",
        ]
        at[target] = f"{name}:z"
        return lines, lambda n, _: put(n, target, (n[one] + n[other]) & 255)

    def _constant(self, name: str, at: list[str], _depth: int) -> tuple[list[str], Run]:
        target, value = self.pick(), self.pick(9)
        at[target] = f"{name}:output"
        return [f"{name} = Const[value={value}; dtype=int32]"], lambda n, _: put(n, target, value)

    def _swap(self, _name: str, at: list[str], _depth: int) -> tuple[list[str], Run]:
        one, other = self.pick(), self.pick()
        at[one], at[other] = at[other], at[one]
        return [], lambda n, _: put(put(n, one, n[other]), other, n[one])

    def _note(self, name: str, at: list[str], _depth: int) -> tuple[list[str], Run]:
        target = self.pick()
        line = f"{name} = Note({at[target]})"
        at[target] = f"{name}:y"

        def run(numbers: Numbers, notes: Numbers) -> Numbers:
            notes.append(numbers[target])
            return numbers

        return [line], run

    def _if(self, name: str, at: list[str], depth: int) -> tuple[list[str], Run]:
        one, other = self.pick(), self.pick()
        (then, run_then), (els, run_else) = self.function(depth - 1), self.function(depth - 1)
        lines = [
            f"{name}_p = Less[T=int32]({at[one]}, {at[other]})",
            f"{name} = If[Tcond=bool; Tin={TYPES}; Tout={TYPES}; then_branch={then}; "
            f"else_branch={els}]({name}_p:z, {', '.join(at)})",
        ]
        at[:] = [f"{name}:output:{i}" for i in range(ALL)]
        return lines, lambda n, notes: (run_then if n[one] < n[other] else run_else)(n, notes)

    def _case(self, name: str, at: list[str], depth: int) -> tuple[list[str], Run]:
        which, made = self.pick(), [self.function(depth - 1) for _ in range(1 + self.pick(2))]
        branches = "|".join(called for called, _ in made)
        line = (
            f"{name} = Case[Tin={TYPES}; Tout={TYPES}; branches={branches}]"
            f"({at[which]}, {', '.join(at)})"
        )
        at[:] = [f"{name}:output:{i}" for i in range(ALL)]

        def run(numbers: Numbers, notes: Numbers) -> Numbers:
            return made[min(numbers[which], len(made) - 1)][1](numbers, notes)

        return [line], run

    def _while(self, name: str, at: list[str], depth: int) -> tuple[list[str], Run]:
        body, run_body = self.function(depth - 1)
        one, other = self.pick(), self.pick(NUMBERS)
        turn, goes_on = f"Turn{len(self.texts)}", f"Goes{len(self.texts)}"
        results = [f"call:output:{i}" for i in range(NUMBERS)]
        if other < NUMBERS and self.draw(st.booleans()):
            results[other] = f"a{other}"  # stays as it is
        kept = [i for i, text in enumerate(results) if text.startswith("a")]
        returns = "\n".join(f"return r{i} = {text}" for i, text in enumerate(results))
        self.texts.append(f"""{goes_on}({ARGS}) -> (go: bool)
        zero = Const[value=0; dtype=int32]
        some = Less[T=int32](zero:output, a{NUMBERS})
        less = LessEqual[T=int32](a{one}, a{other})
        both = LogicalAnd(some:z, less:z)
        return go = both:z""")
        self.texts.append(f"""{turn}({ARGS}) -> ({RESULTS}) stateful
        call = StatefulPartitionedCall[Tin={TYPES}; Tout={TYPES}; f={body}]({_args()})
        one = Const[value=1; dtype=int32]
        less = Sub[T=int32](call:output:{NUMBERS}, one:output)
        {returns}
        return r{NUMBERS} = less:z
        control call = call""")
        line = f"{name} = While[T={TYPES}; cond={goes_on}; body={turn}]({', '.join(at)})"
        at[:] = [f"{name}:output:{i}" for i in range(ALL)]

        def run(numbers: Numbers, notes: Numbers) -> Numbers:
            while numbers[NUMBERS] > 0 and numbers[one] <= numbers[other]:
                found = run_body(numbers, notes)
                for index in kept:
                    found = put(found, index, numbers[index])
                numbers = put(found, NUMBERS, found[NUMBERS] - 1)
            return numbers

        return [line], run

    def _call(self, name: str, at: list[str], depth: int) -> tuple[list[str], Run]:
        called, run = self.function(depth - 1)
        line = f"{name} = {called}({', '.join(at)})"
        if self.draw(st.booleans()):
            facts = f"Tin={TYPES}; Tout={TYPES}; f={called}"
            line = f"{name} = StatefulPartitionedCall[{facts}]({', '.join(at)})"
            at[:] = [f"{name}:output:{i}" for i in range(ALL)]
        else:
            at[:] = [f"{name}:r{i}" for i in range(ALL)]
        return [line], run


def _args() -> str:
    return ", ".join(f"a{i}" for i in range(ALL))


def put(numbers: Numbers, index: int, value: int) -> Numbers:
    """The numbers with one changed."""
    return [*numbers[:index], value, *numbers[index + 1 :]]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Any program."""
    return Program(draw)


OFF = ps.RewriterConfig(function_optimization=ps.RewriterConfig.OFF)
ONLY = ps.RewriterConfig(
    function_optimization=ps.RewriterConfig.ON,
    constant_folding=ps.RewriterConfig.OFF,
    common_subgraph_elimination=ps.RewriterConfig.OFF,
    arithmetic_optimization=ps.RewriterConfig.OFF,
    dependency_optimization=ps.RewriterConfig.OFF,
    remapping=ps.RewriterConfig.OFF,
)
CONFIGS = {
    "called": {"graph_options": ps.GraphOptions(rewrite_options=OFF)},
    "inlined": {},
    "dataflow": {"tier": ps.Tier.DATAFLOW, "ready_order_seed": 5},
    "only lowered": {
        "tier": ps.Tier.DATAFLOW,
        "ready_order_seed": 6,
        "graph_options": ps.GraphOptions(rewrite_options=ONLY),
    },
    "compiled": {},
    "two devices": {"device_count": {"CPU": 2}},
    "two devices, dataflow": {
        "tier": ps.Tier.DATAFLOW,
        "ready_order_seed": 7,
        "device_count": {"CPU": 2},
    },
    "two devices, called": {
        "device_count": {"CPU": 2},
        "disable_functional_ops_lowering": True,
        "graph_options": ps.GraphOptions(rewrite_options=OFF),
    },
    "two devices, called, dataflow": {
        "tier": ps.Tier.DATAFLOW,
        "ready_order_seed": 8,
        "device_count": {"CPU": 2},
        "disable_functional_ops_lowering": True,
        "graph_options": ps.GraphOptions(rewrite_options=OFF),
    },
}


@pytest.mark.parametrize("way", CONFIGS)
@given(program=programs(), values=st.lists(st.integers(0, 5), min_size=NUMBERS, max_size=NUMBERS))
def test_programs_do_what_they_do_in_python(way: str, program: Program, values: list[int]) -> None:
    """Results and effects, by calls, inlined, and lowered, on both tiers and on two devices."""
    noted: list[int] = []
    expected_notes: list[int] = []
    expected = program.run([*values, 4], expected_notes)

    def note(x: Any) -> Any:
        noted.append(int(x))
        return x

    graph = "\n".join(f"x{i} = Placeholder[dtype=int32]" for i in range(ALL))
    inputs = ", ".join(f"x{i}" for i in range(ALL))
    call = f"{program.main}({inputs})"
    if way.startswith("two devices"):
        facts = f"Tin={TYPES}; Tout={TYPES}; f={program.main}"
        call = f"StatefulPartitionedCall[{facts}]({inputs}) @/device:CPU:1"
    proto = graph_def_with(f"{graph}\nr = {call}", "\n\n".join(program.texts))
    asks = (lambda _: True) if way not in ("called", "inlined") else lower.asks
    with (
        custom_kernels("Note(x: int32) -> (y: int32) stateful"),
        mock.patch.object(lower, "asks", asks),
        mock.patch.object(lowerable, "asks", asks),
    ):
        kernel("Note")(lambda _: note)
        config = ps.Config(check_outputs=True, check_graphs=True, **CONFIGS[way])  # type: ignore[arg-type]
        with ps.Session(proto, config=config) as session:
            feeds = {f"x{i}:0": np.int32(v) for i, v in enumerate([*values, 4])}
            found = session.run([f"r:{i}" for i in range(ALL)], feeds)

    assert [int(x) for x in found] == expected
    if program.is_ordered:
        assert noted == expected_notes
    else:
        assert sorted(noted) == sorted(expected_notes)
