"""Real models with trained weights answer as they do in TensorFlow.

``tools/fetch_models.py`` brings them; without them these tests are skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from support.real_models import ANSWERS, CASES, MODELS, Case


def answers_of(case: Case) -> list[Any]:
    """What Penstock says."""
    path = MODELS / case.path
    with ps.load_model(path) as model:
        if model.signatures:
            outputs = model.signatures[case.signature or "serving_default"](**case.feeds())
            return [outputs[name] for name in case.fetches]
        return model.session.run(list(case.fetches), dict(case.feeds()))


def test_a_text_model_tells_rude_from_kind() -> None:
    """TensorFlow's noted answers mean something: the insult is toxic, the thanks are not."""
    with np.load(ANSWERS / "tox-block.npz") as noted:
        kind, rude = noted["0"][:, 0]

    assert kind < 0.01
    assert rude > 0.9


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_real_model_answers_as_in_tensorflow(case: Case) -> None:
    """Texts and numbers are the same, floats up to rounding."""
    if not (MODELS / case.path).exists():
        pytest.skip("python tools/fetch_models.py brings it")
    with np.load(ANSWERS / f"{case.name}.npz") as noted:
        wanted = [noted[str(number)] for number in range(len(case.fetches))]
    for name, want, answer in zip(case.fetches, wanted, answers_of(case), strict=True):
        got = case.thinned(np.asarray(answer))
        assert got.shape == want.shape, name
        if want.dtype.kind == "f":
            scale = np.abs(want).max()
            np.testing.assert_allclose(got, want, rtol=0, atol=case.tolerance * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(got.astype(want.dtype), want, err_msg=name)
