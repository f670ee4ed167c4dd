"""Damage as disks, networks and strangers do it: bits, ends that are missing, blocks of elsewhere.

In:   the contents of files, and a source of random numbers.
Out:  the same with one of them damaged, and in words how.
Not:  knows no format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, TypeAlias

#: Damages one content; the others are where blocks may come from.
Kind: TypeAlias = Callable[[bytearray, Sequence[bytes], Random], bytes]


def damaged(files: Mapping[str, bytes], draw: Random) -> tuple[dict[str, bytes], str]:
    """One of the files is damaged, in one way or in several."""
    name = draw.choice(sorted(files))
    content, words = files[name], []
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        kind = draw.choice(KINDS)
        content = kind(bytearray(content), list(files.values()), draw)
        words.append(kind.__name__)
    return {**files, name: content}, f"{name}: {', '.join(words)}"


def flip_bits(content: bytearray, _others: Sequence[bytes], draw: Random) -> bytes:
    """Some bits are others."""
    for _ in range(draw.choice((1, 1, 2, 8))):
        if content:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(content)


def set_bytes(content: bytearray, _others: Sequence[bytes], draw: Random) -> bytes:
    """Some bytes in a row are others: anything, all zeros, all ones."""
    at, size = _block(content, draw, 16)
    kind = draw.randrange(3)
    content[at : at + size] = (
        draw.randbytes(size) if kind == 0 else bytes([255 * (kind - 1)]) * size
    )
    return bytes(content)


def cut_off(content: bytearray, _others: Sequence[bytes], draw: Random) -> bytes:
    """The end is missing, often only a little."""
    most = draw.choice((4, 64, len(content) + 1))
    return bytes(content[: max(0, len(content) - draw.randrange(1, max(2, most)))])


def cut_out(content: bytearray, _others: Sequence[bytes], draw: Random) -> bytes:
    """A block is missing."""
    at, size = _block(content, draw, len(content))
    del content[at : at + size]
    return bytes(content)


def overwrite(content: bytearray, others: Sequence[bytes], draw: Random) -> bytes:
    """A block is one of elsewhere."""
    block = _piece(others, draw)
    at = draw.randrange(len(content) + 1)
    content[at : at + len(block)] = block
    return bytes(content)


def insert(content: bytearray, others: Sequence[bytes], draw: Random) -> bytes:
    """There is a block more."""
    at = draw.randrange(len(content) + 1)
    content[at:at] = _piece(others, draw)
    return bytes(content)


def append(content: bytearray, others: Sequence[bytes], draw: Random) -> bytes:
    """Something stands behind the end."""
    return bytes(content) + _piece(others, draw)


def exchange(content: bytearray, _others: Sequence[bytes], draw: Random) -> bytes:
    """Two blocks stand in each other's places."""
    first, size = _block(content, draw, len(content) // 2)
    second = draw.randrange(max(1, len(content) - size))
    one, other = content[first : first + size], content[second : second + size]
    content[first : first + size], content[second : second + size] = other, one
    return bytes(content)


KINDS: Final[tuple[Kind, ...]] = (
    flip_bits, flip_bits, set_bytes, cut_off, cut_out, overwrite, insert, append, exchange,
)  # fmt: skip


def _block(content: bytes | bytearray, draw: Random, most: int) -> tuple[int, int]:
    """Where a block begins, and how long it is."""
    at = draw.randrange(max(1, len(content)))
    return at, draw.randrange(1, max(2, min(most, len(content) - at) + 1))


def _piece(others: Sequence[bytes], draw: Random) -> bytes:
    source = draw.choice(others)
    at, size = _block(source, draw, draw.choice((8, 64, 4096)))
    return source[at : at + size]
