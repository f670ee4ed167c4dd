"""Whoever follows docs/add-an-op.md to the letter ends with an op, a test and a case that pass.

The op of the page must be one that has no kernel yet.  Whoever adds its kernel makes the page's
files real, and puts another op into the page; TensorFlow's answers to the page's cases, which the
page has one record, are in ``support/sparse_counts.json``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.catalogue.op_def import parse_row
from penstock.catalogue.registry import get_op
from penstock.kernels.api.registry import kernels_of
from support.corpus import run_case
from support.custom import custom_kernels
from support.op_cases import OpCase

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "add-an-op.md").read_text("utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n\n```python\n(.*?)```", PAGE, re.DOTALL))
KERNEL, TEST, CASES = FILES
#: The commands that whoever adds an op runs, without what is said about them.
COMMANDS = [
    line.partition("#")[0].strip()
    for line in PAGE.partition("<!-- commands -->")[2].partition("<!-- end")[0].splitlines()
    if line.strip()
]
#: With it mypy looks at what is new alone, which takes a tenth of the time.
_MYPY_CACHE = ".mypy_cache"
ANSWERS = Path(__file__).parent / "support" / f"{Path(CASES).stem}.json"


def test_the_row_is_the_tables_own() -> None:
    """The page shows the op's row as it stands in the table, and the op has no kernel."""
    [(op, row)] = re.findall(r"^    \$ grep '\^(\w+)\(' \S+\n    (.*)$", PAGE, re.MULTILINE)

    assert parse_row(row) == get_op(op)
    assert kernels_of(op) == (), "this op has a kernel now: let the page add another one"


def test_the_kernel_and_its_test() -> None:
    """The maker registers itself, and passes the tests that the page gives it."""
    test: dict[str, Any] = {}
    with custom_kernels():
        exec(FILES[KERNEL], {})
        exec(FILES[TEST], test)
        claims = [check for name, check in test.items() if name.startswith("test_")]
        for check in claims:
            check()

    assert claims
    assert all(check.__doc__ for check in claims)


@pytest.mark.parametrize("tier", ps.Tier)
def test_the_kernel_gives_tensorflows_answers(tier: ps.Tier) -> None:
    """Every case of the page has TensorFlow's values, types, shapes and errors."""
    records = [OpCase("page", record) for record in json.loads(ANSWERS.read_text("utf-8"))]
    cases: dict[str, Any] = {}
    exec(FILES[CASES], cases)
    with custom_kernels():
        exec(FILES[KERNEL], {})
        for record in records:
            with ps.Session(record.graph_bytes, config=ps.Config(tier=tier)) as session:
                run_case(session, record)

    assert len(records) == len(cases["CASES"])


@pytest.mark.slow
def test_who_follows_the_page_ends_green(tmp_path: Path) -> None:
    """In a copy of the project, with the page's files, all of the page's commands succeed."""
    _copy_project(tmp_path)
    for name, text in FILES.items():
        assert not (tmp_path / name).exists(), f"{name} is there already"
        (tmp_path / name).write_text(text, "utf-8")
    for command in COMMANDS:
        if "record_case.py" in command:  # here nobody can ask TensorFlow; these are its answers
            shutil.copy(ANSWERS, tmp_path / "tests" / "op_cases")
            continue
        _run(command, tmp_path)

    changed = (tmp_path / "docs" / "ops.md").read_text("utf-8")
    assert changed != (ROOT / "docs" / "ops.md").read_text("utf-8")


def _copy_project(folder: Path) -> None:
    """Copies of what the page changes, and of what mypy knows of it; and links to all else."""
    for part in ("src", "tests", "tools", "docs"):
        ignored = shutil.ignore_patterns("__pycache__", "corpus")
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    if (ROOT / _MYPY_CACHE).exists():
        shutil.copytree(ROOT / _MYPY_CACHE, folder / _MYPY_CACHE)
    (folder / "tests" / "corpus").symlink_to(ROOT / "tests" / "corpus")
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)


def _run(command: str, folder: Path) -> None:
    """Run a line of the page, in the copy, with the tools beside this Python."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": tools, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
