"""Regular expressions on strings.

In:   strings, a pattern, a text to put in place of what matches.
Out:  whether all of a string matches; strings with the matches replaced.
Not:  the syntax is RE2's, see ``regexes``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core.values import Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.regexes import compile_regex
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.strings import each_string, each_to_number, items_of

_BOOL: Final = np.dtype(np.bool_)
_REWRITE: Final = re.compile(rb"\\(.?)|([^\\]+)", re.DOTALL)


def _scalar(value: Value, name: str) -> bytes:
    if shape_of(value) != ():
        raise InvalidArgumentError(
            f"{name} must be scalar, but received {shape_text(shape_of(value))}"
        )
    return items_of(value)[0]


# -- matching --------------------------------------------------------------------------


def _full_match(pattern: bytes) -> Kernel:
    """Whether the whole of each string matches."""
    full_match = compile_regex(pattern).fullmatch
    return each_to_number(lambda text: full_match(_decoded(text)) is not None, _BOOL)


@kernel("StaticRegexFullMatch")
def make_static_regex_full_match(attrs: Attrs) -> Kernel:
    """Whether each string matches the node's pattern."""
    return _full_match(attrs.bytes("pattern"))


@kernel("RegexFullMatch")
def make_regex_full_match(_attrs: Attrs) -> Kernel:
    """Whether each string matches the pattern."""
    return lambda texts, pattern: _full_match(_scalar(pattern, "Pattern"))(texts)


# -- replacing -------------------------------------------------------------------------


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _replace(pattern: bytes, rewrite: bytes, *, replaces_all: bool) -> Kernel:
    """Each string with the rewrite in place of the first match, or of all."""
    regex = compile_regex(pattern)
    write = _writer(rewrite, regex.groups)
    if write is None:
        # RE2 leaves the text alone if the rewrite makes no sense, and so does TensorFlow.
        return as_value

    def replaced(text: bytes) -> bytes:
        source = _decoded(text)
        parts: list[str] = []
        end = 0
        for match in _matches(regex, source):
            parts += (source[end : match.start()], write(match))
            end = match.end()
            if not replaces_all:
                break
        parts.append(source[end:])
        return "".join(parts).encode("utf-8", "surrogateescape")

    return each_string(replaced)


def _matches(regex: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """All matches that RE2 would replace: none that is empty right behind another."""
    found: list[re.Match[str]] = []
    at, end = 0, -1
    while at <= len(text) and (match := regex.search(text, at)):
        if match.start() == match.end() == end:
            at = end + 1
            continue
        found.append(match)
        at = end = match.end()
    return found


def _writer(rewrite: bytes, groups: int) -> Callable[[re.Match[str]], str] | None:
    """What replaces a match; None if the rewrite names groups that are not there.

    An escape that means nothing ends the rewrite.
    """
    parts: list[str | int] = []
    for match in _REWRITE.finditer(rewrite):
        escaped, plain = match.groups()
        if plain is not None:
            parts.append(_decoded(plain))
        elif escaped == b"\\":
            parts.append("\\")
        elif escaped.isdigit():
            parts.append(int(escaped))
        else:
            break
    if any(isinstance(part, int) and part > groups for part in parts):
        return None
    return lambda match: "".join(
        (match[part] or "") if isinstance(part, int) else part for part in parts
    )


@kernel("StaticRegexReplace")
def make_static_regex_replace(attrs: Attrs) -> Kernel:
    """Strings with matches of the node's pattern replaced."""
    return _replace(
        attrs.bytes("pattern"),
        attrs.bytes("rewrite"),
        replaces_all=attrs.bool("replace_global"),
    )


@kernel("RegexReplace")
def make_regex_replace(attrs: Attrs) -> Kernel:
    """Strings with matches of the pattern replaced."""
    replaces_all = attrs.bool("replace_global")

    def replace(texts: Value, pattern: Value, rewrite: Value) -> Value:
        source, target = _scalar(pattern, "Pattern"), _scalar(rewrite, "Rewrite")
        return _replace(source, target, replaces_all=replaces_all)(texts)

    return replace
