"""Where a node lies, and why.

In:   a question.
Out:  its device, with what decided; or why none can have it.
Not:  places nothing that runs: the pass is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.device_names import MergeMode
from penstock.errors import OpError
from penstock.explanations.explanation import Fact, Topic
from penstock.explanations.request import Question
from penstock.graph.graph import Node
from penstock.graph.stages import Placed
from penstock.passes.colocation import Colocation
from penstock.passes.constraints import NodeConstraints
from penstock.passes.place import Choice, PlacerOptions
from penstock.runtime.place_graph import place_whole

_SHOWN = 5


def facts(question: Question) -> Iterator[Fact]:
    """The device."""
    chosen: dict[str, Choice] = {}

    def note(node: Node, choice: Choice) -> None:
        chosen[node.name] = choice

    soft = question.config.allow_soft_placement
    options = PlacerOptions(allow_soft_placement=soft, on_choice=note)
    try:
        with question.graph.lock:
            placed = place_whole(question.graph, question.devices, question.config, options)
    except OpError as error:
        text = " ".join([error.reason, *map(str.strip, error.details)])
        yield Fact(Topic.DEVICE, text, is_trouble=True)
        return
    name = question.node.name
    found = placed.graph.find(name)
    device = placed.device_of.get(found.id) if found is not None else None
    if device is None or found is None:
        return
    if len(question.devices) == 1 and not question.node.requested_device:
        yield Fact(Topic.DEVICE, f"{device}, the only one there is")
        return
    yield Fact(Topic.DEVICE, f"{device}: {_reason(question, placed, found, chosen.get(name))}")


def _reason(question: Question, placed: Placed, node: Node, choice: Choice | None) -> str:
    wanted = question.node.requested_device
    reason = choice.value if choice is not None else "there is no other"
    if choice in (Choice.REQUESTED, Choice.FALLBACK) and wanted:
        reason += f" ('{wanted}')"
    others = _group(question, placed, node)
    if others:
        names = ", ".join(other.name for other in others[:_SHOWN])
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        reason += f"; it lies with {names}{more}"
    return reason


def _group(question: Question, placed: Placed, node: Node) -> list[Node]:
    """The others that must lie with it."""
    soft = question.config.allow_soft_placement
    constraints = NodeConstraints(question.devices, placed.graph.library, {})
    mode = MergeMode.SOFT if soft else MergeMode.STRICT
    group = Colocation(placed.graph, constraints, mode, lambda _line: None).group_of(node)
    return [] if group is None else [other for other in group.nodes if other is not node]
