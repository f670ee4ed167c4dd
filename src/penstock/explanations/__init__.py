"""Why a node is what it is: dead, on this device, pruned, folded, fused, compiled, or refused.

    explanation      the answer: facts by topic
    request          what is looked at: one node, in a request
    explain_node     the whole answer, topic by topic
    frames           in which loop, and why
    needs            who needs it
    devices          where it lies, and why
    changes          what one pass of the optimiser made of each node
    journey          what the optimiser made of it
    compiled         which region computes it, or what kept it out of all
    liveness         in which branches it runs, and which of them a feed takes
    shapes           what it gives, and since when that is known

Nothing of what runs asks anything here.
"""

from __future__ import annotations

from penstock.explanations.explain_node import explain
from penstock.explanations.explanation import Explanation, Fact, Topic

__all__ = ["Explanation", "Fact", "Topic", "explain"]
