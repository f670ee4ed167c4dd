"""Which region computes a node, or what kept it out of all.

In:   a question.
Out:  whether one function computes the whole request, a region has the node, or the executor runs
      it, and why.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.config import Tier
from penstock.errors import OpError
from penstock.explanations.explanation import Fact, Topic
from penstock.explanations.request import Question
from penstock.graph.stages import Partition
from penstock.runtime.compiler.compile_regions import Compiler
from penstock.runtime.compiler.explain import Explained
from penstock.runtime.environment import Environment
from penstock.runtime.prepare import PreparedRequest, prepare


def facts(question: Question) -> Iterator[Fact]:
    """What runs it."""
    if question.config.tier is Tier.DATAFLOW:
        yield Fact(Topic.COMPILED, "no: the session is told to run all nodes by the executor")
        return
    try:
        with question.graph.lock:
            prepared = prepare(question.request, question.environment)
    except OpError:
        return  # which was said already
    name = question.node.name
    if not any(name in part.graph for part in prepared.partitions):
        return
    if prepared.runnable.whole is not None:
        yield Fact(Topic.COMPILED, "one Python function computes the whole request")
        return
    for _, explained in explained_parts(prepared, question.environment):
        reason = next((r for node, r in explained.reasons.items() if node.name == name), None)
        if reason is not None:
            yield Fact(Topic.COMPILED, f"no, the executor runs it: {reason}")
            return
    yield Fact(Topic.COMPILED, "a Python function computes it with others; the executor calls that")


def explained_parts(
    prepared: PreparedRequest, environment: Environment
) -> Iterator[tuple[Partition, Explained]]:
    """What became of each partition of a request that is not one function, and why."""
    ends = len(prepared.feed_types), len(prepared.fetch_types)
    for part in prepared.partitions:
        make_kernel = environment.params_of(part.device).make_kernel
        compiler = Compiler(device=part.device, make_kernel=make_kernel, ends=ends)
        yield part, compiler.explain(part.graph)
