"""Sums, means and variances in C are what they are defined as, whatever vectors and lengths."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import moments as module
from penstock.kernels.c.library import library
from penstock.kernels.c.moments import moments, normalized, sums
from support.shared_library import each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(29)
#: What a normalisation may have besides its rows.
PARTS = "added", "scale", "offset"


def wanted(x: Array) -> list[Array]:
    """The definition, in float64."""
    wide = x.astype(np.float64)
    return [wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)]


@pytest.mark.parametrize("length", [1, 2, 7, 16, 17, 31, 32, 33, 50, 100, 768, 70_001])
def test_rows_of_all_lengths(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Far from zero, too; all kinds that multiply and add at once agree, on any thread."""
    x = (RNG.normal(size=(41, length)) * 3 + 50).astype(np.float32)
    found = set()
    for kind in each_way(monkeypatch, module):
        got = moments(x)
        assert got is not None
        for part, definition in zip(got, wanted(x), strict=True):
            assert part.shape == (41, 1)
            np.testing.assert_allclose(part, definition, rtol=3e-6, atol=1e-8)
        if kind:
            found.add(b"".join(part.tobytes() for part in got))
    assert len(found) <= 1


def test_a_large_mean_is_no_variance() -> None:
    """Distances are taken before they are squared."""
    x = np.float32(1e4) + np.arange(64, dtype=np.float32)
    _, variance = moments(x) or (None, None)
    np.testing.assert_array_equal(variance, np.arange(64).var(keepdims=True))


@np.errstate(all="ignore")
def test_numbers_that_are_none() -> None:
    """NaN, and an infinity, spoil their row and no other."""
    for at in (0, 5, 31, 35):
        for odd in (np.nan, np.inf):
            x = RNG.normal(size=(3, 36)).astype(np.float32)
            x[1, at] = odd
            mean, variance = moments(x) or (np.zeros(3), np.zeros(3))
            assert np.isnan(variance[1])
            assert not np.isfinite(mean[1])
            assert np.isfinite([mean[[0, 2]], variance[[0, 2]]]).all()


def test_views_and_axes() -> None:
    """The last axis counts, however it lies in memory."""
    whole = RNG.normal(size=(4, 6, 10)).astype(np.float32)
    for view in (whole.transpose(2, 0, 1), whole[::-1, :, ::3], whole[0, 0], whole[:, :1]):
        for part, definition in zip(moments(view) or (), wanted(view), strict=True):
            np.testing.assert_allclose(part, definition, rtol=1e-5, atol=1e-6)


def test_others_are_for_others() -> None:
    """Other types, numbers, and nothing at all."""
    assert moments(np.ones((2, 2))) is None
    assert moments(np.ones((), np.float32)) is None
    assert moments(np.ones((0, 3), np.float32)) is None
    assert moments(np.ones((3, 0), np.float32)) is None


@pytest.mark.parametrize("length", [1, 5, 32, 33, 4096, 4097, 200_001])
def test_sums_of_all_lengths(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds give the same bits, on any thread; of many numbers as exactly as of few."""
    x = RNG.uniform(0, 1, size=(7, length)).astype(np.float32)
    found = set()
    for _ in each_way(monkeypatch, module):
        got = sums(x, length)
        assert got is not None
        np.testing.assert_allclose(got, x.astype(np.float64).sum(1), rtol=2e-6)
        found.add(got.tobytes())
    assert len(found) == 1


def test_sums_of_what_lies_otherwise_are_for_others() -> None:
    """Views, other types, and nothing."""
    x = np.ones((6, 4), np.float32)
    np.testing.assert_array_equal(sums(x, 8), [8, 8, 8])
    assert sums(x[:, ::2], 2) is None
    assert sums(x.T, 6) is None
    assert sums(x.astype(np.float64), 4) is None
    assert sums(x[:0], 4) is None


@pytest.mark.parametrize("length", [1, 2, 7, 16, 33, 100, 768, 20_001])
@pytest.mark.parametrize("is_centered", [False, True])
@pytest.mark.parametrize("parts", [(), ("added",), ("scale",), ("offset",), PARTS])
def test_normalised_rows(
    length: int, is_centered: bool, parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is what its moments and single operations give, to the last bit, on any thread."""
    given = {part: RNG.normal(size=length).astype(np.float32) for part in parts}
    x = (RNG.normal(size=(5, length)) * 3 + 50).astype(np.float32)
    if "added" in given:
        given["added"] = RNG.normal(size=x.shape).astype(np.float32)
    added, scale, offset = (given.get(part) for part in PARTS)
    for _ in each_way(monkeypatch, module):
        got = normalized(x, added, scale, offset, 0.25, is_centered=is_centered)
        total = x if added is None else x + added
        mean, variance = moments(total) or (x, x)
        factor = np.float32(1) / np.sqrt(variance + np.float32(0.25))
        if is_centered:
            want = (total - mean) * factor * (1 if scale is None else scale)
            want = want if offset is None else want + offset
        else:
            factor = factor * (1 if scale is None else scale)
            term = -mean * factor
            want = total * factor + (term if offset is None else term + offset)
        np.testing.assert_array_equal(got, want)


def test_zeros_keep_their_sign() -> None:
    """What is not asked for is not added: negative zeros stay what they are."""
    x, scale = np.float32([[1, 1, 1]]), np.float32([-1, 1, -1])
    got = normalized(x, None, scale, None, 1.0, is_centered=True)
    np.testing.assert_array_equal(np.signbit(np.asarray(got)), [[True, False, True]])


@pytest.mark.parametrize(
    "changed",
    [
        {"x": np.ones((2, 3))},
        {"x": np.float32(1)},
        {"x": np.ones((0, 3), "f")},
        {"added": np.ones(3, "f")},
        {"added": np.ones((2, 3))},
        {"scale": np.ones(1, "f")},
        {"scale": np.ones((2, 3), "f")},
        {"scale": np.ones((1, 1, 3), "f")},
        {"scale": np.ones(3)},
        {"offset": np.ones((3, 1), "f")},
        {"offset": np.float32(1)},
    ],
)
def test_what_is_no_row_is_left_to_others(changed: dict[str, Array]) -> None:
    """Other types, other shapes, and nothing at all."""
    given = {"x": np.ones((2, 3), "f"), "added": None, "scale": None, "offset": None}
    assert normalized(*given.values(), 0.1, is_centered=False) is not None  # type: ignore[arg-type]
    given |= changed
    assert normalized(*given.values(), 0.1, is_centered=False) is None  # type: ignore[arg-type]
