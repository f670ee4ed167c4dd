"""What is inferred, against what TensorFlow infers and against what it computes.

``tools/record_shapes.py`` asked TensorFlow; the answers of the corpus and of the op cases are
TensorFlow's, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from penstock.core.shapes import TensorShape
from penstock.defs.codec import load_graph_def
from penstock.errors import OpError
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import graph_from_def
from penstock.graph.roles import Role
from penstock.shapes.infer import infer_shapes
from support import corpus, op_cases
from support.recorded_shapes import Comparison
from support.sampling import sampled

CATEGORIES = sorted({case.category for case in corpus.all_cases()})
#: The op cases in eight parts, of which the first is looked at always.
PARTS = sampled(range(8))
#: Cases that do what TensorFlow's own inference does not expect either: a decoder of one kind of
#: pictures that is given a file with several ones of another kind, and a variable that changes
#: its shape.
_UNEXPECTED = re.compile(
    r"edges_images/Decode(AndCropJpeg|Bmp|Jpeg|Png)(_\d)?|state/ref_shape_change"
)


def op_cases_of(part: int) -> Sequence[op_cases.OpCase]:
    return op_cases.all_op_cases()[part::8]


def check(found: Comparison) -> None:
    """Nothing contradicts TensorFlow, nothing that it takes is refused, and nearly all is known."""
    assert found.contradictions == []
    assert found.refused == []
    assert found.share_of_sizes() > 0.98
    assert found.share_of_ranks() > 0.98


@pytest.mark.parametrize("category", CATEGORIES)
def test_corpus_is_inferred_as_by_tensorflow(category: str) -> None:
    """Whole graphs, with branches, loops and functions of both generations."""
    found = Comparison()
    for case in corpus.all_cases(category):
        found.add(str(case), case.graph_bytes)
    check(found)
    assert sum(found.theirs.values()) > 25


@pytest.mark.parametrize("part", PARTS)
def test_op_cases_are_inferred_as_by_tensorflow(part: int) -> None:
    """A thousand ops, one by one, with odd inputs and attributes."""
    found = Comparison()
    for case in op_cases_of(part):
        found.add(str(case), case.graph_bytes)
    check(found)
    assert sum(found.theirs.values()) > 2000


@pytest.mark.parametrize("part", PARTS)
def test_other_promises_are_inferred_as_by_tensorflow(part: int) -> None:
    """The op cases once more, six times, with full, partial and impossible shapes of the inputs.

    What TensorFlow takes is never refused; of what it refuses, most is: the rest fails when it
    runs.
    """
    found = Comparison()
    for case in op_cases_of(part):
        found.add_variants(case)
    check(found)
    assert sum(found.theirs.values()) > 4000
    assert found.they_refuse > 300
    assert found.we_refuse / found.they_refuse > 0.75


def loaded(case: Any) -> Graph | None:
    """A case's graph, unless it is refused."""
    try:
        return graph_from_def(load_graph_def(case.graph_bytes))
    except OpError:
        return None


def results(case: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names and the shapes of what TensorFlow's session gave, where only inputs were fed."""
    for step in case.steps:
        if "error" in step["expect"]:
            continue
        names = step.get("fetches", ())
        for name, key in zip(names, step["expect"]["values"], strict=False):
            yield name, case.value(key)[0].shape


@pytest.mark.parametrize("part", PARTS)
def test_computed_values_have_the_inferred_shapes(part: int) -> None:
    """Whatever TensorFlow computed, in any step of any case, fits what is inferred here."""
    wrong, count = [], 0
    for case in [*list(corpus.all_cases())[part::8], *op_cases_of(part)]:
        graph = loaded(case)
        if graph is None or feeds_inner_nodes(graph, case) or _UNEXPECTED.fullmatch(str(case)):
            continue
        shapes = infer_shapes(graph)
        for name, computed in results(case):
            node, _, slot = name.partition(":")
            inferred = shapes.shape(graph.node(node), int(slot or 0))
            count += 1
            if not inferred.accepts(computed):
                wrong.append(f"{case}: {name} is {TensorShape(computed)}, not {inferred}")
    assert wrong == []
    assert count > 1000


def feeds_inner_nodes(graph: Graph, case: Any) -> bool:
    """Whether some step feeds what the graph computes: then other shapes follow."""
    fed = {name.partition(":")[0] for step in case.steps for name in step.get("feeds", {})}
    inputs = {node.name for node in graph if node.role is Role.PLACEHOLDER}
    return not fed <= inputs
