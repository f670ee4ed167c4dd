"""CRC-32C, against its published check value and against its definition."""

from __future__ import annotations

import random

import pytest

from penstock.defs.crc32c import _FOLD, crc32c, mask


def slowly(data: bytes) -> int:
    """The checksum bit by bit, straight from the polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_check_value() -> None:
    """The checksum of the nine digits is the one that all descriptions give."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


@pytest.mark.parametrize("size", [2047, 2048, 2049, 4096, 7777])
def test_large_data(size: int) -> None:
    """Lanes add up to what a plain loop gives, whatever the length."""
    data = random.Random(size).randbytes(size)

    assert crc32c(data) == slowly(data)


def test_parts_chain() -> None:
    """The checksum can be continued, also over pieces that are cut into lanes."""
    data = random.Random(1).randbytes((1 << 20) + 5000)

    whole = crc32c(data)

    assert crc32c(data[3000:], crc32c(data[:3000])) == whole
    assert crc32c(data[-10:], crc32c(data[:-10])) == whole


def test_mask() -> None:
    """The mask turns the word and adds a constant."""
    assert mask(0) == 0xA282EAD8
    assert mask(0xFFFFFFFF) == 0xA282EAD7


@pytest.mark.parametrize(
    "size",
    [
        *((128 << 10) - 1, 128 << 10, (128 << 10) + 3, 524_288, 524_291, 2 * 524_288 + 5),
        *((4 << 20) - 1, 4 << 20, (4 << 20) + 5, (5 << 20) + 524_287),
    ],
)
@pytest.mark.parametrize("before", [b"", b"something"])
def test_very_large_data_is_folded(size: int, before: bytes) -> None:
    """The checksum is that of small pieces, one behind the other, also behind other data."""
    data = random.Random(size).randbytes(size)
    crc = crc32c(before)
    for start in range(0, size, 5000):
        crc = crc32c(data[start : start + 5000], crc)

    assert crc32c(data, crc32c(before)) == crc


def test_folding_rests_on_a_multiple_of_the_polynomial() -> None:
    """x**(64a) + x**(64b) + x**(64c) + 1 leaves nothing when divided by Castagnoli's polynomial."""
    remainders, power = {0: 1}, 1
    for exponent in range(1, 64 * max(_FOLD) + 1):
        power <<= 1
        power ^= 0x11EDC6F41 if power >> 32 else 0
        remainders[exponent] = power
    first, second, third = _FOLD

    assert remainders[64 * first] ^ remainders[64 * second] ^ remainders[64 * third] ^ 1 == 0
    assert first - second >= second > third > 0  # what is added lies behind what is taken away
