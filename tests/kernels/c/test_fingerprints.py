"""Fingerprints of many texts in C are those of each text."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.kernels.c.fingerprints import farmhash64_in_c
from penstock.kernels.values.fingerprints import farmhash64


@pytest.mark.parametrize("sizes", [range(17), range(17, 65), range(65, 330), [1000, 4096, 9999]])
def test_texts_of_all_sizes(sizes: range | list[int]) -> None:
    """Of any bytes, zeros among them, and in any order."""
    rng = np.random.default_rng(3)
    texts = [rng.bytes(size) for size in sizes for _ in range(5)] + [bytes(size) for size in sizes]
    rng.shuffle(texts)  # type: ignore[arg-type]  # a list will do

    found = farmhash64_in_c(texts)

    if found is None:
        pytest.skip("there was no C compiler")
    assert found.dtype == np.uint64
    assert found.tolist() == [farmhash64(text) for text in texts]


def test_none_at_all() -> None:
    """Of no texts there are no fingerprints."""
    found = farmhash64_in_c([])
    if found is None:
        pytest.skip("there was no C compiler")
    assert found.tolist() == []
