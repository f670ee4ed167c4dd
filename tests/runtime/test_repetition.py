"""The same request gives the same bits, whatever the machine has to do meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import penstock as ps
from benchmarks.repeat import OWN_BITS, verdict
from support.sketch import sketch

#: Sums whose last bits depend on how they are added up: products by rows and by columns, side by
#: side, of a vector, in a batch; a chain that is cut into pieces; reductions.
TEXT = """
    x = Placeholder() dtype=float32
    wide = Placeholder() dtype=float32
    a = MatMul(x, wide)
    b = MatMul(wide, x)
    both = MatMul(a, a)
    tanh = Tanh(both)
    scaled = Mul(tanh, tanh)
    chain = Exp(scaled)
    down = Const() value=[0]
    sums = Sum(chain, down)
    norm = L2Loss(b)
    inverse = MatrixInverse(both)
    row = Const() value=[1, 300]
    flat = Reshape(sums, row)
    product = MatMul(flat, chain)
"""
FETCHES = ["a:0", "b:0", "sums:0", "norm:0", "inverse:0", "product:0"]


@pytest.fixture
def _busy_machine() -> Iterator[None]:
    """Another process that takes a core."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    other.kill()
    other.wait()


@pytest.mark.usefixtures("_busy_machine")
def test_steps_repeat_bit_for_bit() -> None:
    """On both tiers, with one thread or two, in the first step and in tuned ones."""
    rng = np.random.default_rng(0)
    feeds = {
        "x:0": rng.standard_normal((300, 500), np.float32),
        "wide:0": rng.standard_normal((500, 300), np.float32),
    }
    found = set()
    for tier in ps.Tier:
        for threads in (1, 2):
            config = ps.Config(tier=tier, inter_op_parallelism_threads=threads)
            with ps.Session(sketch(TEXT), config=config) as session:
                for _ in range(8):
                    results = session.run(FETCHES, feeds)
                    found.add(b"".join(array.tobytes() for array in results))
    assert len(found) == 1


def test_the_check_of_the_benchmark_graphs_tells_what_differs() -> None:
    """Steps of one setting must be equal, and so must settings but for the optimiser's bits."""
    assert verdict({"1 thread": ["a"] * 3, "2 threads": ["a"] * 3}) == ""
    assert "2 answers in 3 steps, 1 thread" in verdict({"1 thread": ["a", "b", "a"]})
    assert "differs" in verdict({"1 thread": ["a"], "2 threads": ["b"]})
    assert verdict({"1 thread": ["a"], **{name: ["b"] for name in OWN_BITS}}) == ""
