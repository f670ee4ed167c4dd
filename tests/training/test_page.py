"""What docs/training.md shows works as it is written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def programs() -> list[str]:
    """The code of the page, block by block."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_program_trains_and_goes_on_when_it_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred steps, of which the last is saved; the second time there is one more."""
    program, _ = programs()
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    exec(program, namespace)
    assert namespace["value"] < 1e-9
    assert ps.checkpoint.latest("run") == str(Path("run") / "model.ckpt-100")
    np.testing.assert_allclose(ps.checkpoint.load("run/model.ckpt-100")["w"], [1, 2], rtol=1e-6)

    exec(program, namespace)
    assert ps.checkpoint.latest("run") == str(Path("run") / "model.ckpt-101")


def test_the_program_with_stragglers_makes_an_update() -> None:
    """Of two of three gradients, whichever came first, and of one step."""
    _, program = programs()
    lines = program.rstrip().splitlines()
    namespace: dict[str, Any] = {}
    exec("\n".join([*lines, "    value = sess.run([w, step])"]), namespace)
    value, step = namespace["value"]
    assert step == 1
    assert float(value) in (0.75, 1.0, 1.25)
