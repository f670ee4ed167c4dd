"""Real models become benchmark graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.cases import Case, agree, stored, write_arrays
from benchmarks.make_real_models import make
from benchmarks.worker import PenstockModel
from support import real_models


@pytest.mark.parametrize("case", real_models.CASES, ids=lambda case: case.name)
def test_a_frozen_model_answers_as_in_tensorflow(case: real_models.Case, tmp_path: Path) -> None:
    """What is timed is what was noted."""
    if not (real_models.MODELS / case.path).exists():
        pytest.skip("python tools/fetch_models.py brings it")
    made = Case.read(make(case, tmp_path))
    with np.load(real_models.ANSWERS / f"{case.name}.npz") as noted:
        wanted = [stored(noted[str(number)]) for number in range(len(case.fetches))]

    model = PenstockModel(made, made.graph_bytes, made.fed())
    answers = [stored(case.thinned(answer)) for answer in model.run()]
    model.close()

    assert agree(answers, wanted, made.tolerance)


def test_texts_are_stored_as_bytes(tmp_path: Path) -> None:
    """No file has anything that would have to be unpickled."""
    write_arrays(tmp_path / "texts.npz", [np.array([b"a", b"bc"], object)])

    with np.load(tmp_path / "texts.npz") as file:
        assert file["0"].tolist() == [b"a", b"bc"]


def test_some_answers_may_be_further_apart() -> None:
    """Those of a model that takes logarithms of what is nearly silent."""
    wanted = np.array([1.0, 0.001])

    assert not agree([wanted + 5e-4], [wanted])
    assert agree([wanted + 5e-4], [wanted], 1e-2)
