"""The shapes that TensorFlow infers for the graphs of the tests, and how ours are compared.

In:   ``tests/shapes/recorded.json.gz``, which ``tools/record_shapes.py`` makes.
Out:  contradictions, and how many of TensorFlow's sizes are known here.
Not:  infers nothing itself.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.core.shapes import TensorShape
from penstock.defs import attrs
from penstock.defs.codec import load_graph_def
from penstock.defs.schema import Message
from penstock.graph.import_graph_def import graph_from_def
from penstock.shapes.infer import Shapes, infer_shapes
from support.shape_variants import variants

_FILE = Path(__file__).parent.parent / "shapes" / "recorded.json.gz"


#: A variant that TensorFlow refuses, and one that brings TensorFlow down.
_REFUSED: Final = "!"
_DEADLY: Final = "x"


@functools.cache
def _recorded() -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(_FILE.read_bytes()))
    return found


def shapes_in(graph: bytes) -> list[tuple[str, list[TensorShape]]] | None:
    """TensorFlow's shapes of all outputs, by node; None if it refuses the graph."""
    text = _recorded()["shapes"].get(hashlib.sha256(graph).hexdigest()[:16])
    return None if text is None else _by_node(load_graph_def(graph), text)


def _by_node(definition: Message, text: str) -> list[tuple[str, list[TensorShape]]]:
    lines = text.split(";") if definition.node else []
    return [
        (node.name, [_shape(part) for part in line.split("|")] if line else [])
        for node, line in zip(definition.node, lines, strict=True)
    ]


def _shape(text: str) -> TensorShape:
    if text == "*":
        return TensorShape(None)
    if text == "-":
        return TensorShape(())
    return TensorShape(tuple(None if size == "?" else int(size) for size in text.split(",")))


@dataclass
class Comparison:
    """What came of comparing graphs."""

    #: Sizes that TensorFlow knows, and of these the ones known here, by op.
    theirs: Counter[str] = field(default_factory=Counter)
    common: Counter[str] = field(default_factory=Counter)
    #: The same for ranks.
    their_ranks: Counter[str] = field(default_factory=Counter)
    common_ranks: Counter[str] = field(default_factory=Counter)
    #: Where ours says something else, and where a rule refuses what TensorFlow accepts.
    contradictions: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    #: Variants that TensorFlow refuses, and of these the ones that are refused here.
    they_refuse: int = 0
    we_refuse: int = 0
    accepted: list[str] = field(default_factory=list)

    def add(self, label: str, graph: bytes) -> None:
        """Compare one graph."""
        expected = shapes_in(graph)
        if expected is not None:
            self._compare(label, infer_shapes(graph_from_def(load_graph_def(graph))), expected)

    def add_variants(self, case: Any) -> None:
        """Compare the variants of an op case."""
        answers = _recorded()["variants"].get(str(case), ())
        original = load_graph_def(case.graph_bytes)
        pairs = zip(variants(case, original.node), answers, strict=bool(answers))
        for number, (promises, text) in enumerate(pairs):
            definition = load_graph_def(case.graph_bytes)
            for node in definition.node:
                if node.name in promises:
                    shape = TensorShape.of(promises[node.name])
                    node.attr["shape"].CopyFrom(attrs.to_proto("shape", shape))
            ours = infer_shapes(graph_from_def(definition))
            label = f"{case}#{number} {[*map(str, promises.values())]}"
            if text == _REFUSED:
                for node in ours.graph:
                    ours.facts(node)
                self.they_refuse += 1
                self.we_refuse += bool(ours.errors)
                if not ours.errors:
                    self.accepted.append(label)
            elif text != _DEADLY:
                self._compare(label, ours, _by_node(definition, text))

    def _compare(
        self, label: str, ours: Shapes, expected: list[tuple[str, list[TensorShape]]]
    ) -> None:
        loaded = ours.graph
        for name, shapes in expected:
            node = loaded.node(name)
            for slot, theirs in enumerate(shapes):
                mine = ours.shape(node, slot)
                self.count(node.op.name, mine, theirs)
                if not mine.is_compatible_with(theirs):
                    self.contradictions.append(
                        f"{label}: {name}:{slot} ({node.op.name}) is {mine}, not {theirs}"
                    )
            if node.id in ours.errors:
                self.refused.append(
                    f"{label}: {name} ({node.op.name}): {ours.errors[node.id].reason}"
                )

    def count(self, op: str, mine: TensorShape, theirs: TensorShape) -> None:
        if theirs.dims is None:
            return
        self.their_ranks[op] += 1
        self.common_ranks[op] += mine.dims is not None
        known = [size is not None for size in theirs.dims]
        self.theirs[op] += sum(known)
        if mine.dims is not None and len(mine.dims) == len(known):
            pairs = zip(mine.dims, known, strict=True)
            self.common[op] += sum(is_known and size is not None for size, is_known in pairs)

    def share_of_sizes(self) -> float:
        """Which part of TensorFlow's sizes is known here."""
        return sum(self.common.values()) / sum(self.theirs.values())

    def share_of_ranks(self) -> float:
        """Which part of the ranks that TensorFlow knows is known here."""
        return sum(self.common_ranks.values()) / sum(self.their_ranks.values())
