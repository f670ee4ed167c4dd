"""PNG files that are read without Pillow: all filters, depths and colours, interlaced too."""

from __future__ import annotations

import struct
import sys
import zlib
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from support.corpus import run_steps
from support.op_cases import all_op_cases
from support.ops import run_op

#: Channels by type of colour, and the depths that each may have.
COLORS = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}
KINDS = [(color, depth) for color, (_, depths) in COLORS.items() for depth in depths]
PALETTE = np.random.default_rng(5).integers(0, 256, (256, 3), np.uint8)


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk with its checksum."""
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def filtered(rows: list[bytes], step: int, draw: Any) -> bytes:
    """Lines with filters drawn at random, byte by byte after the format's description."""
    out, above = b"", bytes(len(rows[0]) if rows else 0)
    for row in rows:
        kind = int(draw.integers(5))
        line = bytearray()
        for at, value in enumerate(row):
            a = row[at - step] if at >= step else 0
            b, c = above[at], above[at - step] if at >= step else 0
            p = a + b - c
            nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line.append((value - (0, a, b, (a + b) // 2, nearest)[kind]) & 255)
        out += bytes([kind]) + bytes(line)
        above = row
    return out


def file_of(samples: Any, color: int, depth: int, *, interlaced: bool, **chunks: bytes) -> bytes:
    """A file of samples: height, width, channels."""
    draw = np.random.default_rng(9)
    height, width, channels = samples.shape
    passes = [samples]
    if interlaced:
        starts = (
            (0, 0, 8, 8),
            (0, 4, 8, 8),
            (4, 0, 8, 4),
            (0, 2, 4, 4),
            (2, 0, 4, 2),
            (0, 1, 2, 2),
            (1, 0, 2, 1),
        )
        passes = [samples[r::dr, c::dc] for r, c, dr, dc in starts]
    lines = b""
    for part in passes:
        if part.size:
            bits = [[f"{value:0{depth}b}" for value in row.reshape(-1)] for row in part]
            texts = ["".join(row) for row in bits]
            rows = [
                int(t.ljust(-(-len(t) // 8) * 8, "0"), 2).to_bytes(-(-len(t) // 8), "big")
                for t in texts
            ]
            lines += filtered(rows, max(1, channels * depth // 8), draw)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    content = b"".join(chunk(name.encode(), data) for name, data in chunks.items())
    packed = zlib.compress(lines)
    data = chunk(b"IDAT", packed[:7]) + chunk(b"IDAT", packed[7:])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + content + data + chunk(b"IEND", b"")


def decoded(data: bytes, channels: int, depth: int) -> Any:
    """What the op gives."""
    return run_op(
        "DecodePng",
        data,
        channels=channels,
        dtype=ps.dtypes.uint16 if depth == 16 else ps.dtypes.uint8,
    )


@pytest.fixture
def without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain install."""
    # Other tests may have imported it; what is there already would import the rest.
    loaded = [name for name in sys.modules if name.startswith("PIL.")]
    for module in ("PIL", "PIL.Image", "PIL.PngImagePlugin", *loaded):
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.usefixtures("without_pillow")
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (9, 17), (20, 8)])
@pytest.mark.parametrize(("color", "depth"), KINDS)
def test_samples_are_those_of_the_file(
    color: int, depth: int, size: tuple[int, int], interlaced: bool
) -> None:
    """Whatever filters its lines have; fewer than 8 bits are stretched, palettes looked up."""
    channels = COLORS[color][0]
    samples = np.random.default_rng(depth).integers(0, 1 << depth, (*size, channels))
    chunks = {"PLTE": PALETTE[: 1 << depth].tobytes()} if color == 3 else {}
    found = decoded(file_of(samples, color, depth, interlaced=interlaced, **chunks), 0, depth)

    expected = PALETTE[samples[:, :, 0]] if color == 3 else samples
    if depth < 8 and color != 3:
        expected = samples * 255 // ((1 << depth) - 1)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("channels", [0, 1, 3, 4])
@pytest.mark.parametrize(("color", "depth"), [kind for kind in KINDS if kind[1] < 16])
@pytest.mark.parametrize("transparent", [False, True])
def test_pillow_reads_the_same(
    monkeypatch: pytest.MonkeyPatch, color: int, depth: int, channels: int, transparent: bool
) -> None:
    """Also what is transparent, and what becomes of channels that are asked for."""
    pytest.importorskip("PIL")
    samples = np.random.default_rng(depth).integers(0, 1 << depth, (13, 11, COLORS[color][0]))
    chunks = {"PLTE": PALETTE[: 1 << depth].tobytes()} if color == 3 else {}
    if transparent and color < 4 and (color == 3 or depth == 8):
        chunks["tRNS"] = bytes([7, 200]) if color == 3 else samples[3, 3].astype(">u2").tobytes()
    data = file_of(samples, color, depth, interlaced=False, **chunks)
    theirs = decoded(data, channels, depth)
    monkeypatch.setitem(sys.modules, "PIL.PngImagePlugin", None)

    assert np.array_equal(decoded(data, channels, depth), theirs)


@pytest.mark.usefixtures("without_pillow")
def test_damage_is_an_error() -> None:
    """A checksum, missing lines, an unknown filter, no palette, a depth that there is not."""
    samples = np.arange(30).reshape(5, 2, 3)
    good = file_of(samples, 2, 8, interlaced=False)
    lines = zlib.compress(bytes(7 * 4) + bytes([5]) + bytes(6))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 5, 8, 2, 0, 0, 0))
    bad = [
        good[:45] + bytes([good[45] ^ 1]) + good[46:],
        good[:-30],
        good[:8] + header + chunk(b"IDAT", lines) + chunk(b"IEND", b""),
        file_of(samples[:, :, :1], 3, 8, interlaced=False),
        good.replace(struct.pack(">BB", 8, 2), struct.pack(">BB", 4, 2), 1),
    ]
    for data in bad:
        with pytest.raises(errors.InvalidArgumentError, match="Invalid PNG data, size"):
            decoded(data, 0, 8)


@pytest.mark.usefixtures("without_pillow")
def test_a_chunk_that_nobody_needs_may_be_damaged() -> None:
    """A wrong checksum of a comment keeps nobody from seeing the image."""
    samples = np.arange(6).reshape(1, 2, 3)
    data = file_of(samples, 2, 8, interlaced=False, tEXt=b"Comment\0hello")
    assert np.array_equal(decoded(data.replace(b"hello", b"hallo"), 0, 8), samples)


@pytest.mark.usefixtures("without_pillow")
def test_answers_are_tensorflows() -> None:
    """Recorded cases about PNG files, none of which needs a library."""
    cases = [
        case
        for case in all_op_cases()
        if case.family in ("photos", "edges_images", "damaged_pictures")
        and "DecodePng" in str(case)
    ]
    answered = 0
    for case in cases:
        try:
            with ps.Session(case.graph_bytes) as session:
                run_steps(session, case)
        except (AssertionError, errors.OpError) as error:
            assert "needs PIL" in str(error), case
        else:
            answered += 1

    assert answered > len(cases) / 2
