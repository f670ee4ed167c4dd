"""Regular expressions that Python's own ``re`` matches as RE2 does, in time linear in the text.

In:   a pattern in RE2's syntax.
Out:  the same for ``re``, or None if it is not one of these.
Not:  is no second opinion: where RE2 is installed, nobody asks this module.

A plain pattern is this, and whatever is not listed is none:

- sequences of items, separated by ``|``; each may begin with ``^`` and end with ``$``;
- an item is a character, a class of ASCII characters, ``.``, ``\\d \\w \\s \\D \\W \\S``, an
  escaped punctuation mark, or ``\\a \\f \\n \\r \\t \\v``;
- behind an item that is no group and not outside of ASCII: ``* + ? {n} {n,} {n,m}``, with no more
  than 1,000, and no ``?`` behind it;
- items may stand in round brackets, ``(…)`` or ``(?:…)``, which are not repeated and not nested; in
  brackets there may be texts instead, separated by ``|``, no two of which begin alike.

What could take long is refused.  ``re`` goes back when it fails, and tries whatever else could be.
Where an item may occur more or less often, and what follows begins with none of its characters,
there is nothing else, and ``re`` is told so (``*+``).  One other item may be of any length, if what
follows has a limit: so each place is tried once, with no more than so many characters.  Where
matches are looked for inside of a text, only the last item may be without a limit, and no match is
empty: what begins anywhere fails soon.

Characters are those of UTF-8, as RE2 reads bytes: ``.`` and classes of what they do not contain
match neither a byte that begins no character, nor half a one; nor does RE2 look whether three bytes
could have been two.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

from penstock.dataclass import dataclass

#: No more repetitions, which are RE2's own limit.
_MOST_TIMES: Final = 1_000
#: So many characters may follow what could be of another length.
_MOST_BEHIND: Final = 256
#: Longer patterns, and those of more sequences, are none.
_LONGEST: Final = 10_000
_MOST_SEQUENCES: Final = 100
_ASCII: Final = frozenset(range(128))
#: Bytes with which characters outside of ASCII begin, for RE2.
_LEADS: Final = frozenset(range(0xC2, 0xF5))
_ONE_WIDE: Final = rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
_DIGITS: Final = frozenset(string.digits.encode())
_WORD: Final = frozenset((string.ascii_letters + string.digits + "_").encode())
_SPACE: Final = frozenset(b"\t\n\f\r ")
_CLASSES: Final = {b"d": _DIGITS, b"w": _WORD, b"s": _SPACE}
_CONTROLS: Final = {b"a": 7, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11}
_PUNCTUATION: Final = frozenset(string.punctuation.encode()) - {ord("_")}
#: What stands for itself only behind a backslash.
_SPECIAL: Final = frozenset(rb"\.+*?()|[]{}^$")
_REPEAT: Final = re.compile(rb"\*|\+|\?|\{(\d{1,4})(,(\d{0,4}))?\}")
_TIMES: Final = {b"*": (0, None), b"+": (1, None), b"?": (0, 1)}

#: ASCII characters, and whether all characters outside of ASCII are meant as well.
_Class: TypeAlias = tuple[frozenset[int], bool]


class _NotPlainError(Exception):
    """The pattern is not one of those that are handled here."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A character or class and how often it may occur; or texts of which one is there."""

    chars: frozenset[int] = frozenset()
    is_wide: bool = False
    least: int = 1
    most: int | None = 1
    texts: tuple[bytes, ...] = ()
    #: Round brackets before and behind.
    before: bytes = b""
    behind: bytes = b""

    @property
    def first(self) -> frozenset[int]:
        """The bytes with which it may begin."""
        if self.texts:
            return frozenset(text[0] for text in self.texts)
        return self.chars | _LEADS if self.is_wide else self.chars

    @property
    def is_variable(self) -> bool:
        """Whether it may occur more or less often."""
        return self.least != self.most

    @property
    def longest(self) -> int | None:
        """How many characters it may have."""
        return max(map(len, self.texts)) if self.texts else self.most


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Items one behind the other, and whether they are all of the text before or behind."""

    items: tuple[_Item, ...]
    starts: bool
    ends: bool


class PlainRegex:
    """A pattern, as ``re`` matches it: in texts of ASCII, and in others."""

    def __init__(self, ascii_pattern: bytes, pattern: bytes) -> None:
        # In ASCII a class is one set of bytes, of which ``re`` remembers no single one.
        self._ascii: Final = re.compile(ascii_pattern)
        self._wide: Final = re.compile(pattern)
        #: How many brackets can be asked for.
        self.groups: Final = self._wide.groups

    def fullmatch(self, text: bytes) -> re.Match[bytes] | None:
        """The match of all of a text."""
        return (self._ascii if text.isascii() else self._wide).fullmatch(text)

    def finditer(self, text: bytes, start: int = 0) -> Iterator[re.Match[bytes]]:
        """Matches inside of a text, one behind the other."""
        return (self._ascii if text.isascii() else self._wide).finditer(text, start)


@lru_cache(maxsize=128)
def plain_regex(pattern: bytes, *, searches: bool) -> PlainRegex | None:
    """The pattern for ``re``; None if it is not plain.

    Args:
        pattern: in RE2's syntax.
        searches: whether matches are looked for inside of texts; else all of a text is to match.

    """
    try:
        sequences = list(_Parser(pattern).sequences())
        parts = [_written(sequence, searches=searches) for sequence in sequences]
    except _NotPlainError:
        return None
    ascii_parts, all_parts = zip(*parts, strict=True)
    return PlainRegex(b"|".join(ascii_parts), b"|".join(all_parts))


# -- what takes long -------------------------------------------------------------------


def _written(sequence: _Sequence, *, searches: bool) -> tuple[bytes, bytes]:
    """A sequence for ``re`` and ASCII, and for any text.

    Raises:
        _NotPlainError: it could take long.

    """
    items = sequence.items
    if searches:
        _check_search(sequence)
    before, behind = rb"\A" * sequence.starts, rb"\Z" * sequence.ends
    pieces = []
    doubtful = 0
    for at, item in enumerate(items):
        is_sure = item.is_variable and not item.first & _following(items[at + 1 :])
        if item.is_variable and not is_sure:
            doubtful += 1
            if doubtful > 1 or _total(items[at + 1 :]) > _MOST_BEHIND:
                raise _NotPlainError
        mark = b"+" if is_sure else b""
        pieces.append((_piece(replace(item, is_wide=False), mark), _piece(item, mark)))
    ascii_pieces, all_pieces = zip(*pieces, strict=True) if pieces else ((), ())
    return before + b"".join(ascii_pieces) + behind, before + b"".join(all_pieces) + behind


def _check_search(sequence: _Sequence) -> None:
    """Refuse what may be empty, and what may be long before it fails."""
    items = sequence.items
    before_it_fails = items if sequence.ends else items[:-1]
    if all(item.least == 0 for item in items) or _total(before_it_fails) > _MOST_BEHIND:
        raise _NotPlainError


def _following(items: Sequence[_Item]) -> frozenset[int]:
    """The bytes with which items may begin, of which the first ones may be missing."""
    found: frozenset[int] = frozenset()
    for item in items:
        found |= item.first
        if item.least:
            break
    return found


def _total(items: Sequence[_Item]) -> float:
    """How many characters items may have together."""
    return sum(float("inf") if item.longest is None else item.longest for item in items)


def _piece(item: _Item, mark: bytes) -> bytes:
    if item.texts:
        texts = b"|".join(map(re.escape, item.texts))
        return item.before + b"(?:" + texts + b")" + item.behind
    chars = b"".join(b"\\x%02x" % char for char in sorted(item.chars))
    one = b"[" + chars + b"]" if chars else b"(?!)"
    if item.is_wide:
        one = b"(?:" + one + b"|" + _ONE_WIDE + b")"
    most = b"" if item.most is None else b"%d" % item.most
    times = b"" if (item.least, item.most) == (1, 1) else b"{%d,%b}%b" % (item.least, most, mark)
    return item.before + one + times + item.behind


# -- syntax ----------------------------------------------------------------------------


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: bytes) -> None:
        try:
            pattern.decode("utf-8")
        except UnicodeDecodeError:
            raise _NotPlainError from None
        if len(pattern) > _LONGEST:
            raise _NotPlainError
        self._pattern: Final = pattern
        self._at = 0

    def sequences(self) -> Iterator[_Sequence]:
        """All of the pattern."""
        for _ in range(_MOST_SEQUENCES):
            yield self._sequence()
            if self._at == len(self._pattern):
                return
            self._expect(b"|")
        raise _NotPlainError

    def _sequence(self) -> _Sequence:
        starts, items = self._take(b"^"), list[_Item]()
        while self._peek() not in (b"", b"|", b"$"):
            items += self._group() if self._peek() == b"(" else [self._item()]
        return _Sequence(tuple(items), starts, self._take(b"$"))

    def _group(self) -> list[_Item]:
        """Items in round brackets, or texts of which one is there."""
        self._expect(b"(")
        before = b"(?:" if self._take(b"?:") else b"("
        items = [self._item()]
        texts: list[list[_Item]] = [items]
        while self._peek() != b")":
            if self._take(b"|"):
                texts.append([])
            texts[-1].append(self._item())
        self._expect(b")")
        if _REPEAT.match(self._pattern, self._at):
            raise _NotPlainError
        if len(texts) > 1:
            items = [_choice(texts)]
        first, last = items[0], items[-1]
        items[0] = replace(first, before=before + first.before)
        items[-1] = replace(items[-1], behind=last.behind + b")")
        return items

    def _item(self) -> _Item:
        """A character or a class, with how often it may occur."""
        byte = self._pattern[self._at : self._at + 1]
        if byte >= b"\x80":
            return _Item(texts=(self._wide(),))
        chars, is_wide = self._class()
        least, most = self._times()
        return _Item(chars, is_wide, least, most)

    def _wide(self) -> bytes:
        """A character outside of ASCII, which is not repeated."""
        rest = self._pattern[self._at : self._at + 4]
        char = rest.decode("utf-8", "ignore")[0].encode()
        self._at += len(char)
        if _REPEAT.match(self._pattern, self._at):
            raise _NotPlainError
        return char

    def _times(self) -> tuple[int, int | None]:
        """How often an item may occur."""
        found = _REPEAT.match(self._pattern, self._at)
        if found is None:
            return 1, 1
        self._at = found.end()
        if _REPEAT.match(self._pattern, self._at):  # lazy, or twice
            raise _NotPlainError
        if found[0] in _TIMES:
            return _TIMES[found[0]]
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if max(least, most or 0) > _MOST_TIMES or (most is not None and most < least):
            raise _NotPlainError
        return least, most

    def _class(self) -> _Class:
        """The characters that may stand in one place."""
        byte = self._next()
        if byte == b".":
            return _ASCII - {ord("\n")}, True
        if byte == b"[":
            return self._listed()
        if byte == b"\\":
            return self._escaped()
        if byte[0] in _SPECIAL:
            raise _NotPlainError
        return frozenset(byte), False

    def _escaped(self) -> _Class:
        """What a backslash means."""
        byte = self._next()
        if byte.lower() in _CLASSES:
            named = _CLASSES[byte.lower()]
            return (_ASCII - named, True) if byte.isupper() else (named, False)
        if byte in _CONTROLS:
            return frozenset((_CONTROLS[byte],)), False
        if byte[0] not in _PUNCTUATION:
            raise _NotPlainError
        return frozenset(byte), False

    def _listed(self) -> _Class:
        """A class in square brackets."""
        is_other = self._take(b"^")
        chars: frozenset[int] = frozenset()
        is_wide, is_first = False, True
        while is_first or self._peek() != b"]":
            found, found_wide = self._member(is_first=is_first)
            chars, is_wide, is_first = chars | found, is_wide or found_wide, False
        self._expect(b"]")
        return (_ASCII - chars, not is_wide) if is_other else (chars, is_wide)

    def _member(self, *, is_first: bool) -> _Class:
        """A character, a range, or a class within a class."""
        low = self._one_of_class()
        is_minus = low == (frozenset(b"-"), False) and self._pattern[self._at - 2 :][:1] != b"\\"
        if is_minus and not is_first and self._peek() != b"]":
            raise _NotPlainError
        if self._peek() != b"-" or self._pattern[self._at + 1 : self._at + 2] == b"]":
            return low
        self._expect(b"-")
        high = self._one_of_class()
        if len(low[0]) != 1 or len(high[0]) != 1 or low[1] or high[1]:
            raise _NotPlainError
        (first,), (last,) = low[0], high[0]
        if first > last:
            raise _NotPlainError
        return frozenset(range(first, last + 1)), False

    def _one_of_class(self) -> _Class:
        byte = self._next()
        if byte == b"\\":
            return self._escaped()
        if byte in (b"[", b"]") or byte >= b"\x80":
            raise _NotPlainError
        return frozenset(byte), False

    # -- one byte after the other --------------------------------------------------------

    def _peek(self) -> bytes:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> bytes:
        byte = self._peek()
        if not byte:
            raise _NotPlainError
        self._at += 1
        return byte

    def _take(self, text: bytes) -> bool:
        is_there = self._pattern.startswith(text, self._at)
        self._at += len(text) if is_there else 0
        return is_there

    def _expect(self, text: bytes) -> None:
        if not self._take(text):
            raise _NotPlainError


def _choice(texts: Sequence[Sequence[_Item]]) -> _Item:
    """Texts of which one is there; no two begin alike, so that there is nothing to go back to."""
    found = [b"".join(map(_text, items)) for items in texts]
    if not all(found) or len({text[0] for text in found}) < len(found):
        raise _NotPlainError
    return _Item(texts=tuple(found))


def _text(item: _Item) -> bytes:
    """An item that is one character, once."""
    if item.texts:
        return item.texts[0]
    if item.is_wide or len(item.chars) != 1 or (item.least, item.most) != (1, 1):
        raise _NotPlainError
    return bytes(item.chars)
