"""Regular expressions in RE2's syntax, on top of Python's.

In:   a pattern as RE2 takes it, in bytes of UTF-8.
Out:  a compiled pattern of Python's that matches the same text; or InvalidArgumentError.
Not:  registers no kernel.

The two syntaxes differ little.  What RE2 lacks (looking around, references back) is refused;
what Python spells differently, or means differently, is spelt out:

* ``\\d \\s \\w \\b`` know ASCII only, and ``\\s`` has no vertical tab;
* ``$`` and ``\\z`` are the end of the text, not the line break before it;
* flags may stand anywhere in a group and hold to its end; ``U`` swaps greedy and lazy;
* ``[[:alpha:]]``, ``\\pL``, ``\\Q...\\E`` and ``\\x{10FFFF}`` do not exist in Python.

Text is matched by characters.  Bytes that are no UTF-8 pass as lone surrogates, which nothing
matches.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import Final

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.kernels.unicode_scripts import scripts

_MAX_REPEAT: Final = 1000
_SETS: Final = {
    "d": "0-9",
    "s": "\\t\\n\\f\\r ",
    "w": "0-9A-Za-z_",
}
#: Everything that is not in the set, as ranges.
_REST: Final = {
    "d": "\\x00-/:-\\U0010ffff",
    "s": "\\x00-\\x08\\x0b\\x0e-\\x1f!-\\U0010ffff",
    "w": "\\x00-/:-@\\[-^`{-\\U0010ffff",
}
_POSIX: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7f", "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z",
    "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": "\\t\\n\\v\\f\\r ", "upper": "A-Z",
    "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_ESCAPES: Final = {"a": "\\x07", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\v"}
_QUANTIFIER: Final = re.compile(r"[*+?]|\{[0-9]+(?:,[0-9]*)?\}")
_FLAGS: Final = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_NAME: Final = re.compile(r"\(\?P<(\w+)>", re.ASCII)


def compile_regex(pattern: bytes) -> re.Pattern[str]:
    """The pattern, compiled; raises InvalidArgumentError as TensorFlow words it."""
    text = pattern.decode("utf-8", "surrogateescape")
    try:
        return _compiled(text)
    except (re.error, _SyntaxError, OverflowError, RecursionError) as cause:
        shown = pattern.decode("utf-8", "replace")
        raise InvalidArgumentError(f"Invalid pattern: {shown}, error: {cause}") from cause


@lru_cache(maxsize=256)
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(_Translation(text).run())


class _SyntaxError(ValueError):
    """RE2 does not take the pattern."""


class _Group:
    """One open parenthesis: its flags, and what must be closed with it."""

    __slots__ = ("flags", "opened")

    def __init__(self, flags: str) -> None:
        self.flags = flags
        #: Openings of groups that stand for flags in the middle of this one.
        self.opened: list[str] = []


class _Translation:
    """One pass over a pattern."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out: list[str] = []
        self._groups = [_Group("")]
        #: Whether there is something that can be repeated, and the last repetition.
        self._can_repeat = False
        self._repeated = ""

    def run(self) -> str:
        """The whole pattern in Python's syntax."""
        while self._at < len(self._text):
            self._step(self._text[self._at])
        if len(self._groups) > 1:
            raise _SyntaxError(f"missing ): {self._text}")
        self._close_flags()
        return "".join(self._out)

    def _step(self, char: str) -> None:
        quantifier = _QUANTIFIER.match(self._text, self._at)
        if quantifier:
            self._repeat(quantifier.group())
            return
        if char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == "|":
            self._at += 1
            self._alternative()
        elif char == "[":
            self._emit(self._read_class())
        elif char == "\\":
            self._escape()
        else:
            self._at += 1
            self._emit(self._plain(char))

    def _emit(self, text: str, *, can_repeat: bool = True) -> None:
        self._out.append(text)
        self._can_repeat, self._repeated = can_repeat, ""

    def _plain(self, char: str) -> str:
        """An ordinary character, a dot or an anchor."""
        flags = self._groups[-1].flags
        if char == "$":
            return "(?m:$)" if "m" in flags else "\\Z"
        if char == "^":
            return "(?m:^)" if "m" in flags else "\\A"
        if char == ".":
            # A lone surrogate is a byte that is no text; nothing but text is a character.
            return "[^\\udc80-\\udcff]" if "s" in flags else "[^\\n\\udc80-\\udcff]"
        return re.escape(char)

    # -- repetition --------------------------------------------------------------------

    def _repeat(self, text: str) -> None:
        self._at += len(text)
        if self._repeated:
            raise _SyntaxError(f"bad repetition operator: {self._repeated}{text}")
        if not self._can_repeat:
            raise _SyntaxError(f"no argument for repetition operator: {text}")
        bounds = [int(n) for n in re.findall("[0-9]+", text)]
        if any(n > _MAX_REPEAT for n in bounds) or sorted(bounds) != bounds:
            raise _SyntaxError(f"invalid repetition size: {text}")
        is_lazy = self._text[self._at : self._at + 1] == "?"
        self._at += is_lazy
        if self._out[-1] in ("\\A", "\\Z"):
            self._out[-1] = f"(?:{self._out[-1]})"
        swaps = "U" in self._groups[-1].flags
        self._out.append(text + ("?" if is_lazy != swaps else ""))
        self._repeated = text + ("?" if is_lazy else "")

    # -- groups ------------------------------------------------------------------------

    def _open(self) -> None:
        flags = _FLAGS.match(self._text, self._at)
        name = _NAME.match(self._text, self._at)
        if flags:
            self._at = flags.end()
            self._set_flags(flags.group(1), (flags.group(2) or "")[1:], flags.group(3))
            return
        if name:
            self._at = name.end()
            self._push(name.group())
        elif self._text.startswith("(?", self._at):
            raise _SyntaxError(f"invalid perl operator: {self._text[self._at : self._at + 3]}")
        else:
            self._at += 1
            self._push("(")

    def _push(self, opening: str, flags: str | None = None) -> None:
        self._groups.append(_Group(self._groups[-1].flags if flags is None else flags))
        self._emit(opening, can_repeat=False)

    def _set_flags(self, on: str, off: str, end: str) -> None:
        old = self._groups[-1].flags
        new = "".join(sorted((set(old) | set(on)) - set(off)))
        opening = "(?i:" if "i" in new else "(?-i:"
        if end == ":":
            self._push(opening, new)
            return
        self._groups[-1].flags = new
        self._groups[-1].opened.append(opening)
        self._emit(opening, can_repeat=False)

    def _close_flags(self) -> None:
        self._out.append(")" * len(self._groups[-1].opened))

    def _alternative(self) -> None:
        opened = self._groups[-1].opened
        self._emit(")" * len(opened) + "|" + "".join(opened), can_repeat=False)

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise _SyntaxError(f"unexpected ): {self._text}")
        self._at += 1
        self._close_flags()
        self._groups.pop()
        self._emit(")")

    # -- escapes -----------------------------------------------------------------------

    def _escape(self) -> None:
        kind = self._text[self._at + 1 : self._at + 2]
        anchors = {"A": "\\A", "z": "\\Z", "b": "(?a:\\b)", "B": "(?a:\\B)"}
        if kind in anchors and kind:
            self._at += 2
            self._emit(anchors[kind])
        elif kind == "Q":
            end = self._text.find("\\E", self._at)
            stop = len(self._text) if end < 0 else end
            for char in self._text[self._at + 2 : stop]:
                self._emit(re.escape(char))
            self._at = stop + 2
        elif kind == "C":
            raise _SyntaxError("\\C is not supported here")
        else:
            is_set, inside = self._read_escape()
            self._emit(f"[{inside}]" if is_set else inside)

    def _read_escape(self) -> tuple[bool, str]:
        """An escape's meaning inside of a class, and whether it is more than one character."""
        rest = self._text[self._at + 1 :]
        if not rest:
            raise _SyntaxError("trailing \\")
        kind = rest[0]
        if kind.lower() in _SETS and kind.isascii():
            self._at += 2
            return True, (_SETS if kind.islower() else _REST)[kind.lower()]
        if kind in "pP":
            return True, self._read_property(rest)
        code = re.match(r"x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|(0[0-7]{0,2}|[1-7][0-7]{2})", rest)
        if code:
            self._at += 1 + code.end()
            number = int(code[1] or code[2], 16) if code[3] is None else int(code[3], 8)
            return False, _character(number, code.group())
        if kind in _ESCAPES:
            self._at += 2
            return False, _ESCAPES[kind]
        if kind.isalnum() and kind.isascii():
            raise _SyntaxError(f"invalid escape sequence: \\{kind}")
        self._at += 2
        return False, re.escape(kind)

    def _read_property(self, rest: str) -> str:
        found = re.match(r"[pP](?:\{(\^?)(\w+)\}|(\w))", rest)
        if not found:
            raise _SyntaxError(f"invalid character class range: \\{rest[:2]}")
        self._at += 1 + found.end()
        is_denied = (rest[0] == "P") != bool(found[1])
        return _category(found[2] or found[3], is_denied=is_denied)

    # -- classes -----------------------------------------------------------------------

    def _read_class(self) -> str:
        """A class in brackets, from its first bracket to its last."""
        start = self._at
        self._at += 1
        parts = ["["]
        if self._text.startswith("^", self._at):
            self._at += 1
            parts.append("^\\udc80-\\udcff")
        is_first = True
        while not self._text.startswith("]", self._at) or is_first:
            if self._at >= len(self._text):
                raise _SyntaxError(f"missing ]: {self._text[start:]}")
            parts.append(self._read_item())
            is_first = False
        self._at += 1
        return "".join(parts) + "]"

    def _read_item(self) -> str:
        """One character, range or named class within brackets."""
        named = re.compile(r"\[:(\^?)(\w+):\]").match(self._text, self._at)
        if named:
            self._at = named.end()
            if named[2] not in _POSIX:
                raise _SyntaxError(f"invalid character class range: {named.group()}")
            inside = _POSIX[named[2]]
            return _denied(inside) if named[1] else inside
        start = self._at
        is_set, low = self._read_member()
        follows = self._text[self._at : self._at + 2]
        if is_set or not follows.startswith("-") or follows == "-]":
            return low
        self._at += 1
        is_set, high = self._read_member()
        try:
            re.compile(f"[{low}-{high}]")
            is_range = not is_set
        except re.error:
            is_range = False
        if not is_range:
            shown = self._text[start : self._at]
            raise _SyntaxError(f"invalid character class range: {shown}")
        return f"{low}-{high}"

    def _read_member(self) -> tuple[bool, str]:
        if self._text.startswith("\\", self._at):
            return self._read_escape()
        char = self._text[self._at : self._at + 1]
        self._at += 1
        return False, re.escape(char)


def _character(number: int, shown: str) -> str:
    if number > sys.maxunicode:
        raise _SyntaxError(f"invalid escape sequence: \\{shown}")
    return f"\\U{number:08x}"


@lru_cache(maxsize=64)
def _denied(inside: str) -> str:
    """What a class does not hold, as ranges."""
    matches = re.compile(f"[{inside}]").match
    return _ranges([not matches(chr(code)) for code in range(sys.maxunicode + 1)])


#: Scripts by name, in the order of ICU's numbers.
_SCRIPTS: Final = (
    *("Common", "Inherited", "Arabic", "Armenian", "Bengali", "Bopomofo", "Cherokee", "Coptic"),
    *("Cyrillic", "Deseret", "Devanagari", "Ethiopic", "Georgian", "Gothic", "Greek", "Gujarati"),
    *("Gurmukhi", "Han", "Hangul", "Hebrew", "Hiragana", "Kannada", "Katakana", "Khmer", "Lao"),
    *("Latin", "Malayalam", "Mongolian", "Myanmar", "Ogham", "Old_Italic", "Oriya", "Runic"),
    *("Sinhala", "Syriac", "Tamil", "Telugu", "Thaana", "Thai", "Tibetan"),
)


@lru_cache(maxsize=64)
def _category(name: str, *, is_denied: bool) -> str:
    """Characters of a general category of Unicode, or of a script, as ranges."""
    if name == "Any":
        return "" if is_denied else "\\x00-\\U0010ffff"
    if name in _SCRIPTS:
        codes = np.arange(sys.maxunicode + 1)
        return _ranges(((scripts(codes) == _SCRIPTS.index(name)) != is_denied).tolist())
    category = unicodedata.category
    kept = [category(chr(code)).startswith(name) != is_denied for code in range(sys.maxunicode + 1)]
    if not any(category(chr(code)).startswith(name) for code in range(0x3000)):
        raise _SyntaxError(f"invalid character class range: \\p{{{name}}}")
    return _ranges(kept)


def _ranges(kept: list[bool]) -> str:
    """The numbers of what is kept, as ranges of a class."""
    parts: list[str] = []
    start: int | None = None
    for code, is_kept in enumerate([*kept, False]):
        if is_kept and start is None:
            start = code
        elif not is_kept and start is not None:
            parts.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(parts)
