"""Graphs of which some nodes are compiled and some are not."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import pytest

from penstock.graph.graph import Node
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.runtime.compiler import compile_regions

_can_compile = compile_regions.can_be_line


def leave_some_out(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Have the compiler refuse nodes by chance: one of three, or of ten, or of thirty."""
    rarity = random.Random(seed).choice([3, 10, 30])

    def can_compile(node: Node, kernel: BoundKernel) -> bool:
        # By name, since a node is asked about more than once.
        chance = random.Random(f"{seed} {node.name}")
        return _can_compile(node, kernel) and chance.randrange(rarity) > 0

    monkeypatch.setattr(compile_regions, "can_be_line", can_compile)


@contextlib.contextmanager
def leaving_some_out(seed: int | None) -> Iterator[None]:
    """The same for a while; for no seed, nothing is left out."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        if seed is not None:
            leave_some_out(monkeypatch, seed)
        yield
