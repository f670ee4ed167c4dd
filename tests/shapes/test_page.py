"""What docs/shapes.md shows is what happens, and who only runs graphs pays for none of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.catalogue.registry import get_op, is_builtin_op
from penstock.graph.export import graph_to_def
from penstock.graph.roles import Role, role_of
from penstock.kernels.api.registry import ops_with_kernels
from penstock.kernels.api.shape_rules import ops_with_shape_rules
from penstock.shapes.calls import CALLS
from support.custom import custom_kernels
from support.sketch import sketch

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "shapes.md").read_text("utf-8")
#: The ops that have rules of ours; tests add others.
TABLED = [op for op in ops_with_shape_rules() if is_builtin_op(op)]
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_prints_what_the_page_says(capsys: Any) -> None:
    """What stands behind a print's # is what it prints."""
    exec(BLOCKS[0], {})
    said = re.findall(r"print\(.*\) +# (.*)", BLOCKS[0])
    assert said
    assert capsys.readouterr().out.splitlines() == said


def test_the_rule_of_the_page_holds() -> None:
    """An op of somebody's own has the shape that its rule says."""
    with custom_kernels(), ps.Graph().as_default():
        exec("import penstock as ps\n" + BLOCKS[1], {})
        a, b = ps.placeholder("float32", [2, None]), ps.placeholder("float32", [5])
        assert str(ps.ops.outer(a, b).shape) == "[2,?,5]"
        assert str(ps.ops.outer(a, ps.placeholder("float32")).shape) == "<unknown>"


def test_who_runs_a_graph_imports_no_rules() -> None:
    """Neither loading nor running asks for a shape; the first inner tensor that is fed does.

    Where ONNX Runtime may compute a part, what is heavy is told from shapes.
    """
    code = f"""
import sys
import penstock as ps
def imported():
    return [name for name in sys.modules if name.startswith("penstock.shapes")
            or name.endswith("_shapes") and name.startswith("penstock.kernels")]
session = ps.Session(
    {str(ROOT / "examples" / "digits_cnn.pb")!r}, config=ps.Config(accelerate=False)
)
import numpy as np
images = np.zeros((1, 8, 8), np.float32)
print(imported(), session.run("digit:0", {{"images:0": images}}).shape, imported())
session.run("digit:0", {{"digit:0": [3]}})
print(bool(imported()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[] (1,) []\nTrue\n"


def test_graphs_without_heavy_work_need_no_rules() -> None:
    """Neither of shapes nor of ONNX, though ONNX Runtime may be there."""
    graph = sketch("x = Placeholder() dtype=float32\ny = Softsign(x)")
    content = graph_to_def(graph).SerializeToString()
    code = f"""
import sys
import penstock as ps
print(ps.Session({content!r}).run("y:0", {{"x:0": 1.0}}))
print([name for name in sys.modules if "_rules" in name or name.startswith("penstock.shapes")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "0.5\n[]\n"


def test_nearly_every_op_has_a_rule() -> None:
    """Of all ops with kernels and outputs, some 50 have no rule, as the page says."""
    special = {Role.MERGE, Role.ARG}
    without = [
        op
        for op in ops_with_kernels()
        if is_builtin_op(op) and get_op(op).outputs and op not in TABLED
        if role_of(op) not in special and op not in CALLS
    ]
    assert len(without) < 60, without


def test_every_rule_is_of_an_op_that_has_a_kernel() -> None:
    """A rule of another name would never be found: families say where rules are."""
    assert sorted(set(TABLED) - set(ops_with_kernels())) == []
    assert len(TABLED) > 950
