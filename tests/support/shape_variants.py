"""The graphs of the op cases with other shapes promised for what is fed.

In:   the cases of ``tests/op_cases``.
Out:  for each case a few graphs, the same ones every time: the placeholders promise the shapes of
      what was fed, as they are, with some sizes left out, or with one size changed.
Not:  knows not which of them are refused; TensorFlow says it.

Most cases feed placeholders of unknown shapes, of which nothing follows; with these graphs the
rule of nearly every op is asked about full, partial and impossible shapes.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from typing import Any

#: Ways to change what a placeholder promises.
WAYS = ("full", "partial", "partial", "changed", "changed", "rank")
#: Small graphs show which op is meant.
_MAX_NODES = 12

#: One promise: sizes, of which some may be None; or None for an unknown rank.
Promise = list[int | None] | None


def variants(case: Any, nodes: Any) -> Iterator[dict[str, Promise]]:
    """What the placeholders of a case promise, by name; ``nodes`` are those of its graph."""
    fed = {name.partition(":")[0]: value.shape for name, value in _feeds(case).items()}
    inputs = [node.name for node in nodes if node.op == "Placeholder" and node.name in fed]
    if not inputs or len(nodes) > _MAX_NODES:
        return
    draw = random.Random(hashlib.sha256(str(case).encode()).hexdigest())
    for way in WAYS:
        changed = draw.choice(inputs)
        yield {
            name: _promise(draw, fed[name], way if name == changed or way != "changed" else "full")
            for name in inputs
        }


def _feeds(case: Any) -> dict[str, Any]:
    feeds: dict[str, Any] = case.feeds(case.steps[0])
    return feeds


def _promise(draw: random.Random, shape: tuple[int, ...], way: str) -> Promise:
    sizes: list[int | None] = list(shape)
    if way == "partial":
        if draw.random() < 0.2:
            return None
        return [None if draw.random() < 0.4 else size for size in sizes]
    if way == "changed" and sizes:
        place = draw.randrange(len(sizes))
        sizes[place] = (sizes[place] or 0) + draw.choice((-1, 1, 2))
        return [max(size or 0, 0) for size in sizes]
    if way in ("rank", "changed") and draw.random() < 0.5:
        return [*sizes, draw.choice((1, 2, 3))] if draw.random() < 0.5 else sizes[1:]
    return sizes
