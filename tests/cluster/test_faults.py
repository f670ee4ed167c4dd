"""Whatever happens to a task, training ends in time, and no update is lost or doubled.

``python -m cluster.faults --times 50`` injects each fault more often, and others.
"""

from __future__ import annotations

import random

import pytest

pytest.importorskip("grpc")

from cluster.faults import FAULTS, train
from support.cluster_processes import Processes

KINDS = {"worker killed", "parameters killed", "connections cut"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in FAULTS if kind in KINDS])
def test_training_survives(kind: str) -> None:
    """Variables are what the count of steps says, though a process was lost on the way."""
    with Processes({"ps": 1, "worker": 2}) as tasks:
        train(tasks, FAULTS[kind], random.Random(kind))
