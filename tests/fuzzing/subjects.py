"""What is changed: graphs that are known to run, with what is run of them.

In:   the corpus, and the small cases.
Out:  ``Subject``s, each with its graph as bytes and a few steps.
Not:  knows none of their answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from support.corpus import Case, all_cases
from support.op_cases import OpCase, all_op_cases

#: A training of fifty steps says no more than its first few.
_MOST_STEPS: Final = 4
#: How often a category is chosen, compared with the others: what tiers may differ about is control
#: flow, state and waiting, more than single kernels.
_WEIGHTS: Final[Mapping[str, int]] = {
    "control_flow_v1": 40,
    "control_flow_v2": 40,
    "control_flow": 10,
    "functions": 32,
    "state": 24,
    "containers": 24,
    "placement": 24,
    "tensor_arrays": 20,
    "errors": 8,
    "saved_training": 4,
}
#: The weight of all others, of the corpus and of the small cases.
_CORPUS, _SMALL = 12, 1


@dataclass(frozen=True, slots=True)
class Step:
    """One run: what is fed, fetched, and run for its effect."""

    feeds: Mapping[str, Any]
    fetches: Sequence[str]
    targets: Sequence[str]


@dataclass(frozen=True, slots=True)
class Subject:
    """A graph, and the steps that are run of it in one session."""

    name: str
    graph: bytes
    #: Feeds, where the text is a folder that the steps may write to.
    make_steps: Callable[[], tuple[Step, ...]]
    device_count: int
    weight: int


@functools.cache
def all_subjects() -> tuple[Subject, ...]:
    """All graphs that there are, always in the same order."""
    corpus = [_subject(case, case.category, _CORPUS) for case in all_cases()]
    return (*corpus, *(_subject(case, case.family, _SMALL) for case in all_op_cases()))


def _subject(case: Case | OpCase, kind: str, weight: int) -> Subject:
    devices = case.meta.get("device_count") if isinstance(case, Case) else None
    return Subject(
        str(case),
        case.graph_bytes,
        functools.partial(_steps, case),
        (devices or {}).get("CPU", 1),
        _WEIGHTS.get(kind, weight),
    )


def _steps(case: Case | OpCase) -> tuple[Step, ...]:
    return tuple(
        Step(case.feeds(step), tuple(step.get("fetches", ())), tuple(step.get("targets", ())))
        for step in case.steps[:_MOST_STEPS]
    )
