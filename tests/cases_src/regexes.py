"""Regular expressions: patterns, texts and rewrites at the edges of RE2's syntax."""

from __future__ import annotations

from typing import Any

from cases_src.casebook import Case, op, s

#: Characters of one to four bytes, bytes that are none, and a character that UTF-16 alone knows.
_TEXTS = s([
    b"", b"abxd", b"xx", b"a\xc3\xa9\xce\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80", b"a\xff\xc3",
    b"\xed\xa0\x80", b"\xe0\x80\x80\xc0\x80\xf4\x90\x80\x80", b"\x00a\x00", b"a\nA b\n",
])  # fmt: skip
#: What matches nothing, a part of a character, or both ends of it.
_PATTERNS = (
    b"", b"x*", b"x*?", b"x|", b"$", b"(?m)^", b"\\b", b"\\B", b"\\C", b".", b"(?s).", b"[^a]",
    b"\\x00", b"\\x{3a9}", b"\\p{Han}", b"\\p{Cyrillic}|\\P{Common}", b"(?i)\xc3\x89|A",
    b"[[:^ascii:]]+", b"(?P<name>a)", b"(?U)[a-z]+", b"\\pN?",
)  # fmt: skip
_REWRITES = (
    b"\\1", b"[\\3\\2\\1]", b"\\4", b"\\\\\\0", b"\\10", b"a\\", b"a\\q", b"\\q\\5", b"\\4\\q",
    b"\\1\\q\\2", b"\xff\x00", b"\\\n", b"",
)  # fmt: skip
#: Patterns that RE2 refuses, and what it says.
_REFUSED = {
    b"(": "missing ): (",
    b"a)": "unexpected ): a)",
    b"[\xc3\xa9": "missing ]: [\u00e9",
    b"[b[:foo:]]": "invalid character class range: [:foo:]",
    b"[a-\\d]": "invalid escape sequence: \\d",
    b"a**": "bad repetition operator: **",
    b"(?i)*": "no argument for repetition operator: *",
    b"a{1001}": "invalid repetition size: {1001}",
    b"((a{100}){100}){100}": "invalid repetition size: {100}",
    b"((\\pL{30}){30})": "pattern too large - compile failed",
    b"(?P<n": "invalid named capture group: (?P<n",
    b"(?P=n)": "invalid perl operator: (?P",
    b"(?!a)": "invalid perl operator: (?!",
    b"(a)\\1": "invalid escape sequence: \\1",
    b"\\Z": "invalid escape sequence: \\Z",
    b"\\x{110000}": "invalid escape sequence: \\x{110000",
    b"\\p{Foo}": "invalid character class range: \\p{Foo}",
    b"a\\": "trailing \\",
}
#: Python's own expressions would take longer than the world will last.
_PATIENT = (b"(a|a)*b", b"(a*)*b", b"(a?){40}a{40}b")


def replaced(pattern: bytes, rewrite: bytes, texts: Any = _TEXTS, **attrs: Any) -> Case:
    """Texts with matches of a pattern replaced."""
    return op("RegexReplace", input=texts, pattern=s(pattern), rewrite=s(rewrite), **attrs)


def refused(pattern: bytes, complaint: str) -> Case:
    """A pattern that cannot be read."""
    says = f"Invalid pattern: {pattern.decode()}, error: {complaint}"
    return op("StaticRegexFullMatch", input=s(b""), pattern=pattern, says=says)


CASES = [
    *(replaced(pattern, b"<\\0>") for pattern in _PATTERNS),
    *(replaced(pattern, b"-", replace_global=False) for pattern in _PATTERNS),
    *(
        op("RegexFullMatch", input=_TEXTS, pattern=s(b"(?:%b)+" % pattern))
        for pattern in _PATTERNS[7:]
    ),
    *(
        replaced(b"(a)(b)?(x)?", rewrite, s([b"", b"qq", b"abxad"]), replace_global=replaces_all)
        for rewrite in _REWRITES
        for replaces_all in (True, False)
    ),
    *(
        op("StaticRegexReplace", input=s([b"abxad"]), pattern=b"a(b)?", rewrite=rewrite)
        for rewrite in (b"[\\1\\0]", b"a\\q", b"\\2")
    ),
    *(refused(pattern, complaint) for pattern, complaint in _REFUSED.items()),
    *(op("RegexFullMatch", input=s(b"a" * 300), pattern=s(pattern)) for pattern in _PATIENT),
    *(replaced(pattern, b"-", s([b"a" * 60, b"aab"])) for pattern in _PATIENT),
    op("RegexReplace", input=s([]), pattern=s(b"a"), rewrite=s(b"b")),
    op("RegexReplace", input=s(b"a"), pattern=s([b"a"]), rewrite=s(b"b"), says="must be scalar"),
    op("RegexReplace", input=s(b"a"), pattern=s(b"a"), rewrite=s([b"b"]), says="must be scalar"),
    op("RegexFullMatch", input=s(b"a"), pattern=s([b"a"]), says="must be scalar"),
    op("RegexReplace", input=s([]), pattern=s(b"("), rewrite=s(b"b"), says="missing ): ("),
]
