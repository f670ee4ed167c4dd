"""Files in their usual size: trained ones that others have published, and Keras' applications.

``tools/fetch_models.py`` brings the former, ``tools/make_keras_models.py --applications`` makes the
latter.

The expected numbers are Keras' own: those of ``fer`` by tf_keras 2.21; those of ``capricorn`` by
Keras 3.15, which cannot open the file as a whole, from its weights in the same layers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.formats.keras import read

MODELS = Path(__file__).resolve().parents[3] / "models"


def answer(name: str, x: np.ndarray) -> np.ndarray:
    """What the only model in a folder makes of its only input."""
    folder = MODELS / name
    if not folder.is_dir():
        pytest.skip(f"python tools/fetch_models.py {name} brings it")
    [path] = [path for path in folder.rglob("*") if path.suffix in (".hdf5", ".keras")]
    model = read(path)
    [given], [made] = model.inputs.values(), model.outputs.values()
    with ps.Session(model.graph) as session:
        found: np.ndarray = session.run(made.tensor, {given.tensor: x})
    return found


def test_fer_answers_as_in_keras() -> None:
    """A network of 2018, saved by Keras 2.0, sees in a picture what tf_keras sees."""
    y, x = np.mgrid[:64, :64]
    face = np.exp(-((x - 32) ** 2 / 300 + (y - 34) ** 2 / 500))
    face = (face + 0.2 * np.sin(x / 3) * np.cos(y / 4)).astype(np.float32)
    expected = [
        7.0564754e-02,
        3.7151904e-04,
        6.0150117e-02,
        1.7823060e-01,
        2.8630862e-02,
        3.1738661e-02,
        6.3031340e-01,
    ]

    np.testing.assert_allclose(answer("fer", face[None, :, :, None])[0], expected, atol=1e-5)


def test_capricorn_answers_as_in_keras() -> None:
    """A DenseNet121 of 2025, saved by Keras 3.8, sees in a picture what Keras 3.15 sees."""
    y, x = np.mgrid[:224, :224]
    waves = np.stack([np.sin(x / 9), np.cos(y / 7), np.sin((x + y) / 11)], -1) + 1
    found = answer("capricorn", waves[None].astype(np.float32) * np.float32(0.5))

    assert found.shape == (1, 24)
    np.testing.assert_allclose(found[0, 1], 9.9999988e-01, atol=1e-6)
    # Far in the tail of a softmax a step of 1e-5 in a logit is one of 1e-5 in the answer.
    np.testing.assert_allclose(found[0, [5, 17]], [5.7682051e-08, 1.5644538e-07], rtol=1e-4)


@pytest.mark.parametrize("name", ["MobileNetV2", "EfficientNetB0"])
def test_applications_answer_as_in_keras(name: str) -> None:
    """Whole networks of Keras 3 agree to 1e-6 of the largest output.

    TensorFlow with oneDNN and without differ by 2e-7 there.
    """
    folder = MODELS / "applications"
    if not (folder / f"{name}.keras").is_file():
        pytest.skip("python tools/make_keras_models.py --applications makes it")
    model = read(folder / f"{name}.keras")
    [given], [made] = model.inputs.values(), model.outputs.values()
    with np.load(folder / f"{name}.npz") as arrays, ps.Session(model.graph) as session:
        expected = arrays["y"]
        found = session.run(made.tensor, {given.tensor: arrays["x"]})

    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
