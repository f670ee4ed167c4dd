"""What a closed session no longer has in memory, whoever still holds it."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import penstock as ps
from penstock import builder, ops
from penstock.errors import CancelledError

#: Numbers of each large constant, and bytes.
NUMBERS = 1 << 20
BYTES = 4 * NUMBERS
FED = np.ones(NUMBERS, np.float32)


def _graph() -> builder.Graph:
    """``z = x + tanh(constant) * scale``, of which all but the addition is folded."""
    graph = builder.Graph()
    with graph.as_default():
        x = builder.placeholder("float32", [NUMBERS], name="x")
        constant = builder.constant(np.linspace(-1, 1, NUMBERS, dtype=np.float32))
        ops.add_v2(x, ops.tanh(constant) * np.float32(3), name="z")
    return graph


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("is_callable", [False, True])
def test_a_closed_session_gives_up_what_was_made_of_constants(
    tier: ps.Tier, is_callable: bool
) -> None:
    """It takes no garbage collector, and the session and its callables may be held on to."""
    graph = _graph()
    with ps.Session(graph, config=ps.Config(tier=tier)) as warm:  # what is imported only now
        warm.run("z:0", {"x": FED})
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        session = ps.Session(graph, config=ps.Config(tier=tier))
        run = session.make_callable("z:0", ["x:0"])
        run(FED) if is_callable else session.run("z:0", {"x": FED})
        held = tracemalloc.get_traced_memory()[0]
        session.close()
        freed = held - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert freed > 0.9 * BYTES
    for again in (lambda: run(FED), lambda: session.run("z:0", {"x": FED})):
        with pytest.raises(CancelledError, match="Session has been closed"):
            again()


def test_sessions_on_one_graph_give_up_what_is_theirs() -> None:
    """What one prepared is not another's, and the graph stays as it was."""
    graph = _graph()
    with ps.Session(graph) as one, ps.Session(graph) as other:
        wanted = one.run("z:0", {"x": FED})
        other.run("z:0", {"x": FED})
        one.close()
        np.testing.assert_array_equal(other.run("z:0", {"x": FED}), wanted)
    with ps.Session(graph) as third:
        np.testing.assert_array_equal(third.run("z:0", {"x": FED}), wanted)
