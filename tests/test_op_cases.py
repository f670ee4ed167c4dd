"""Single ops and small graphs give TensorFlow's own answers."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

import pytest

import penstock as ps
from cases_src.casebook import numbered
from penstock.kernels.native import program
from penstock.kernels.native.rules import RULES
from penstock.passes.offload import write_model
from penstock.passes.offload.heavy_ops import HEAVY
from support.corpus import run_case
from support.native import ALL, JIT, watched
from support.op_cases import OpCase, all_op_cases
from support.surroundings import python_functions  # noqa: F401

#: Requests are never compiled, but for loops.
UNCOMPILED = ps.Limits(uncompiled_steps=1 << 20)
SOURCES = Path(__file__).parent / "cases_src"
FAMILIES = sorted({path.stem for path in SOURCES.glob("*.py")} - {"__init__", "casebook"})


@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("case", all_op_cases(), ids=str)
def test_answers_are_tensorflows(case: OpCase, tier: ps.Tier) -> None:
    """Values, types, shapes and errors are TensorFlow's, on both tiers."""
    checked = tier is ps.Tier.DATAFLOW
    config = ps.Config(
        tier=tier, check_outputs=checked, check_graphs=checked, device_count=case.device_count
    )
    with ps.Session(case.graph_bytes, config=config) as session:
        run_case(session, case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", all_op_cases()[::3], ids=str)
def test_steps_before_it_is_compiled_give_tensorflows_answers(case: OpCase) -> None:
    """Node after node on the calling thread, where a graph is straight; each op has many cases."""
    config = ps.Config(limits=UNCOMPILED, device_count=case.device_count)
    with ps.Session(case.graph_bytes, config=config) as session:
        run_case(session, case)


def with_one_of(ops: Iterable[str]) -> list[OpCase]:
    """Cases in whose graph one of some names stands."""
    names = [name.encode() for name in ops]
    graphs = [(case, case.graph_bytes) for case in all_op_cases()]
    return [case for case, graph in graphs if any(name in graph for name in names)]


def with_heavy_ops() -> list[OpCase]:
    """Cases that may have a region: all others run as they do elsewhere."""
    assert write_model  # its import has made the rules known
    return with_one_of(HEAVY)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", with_heavy_ops(), ids=str)
def test_regions_give_tensorflows_answers(case: OpCase) -> None:
    """What ONNX Runtime can compute, however little, it may; over fifty steps rounding adds up."""
    pytest.importorskip("onnxruntime")
    if case.family == "fifty_steps":
        pytest.skip("what differs by rounding is used to go on")
    with ps.Session(
        case.graph_bytes, config=ps.Config(limits=ps.Limits(region_products=0), check_graphs=True)
    ) as session:
        run_case(session, case)


def with_native_rules() -> list[OpCase]:
    """Cases that may have a native region: all others run as they do elsewhere."""
    assert program  # its import has made the rules known
    return with_one_of(RULES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Node")
@pytest.mark.parametrize("case", with_native_rules(), ids=str)
def test_native_regions_give_tensorflows_answers(case: OpCase) -> None:
    """What programs in C can compute, they may; over fifty steps rounding adds up."""
    if case.family == "fifty_steps":
        pytest.skip("what differs by rounding is used to go on")
    config = ps.Config(
        limits=ALL, graph_options=JIT, check_graphs=True, device_count=case.device_count
    )
    with watched(), ps.Session(case.graph_bytes, config=config) as session:
        run_case(session, case)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_was_recorded(family: str) -> None:
    """What stands in a family's source has been asked, and nothing else."""
    cases = importlib.import_module(f"cases_src.{family}").CASES
    recorded = [case.record["name"] for case in all_op_cases() if case.family == family]

    assert recorded == list(numbered(cases))
