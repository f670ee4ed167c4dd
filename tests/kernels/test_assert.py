"""Assertions: silent, or an error with the data in it."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import errors
from support.ops import run_op

TEXT = np.array([b"x must be", b"positive"], object)


def test_truth_is_silent() -> None:
    """A condition that holds gives nothing."""
    assert run_op("Assert", np.bool_(True), [TEXT]) is None


def test_failure_shows_the_data() -> None:
    """Each piece of data stands in brackets, as short as asked for."""
    with pytest.raises(errors.InvalidArgumentError) as caught:
        run_op("Assert", np.bool_(False), [b"x:", np.arange(4), np.float32(1.5)], summarize=2)

    assert caught.value.reason == "assertion failed: [x:] [0 1...] [1.5]"


def test_condition_must_be_one() -> None:
    """Several conditions are refused, even if all hold."""
    with pytest.raises(errors.InvalidArgumentError, match="should be a scalar: \\[2\\]"):
        run_op("Assert", np.array([True, True]), [TEXT])
