"""The static frame of every node: which loop, inside which loop, it runs in.

In:   a graph.
Out:  ``ControlFlowInfo``: for each node the frame that it runs in, and the frame that its
      outputs belong to.
Not:  knows no iterations; those exist only while a step runs.

An Enter runs in the outer frame and its output belongs to the inner one; an Exit runs in
the inner frame and its output belongs to the outer one.  Every other node has one frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from penstock.dataclass import dataclass
from penstock.errors import InternalError, InvalidArgumentError
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import LOOPS, Role


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One static frame: the body of one loop.  The root frame has no name and no parent."""

    name: str
    parent: Frame | None

    def __str__(self) -> str:
        return self.name or "the root"


@dataclass(frozen=True, slots=True)
class ControlFlowInfo:
    """The frame of every node that can ever run."""

    root: Frame
    #: Frames by name, the root included.
    frames: Mapping[str, Frame]
    #: The frame that a node runs in, by node id.  Nodes that no root reaches are missing.
    frame_of: Mapping[int, Frame]
    #: The frame that a node's outputs belong to, by node id.
    output_frame_of: Mapping[int, Frame]


def build_control_flow_info(graph: Graph) -> ControlFlowInfo:
    """Assign every reachable node to its frame.

    Raises:
        InvalidArgumentError: inputs from different frames, an Enter without a frame name, an
            Exit outside of all frames, or two LoopConds in one frame.
        InternalError: one frame name with different parents.

    """
    root = Frame("", None)
    frames = {"": root}
    if not any(node.role in LOOPS for node in graph):
        # Only a loop can close a circle: a root reaches every node.
        here = {node.id: root for node in graph}
        return ControlFlowInfo(root, frames, here, here)
    frame_of: dict[int, Frame] = {}
    output_frame_of: dict[int, Frame] = {}
    loop_cond_of: dict[Frame, Node] = {}
    #: Nodes whose frame is known and whose consumers are still to be told.
    waiting: deque[Node] = deque()
    for node in graph:
        if not node.control_inputs and not any(node.inputs):
            frame_of[node.id] = root
            waiting.append(node)
    while waiting:
        node = waiting.popleft()
        role, output_frame = node.role, frame_of[node.id]
        if role is Role.ENTER or role is Role.EXIT:
            output_frame = _output_frame(node, output_frame, frames)
        elif role is Role.LOOP_COND:
            _check_single(node, output_frame, loop_cond_of)
        output_frame_of[node.id] = output_frame
        for edge in node.out_edges:
            dst = edge.dst
            known = frame_of.get(dst.id)
            if known is None:
                frame_of[dst.id] = output_frame
                waiting.append(dst)
            elif known is not output_frame:
                raise _different_frames(edge, output_frame_of)
    return ControlFlowInfo(root, frames, frame_of, output_frame_of)


def _output_frame(node: Node, frame: Frame, frames: dict[str, Frame]) -> Frame:
    """The frame behind an Enter or an Exit that runs in ``frame``."""
    if node.role is Role.EXIT:
        if frame.parent is None:
            raise InvalidArgumentError(
                "Invalid Exit op: Cannot find a corresponding Enter op. "
                f"{{{{node {node.name}}}}} is an Exit outside of every frame",
                next_step="an Exit must depend on an Enter of the loop that it leaves",
            )
        return frame.parent
    name = node.attrs["frame_name"].decode("utf-8", "replace")
    if not name:
        raise InvalidArgumentError(f"{{{{node {node.name}}}}} must have a frame name")
    known = frames.setdefault(name, Frame(name, frame))
    if known.parent is not frame:
        raise InternalError(
            f'Invalid loop structure: Mismatched parent frames for "{name}": '
            f'"{known.parent}" and "{frame}" at {{{{node {node.name}}}}}'
        )
    return known


def _check_single(node: Node, frame: Frame, loop_cond_of: dict[Frame, Node]) -> None:
    """Gradient loops may share a frame with a counter's loop; others have one LoopCond."""
    other = loop_cond_of.setdefault(frame, node)
    if other is not node and "LoopCounter" not in other.name + node.name:
        raise InvalidArgumentError(
            f'Loop "{frame.name}" has more than one LoopCond node: {other.name}, {node.name}'
        )


def _different_frames(edge: Edge, output_frame_of: Mapping[int, Frame]) -> InvalidArgumentError:
    """Name two inputs of the node that are in different frames."""
    node = edge.dst
    other = next(
        e.src
        for e in node.in_edges()
        if e.src.id in output_frame_of
        and output_frame_of[e.src.id] is not output_frame_of[edge.src.id]
    )
    return InvalidArgumentError(
        f"{{{{node {node.name}}}}} has inputs from different frames. The input "
        f"{{{{node {other.name}}}}} is in frame '{output_frame_of[other.id].name}'. The input "
        f"{{{{node {edge.src.name}}}}} is in frame '{output_frame_of[edge.src.id].name}'.",
        next_step="a value enters a loop through an Enter and leaves it through an Exit",
    )
