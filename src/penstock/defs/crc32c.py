"""The checksum CRC-32C (Castagnoli), fast for large data.

In:   bytes.
Out:  the checksum, plain or masked as files store it.
Not:  knows no file formats.

A CRC is linear: the checksum of two parts is that of the first, carried over the length of
the second, plus that of the second, where plus is exclusive-or.  So large data is cut into
lanes of one length, numpy takes all lanes through the table at the same time, and the
lanes' checksums are added up pairwise.

A CRC is also the remainder of a polynomial, whose coefficients are the bits of the data.  Modulo
Castagnoli's, x to the power of 64·5685 is the same as the sum of three other powers (``_FOLD``):
so a word of 64 bits may be taken away where it stands, and added at three places further on,
and the remainder stays.  Very large data is folded in this way, at the speed of numpy's
exclusive-or, until no more than 5685 words are left.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np

from penstock.core.values import Array

#: Castagnoli's polynomial, lowest power in the highest bit.
_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
#: Below this many bytes a plain loop is faster.
_SMALL: Final = 2048
#: Bytes in one lane; even.  Few, as numpy is called once for every two of them.
_LANE: Final = 64
#: Words by which a word may be moved, and where else it is to be added then: x**(64·5685) ≡
#: x**(64·1362) + x**(64·426) + 1.  Found by trying all triples with few words; a test checks it.
_FOLD: Final = (5685, 1362, 426)
#: From so many bytes on, folding is faster than lanes alone.
_LARGE: Final = 128 << 10
#: From so many bytes on, folding is done in long steps first, for fewer calls of numpy.
_VERY_LARGE: Final = 4 << 20
#: How much longer the long steps are.  A power of two: squared, a sum of powers of x is that of
#: the squares, so all exponents of ``_FOLD`` may be doubled.
_LONG: Final = 4
#: Bytes that are folded together; few enough to stay near the processor.
_PIECE: Final = 1 << 19


def _byte_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE: Final = _byte_table()


def crc32c(data: bytes | memoryview, crc: int = 0) -> int:
    """The checksum of ``data``, or of it behind data whose checksum is ``crc``."""
    if len(data) >= _VERY_LARGE:
        return crc32c(_folded(memoryview(data), crc, _LONG).data, _NOTHING)
    if len(data) >= _LARGE:
        return _in_lanes(_folded(memoryview(data), crc).data, _NOTHING)
    if len(data) >= _SMALL:
        return _in_lanes(data, crc)
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def mask(crc: int) -> int:
    """The form in which files store a checksum, lest data with checksums have special ones."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


#: What the state begins with behind folded data, which has its own beginning in it.
_NOTHING: Final = 0xFFFFFFFF


def _folded(data: memoryview, crc: int, factor: int = 1) -> Array:
    """Few bytes with the same remainder as much data behind data whose checksum is ``crc``.

    What is moved by the largest distance is the first to reach a place; so it is added to the data
    on its way there, and the data need not be copied before.
    """
    size, first, second = (8 * factor * words for words in _FOLD)
    step = size - first
    room = np.zeros(size + _PIECE, np.uint8)
    for start in range(0, len(data), _PIECE):
        piece = np.frombuffer(data[start : start + _PIECE], np.uint8)
        if not start:
            piece = piece.copy()
            piece[:4] ^= np.array([crc ^ 0xFFFFFFFF], "<u4").view(np.uint8)
        count = piece.size
        for at in range(0, count, step):
            end = min(at + step, count)
            moved = room[at:end]
            np.bitwise_xor(moved, piece[at:end], out=room[at + size : end + size])
            for distance in (size - second, step):
                room[at + distance : end + distance] ^= moved
        room[:size] = room[count : count + size].copy()
    return room[:size]


def _in_lanes(data: bytes | memoryview, crc: int) -> int:
    # Zeros in front change nothing, so that all lanes can be full; and the checksum so far
    # may as well be a part of the first bytes.
    padding = -len(data) % _LANE
    lanes = np.zeros(padding + len(data), np.uint8)
    lanes[padding:] = np.frombuffer(data, np.uint8)
    start = np.array([crc ^ 0xFFFFFFFF], "<u4").view(np.uint8)
    lanes[padding : padding + 4] ^= start
    words = lanes.view("<u2").reshape(-1, _LANE // 2).T
    table, state = _word_table(), np.zeros(words.shape[1], "<u4")
    for column in np.ascontiguousarray(words):
        state = table.take(state.astype(np.uint16) ^ column) ^ (state >> 16)
    return _add_up(state) ^ 0xFFFFFFFF


@functools.cache
def _word_table() -> Array:
    """What the checksum becomes after two bytes, by those bytes."""
    table = np.array(_TABLE, np.uint32)
    first = table[np.arange(1 << 16) & 0xFF] ^ (np.arange(1 << 16, dtype=np.uint32) >> 8)
    words: Array = table[first & 0xFF] ^ (first >> 8)
    return words


def _add_up(lanes: Array) -> int:
    """The checksum of all lanes, one behind the other."""
    level = 0
    while len(lanes) > 1:
        if len(lanes) % 2:
            lanes = np.concatenate([np.zeros(1, np.uint32), lanes])
        total, first = lanes[1::2], lanes[::2].copy()
        for place, table in enumerate(_carry_tables(level)):
            total = total ^ table.take(first.view(np.uint8)[place::4])
        lanes, level = total, level + 1
    return int(lanes[0])


@functools.cache
def _carry_tables(level: int) -> list[Array]:
    """What a checksum becomes behind 2**level lanes of zeros, by each of its bytes."""
    values = np.arange(256, dtype="<u4")
    return [_apply(_carry(level), values << np.uint32(8 * place)) for place in range(4)]


@functools.cache
def _carry(level: int) -> Array:
    """The matrix that carries a checksum over 2**level lanes of zeros."""
    if level:
        return _apply(_carry(level - 1), _carry(level - 1))
    columns = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))
    table = _word_table()
    for _ in range(_LANE // 2):
        columns = table[columns & 0xFFFF] ^ (columns >> 16)
    return columns


def _apply(matrix: Array, vectors: Array) -> Array:
    """Multiply vectors of 32 bits by a matrix whose columns are words of 32 bits."""
    result = np.zeros(len(vectors), np.uint32)
    for bit, column in enumerate(matrix):
        result ^= np.where((vectors >> np.uint32(bit)) & 1, column, np.uint32(0))
    return result
