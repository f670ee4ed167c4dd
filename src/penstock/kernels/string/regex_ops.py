"""Regular expressions on strings.

In:   strings, a pattern in RE2's syntax, a text to put in place of what matches.
Out:  whether all of a string matches; strings with the matches replaced.
Not:  reads no pattern itself; what one matches is RE2's to say.

Patterns and texts are bytes.  RE2 takes them for UTF-8, and matches no byte that is not, except
by ``\\C``.  Without RE2, ``plain_regex`` has simple patterns matched by Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, cast

import numpy as np

from penstock.core.values import Value, as_value, shape_of
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.exceptions import shown_cause
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.extras import require
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.string.plain_regex import plain_regex
from penstock.kernels.string.regex_groups import keep_groups
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.strings import each_string, each_to_number, items_of

_BOOL: Final = np.dtype(np.bool_)
#: Texts, and numbers of groups that stand for what they matched.
Rewrite = list[bytes | int]
_REWRITE: Final = re.compile(rb"\\(.?)|([^\\]+)", re.DOTALL)
_ESCAPED: Final = frozenset(bytes([byte]) for byte in b"\\0123456789")
#: The longest character that UTF-8 knows.
_LONGEST: Final = 4


def _compiled(pattern: bytes, last_group: int, *, searches: bool) -> Any:
    """The pattern, compiled; of its groups, those up to ``last_group`` are told apart.

    Args:
        pattern: in RE2's syntax.
        last_group: the last that somebody asks for.
        searches: whether matches are looked for inside of texts; else all of a text is to match.

    Raises:
        InvalidArgumentError: the pattern makes no sense, as TensorFlow words it.
        UnimplementedError: RE2 is not installed, and the pattern is not plain.

    """
    try:
        re2 = require("re2", "text")
    except UnimplementedError as missing:
        plain = plain_regex(pattern, searches=searches)
        if plain is None:
            raise _not_plain(pattern, missing) from None
        return plain
    return _of_re2(re2, pattern, last_group)


def _not_plain(pattern: bytes, missing: UnimplementedError) -> UnimplementedError:
    text = pattern.decode("utf-8", "replace")
    return UnimplementedError(
        f"The pattern '{text}' needs re2, which is not installed; docs/dependencies.md says which "
        "patterns do without",
        next_step=missing.advice,
    )


@lru_cache(maxsize=128)
def _of_re2(re2: ModuleType, pattern: bytes, last_group: int) -> Any:
    if last_group == 0:
        return _compile(re2, pattern, never_capture=True)
    regex = _compile(re2, pattern)
    fewer, count = keep_groups(pattern, last_group)
    # Nobody who counts differs from RE2 is trusted with the pattern.
    return regex if count != regex.groups or count <= last_group else _compile(re2, fewer)


def _compile(re2: Any, pattern: bytes, *, never_capture: bool = False) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = never_capture
    try:
        return re2.compile(pattern, options)
    except re2.error as cause:
        text = b"Invalid pattern: %b, error: %b" % (pattern, cause.args[0])
        raise InvalidArgumentError(text.decode("utf-8", "replace")) from shown_cause(cause)


def _scalar(value: Value, name: str) -> bytes:
    if shape_of(value) != ():
        raise InvalidArgumentError(
            f"{name} must be scalar, but received {shape_text(shape_of(value))}"
        )
    return items_of(value)[0]


# -- matching --------------------------------------------------------------------------


def _full_match(pattern: bytes) -> Kernel:
    """Whether the whole of each string matches."""
    full_match = _compiled(pattern, 0, searches=False).fullmatch
    return each_to_number(lambda text: full_match(text) is not None, _BOOL)


@kernel("StaticRegexFullMatch")
def make_static_regex_full_match(attrs: Attrs) -> Kernel:
    """Whether each string matches the node's pattern."""
    return _full_match(attrs.bytes("pattern"))


@kernel("RegexFullMatch")
def make_regex_full_match(_attrs: Attrs) -> Kernel:
    """Whether each string matches the pattern."""
    return lambda texts, pattern: _full_match(_scalar(pattern, "Pattern"))(texts)


# -- replacing -------------------------------------------------------------------------


def _replace(pattern: bytes, rewrite: bytes, *, replaces_all: bool) -> Kernel:
    """Each string with the rewrite in place of the first match, or of all."""
    escapes = [escaped for escaped, _plain in _REWRITE.findall(rewrite)]
    last = max((int(escaped) for escaped in escapes if escaped.isdigit()), default=0)
    regex = _compiled(pattern, last, searches=True)
    parts = _read_rewrite(rewrite, replaces_all=replaces_all) if last <= regex.groups else None
    if parts is None:
        return as_value
    write = _writer(parts)

    def replaced(text: bytes) -> bytes:
        pieces: list[bytes] = []
        end = 0
        for start, stop, match in _matches(regex, text):
            pieces += (text[end:start], write(match))
            end = stop
            if not replaces_all:
                break
        pieces.append(text[end:])
        return b"".join(pieces)

    return each_string(replaced)


def _matches(regex: Any, text: bytes) -> Iterator[tuple[int, int, Any]]:
    """All matches that RE2 would replace, and where: none that is empty right behind another."""
    at, end = 0, -1
    while True:
        for match in regex.finditer(text, at):
            start, stop = match.span()
            if start < stop or start != end:
                yield start, stop, match
            end = stop
            if start == stop and text[start : start + 1] >= b"\xc0":
                # The library would go on with the next byte, TensorFlow with the next character.
                at = start + _character_length(text, start)
                break
        else:
            return


def _character_length(text: bytes, at: int) -> int:
    """How many bytes the character there has, which is not ASCII; 1 if it is none."""
    for length in range(2, _LONGEST + 1):
        try:
            text[at : at + length].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            continue
        return length
    return 1


def _writer(parts: Rewrite) -> Callable[[Any], bytes]:
    """What replaces a match."""
    if all(isinstance(part, bytes) for part in parts):
        same = b"".join(cast("list[bytes]", parts))
        return lambda _: same
    return lambda match: b"".join(
        (match[part] or b"") if isinstance(part, int) else part for part in parts
    )


def _read_rewrite(rewrite: bytes, *, replaces_all: bool) -> Rewrite | None:
    """The parts of a rewrite; None if it makes no sense and all text is to stay.

    Where all matches are replaced, RE2 drops what follows an escape that means nothing; where
    only the first is, and where a group is not there, it replaces nothing.
    """
    parts: Rewrite = []
    is_sound = True
    for match in _REWRITE.finditer(rewrite):
        escaped, plain = match.groups()
        is_sound = is_sound and (escaped is None or escaped in _ESCAPED)
        if is_sound:
            parts.append(plain or (int(escaped) if escaped.isdigit() else escaped))
    return parts if is_sound or replaces_all else None


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
