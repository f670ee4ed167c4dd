"""Whatever happens to a task, training ends in time, and no update is lost or doubled.

``python -m cluster.faults --times 50`` injects each fault more often.
"""

from __future__ import annotations

import random

import pytest

pytest.importorskip("grpc")

from cluster.faults import FAULTS, processes, train


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_training_survives(kind: str) -> None:
    """Variables are what the count of steps says, and all that went wrong names a task."""
    with processes(kind) as tasks:
        train(tasks, FAULTS[kind], random.Random(kind))
