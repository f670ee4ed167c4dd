"""What must surround a case that is run: a folder to write to, and functions to call.

In:   pytest's own fixtures.
Out:  fixtures for all tests of each module that imports them.
Not:  runs nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock as ps
from cases_src.python_functions import FUNCTIONS

__all__ = ["folder", "python_functions"]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where graphs write whose files have names without a folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def python_functions() -> Iterator[None]:
    """The functions that graphs of ``cases_src/python_functions.py`` call."""
    ps.register_py_func(FUNCTIONS)
    yield
    ps.register_py_func(dict.fromkeys(FUNCTIONS))
