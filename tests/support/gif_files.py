"""GIF files made to order: frames that leave something open, and files with faults."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

#: Bits of one colour's number.
_BITS = 4
END = b";"


def colours(count: int, first: int = 0) -> bytes:
    """A table of colours that differ."""
    rows = ((7 * number, 13 * number, 29 * number) for number in range(count))
    return bytes((value + first) % 256 for row in rows for value in row)


def screen(width: int, height: int, count: int = 16) -> bytes:
    """How a file begins, with a table of ``count`` colours, or none."""
    flags = 0x80 | count.bit_length() - 2 if count else 0
    return b"GIF89a" + struct.pack("<HHBBB", width, height, flags, 0, 0) + colours(count)


def control(transparent: int | None = None, disposal: int = 0) -> bytes:
    """What says which colour of the next frame is transparent, and what comes after it."""
    flags = disposal << 2 | (transparent is not None)
    return b"!\xf9\x04" + struct.pack("<BHB", flags, 5, transparent or 0) + b"\0"


def frame(
    place: Sequence[int], numbers: Iterable[int], *, own: int = 0, interlaced: bool = False
) -> bytes:
    """A frame: left, top, width, height, and which colour each pixel has."""
    flags = (0x80 | own.bit_length() - 2 if own else 0) | 0x40 * interlaced
    table = colours(own, 50) if own else b""
    return b"," + struct.pack("<HHHHB", *place, flags) + table + _compressed(numbers)


def stripes(width: int, height: int) -> list[int]:
    """Numbers of colours that differ from line to line."""
    return [(at * 3 + at // width) % 16 for at in range(width * height)]


def _compressed(numbers: Iterable[int]) -> bytes:
    """Numbers as LZW has them, with a fresh start before codes would grow."""
    fresh = 1 << _BITS
    codes: list[int] = []
    for at, number in enumerate(numbers):
        codes += [fresh, number] if at % (fresh - 2) == 0 else [number]
    packed = _packed([*codes, fresh + 1], _BITS + 1)
    blocks = (packed[at : at + 255] for at in range(0, len(packed), 255))
    return bytes([_BITS]) + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0"


def _packed(codes: Iterable[int], width: int) -> bytes:
    total, bits = 0, 0
    for code in codes:
        total |= code << bits
        bits += width
    return total.to_bytes(-(-bits // 8), "little")


def files() -> dict[str, Any]:
    """Files by what is peculiar about them."""
    whole, part = (0, 0, 6, 5), (2, 1, 3, 3)
    first, second = frame(whole, stripes(6, 5)), frame(part, stripes(3, 3))
    return {
        "the first frame is not at the edge": screen(6, 5) + frame((1, 2, 3, 2), [1] * 6) + END,
        "frames of two sizes": screen(9, 9) + second + first + END,
        "outside": screen(6, 5) + first + frame((4, 3, 5, 5), stripes(5, 5)) + END,
        "nothing before what is transparent": screen(6, 5) + control(3) + first + END,
        "a table of its own": screen(6, 5) + frame(whole, stripes(6, 5), own=16) + second + END,
        "four passes": screen(6, 9) + frame((0, 0, 6, 9), stripes(6, 9), interlaced=True) + END,
        "two controls": screen(6, 5) + control(1) + control(2) + first + first + END,
        "a comment": screen(6, 5) + b"!\xfe\x05hello\0" + first + b"!\xfe\x02ok\0" + END,
        "no end": screen(6, 5) + first,
        "cut": (screen(6, 5) + first + first)[:-9],
        "few numbers in the second": screen(6, 5) + first + frame(whole, [1] * 10) + END,
        "an unknown block": screen(6, 5) + first + b"\x99" + first + END,
        **{
            f"disposal {way}": screen(6, 5)
            + control(None, way)
            + first
            + control(3, way)
            + second
            + control(0, way)
            + frame((0, 0, 2, 2), [1, 0, 3, 0])
            + END
            for way in range(4)
        },
    }


def faulty() -> dict[str, tuple[bytes, str]]:
    """Files that are refused, with why."""
    first = frame((0, 0, 6, 5), stripes(6, 5))
    return {
        "no table": (screen(6, 5, 0) + first + END, "missing color map for frame 0"),
        "unknown colour": (screen(6, 5, 4) + first + END, "outside of color map range 4"),
        "nothing": (screen(6, 5) + END, "No Image Descriptor detected"),
        "few numbers": (
            screen(6, 5) + frame((0, 0, 6, 5), [1] * 10) + END,
            "Image EOF detected before image complete",
        ),
        "no screen": (b"GIF89a", "failed to open gif file"),
        "half a table": (screen(6, 5)[:30], "failed to open gif file"),
        "no pixels": (screen(6, 5) + frame((0, 0, 0, 0), []) + END, "failed to slurp gif file"),
    }
