"""The softmax in C is what its definition says, whatever the vectors, threads and lengths."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.values import Array
from penstock.kernels.c import softmax as module
from penstock.kernels.c.library import Library, library, loaded
from penstock.kernels.c.softmax import log_softmax, prediction, softmax
from support.shared_library import KINDS, each_way

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RNG = np.random.default_rng(23)


def wanted(logits: Array) -> Array:
    """The definition, in float64."""
    x = logits.astype(np.float64)
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


@pytest.mark.parametrize("length", [1, 2, 7, 15, 16, 17, 31, 33, 100, 1000, 40_000])
def test_rows_of_all_lengths(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing overflows; all kinds that multiply and add at once agree, on any thread."""
    logits = (RNG.normal(size=(37, length)) * 30 + 500).astype(np.float32)
    found = set()
    for kind in each_way(monkeypatch, module):
        got = softmax(logits)
        assert got is not None
        np.testing.assert_allclose(got, wanted(logits), rtol=2e-6, atol=1e-37)
        if kind:
            found.add(got.tobytes())
    assert len(found) <= 1


@pytest.mark.parametrize("length", [3, 31, 100])
def test_a_factor_comes_first(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all numbers, and is rounded for itself."""
    logits = (RNG.normal(size=(37, length)) * 9).astype(np.float32)
    for _ in each_way(monkeypatch, module):
        np.testing.assert_array_equal(softmax(logits, 0.3), softmax(logits * np.float32(0.3)))


@pytest.mark.parametrize("length", [1, 2, 7, 15, 16, 17, 31, 33, 100, 1000, 40_000])
def test_logarithms_of_rows_of_all_lengths(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of numbers whose softmax is 0 are exact, too."""
    logits = (RNG.normal(size=(37, length)) * 90 + 500).astype(np.float32)
    x = logits.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    expected = x - np.log(np.exp(x).sum(-1, keepdims=True))
    found = set()
    for kind in each_way(monkeypatch, module):
        got = log_softmax(logits)
        assert got is not None
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=3e-6)
        if kind:
            found.add(got.tobytes())
    assert len(found) <= 1


@np.errstate(all="ignore")
def test_numbers_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN, and an infinity, spoil their row and no other."""
    for kind in KINDS:
        monkeypatch.setattr(module, "library", lambda k=kind: Library(loaded(), k))
        for at in (0, 5, 16, 19):
            for odd in (np.nan, np.inf):
                logits = RNG.normal(size=(3, 20)).astype(np.float32)
                logits[1, at] = odd
                got = softmax(logits)
                assert got is not None
                assert np.isnan(got[1]).all()
                np.testing.assert_allclose(got[[0, 2]], wanted(logits[[0, 2]]), rtol=2e-6)
        logits = np.full((2, 18), -np.inf, np.float32)
        logits[1, 17] = 3
        got = softmax(logits)
        assert got is not None
        assert np.isnan(got[0]).all()
        np.testing.assert_array_equal(got[1], [0] * 17 + [1])


def test_views_and_axes() -> None:
    """The last axis counts, however it lies in memory."""
    whole = RNG.normal(size=(4, 6, 10)).astype(np.float32)
    for view in (whole.transpose(2, 0, 1), whole[::-1, :, ::3], whole[0, 0], whole[:, :1]):
        np.testing.assert_allclose(softmax(view), wanted(view), rtol=2e-6)


def test_others_are_for_others() -> None:
    """Other types, numbers, and nothing at all."""
    assert softmax(np.ones((2, 2))) is None
    assert softmax(np.ones((), np.float32)) is None
    assert softmax(np.ones((0, 3), np.float32)) is None
    assert softmax(np.ones((3, 0), np.float32)) is None


def in_eights(powers: Array) -> Array:
    """Sums of rows as TensorFlow adds them: eight side by side, and what is left apart."""
    whole = powers.shape[1] - powers.shape[1] % 8
    groups = powers[:, :whole].reshape(len(powers), -1, 8)
    together = groups.shape[1] - groups.shape[1] % 4
    four = np.zeros((len(powers), 4, 8), np.float32)
    for number in range(together):
        four[:, number % 4] += groups[:, number]
    sums = ((four[:, 0] + four[:, 1]) + four[:, 2]) + four[:, 3]
    for number in range(together, groups.shape[1]):
        sums += groups[:, number]
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    rest = np.zeros(len(powers), np.float32)
    for column in range(whole, powers.shape[1]):
        rest += powers[:, column]
    return np.asarray(sums[:, 0] + rest)


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 10, 16, 33, 40, 64, 75, 1000])
def test_what_a_loss_takes(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The softmax, its divisor in TensorFlow's order, and the largest number."""
    logits = (RNG.normal(size=(29, length)) * 5 + 100).astype(np.float32)
    for _ in each_way(monkeypatch, module):
        found = prediction(logits)
        assert found is not None
        chances, totals, largest = found
        np.testing.assert_array_equal(largest, logits.max(1))
        np.testing.assert_allclose(chances, wanted(logits), rtol=2e-6, atol=1e-37)
        # The powers are those that are divided by the total, up to this division's rounding.
        powers = chances * totals[:, np.newaxis]
        np.testing.assert_allclose(totals, in_eights(powers), rtol=3e-7)


@pytest.mark.parametrize(("length", "place"), [(75, 40), (29, 3)])
def test_a_sure_prediction_has_tensorflows_rounding(
    length: int, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many tiny powers beside a 1: the sum is theirs in this order, and no other."""
    logits = np.full((1, length), -16.3, np.float32)
    logits[0, place] = 0
    tiny = np.float32(np.exp(np.float64(np.float32(-16.3))))
    powers = np.full((1, length), tiny, np.float32)
    powers[0, place] = 1
    assert in_eights(powers)[0] != powers.sum(dtype=np.float64).astype(np.float32)
    for kind in KINDS:
        monkeypatch.setattr(module, "library", lambda k=kind: Library(loaded(), k))
        found = prediction(logits)
        assert found is not None
        assert found[1][0] == in_eights(powers)[0]
