"""Pictures in files that are strange, damaged, or say that they are very large."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from cases_src.casebook import i32, op, s

_RANDOM = np.random.default_rng(3)
_COLORS, _OTHERS = (_RANDOM.integers(0, 256, 24, np.uint8).tobytes() for _ in range(2))
_M = 2**31 - 1

# -- GIF -------------------------------------------------------------------------------


def _codes(numbers: Iterable[int], bits: int = 3) -> bytes:
    """Numbers of colours as GIF's codes, each for itself: the table is cleared before it grows."""
    clear, size = 1 << bits, bits + 1
    codes = [clear]
    for count, number in enumerate(numbers, 1):
        codes.append(int(number))
        if count % (clear - 2) == 0:
            codes.append(clear)
    stream = sum(code << at * size for at, code in enumerate([*codes, clear + 1]))
    data = stream.to_bytes((size * (len(codes) + 1) + 7) // 8, "little")
    blocks = (data[at : at + 255] for at in range(0, len(data), 255))
    return bytes([bits]) + b"".join(bytes([len(b)]) + b for b in blocks) + b"\0"


def _gif(width: int, height: int, *parts: bytes, colors: bytes = _COLORS, end: bytes = b";") -> Any:
    head = struct.pack("<HHBBB", width, height, 0xF2 if colors else 0x70, 0, 0)
    return s(b"GIF89a" + head + colors + b"".join(parts) + end)


def _control(transparent: int, disposal: int) -> bytes:
    return b"\x21\xf9\x04" + struct.pack("<BHBB", disposal << 2 | 1, 5, transparent, 0)


def _frame(
    left: int, top: int, width: int, height: int, *, most: int = 8, colors: bytes = b"",
    flags: int = 0, bits: int = 3, pixels: int = -1,
) -> bytes:  # fmt: skip
    """A frame of random colours; of fewer or more pixels than it says."""
    place = struct.pack("<BHHHHB", 0x2C, left, top, width, height, flags | (0x82 if colors else 0))
    count = width * height if pixels < 0 else pixels
    return place + colors + _codes(_RANDOM.integers(0, most, count), bits)


_ONE = _frame(0, 0, 4, 3)
_LONG = _frame(0, 0, 4, 3)
GIFS: dict[str, tuple[Any, str]] = {
    "one": (_gif(4, 3, _ONE), ""),
    "canvas larger": (_gif(10, 9, _ONE), ""),
    "canvas smaller": (_gif(2, 2, _ONE), ""),
    "canvas huge": (_gif(65535, 65535, _ONE, _ONE), ""),
    "offset": (_gif(10, 9, _frame(2, 1, 4, 3)), ""),
    "two sizes": (_gif(6, 5, _frame(0, 0, 6, 5), _frame(1, 2, 3, 2)), ""),
    "first small": (_gif(6, 5, _frame(1, 2, 3, 2), _frame(0, 0, 6, 5)), ""),
    "beyond the canvas": (_gif(4, 3, _ONE, _frame(3, 2, 4, 3)), ""),
    **{
        f"disposal {how}": (
            _gif(6, 5, _control(9, how), _frame(0, 0, 6, 5), _control(9, how), _frame(1, 2, 3, 2),
                 _frame(0, 0, 2, 2)), "")
        for how in range(4)
    },
    "transparent": (_gif(4, 3, _control(3, 0), _ONE, _control(2, 2), _frame(1, 1, 2, 2)), ""),
    "two controls": (_gif(4, 3, _control(2, 0), _control(3, 0), _ONE), ""),
    "own colours": (_gif(4, 3, _frame(0, 0, 4, 3, colors=_OTHERS), _ONE), ""),
    "no common colours": (_gif(4, 3, _frame(0, 0, 4, 3, colors=_OTHERS), colors=b""), ""),
    "no colours": (_gif(4, 3, _ONE, colors=b""), "missing color map for frame 0"),
    "interlaced": (_gif(5, 11, _frame(0, 0, 5, 11, flags=0x40)), ""),
    "no end": (_gif(4, 3, _ONE, end=b""), ""),
    "second cut": (_gif(4, 3, _ONE, _LONG[:-6], end=b""), ""),
    "first cut": (_gif(4, 3, _LONG[:-6], end=b""), "failed to slurp gif file"),
    "too few pixels": (_gif(4, 3, _frame(0, 0, 4, 3, pixels=6)), "failed to slurp gif file"),
    "too many pixels": (_gif(4, 3, _frame(0, 0, 4, 3, pixels=27)), ""),
    "no frames": (_gif(4, 3), "failed to slurp gif file"),
    "no width": (_gif(4, 3, _frame(0, 0, 0, 3)), "failed to slurp gif file"),
    "no height": (_gif(4, 3, _frame(0, 0, 3, 0)), "failed to slurp gif file"),
    "strange colour": (_gif(4, 3, _frame(0, 0, 4, 3, most=16, bits=4)), "outside of color map"),
    "comments": (_gif(4, 3, b"\x21\xfe\x03abc\0\x21\xff\x0bNETSCAPE2.0\x03\1\0\0\0", _ONE), ""),
    "junk": (_gif(4, 3, _ONE, b"\x55\x55", _ONE), ""),
    "huge": (_gif(9, 9, _frame(0, 0, 65535, 65535, pixels=4)), "failed to slurp gif file"),
    "huge second": (_gif(9, 9, _ONE, _frame(0, 0, 65535, 65535, pixels=4)), ""),
    "large codes": (_gif(4, 3, _frame(0, 0, 4, 3, bits=9)), "failed to slurp gif file"),
}  # fmt: skip

# -- BMP -------------------------------------------------------------------------------


def _bmp(
    width: int, height: int, bits: int = 24, *, start: int = 54, more: int = 0, size: int = -1
) -> Any:
    row = (3 * (bits // 8) + 3) // 4 * 4
    data = _RANDOM.integers(0, 256, max(row * 2 + more, 0) if size < 0 else size, np.uint8)
    head = struct.pack("<IHHI", 0, 0, 0, start % 2**32)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0, 0, 0, 0, 0, 0)
    return s(b"BM" + head + info + data.tobytes())


BMPS: list[tuple[Any, str]] = [
    *((_bmp(3, height, bits), "") for bits in (8, 24, 32, 9, 39) for height in (2, -2)),
    (_bmp(3, 2, 16), "must be 1, 3 or 4, was 2"),
    (_bmp(3, 2, 1), "must be 1, 3 or 4, was 0"),
    (_bmp(3, 2, 65535), "must be 1, 3 or 4, was"),
    (_bmp(3, 2, more=5), "Input size should match (header_size + row_size * abs_height) but they"),
    (_bmp(3, 2, more=-1), "but they differ by -1"),
    (_bmp(3, 2, start=60, more=6), ""),
    (_bmp(3, 2, start=-1), "header size must be nonnegative"),
    (_bmp(3, 2, start=0), "but they differ by 54"),
    (_bmp(3, 2, start=10**6), "but they differ by"),
    (_bmp(0, 2), "Width must be positive"),
    (_bmp(-3, 2), "Width must be positive"),
    (_bmp(3, 0), "Height must be nonzero"),
    *(
        (_bmp(width, height, bits), "Total possible pixel bytes must be less than 2^30")
        for width, height in ((_M, _M), (_M, 1), (1, _M), (3, -(2**31)), (20_000, 20_000))
        for bits in (8, 24)
    ),
    (s(b"BM" + bytes(20)), "Incomplete bmp content, requires at least 32 bytes"),
]

# -- PNG and JPEG ----------------------------------------------------------------------


def _png(width: int, height: int, depth: int = 8, color: int = 2) -> Any:
    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(bytes(1000))), chunk(b"IEND", b"")
    return s(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


_SIDES = [(_M, _M), (_M, 1), (1, _M), (0, 5), (5, 0), (2**32 - 1, 1)]
PNGS: list[tuple[Any, str]] = [
    *(
        (_png(*sides, depth), "Failed to initialize decoder")
        for sides in _SIDES
        for depth in (8, 16)
    ),
    *(
        (_png(*sides, depth), "PNG size too large for int")
        for sides in ((65535, 65535), (10**6, 10**6), (1 << 15, 1 << 14))
        for depth in (8, 16)
    ),
    (_png(3000, 3000), "Invalid PNG data, size 74"),
    (s(_png(3, 3).item()[:20]), "Failed to initialize decoder"),
]
_JPEG = (Path(__file__).parent / "files" / "colour.jpg").read_bytes()
_SIZE_AT = _JPEG.index(b"\xff\xc0") + 5


def _jpeg(height: int, width: int) -> Any:
    return s(_JPEG[:_SIZE_AT] + struct.pack(">HH", height, width) + _JPEG[_SIZE_AT + 4 :])


_BAD = "jpeg::Uncompress failed. Invalid JPEG data or crop window."

CASES = [
    *(op("DecodeGif", contents=data, says=says) for data, says in GIFS.values()),
    *(
        op("DecodeImage", contents=GIFS[name][0], expand_animations=False)
        for name in ("two sizes", "first small", "transparent", "second cut", "canvas huge")
    ),
    op("DecodeJpeg", contents=GIFS["canvas huge"][0], says="animated gifs can only be decoded"),
    *(
        op("DecodeBmp", contents=data, channels=channels, says=says)
        for data, says in BMPS
        for channels in ((0, 3, 4) if not says else (0,))
    ),
    op("DecodeBmp", contents=BMPS[0][0], channels=1, says="`channels` must be 0, 3 or 4 for BMP"),
    *(op("DecodePng", contents=data, says=says) for data, says in PNGS),
    *(op("DecodeImage", contents=data, says=says) for data, says in PNGS[::5]),
    *(
        op(name, contents=_jpeg(*sides), says=_BAD)
        for sides in ((65535, 65535), (30_000, 30_000), (16384, 16384), (65535, 1), (0, 9), (8, 0))
        for name in ("DecodeJpeg", "DecodeImage")
    ),
    *(op("DecodeJpeg", contents=s(_JPEG[:cut]), says=_BAD) for cut in (3, 10, 100, 400)),
    op("ExtractJpegShape", contents=_jpeg(30_000, 20_000)),
    op("ExtractJpegShape", contents=_jpeg(65535, 1), says="Invalid JPEG data, size"),
    op("ExtractJpegShape", contents=_png(3, 3), says="Invalid JPEG data, size 74"),
    op("ExtractJpegShape", contents=s(_JPEG[:100]), says="Invalid JPEG data, size 100"),
    *(
        op(name, contents=s(data), says="Unknown image file format")
        for data in (b"%!PS-Adobe-3.0 EPSF-3.0\n", b"II*\0" + bytes(20), b"P6 2 2 255\n", b"junk")
        for name in ("DecodeImage", "DecodePng", "DecodeGif", "DecodeJpeg")
    ),
    *(
        op("DecodePng", contents=data, dtype=dtype)
        for data in (GIFS["one"][0], BMPS[2][0])
        for dtype in ("uint8", "uint16")
    ),
    *(
        op(name, contents=BMPS[2][0], says="Use `decode_bmp` or `decode_image` instead. Op used: ")
        for name in ("DecodeJpeg", "DecodePng", "DecodeGif")
    ),
    *(
        op("DecodeAndCropJpeg", contents=data, crop_window=i32([0, 0, 1, 1]), says=says)
        for data, says in (
            (GIFS["one"][0], "can run on JPEG only, but detected GIF"),
            (_png(3, 3), "can run on JPEG only, but detected PNG"),
            (BMPS[2][0], "can run on JPEG only, but detected BMP"),
        )
    ),
]
