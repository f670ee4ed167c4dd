"""Predict how long a step takes on a cluster, and what it sends, without running it there.

In:   a graph; what its nodes cost, measured on one machine; the tasks and links of a cluster.
Out:  a ``Prediction``: the step's seconds, the use of each task, the bytes on each link.
Not:  runs no node.

    costs       what nodes cost: measured, saved, loaded
    machine     tasks, cores and links
    activations which activations a step has, and who waits for whom
    engine      the discrete-event simulation
    prediction  what came out, also as step stats and as a trace for browsers
    forecast    from a graph and a cluster to a prediction
    search      a better placement

docs/simulate.md says what is modelled, and what is not.
"""

from __future__ import annotations

from penstock.simulator.costs import Costs, NodeCost, measure
from penstock.simulator.forecast import Forecast
from penstock.simulator.machine import Machine
from penstock.simulator.prediction import Prediction
from penstock.simulator.search import better_placement

__all__ = ["Costs", "Forecast", "Machine", "NodeCost", "Prediction", "better_placement", "measure"]
