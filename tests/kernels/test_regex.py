"""Regular expressions in RE2's syntax; expected values were recorded from TensorFlow."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from penstock import errors
from support.ops import make_op, run_op

pytest.importorskip("re2", reason="the extra text is not installed")


@pytest.mark.parametrize(
    ("pattern", "rewrite", "text", "replaced"),
    [
        (b"x*", b"-", b"abxd", b"-a-b-d-"),
        (b"x*?", b"-", b"abxd", b"-a-b-x-d-"),
        (b"x*?", b"-", b"xx", b"-x-x-"),
        (b"x", b"\\1", b"abxd", b"abxd"),
        (b"x", b"\\1", b"qq", b"qq"),
        (b"x", b"\\q", b"abxd", b"abd"),
        (b"x", b"\\q", b"qq", b"qq"),
        (b"x", b"a\\", b"abxd", b"abad"),
        (b"x", b"a\\", b"qq", b"qq"),
        (b".", b"-", b"a\xffb", b"-\xff-"),
        (b"[^a]", b"-", b"a\xffb", b"a\xff-"),
        (b"a$", b"-", b"a\n", b"a\n"),
        (b"(?m)$", b"-", b"a\nb\n", b"a-\nb-\n-"),
        (b"(?m)^", b"-", b"a\nb\n", b"-a\n-b\n-"),
        (b"(?s)a.b", b"-", b"a\nb", b"-"),
        (b"(?P<n>X)\\bq|[[:upper:]]", b"<\\0>", b"aXb", b"a<X>b"),
        (b"(?U)a+", b"-", b"aaa", b"---"),
        (b"(?U)a+?", b"-", b"aaa", b"-"),
        (b"a(?i)b|c", b"-", b"aB AB c C", b"- AB - -"),
        (b"(?i)\xc3\xa9", b"-", b"\xc3\x89 \xc3\xa9 E", b"- - E"),
        (b"\\d|\\s", b"-", b"\xd9\xa33 a\x0bb", b"\xd9\xa3--a\x0bb"),
        (b"\\pL", b"-", b"a\xc3\xa9\xc3\x9f1\xc3\x84\xce\xa9", b"---1--"),
        (b"\\p{Lu}", b"-", b"a\xc3\xa9\xc3\x9f1\xc3\x84\xce\xa9", b"a\xc3\xa9\xc3\x9f1--"),
        (b"[^\\p{Lu}1]", b"-", b"a\xc3\xa9\xc3\x9f1\xc3\x84\xce\xa9", b"---1\xc3\x84\xce\xa9"),
        (
            b"\\p{Greek}",
            b"-",
            b"a\xc3\xa9\xc3\x9f1\xc3\x84\xce\xa9",
            b"a\xc3\xa9\xc3\x9f1\xc3\x84-",
        ),
        (
            b"\\PL",
            b"-",
            b"a\xc3\xa9\xc3\x9f1\xc3\x84\xce\xa9",
            b"a\xc3\xa9\xc3\x9f-\xc3\x84\xce\xa9",
        ),
        (b"\\Q.b*\\E", b"-", b"a.b*c", b"a-c"),
        (b"\\x{e9}|\\x62", b"-", b"a\xc3\xa9b", b"a--"),
        (b"[\\]\\-b]", b"-", b"ab-]c", b"a---c"),
        (b"(\\w+) (\\w+)", b"\\2 \\1", b"foo bar baz", b"bar foo baz"),
        (b"(\\w+)|(zz)", b"<\\2\\1>", b"foo bar baz", b"<foo> <bar> <baz>"),
        (b"\\W", b"_", b"foo bar", b"foo_bar"),
        (b"[^\\W]", b"_", b"foo bar", b"___ ___"),
        (b"^*", b"_", b"foo bar", b"_f_o_o_ _b_a_r_"),
        (b"(?:^)*f", b"_", b"foo bar", b"_oo bar"),
        (b"\\b", b"_", b"foo bar", b"_foo_ _bar_"),
        (b"o #", b"_", b"foo # bar", b"fo_ bar"),
        (b"a|", b"_", b"foo bar", b"_f_o_o_ _b_r_"),
        (b"(foo|foobar)", b"_", b"foobar", b"_bar"),
        (b"(?i:O)o(?-i)B", b"_", b"foo bar", b"foo bar"),
    ],
)
def test_replace(pattern: bytes, rewrite: bytes, text: bytes, replaced: bytes) -> None:
    """Matches are found and replaced as RE2 does, whether the pattern is an input or not."""
    assert run_op("RegexReplace", text, pattern, rewrite) == replaced
    assert run_op("StaticRegexReplace", text, pattern=pattern, rewrite=rewrite) == replaced


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (b"a{,2}", b"a{,2}", True),
        (b"a{2", b"a{2", True),
        (b"[]a]+", b"a]", True),
        (b"ab.?", b"abc", True),
        (b"ab.?", b"ab\n", False),
        (b"foo|foobar", b"foobar", True),
        (b".*", b"a\xff", False),
        (b"", b"", True),
    ],
)
def test_full_match(pattern: bytes, text: bytes, matches: bool) -> None:
    """A full match is one of the whole text."""
    assert run_op("RegexFullMatch", text, pattern) == matches
    assert run_op("StaticRegexFullMatch", text, pattern=pattern) == matches


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("(", "missing ): ("),
        (")", "unexpected ): )"),
        ("(?=a)", "invalid perl operator: (?="),
        ("a**", "bad repetition operator: **"),
        ("a++", "bad repetition operator: ++"),
        ("*a", "no argument for repetition operator: *"),
        ("a{2,1}", "invalid repetition size: {2,1}"),
        ("[a", "missing ]: [a"),
        ("[b-a]", "invalid character class range: b-a"),
        ("(ab)\\1", "invalid escape sequence: \\1"),
        ("\\p{Foo}", "invalid character class range: \\p{Foo}"),
        ("[a||b--~~&&]", "invalid character class range: b--"),
        ("\\y", "invalid escape sequence: \\y"),
        ("o\\", "trailing \\"),
        ("(?x)o o", "invalid perl operator: (?x"),
    ],
)
def test_refused(pattern: str, complaint: str) -> None:
    """What RE2 does not take is refused in its words."""
    with pytest.raises(errors.InvalidArgumentError) as raised:
        run_op("RegexFullMatch", b"", pattern.encode())
    assert f"Invalid pattern: {pattern}, error: {complaint}" in str(raised.value)


def test_bytes_that_are_no_text() -> None:
    """A pattern must be UTF-8; what is said about another one can be read."""
    with pytest.raises(errors.InvalidArgumentError, match="Invalid pattern: a\ufffd, error: inv"):
        run_op("StaticRegexFullMatch", b"a", pattern=b"a\xff")


def test_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without RE2 patterns that are not plain say what to install; with it RE2 has all of them."""
    monkeypatch.setitem(sys.modules, "re2", None)
    for op_name, inputs in (
        ("RegexFullMatch", [b"", b"(a*)*"]),
        ("RegexReplace", [b"", b"a*", b""]),
    ):
        with pytest.raises(errors.UnimplementedError, match=r"penstock\[text\]"):
            run_op(op_name, *inputs)


def test_threads_share_a_pattern() -> None:
    """Kernels of one pattern run side by side; each text gets its own answer."""
    texts = [b"a%db" % number * 50 for number in range(40)]
    kernel, _ = make_op("StaticRegexReplace", b"", pattern="[0-9]+", rewrite="<\\0>")
    with ThreadPoolExecutor(8) as pool:
        replaced = list(pool.map(kernel, texts))

    assert replaced == [b"a<%d>b" % number * 50 for number in range(40)]


def test_only_the_first() -> None:
    """Without replace_global only the first match of each string is replaced."""
    texts = np.array([b"xx", b"ax"], object)
    replaced = run_op("StaticRegexReplace", texts, pattern="x", rewrite="-", replace_global=False)
    assert replaced.tolist() == [b"-x", b"a-"]


def test_pattern_must_be_scalar() -> None:
    """A vector is no pattern."""
    with pytest.raises(errors.InvalidArgumentError, match=r"Pattern must be scalar.*\[1\]"):
        run_op("RegexFullMatch", b"", np.array([b"a"], object))
