"""Every node belongs to one static frame, and malformed loops are refused."""

from __future__ import annotations

import pytest

from penstock.errors import InternalError, InvalidArgumentError
from penstock.graph.frames import build_control_flow_info
from support.graphs import graph

NESTED = """
    x = Placeholder
    outer = Enter[frame_name=f](x)
    inner = Enter[frame_name=g](outer)
    y = Neg(inner)
    iexit = Exit(y)
    z = Neg(iexit)
    oexit = Exit(z)
    w = Neg(oexit)
"""


def frames(text: str) -> dict[str, str]:
    """The frame that each node runs in."""
    made = graph(text)
    info = build_control_flow_info(made)
    return {node.name: info.frame_of[node.id].name for node in made if node.id in info.frame_of}


def test_enters_run_outside_and_exits_inside() -> None:
    """An Enter belongs to the frame around the loop, an Exit to the loop."""
    assert frames(NESTED) == {
        "x": "",
        "outer": "",
        "inner": "f",
        "y": "g",
        "iexit": "g",
        "z": "f",
        "oexit": "f",
        "w": "",
    }


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "x = Placeholder\ne = Enter[frame_name=f](x)\ny = Add(e, x)",
            InvalidArgumentError,
            "{{node y}} has inputs from different frames",
        ),
        (
            "x = Placeholder\na = Enter[frame_name=f](x)\n"
            "b = Enter[frame_name=g](x)\ny = Add(a, b)",
            InvalidArgumentError,
            "inputs from different frames",
        ),
        ("x = Placeholder\ny = Exit(x)", InvalidArgumentError, "Exit outside of every frame"),
        ("x = Placeholder\ny = Enter(x)", InvalidArgumentError, "must have a frame name"),
        (
            NESTED + "again = Enter[frame_name=g](x)",
            InternalError,
            'Mismatched parent frames for "g"',
        ),
        (
            "p = Placeholder[dtype=bool]\ne = Enter[frame_name=f; T=bool](p)\n"
            "a = LoopCond(e)\nb = LoopCond(e)",
            InvalidArgumentError,
            "more than one LoopCond node",
        ),
    ],
)
def test_malformed_loops(text: str, error: type[Exception], message: str) -> None:
    """Each mistake names the node or the frame."""
    with pytest.raises(error, match=message):
        frames(text)


def test_nodes_that_nothing_starts_are_left_out() -> None:
    """A loop that nothing enters has no frame, and harms nobody."""
    made = graph("x = Placeholder\nm = Merge(x, n)\nn = NextIteration(m)")
    made.remove_edge(made.node("m").input(0))
    info = build_control_flow_info(made)

    assert set(info.frame_of) == {made.node("x").id}


def test_ten_thousand_nested_frames() -> None:
    """Depth is limited by memory, not by recursion."""
    text = "e0 = Placeholder\n" + "\n".join(
        f"e{i} = Enter[frame_name=f{i}](e{i - 1})" for i in range(1, 10_001)
    )

    assert frames(text)["e10000"] == "f9999"
