"""Gradients of a Relu and of the pooling after it are the same in either order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.passes.mask_pooled_gradients import mask_pooled_gradients
from support.drafts import after, draft, unchanged

TEXT = """
    x = Placeholder() dtype=float32
    g = Placeholder() dtype=float32
    pool = MaxPool(x) ksize=[1,2,2,1] strides=[1,2,2,1] padding="VALID"
    spread = MaxPoolGrad(x, pool, g) ksize=[1,2,2,1] strides=[1,2,2,1] padding="VALID"
    y = ReluGrad(spread, x)
    out = Identity(y)
"""


@pytest.mark.parametrize("mask", ["ReluGrad", "Relu6Grad"])
def test_the_mask_comes_first(mask: str) -> None:
    """It reads what was pooled; the result has the name that it had."""
    made = after(mask_pooled_gradients, TEXT.replace("ReluGrad", mask))
    assert f"spread = {mask}(g, pool)" in made
    assert "y = MaxPoolGrad(x, pool, spread)" in made
    rewritten = draft(TEXT)
    assert mask_pooled_gradients(rewritten) == 2
    assert mask_pooled_gradients(rewritten) == 0
    assert rewritten.graph.node("y").attrs["ksize"] == [1, 2, 2, 1]


def test_it_waits_for_what_both_waited_for() -> None:
    """Neither is alive where it was not."""
    text = TEXT.replace("spread, x)", "spread, x, ^a)").replace("pool, g)", "pool, g, ^b)")
    text = f"a = Placeholder() dtype=float32\n b = Placeholder() dtype=float32\n{text}"
    made = after(mask_pooled_gradients, text)
    (line,) = [line for line in made if line.startswith("spread = ReluGrad(g, pool")]
    assert "^a" in line
    assert "^b" in line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y = ReluGrad(spread, x)", "y = ReluGrad(spread, pool)"),
        ("y = ReluGrad(spread, x)", "y = SoftplusGrad(spread, x)"),
        ("out = Identity(y)", "out = Identity(y)\nmore = Neg(spread)"),
        ("pool = MaxPool(x)", "z = Neg(x)\npool = MaxPool(z)"),
        ("pool = MaxPool(x)", "pool = AvgPool(x)"),
        ('2,1] padding="VALID"\n    spread', '2,1] padding="SAME"\n    spread'),
        ("pool = MaxPool(x) ksize=[1,2,2,1]", "pool = MaxPool(x) ksize=[1,3,3,1]"),
    ],
)
def test_other_gradients_stay(old: str, new: str) -> None:
    """Of something else, of other functions, with other readers, of other windows."""
    assert TEXT.count(old) == 1
    assert unchanged(mask_pooled_gradients, TEXT.replace(old, new))


def graph_of(window: int, stride: int, mask: Any) -> ps.Graph:
    """The gradients, for windows that may overlap."""
    sizes: dict[str, Any] = {
        "ksize": [1, window, window, 1],
        "strides": [1, stride, stride, 1],
        "padding": "VALID",
    }
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [2, 9, 8, 17], name="x")
        g = ps.placeholder("float32", None, name="g")
        pooled = ps.ops.max_pool(x, **sizes)
        ps.identity(mask(ps.ops.max_pool_grad(x, pooled, g, **sizes), x), name="out")
    return graph


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("mask", [ps.ops.relu_grad, ps.ops.relu6_grad])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3)])
def test_the_gradient_is_the_same(window: int, stride: int, mask: Any, accelerate: bool) -> None:
    """But for signs of zeros; where values are equal, negative, or endless, and gradients are."""
    rng = np.random.default_rng(window * 10 + stride)
    x = np.round(rng.normal(size=(2, 9, 8, 17)) * 3).astype(np.float32)
    x[rng.integers(0, 40, x.shape) == 0] = np.inf
    places = (9 - window) // stride + 1, (8 - window) // stride + 1
    g = rng.standard_normal((2, *places, 17), np.float32)
    g[rng.integers(0, 40, g.shape) == 0] = np.nan
    g[rng.integers(0, 40, g.shape) == 0] = -0.0
    found: list[Any] = []
    for options in (ps.GraphOptions.nothing(), ps.GraphOptions()):
        config = ps.Config(accelerate=accelerate, graph_options=options, check_graphs=True)
        with ps.Session(graph_of(window, stride, mask), config=config) as session:
            found.append(session.run("out:0", {"x:0": x, "g:0": g}))
    assert np.count_nonzero(found[0])
    np.testing.assert_array_equal(*found)
