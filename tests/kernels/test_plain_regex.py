"""Patterns that are matched without RE2: which they are, and that RE2 and TensorFlow agree."""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.kernels.string.plain_regex import plain_regex
from support.corpus import run_steps
from support.op_cases import all_op_cases
from support.ops import make_op, run_op

#: Patterns, and whether they are plain for whole texts and inside of texts.
PATTERNS = [
    (r"^s3://.*", True, True),  # what every Saver of TensorFlow asks
    (r"[!\"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']", True, True),  # what Keras' text layers drop
    (r"\s+", True, True),
    (r"x{2,3}", True, True),
    (r"^a|b$|ü", True, True),
    (r"(png|jpg)", True, True),
    (r"([a-z]+)", True, True),
    (r"(\d+)-(\d+)", True, False),  # what begins with many digits fails late
    (r"<[^>]*>", True, False),
    (r"\s+$", True, False),
    (r".*\.(?:png|jpg)", True, False),
    (r"a*", True, False),  # may be empty
    (r"", True, False),
    (r".*a.*b", False, False),  # two places to go back to
    (r"a?a?a?", False, False),
    (r"a*a{0,300}", False, False),
    (r"(a|ab)", False, False),
    (r"(a*)*", False, False),
    (r"(ab)+", False, False),
    (r"((a))", False, False),
    (r"a*?", False, False),
    (r"a**", False, False),
    (r"a{1001}", False, False),
    (r"(?i)a", False, False),
    (r"\bword", False, False),
    (r"\pL", False, False),
    (r"\C", False, False),
    (r"[[:alpha:]]", False, False),
    (r"[a-\d]", False, False),
    (r"[]a]", False, False),
    (r"[ü]", False, False),
    (r"ü*", False, False),
    (r"\xff", False, False),
    (r"a{", False, False),
    (r"a)", False, False),
    (r"(a", False, False),
    (r"[a", False, False),
    ("a\\", False, False),
]


@pytest.fixture
def without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain install."""
    monkeypatch.setitem(sys.modules, "re2", None)


@pytest.mark.parametrize(("pattern", "in_whole", "inside"), PATTERNS)
def test_which_patterns_are_plain(pattern: str, in_whole: bool, inside: bool) -> None:
    """Those that mean the same and cannot take long; and no others."""
    found = [plain_regex(pattern.encode(), searches=searches) for searches in (False, True)]

    assert [regex is not None for regex in found] == [in_whole, inside]


@pytest.mark.usefixtures("without_re2")
def test_plain_patterns_need_no_library() -> None:
    """Whole texts, matches inside of them, and groups in what replaces them."""
    texts = np.array([b"s3://a/b", b"/s3://a", b"s3://\n", b"s3:/"], object)
    assert run_op("StaticRegexFullMatch", texts, pattern="^s3://.*").tolist() == [
        True, False, False, False,
    ]  # fmt: skip
    assert run_op("RegexFullMatch", b"a.png", rb".*\.(png|jpg)")
    replaced = run_op("StaticRegexReplace", b"a1b22", pattern=r"([0-9])", rewrite=r"<\1>")
    assert replaced == b"a<1>b<2><2>"
    assert run_op("RegexReplace", "ä, ö!".encode(), rb"[,!]", b"") == "ä ö".encode()


@pytest.mark.usefixtures("without_re2")
def test_other_patterns_say_what_they_need() -> None:
    """When they are met: for a static one that is when its kernel is made."""
    with pytest.raises(
        errors.UnimplementedError, match=r"'\.\*a\.\*' needs re2.*\n.*penstock\[text\]"
    ):
        make_op("StaticRegexFullMatch", b"", pattern=".*a.*")
    for op_name, inputs in (
        ("RegexFullMatch", [b"", b"(a*)*"]),
        ("RegexReplace", [b"", b"(a*)*", b""]),
    ):
        with pytest.raises(errors.UnimplementedError, match=r"penstock\[text\]"):
            run_op(op_name, *inputs)


@pytest.mark.usefixtures("without_re2")
def test_answers_are_tensorflows() -> None:
    """Whatever is answered without the library is what TensorFlow answers."""
    cases = [case for case in all_op_cases() if case.family == "regexes"]
    answered = 0
    for case in cases:
        try:
            with ps.Session(case.graph_bytes) as session:
                run_steps(session, case)
        except (AssertionError, errors.OpError) as error:
            assert "needs re2" in str(error), case
        else:
            answered += 1

    assert answered >= 8  # most of them are about what is rare


# -- RE2 itself ------------------------------------------------------------------------

ATOMS = (
    *("a", "b", "c", ".", "ü", "-", "/", "{", "}", "]", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S"),
    *("[ab]", "[^a]", "[a-c]", r"[^\s]", "[-a]", "[a-]", r"[\d.]", "[]a]", "[^]a]", r"[a\-c]"),
    *("[+--]", "[^-a]", r"[a-\d]", r"[\W]", r"[^\W]", r"[^\n]", "[[:alpha:]]", "[a-b-c]", "[ü]"),
    *(r"\.", r"\n", r"\/", r"\_", r"\v", r"\C", r"\pL", r"\b", "(?i)", r"\x41"),
)
TIMES = (*[""] * 6, "*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "{,2}", "*?", "{1001}", "**")
BYTES = (
    *(
        b"a",
        b"b",
        b"c",
        b"1",
        b" ",
        b"\n",
        b".",
        b"-",
        b"/",
        b"+",
        b",",
        b"_",
        b"\0",
        b"\x0b",
        b"]",
    ),
    *(b"\xc3\xbc", b"\xc3", b"\xbc", b"\xe0\x80\x80", b"\xf4\xbf\xbf\xbf", b"\xff", b"\xc0\x80"),
    *(b"\xed\xa0\x80", b"\xf0\x90\x80\x80", b"\xf5\x80\x80\x80"),
)


def some_pattern(draw: Random) -> bytes:
    """A pattern, which may make no sense."""
    return (
        draw.choice(("", "", "^")) + _items(draw, 0) + draw.choice(("", "", "$"))
        + (f"|{_items(draw, 0)}" if draw.random() < 0.1 else "")
    ).encode()  # fmt: skip


def _items(draw: Random, depth: int) -> str:
    text = ""
    for _ in range(draw.randrange(5)):
        if draw.random() < 0.15 and depth < 2:
            choice = [
                draw.choice(("a", "ab", "bc", "c", "", "ü", "."))
                for _ in range(draw.randrange(1, 4))
            ]
            inner = "|".join(choice) if draw.random() < 0.5 else _items(draw, depth + 1)
            text += (
                draw.choice(("(", "(?:", "(?P<n>")) + inner + ")" + draw.choice((*[""] * 5, "*"))
            )
        else:
            text += draw.choice(ATOMS) + draw.choice(TIMES)
    return text


def some_text(draw: Random) -> bytes:
    """A few characters, and bytes that are none."""
    return b"".join(draw.choice(BYTES) for _ in range(draw.randrange(7)))


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 2_000), pytest.param(2, 30_000, marks=pytest.mark.slow)]
)
def test_re2_agrees(seed: int, count: int) -> None:
    """Every plain pattern is one of RE2's, and matches the same in the same places, and groups."""
    re2 = pytest.importorskip("re2", reason="the extra text is not installed")
    options = re2.Options()
    options.log_errors = False
    draw = Random(seed)
    texts, plain = [some_text(draw) for _ in range(400)], 0
    for _ in range(count):
        pattern = some_pattern(draw)
        for searches in (False, True):
            ours = plain_regex(pattern, searches=searches)
            if ours is None:
                continue
            plain += 1
            theirs = re2.compile(pattern, options)
            assert ours.groups == theirs.groups
            for text in draw.sample(texts, 40):
                if searches:
                    found, wanted = (
                        [(match.span(), match.groups()) for match in regex.finditer(text)]
                        for regex in (ours, theirs)
                    )
                else:
                    found, wanted = (regex.fullmatch(text) is not None for regex in (ours, theirs))
                assert found == wanted, (pattern, text)

    assert plain > count / 4


# -- time ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "searches", "text"),
    [
        (rb".*x", False, b"a"), (rb".*xy{250}", False, b"xyyx"), (rb"[^x]*x.*y?", False, b"a"),
        (rb"a{0,250}b", True, b"a"), (rb"a{3}[^b]+", True, b"aab"), (rb".*x", False, b"\xc3\xbc"),
    ],
)  # fmt: skip
def test_plain_patterns_take_time_by_the_length_of_the_text(
    pattern: bytes, searches: bool, text: bytes
) -> None:
    """A megabyte on which they nearly match comes to an end; what is squared would take hours."""
    regex = plain_regex(pattern, searches=searches)
    assert regex is not None
    long = text * (1_000_000 // len(text))
    found = list(regex.finditer(long)) if searches else [regex.fullmatch(long)]
    assert len(found) < len(long)
