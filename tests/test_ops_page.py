"""The page of ops says what is true."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from penstock.catalogue.registry import is_builtin_op
from penstock.kernels.api.registry import kernels_of, ops_with_kernels

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ops.md").read_text("utf-8")
TABLE = (ROOT / "tools" / "op_sentences.txt").read_text("utf-8")
LINES = [line for line in TABLE.splitlines() if not line.startswith("#")]
SENTENCES = dict(line.split("\t") for line in LINES)


def test_the_page_is_up_to_date() -> None:
    """Every op, type, claim and number of cases stands in docs/ops.md as it is."""
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); "
    code += "import make_ops_page as m; print(m.page(), end='')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )

    assert done.stdout.splitlines() == PAGE.splitlines(), (
        "kernels or cases have changed: run 'python tools/make_ops_page.py' and commit "
        "docs/ops.md with them"
    )


def test_every_op_is_told_apart() -> None:
    """No three rows of the page share a sentence, and none has no sentence."""
    rows = re.findall(r"^\| (\w+|\w+>\w+) \| .* \| (.*) \| \d* \|$", PAGE, re.MULTILINE)
    shared = [text for text, count in Counter(text for _, text in rows).items() if count > 2]

    assert [op for op, _ in rows] == [op for op in ops_with_kernels() if is_builtin_op(op)]
    assert shared == [], "say in tools/op_sentences.txt what each of these ops computes"
    assert [op for op, text in rows if not text.endswith(".")] == []


def test_no_sentence_is_left_over() -> None:
    """A sentence in the table is for an op that would share its maker's with others."""
    makers = {op: {first_line(k.make.__doc__) for k in kernels_of(op)} for op in ops_with_kernels()}
    count = Counter(line for lines in makers.values() for line in lines)

    assert [op for op in SENTENCES if op not in makers] == []
    assert [op for op, said in SENTENCES.items() if said in makers[op]] == []
    assert [op for op in SENTENCES if all(count[line] == 1 for line in makers[op])] == []


def first_line(docstring: str | None) -> str:
    return (docstring or "").strip().partition("\n")[0]


def test_sentences_are_in_order() -> None:
    """Each op has one sentence, and is found at once."""
    ops = [line.partition("\t")[0] for line in LINES]

    assert ops == sorted(set(ops))
