"""TensorFlow's 64-bit hash of bytes, and how it joins two numbers into one.

In:   bytes, or two numbers of 64 bits.
Out:  a number of 64 bits, the same in every process, on every machine, and in TensorFlow.
Not:  no protection against whoever wants two texts to collide.

The hash is MurmurHash64A by Austin Appleby (2008), with TensorFlow's seed.
"""

from __future__ import annotations

from typing import Final

_MASK: Final = (1 << 64) - 1
_SEED: Final = 0xDECAFCAFFE
_MULTIPLIER: Final = 0xC6A4A7935BD1E995
_SHIFT: Final = 47
#: 2 ** 64 divided by the golden ratio, as far as TensorFlow writes it out.
_GOLDEN: Final = 0x9E3779B97F4A7800


def hash64(data: bytes) -> int:
    """The hash of some bytes."""
    whole = len(data) & ~7
    mixed = (_SEED ^ len(data) * _MULTIPLIER) & _MASK
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _MASK
        mixed = (mixed ^ word) * _MULTIPLIER & _MASK
    if data[whole:]:
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    mixed = (mixed ^ mixed >> _SHIFT) * _MULTIPLIER & _MASK
    return mixed ^ mixed >> _SHIFT


def combine64(first: int, second: int) -> int:
    """One number of two, whose order counts."""
    return first ^ (second + _GOLDEN + (first << 10) + (first >> 4)) & _MASK
