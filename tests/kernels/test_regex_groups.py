"""Patterns lose groups that nobody asks for, and nothing else."""

from __future__ import annotations

import random

import numpy as np
import pytest

from penstock.kernels.string.regex_groups import keep_groups
from support.ops import run_op

re2 = pytest.importorskip("re2", reason="the extra text is not installed")

#: What patterns are made of; each is a whole, or a group around what comes inside.
PARTS = (
    b"a", b"b", b".", b"\\(", b"\\)", b"\\\\", b"[(]", b"[^(]", b"[])(]", b"[\\](]",
    b"[[:alpha:](]", b"\\Q(\\E", b"\\d", b"(?i)", b"(?:a(b))", b"\xc3\xa9", b"(?i:a)", b"|",
)  # fmt: skip
GROUPS = (b"(%b)", b"(?:%b)", b"(?P<n%d>%b)", b"(?<m%d>%b)", b"(%b)*", b"(%b|b)")
TEXTS = (b"", b"a", b"ab(", b"(a)b\\", b"aab\xc3\xa9b(", b"B]A[((")


def pattern(draw: random.Random) -> bytes:
    """A pattern of some depth, with names that occur once."""
    text = b""
    for number in range(draw.randrange(1, 7)):
        text += b"".join(draw.choices(PARTS, k=draw.randrange(3)))
        shape = draw.choice(GROUPS)
        text = shape.replace(b"%d", b"%d" % number).replace(b"%b", text)
    return text


@pytest.mark.parametrize("seed", range(300))
def test_the_first_groups_stay_as_they_are(seed: int) -> None:
    """What is left matches the same texts at the same places, and its groups the same parts."""
    draw = random.Random(seed)
    source, last = pattern(draw), draw.randrange(4)
    try:
        whole = re2.compile(source)
    except re2.error:
        return
    text, count = keep_groups(source, last)
    fewer = re2.compile(text)

    assert count == whole.groups
    assert fewer.groups == min(last, whole.groups)
    for given in TEXTS:
        found = [[m.span(g) for g in range(fewer.groups + 1)] for m in whole.finditer(given)]
        assert [
            [m.span(g) for g in range(fewer.groups + 1)] for m in fewer.finditer(given)
        ] == found


@pytest.mark.parametrize("rewrite", [b"x", b"<\\0>", b"<\\1>", b"<\\9>"])
@pytest.mark.parametrize("count", [5_000, 20_000])
def test_many_groups(count: int, rewrite: bytes) -> None:
    """Five thousand nested groups cost what few do; RE2's binding would take a minute."""
    nested = b"(" * count + b"a" + b")" * count
    texts = np.array([b"a" * 100, b"bab"], object)
    got = run_op("RegexReplace", texts, nested, rewrite)
    one = rewrite.replace(b"\\0", b"a").replace(b"\\1", b"a").replace(b"\\9", b"a")

    assert got.tolist() == [one * 100, b"b" + one + b"b"]


def test_many_groups_in_a_row() -> None:
    """So do groups that stand side by side."""
    assert run_op("RegexReplace", b"a" * 3000, b"(a)" * 3000, b"\\2") == b"a"
    assert run_op("RegexFullMatch", b"a" * 3000, b"(a)" * 3000)
