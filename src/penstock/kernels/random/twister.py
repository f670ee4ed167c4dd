"""The random words of C++'s ``mt19937_64``, and what its library shuffles by them.

In:   a seed.
Out:  words of 64 bits; numbers below a bound; lists in another order.
Not:  what TensorFlow's random ops draw; that follows from Philox.

Matsumoto, Nishimura: "Mersenne Twister", ACM TOMACS 8, 1998, in the form for 64 bits of 2004.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

_T = TypeVar("_T")
_MASK: Final = (1 << 64) - 1
_SIZE: Final = 312
_MIDDLE: Final = 156
_HIGH: Final = 0xFFFFFFFF80000000
_TWIST: Final = 0xB5026F5AA96619E9
_SEEDING: Final = 6364136223846793005


def twister(seed: int) -> Iterator[int]:
    """The words that follow from a seed, without end."""
    words = [seed & _MASK]
    for at in range(1, _SIZE):
        words.append((_SEEDING * (words[-1] ^ words[-1] >> 62) + at) & _MASK)
    while True:
        for at in range(_SIZE):
            both = words[at] & _HIGH | words[(at + 1) % _SIZE] & ~_HIGH
            words[at] = words[(at + _MIDDLE) % _SIZE] ^ both >> 1 ^ (_TWIST if both & 1 else 0)
        yield from map(_tempered, words)


def _tempered(word: int) -> int:
    word ^= word >> 29 & 0x5555555555555555
    word ^= word << 17 & 0x71D67FFFEDA60000
    word ^= word << 37 & 0xFFF7EEE000000000
    return word ^ word >> 43


def below(bound: int, words: Iterator[int]) -> int:
    """A number below a bound: the upper half of a word times the bound (Lemire, 2019)."""
    product = next(words) * bound
    if product & _MASK < bound:
        while product & _MASK < (1 << 64) % bound:
            product = next(words) * bound
    return product >> 64


def shuffled(items: list[_T], words: Iterator[int]) -> list[_T]:
    """The items in the order in which libstdc++'s ``shuffle`` leaves them: two places a draw."""
    result, at = list(items), 1
    if len(result) > 1 and len(result) % 2 == 0:
        _swap(result, 1, below(2, words))
        at = 2
    for place in range(at, len(result), 2):
        first, second = divmod(below((place + 1) * (place + 2), words), place + 2)
        _swap(result, place, first)
        _swap(result, place + 1, second)
    return result


def _swap(items: list[_T], one: int, other: int) -> None:
    items[one], items[other] = items[other], items[one]
