"""Hashes of byte strings that are the same on all machines and in all years.

In:   bytes; or many of them.
Out:  a number of 64 bits; or as many of them.
Not:  registers no kernel; protects nothing against an adversary but ``siphash`` with a key.

Three published functions: FarmHash's Fingerprint64 (in its "na" form), MurmurHash64A, and
SipHash-2-4.  Graphs hold buckets and tables made with them, so every bit counts.

What FarmHash does to words of 64 bits is said once, for numbers and for arrays of them: models of
language ask for the fingerprints of thousands of short texts, which numpy finds side by side.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np

from penstock.core.values import Array

#: A word of 64 bits, or an array of such words.
_Word = TypeVar("_Word", int, Array)

_MASK: Final = (1 << 64) - 1
_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F
_MURMUR: Final = 0xC6A4A7935BD1E995
_MURMUR_SEED: Final = 0xDECAFCAFFE
#: Bytes of texts that are taken side by side, and how many such texts make that worth it.
_SHORT: Final = 16
_MANY: Final = 100


def _word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 8], "little")


def _right(x: _Word, count: int) -> _Word:
    """64 bits, rotated to the right."""
    x = x & _MASK
    return x >> count | x << (64 - count) & _MASK


def _left(x: int, count: int) -> int:
    return _right(x, 64 - count)


def _shift_mix(x: _Word) -> _Word:
    x = x & _MASK
    return x ^ x >> 47


def _mix(u: _Word, v: _Word, mul: _Word) -> _Word:
    """Two words as one."""
    a = _shift_mix((u ^ v) * mul)
    b = _shift_mix((v ^ a) * mul)
    return b * mul & _MASK


# -- FarmHash --------------------------------------------------------------------------


def farmhash64(text: bytes) -> int:
    """FarmHash's Fingerprint64."""
    size = len(text)
    if size <= 16:
        return _farm_short(text)
    if size <= 32:
        return _farm_17_to_32(text)
    return _farm_33_to_64(text) if size <= 64 else _farm_long(text)


def farmhash64_of_each(texts: Sequence[bytes]) -> Array:
    """FarmHash's Fingerprint64 of each text, as uint64."""
    if len(texts) < _MANY:
        return np.array(list(map(farmhash64, texts)), np.uint64)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    is_short = sizes <= _SHORT
    if is_short.all():
        return _farm_short_ones(texts, sizes)
    words = np.empty(len(texts), np.uint64)
    short = [text for text in texts if len(text) <= _SHORT]
    words[is_short] = _farm_short_ones(short, sizes[is_short])
    for place in np.flatnonzero(~is_short).tolist():
        words[place] = farmhash64(texts[place])
    return words


def _farm_short_ones(texts: Sequence[bytes], sizes: Array) -> Array:
    """The fingerprints of texts of 16 bytes at most."""
    joined = b"".join(texts) + bytes(8)
    #: The word at each byte.
    word: Array = np.ndarray(len(joined) - 7, "<u8", joined, strides=(1,))
    starts = np.cumsum(sizes) - sizes
    words: Array = np.full(len(texts), _K2, np.uint64)

    def fill(is_of: Array, digest: Callable[[Array, Array], Array]) -> None:
        places = np.flatnonzero(is_of)
        if places.size:
            words[places] = digest(starts[places], sizes[places])

    def of_8_to_16(start: Array, size: Array) -> Array:
        return _farm_8_to_16(word[start], word[start + size - 8], size.astype(np.uint64))

    def of_4_to_7(start: Array, size: Array) -> Array:
        first, last = word[start] & 0xFFFFFFFF, word[start + size - 4] & 0xFFFFFFFF
        return _farm_4_to_7(first, last, size.astype(np.uint64))

    def of_1_to_3(start: Array, size: Array) -> Array:
        first, half, last = (word[start + at] & 0xFF for at in (0, size >> 1, size - 1))
        return _farm_1_to_3(first, half, last, size.astype(np.uint64))

    fill(sizes >= 8, of_8_to_16)
    fill((sizes >= 4) & (sizes < 8), of_4_to_7)
    fill((sizes > 0) & (sizes < 4), of_1_to_3)
    return words


def _farm_short(text: bytes) -> int:
    size = len(text)
    if size >= 8:
        return _farm_8_to_16(_word(text, 0), _word(text, size - 8), size)
    if size >= 4:
        first, last = (int.from_bytes(part, "little") for part in (text[:4], text[-4:]))
        return _farm_4_to_7(first, last, size)
    return _farm_1_to_3(text[0], text[size >> 1], text[-1], size) if size else _K2


def _farm_8_to_16(first: _Word, last: _Word, size: _Word) -> _Word:
    """Of a text's first and last eight bytes."""
    mul = size * 2 + _K2 & _MASK
    a = first + _K2 & _MASK
    c = _right(last, 37) * mul + a & _MASK
    d = (_right(a, 25) + last) * mul & _MASK
    return _mix(c, d, mul)


def _farm_4_to_7(first: _Word, last: _Word, size: _Word) -> _Word:
    """Of a text's first and last four bytes."""
    return _mix(size + (first << 3), last, size * 2 + _K2 & _MASK)


def _farm_1_to_3(first: _Word, half: _Word, last: _Word, size: _Word) -> _Word:
    """Of a text's first and last byte, and of that in the middle."""
    y = first + (half << 8)
    z = size + (last << 2)
    word: _Word = _shift_mix(y * _K2 & _MASK ^ z * _K0 & _MASK) * _K2 & _MASK
    return word


def _farm_17_to_32(text: bytes) -> int:
    size = len(text)
    mul = _K2 + size * 2 & _MASK
    a, b = _word(text, 0) * _K1, _word(text, 8)
    c, d = _word(text, size - 8) * mul, _word(text, size - 16) * _K2
    u = _right(a + b, 43) + _right(c, 30) + d & _MASK
    return _mix(u, a + _right(b + _K2, 18) + c & _MASK, mul)


def _farm_33_to_64(text: bytes) -> int:
    size = len(text)
    mul = _K2 + size * 2 & _MASK
    a, b = _word(text, 0) * _K2 & _MASK, _word(text, 8)
    c, d = _word(text, size - 8) * mul, _word(text, size - 16) * _K2
    y = _right(a + b, 43) + _right(c, 30) + d & _MASK
    z = _mix(y, a + _right(b + _K2, 18) + c & _MASK, mul)
    e, f = _word(text, 16) * mul & _MASK, _word(text, 24)
    g, h = (y + _word(text, size - 32)) * mul, (z + _word(text, size - 24)) * mul
    u = _right(e + f, 43) + _right(g, 30) + h & _MASK
    return _mix(u, e + _right(f + a, 18) + g & _MASK, mul)


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """32 bytes and two words as two words."""
    w, x, y, z = struct.unpack_from("<4Q", text, at)
    a = a + w & _MASK
    b = _right(b + a + z, 21)
    c = a
    a = a + x + y & _MASK
    b = b + _right(a, 44) & _MASK
    return a + z & _MASK, b + c & _MASK


def _farm_long(text: bytes) -> int:
    x, y = 81, 81 * _K1 + 113 & _MASK
    z = _shift_mix(y * _K2 + 113) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(text, 0) & _MASK
    whole = (len(text) - 1) // 64 * 64
    mul = _K1
    for at in (*range(0, whole, 64), len(text) - 64):
        is_last = at == len(text) - 64 and at + 64 > whole
        if is_last:
            mul = _K1 + ((z & 0xFF) << 1) & _MASK
            w = (w[0] + (len(text) - 1 & 63) & _MASK, w[1])
            v = (v[0] + w[0] & _MASK, v[1])
            w = (w[0] + v[0] & _MASK, w[1])
        x = _right(x + y + v[0] + _word(text, at + 8), 37) * mul & _MASK
        y = _right(y + v[1] + _word(text, at + 48), 42) * mul & _MASK
        x ^= (w[1] * 9 & _MASK) if is_last else w[1]
        y = y + v[0] * (9 if is_last else 1) + _word(text, at + 40) & _MASK
        z = _right(z + w[0], 33) * mul & _MASK
        v = _weak(text, at, v[1] * mul & _MASK, x + w[0] & _MASK)
        w = _weak(text, at + 32, z + w[1] & _MASK, y + _word(text, at + 16) & _MASK)
        z, x = x, z
    first = _mix(v[0], w[0], mul) + _shift_mix(y) * _K0 + z & _MASK
    return _mix(first, _mix(v[1], w[1], mul) + x & _MASK, mul)


# -- MurmurHash ------------------------------------------------------------------------


def murmurhash64(text: bytes, seed: int = _MURMUR_SEED) -> int:
    """MurmurHash64A, if nothing else is said with the seed that TensorFlow uses everywhere."""
    size = len(text)
    h = seed & _MASK ^ size * _MURMUR & _MASK
    whole = size & ~7
    for at in range(0, whole, 8):
        k = _word(text, at) * _MURMUR & _MASK
        k = (k ^ k >> 47) * _MURMUR & _MASK
        h = (h ^ k) * _MURMUR & _MASK
    if size & 7:
        h = (h ^ _word(text, whole)) * _MURMUR & _MASK
    h = _shift_mix(h) * _MURMUR & _MASK
    return _shift_mix(h)


# -- SipHash ---------------------------------------------------------------------------


def siphash(key: tuple[int, int], text: bytes) -> int:
    """SipHash-2-4 with a key of two words."""
    k0, k1 = key
    state = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    whole = len(text) & ~7
    last = int.from_bytes(text[whole:], "little") | (len(text) & 0xFF) << 56
    for word in (*(_word(text, at) for at in range(0, whole, 8)), last):
        v0, v1, v2, v3 = state
        v0, v1, v2, v3 = _sip_rounds((v0, v1, v2, v3 ^ word), 2)
        state = v0 ^ word, v1, v2, v3
    v0, v1, v2, v3 = state
    v0, v1, v2, v3 = _sip_rounds((v0, v1, v2 ^ 0xFF, v3), 4)
    return v0 ^ v1 ^ v2 ^ v3


def _sip_rounds(state: tuple[int, int, int, int], count: int) -> tuple[int, int, int, int]:
    v0, v1, v2, v3 = state
    for _ in range(count):
        v0, v2 = v0 + v1 & _MASK, v2 + v3 & _MASK
        v1, v3 = _left(v1, 13) ^ v0, _left(v3, 16) ^ v2
        v0 = _left(v0, 32)
        v2, v0 = v2 + v1 & _MASK, v0 + v3 & _MASK
        v1, v3 = _left(v1, 17) ^ v2, _left(v3, 21) ^ v0
        v2 = _left(v2, 32)
    return v0, v1, v2, v3
