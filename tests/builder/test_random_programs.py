"""Programs of choices and loops mean the same as graphs as they do in plain Python.

``pytest --all`` tries 100 programs instead of 20, and ``HYPOTHESIS_PROFILE=thorough`` 2,000.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import penstock as ps
from builder.program_strategies import FEEDS, feeds, programs
from builder.programs import DTYPES, Place, Program, build, interpret
from penstock.builder import Graph, Tensor, device, placeholder
from support.native import ALL, JIT, watched
from support.tiers import leave_some_out

_DEVICES = ("/cpu:0", "/cpu:1")


def graph_of(program: Program, place: Place) -> tuple[Graph, list[Tensor]]:
    """The program as a graph, its feeds as placeholders of their names."""
    with Graph().as_default() as graph:
        fed = {name: placeholder(DTYPES[kind], (), name=name) for name, kind in FEEDS.items()}
        return graph, build(program, fed, place)


def somewhere(seed: int) -> Callable[[], AbstractContextManager[Any]]:
    """Puts every statement and every operation on one of two devices."""
    chance = random.Random(seed)
    return lambda: device(chance.choice(_DEVICES))


def check(program: Program, fed: dict[str, Any], place: Place, **config: Any) -> None:
    graph, results = graph_of(program, place)
    with np.errstate(all="ignore"):
        expected = interpret(program, fed)

    with ps.Session(graph, config=ps.Config(**config)) as session:
        got = session.run(results, {f"{name}:0": value for name, value in fed.items()})

    note(f"expected {expected}, got {got}")
    for value, wanted in zip(got, expected, strict=True):
        assert np.asarray(value).dtype == wanted.dtype
        np.testing.assert_array_equal(value, wanted)


@given(program=programs(), fed=feeds())
def test_a_graph_computes_what_its_program_does(program: Program, fed: dict[str, Any]) -> None:
    """Whatever choices and loops a program nests, its graph gives the same last bit."""
    check(program, fed, nullcontext)
    check(program, fed, nullcontext, tier=ps.Tier.DATAFLOW, check_outputs=True)


@given(program=programs(), fed=feeds())
def test_a_first_step_computes_what_its_program_does(program: Program, fed: dict[str, Any]) -> None:
    """Before anything but loops is compiled."""
    check(program, fed, nullcontext, limits=ps.Limits(uncompiled_steps=1))


@given(program=programs(), fed=feeds(), seed=st.integers(0, 1 << 16))
def test_no_order_of_ready_nodes_changes_a_value(
    program: Program, fed: dict[str, Any], seed: int
) -> None:
    """Shuffled, and with kernels handed to other threads, a graph gives the same."""
    check(
        program,
        fed,
        nullcontext,
        tier=ps.Tier.DATAFLOW,
        ready_order_seed=seed,
        inter_op_parallelism_threads=1 + seed % 3,
        offload_seconds=0.0,
    )


@given(program=programs(), fed=feeds(), seed=st.integers(0, 1 << 16))
def test_cutting_a_graph_over_devices_changes_no_value(
    program: Program, fed: dict[str, Any], seed: int
) -> None:
    """Operations on two devices, taken by chance, give what they give on one."""
    check(program, fed, somewhere(seed), device_count={"CPU": 2}, ready_order_seed=seed)


@given(program=programs(), fed=feeds(), seed=st.integers(0, 1 << 16))
def test_tiers_may_share_a_program(program: Program, fed: dict[str, Any], seed: int) -> None:
    """With any nodes left to the executor, and regions made of the others, nothing changes."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        leave_some_out(monkeypatch, seed)
        check(program, fed, nullcontext, ready_order_seed=seed)


@given(program=programs(), fed=feeds())
def test_native_regions_compute_what_a_program_does(program: Program, fed: dict[str, Any]) -> None:
    """Whatever programs in C can compute of it, loops included, they may."""
    with watched():
        check(program, fed, nullcontext, limits=ALL, graph_options=JIT)
