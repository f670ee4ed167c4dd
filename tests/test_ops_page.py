"""The page of ops says what is true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_page_is_up_to_date() -> None:
    """Every op, type, claim and number of cases stands in docs/ops.md as it is."""
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); "
    code += "import make_ops_page as m; print(m.page(), end='')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    written = (ROOT / "docs" / "ops.md").read_text("utf-8")

    assert done.stdout.splitlines() == written.splitlines(), (
        "kernels or cases have changed: run 'python tools/make_ops_page.py' and commit "
        "docs/ops.md with them"
    )
