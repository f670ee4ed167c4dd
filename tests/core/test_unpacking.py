"""Packed bytes: all of their parts, no more than allowed, in time that grows with their length."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from penstock.core.unpacking import GZIP, ZLIB, unpack
from penstock.errors import ResourceExhaustedError

MUCH = 1 << 40


@pytest.mark.parametrize("seed", range(20))
def test_members_of_any_size_come_one_behind_the_other(seed: int) -> None:
    """A file of gzip is all that its members hold, in their order."""
    draw = random.Random(seed)
    parts = [draw.randbytes(draw.choice((0, 1, 900, 70_000))) for _ in range(draw.randrange(1, 30))]
    found = unpack(b"".join(map(gzip.compress, parts)), GZIP, MUCH, "it")

    assert found.data == b"".join(parts)
    assert (bytes(found.rest), found.is_complete) == (b"", True)


def test_what_comes_behind_is_left() -> None:
    """Other bytes after the end are the caller's business; one stream of zlib is all there is."""
    one = gzip.compress(b"one")
    assert bytes(unpack(one + b"junk", GZIP, MUCH, "it").rest) == b"junk"
    two = zlib.compress(b"two")
    assert unpack(two + two, ZLIB, MUCH, "it")[:2] == (b"two", two)


@pytest.mark.parametrize("cut", [1, 5, 9, 15])
def test_what_is_cut_off_is_incomplete(cut: int) -> None:
    """Bytes that end too early give what they hold, and say so."""
    content = random.Random(1).randbytes(100)
    packed = gzip.compress(content) + gzip.compress(content)
    found = unpack(packed[:-cut], GZIP, MUCH, "it")

    assert not found.is_complete
    assert (content * 2).startswith(found.data)


def test_damage_is_zlibs_error() -> None:
    """What is no packed data at all is for the caller to name."""
    with pytest.raises(zlib.error):
        unpack(b"abc", ZLIB, MUCH, "it")


@pytest.mark.parametrize(("most", "fits"), [(9_999_999, False), (10_000_000, True)])
def test_no_more_comes_out_than_may(most: int, fits: bool) -> None:
    """The bound is exact, for one member and for many."""
    for packed in (gzip.compress(bytes(10_000_000)), gzip.compress(bytes(1000)) * 10_000):
        if fits:
            assert len(unpack(packed, GZIP, most, "it").data) == most
        else:
            with pytest.raises(ResourceExhaustedError, match="it unpacks to more than 9999999"):
                unpack(packed, GZIP, most, "it")


@pytest.mark.slow
def test_a_million_members() -> None:
    """Many small members take as long as their bytes, not as long as their bytes squared.

    If the rest were copied behind each member, that would be ten terabytes.
    """
    packed = gzip.compress(b"a", mtime=0) * 1_000_000

    assert len(unpack(packed, GZIP, MUCH, "it").data) == 1_000_000
