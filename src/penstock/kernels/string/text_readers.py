"""Texts in some encoding, character by character.

In:   the name of an encoding; the strings of one batch.
Out:  the characters of each string, what means nothing among them, and where each begins.
Not:  replaces nothing, writes no text, registers no kernel.

UTF-16 and UTF-32 are read as ICU reads them, TensorFlow's library.  Without a mark the most
significant byte comes first.  A mark belongs to the character after it; a mark with nothing
after it is one character that does not exist, U+FFFF.  And the order lasts: a string whose
last character is read in a known order leaves that order to the string after it, and only one
whose order or soundness is in question to its very end is followed by one that is read afresh.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, Literal, TypeAlias

from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError

#: A code point, or None for bytes that mean nothing; and where its bytes begin.
Char: TypeAlias = tuple[int | None, int]
#: Gives the characters of each string of a batch.
ReadTexts: TypeAlias = Callable[[Iterable[bytes]], Iterator[list[Char]]]
_Order: TypeAlias = Literal["big", "little"]

#: The last code point there is, and those that UTF-16 needs for itself.
LAST: Final = 0x10FFFF
_LEADS, _TRAILS = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
#: What a mark of byte order is followed by, if nothing follows it.
_NOTHING: Final = 0xFFFF
_MARK: Final = 0xFEFF
#: Bytes of a unit, and the order of the bytes if the name tells it, by simplified name.
_UNITS: Final[dict[str, tuple[int, _Order | None]]] = {
    "utf16": (2, None),
    "utf16be": (2, "big"),
    "utf16le": (2, "little"),
    "utf32": (4, None),
    "utf32be": (4, "big"),
    "utf32le": (4, "little"),
}
#: Python's names of the other encodings that TensorFlow knows as well.  Python knows more, which
#: are no encodings of text, or may be anybody's.
_CODEC_NAMES: Final = """
    ascii big5 big5hkscs cp037 cp1006 cp1026 cp1125 cp1140 cp1250 cp1251 cp1252 cp1253 cp1254
    cp1255 cp1256 cp1257 cp1258 cp273 cp424 cp437 cp500 cp737 cp775 cp850 cp852 cp855 cp856
    cp857 cp858 cp860 cp861 cp862 cp863 cp864 cp865 cp866 cp869 cp874 cp875 cp932 cp949 cp950
    euc_jp euc_kr gb18030 gb2312 gbk hp-roman8 hz iso2022_jp iso2022_jp_1 iso2022_jp_2
    iso2022_kr iso8859-1 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-2
    iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 koi8-r koi8-u
    mac-cyrillic mac-roman shift_jis tis-620 utf-7 utf-8
"""
_CODECS: Final = frozenset(_CODEC_NAMES.split())
#: Windows' encodings: bytes without a character stand for the code point of the same number,
#: if that is a control character or, in one of them, this one.
_WINDOWS: Final = "cp125"
_CONTROLS: Final = range(0x80, 0xA0)
_EXTRA: Final = {"cp1253": 0xAA}


def is_scalar(code: int) -> bool:
    """Whether a number is a code point that stands for a character by itself."""
    return 0 <= code <= LAST and code not in _LEADS and code not in _TRAILS


def reader_of(encoding: str) -> ReadTexts:
    """How texts in an encoding are read; refuses encodings that are not known."""
    simple = re.sub(r"[-_ ]", "", encoding).lower()
    if simple in _UNITS:
        return partial(_read_units, *_UNITS[simple])
    codec = _codec(encoding)
    if codec.startswith(_WINDOWS):
        table = [_windows_character(byte, codec) for byte in range(256)]
        return lambda texts: ([(table[byte], at) for at, byte in enumerate(t)] for t in texts)
    return lambda texts: (list(_characters(text, codec)) for text in texts)


def _codec(encoding: str) -> str:
    """Python's name of an encoding."""
    try:
        codec = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        codec = ""
    if codec not in _CODECS:
        raise InvalidArgumentError(f"Could not create converter for input encoding: {encoding}")
    return codec


def _windows_character(byte: int, codec: str) -> int | None:
    try:
        return ord(bytes([byte]).decode(codec))
    except UnicodeDecodeError:
        is_code = byte in _CONTROLS or byte == _EXTRA.get(codec)
        return byte if is_code else None


def _characters(text: bytes, codec: str) -> Iterator[Char]:
    """The characters of a text; each stretch of bytes that means nothing counts as one."""
    at = 0
    while at < len(text):
        try:
            good, bad, size = text[at:].decode(codec), 0, len(text) - at
        except UnicodeDecodeError as error:
            good, bad = text[at : at + error.start].decode(codec), error.end - error.start
            size = error.start
        place = at
        for char in good:
            yield ord(char), place
            place += len(char.encode(codec))
        at += size
        if bad:
            yield None, at
            at += bad


# -- UTF-16 and UTF-32 -----------------------------------------------------------------


def _read_units(width: int, order: _Order | None, texts: Iterable[bytes]) -> Iterator[list[Char]]:
    reader = _UnitReader(width, order)
    for text in texts:
        yield list(reader.characters(text))


@dataclass(slots=True)
class _UnitReader:
    """Reads the strings of one batch, one after the other."""

    width: int
    #: The order of the bytes if the encoding's name tells it.
    told: _Order | None
    #: The order that the strings so far have shown.
    shown: _Order | None = None

    def characters(self, text: bytes) -> Iterator[Char]:
        """The characters of the batch's next string."""
        at = 0
        while at < len(text):
            start, order = at, self.told or self.shown
            is_open = order is None
            if order is None:
                order, at = self._order_of(text)
                self.shown = order
            if at == len(text):
                self.shown = None
                yield _NOTHING, start
                return
            code, size = self._decode(text, at, order)
            at += size
            # A pair is more than ICU asks for, so it does not notice the text's end.
            is_pair = code is not None and code > 0xFFFF
            if at == len(text) and (code is None or (is_open and not is_pair)):
                self.shown = None
            yield code, start

    def _order_of(self, text: bytes) -> tuple[_Order, int]:
        """The order of a string that may begin with a mark, and the size of the mark."""
        head, width = text[: self.width], self.width
        if head == _MARK.to_bytes(width, "little"):
            return "little", width
        return "big", width if head == _MARK.to_bytes(width, "big") else 0

    def _decode(self, text: bytes, at: int, order: _Order) -> tuple[int | None, int]:
        """The character at some place, and its size; None if there is none."""
        unit = text[at : at + self.width]
        code = int.from_bytes(unit, order)
        if len(unit) < self.width:
            return None, len(unit)
        if is_scalar(code):
            return code, self.width
        if self.width == 2 and code in _LEADS:
            rest = text[at + 2 : at + 4]
            trail = int.from_bytes(rest, order)
            if len(rest) == 1:
                return None, 3
            if trail in _TRAILS:
                return 0x10000 + (code - 0xD800 << 10) + (trail - 0xDC00), 4
        return None, self.width
