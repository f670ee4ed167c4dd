"""Real models on input of the kind that they were made for.

In:   nothing: sounds, volumes and texts are made here, the same each time.
Out:  ``CASES``: which file of a model, what to feed, what to fetch.
Not:  runs nothing; ``tools/fetch_models.py`` brings the models, and
      ``tools/record_real_models.py`` notes what TensorFlow answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

#: Where ``tools/fetch_models.py`` puts models.
MODELS: Final = Path(__file__).parents[2] / "models"
#: Where TensorFlow's answers are.
ANSWERS: Final = Path(__file__).parents[1] / "models" / "answers"

PYTHON: Final = b'''
import sys

def main(names):
    """Greet everybody."""
    for name in sorted(names):
        print(f"Hello, {name}!")

if __name__ == "__main__":
    main(sys.argv[1:])
'''
C: Final = b"""
#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        printf("Hello, %s!\\n", argv[i]);
    }
    return 0;
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model and one run of it."""

    name: str
    #: The model's file or folder, below ``MODELS``.
    path: str
    #: ``graph``, ``saved_model``, ``meta_graph``, ``tfjs`` or ``keras``.
    kind: str
    #: Of a SavedModel the signature; then feeds and fetches go by its names, as those of Keras do.
    signature: str = ""
    feeds: Callable[[], Mapping[str, Any]]
    fetches: tuple[str, ...]
    #: Of large answers every so many elements along each axis are noted.
    every: int = 1
    #: How far floats may be from TensorFlow's, relative to the largest of the tensor.
    tolerance: float = 1e-5

    def thinned(self, answer: Any) -> Any:
        """What is noted of an answer."""
        return answer[(slice(None, None, self.every),) * np.ndim(answer)]


def _languages() -> dict[str, Any]:
    return {"content": np.array([PYTHON, C], object)}


def _tone() -> dict[str, Any]:
    """Two seconds of the A above middle C, 22,050 samples a second, growing louder."""
    seconds = np.arange(43_844) / 22_050
    wave = np.sin(2 * np.pi * 440 * seconds) * seconds / 4
    return {"input_2": wave.astype(np.float32).reshape(1, -1, 1)}


def _spectrogram() -> dict[str, Any]:
    """Three seconds in 96 bands: two tones and their overtones, one of them trembling."""
    time, band = np.arange(187)[:, None], np.arange(96)[None]
    steady = sum(np.exp(-0.5 * ((band - 12 * k) / 1.5) ** 2) / k for k in (1, 2, 3, 4))
    middle = 40 + 3 * np.sin(time / 5)
    trembling = np.exp(-0.5 * ((band - middle) / 2.0) ** 2)
    loudness = np.log10(1 + 1e4 * (steady + trembling) / 10)
    return {
        "model/Placeholder:0": loudness[None].astype(np.float32),
        "model/Placeholder_2:0": np.bool_(False),
    }


def _sentence() -> dict[str, Any]:
    """A Thai sentence as the model numbers letters: I love cats and my dog; then six spaces."""
    letters = [10, 51, 27, 37, 51, 2, 61, 35, 41, 61, 39, 50, 45, 35, 52, 3, 47, 8, 10, 51, 27]
    numbers = np.array(letters + [75] * 6)
    return {
        "placeholder/inputs:0": np.eye(80, dtype=np.float32)[numbers][:, None],
        "placeholder/seq_lengths:0": np.array([len(numbers)], np.int32),
        "placeholder/fw_state:0": np.zeros((1, 1, 896), np.float32),
        "placeholder/keep_prob:0": np.float32(1),
    }


def _head() -> dict[str, Any]:
    """A bright ball within a darker shell, roughly a head from far away."""
    axis = np.linspace(-1, 1, 128)
    x, y, z = np.meshgrid(axis, axis * 1.2, axis, indexing="ij")
    radius = np.sqrt(x**2 + y**2 + z**2)
    tissue = 0.6 + 0.2 * np.sin(9 * x) * np.cos(7 * y) * np.sin(5 * z)
    volume = np.where(radius < 0.6, tissue, np.where(radius < 0.75, 0.25, 0.0))
    return {"img:0": volume.astype(np.float32)[None, ..., None], "training:0": np.bool_(False)}


def _comments() -> dict[str, Any]:
    """Two comments as the package numbers their words, with zeros before them to length 100."""
    kind = "thank you for your help this article is much better now"
    rude = "you are a stupid idiot go to hell"
    number_of = {
        "thank": 131, "you": 6, "for": 12, "your": 20, "help": 117, "this": 13, "article": 23,
        "is": 8, "much": 128, "better": 200, "now": 89, "are": 18, "a": 5, "stupid": 457,
        "idiot": 966, "go": 124, "to": 2, "hell": 735,
    }  # fmt: skip
    rows = np.zeros((2, 100), np.float32)
    for row, text in zip(rows, (kind, rude), strict=True):
        numbers = [number_of[word] for word in text.split()]
        row[-len(numbers) :] = numbers
    return {"input_1": rows}


CASES: Final = (
    Case(
        name="languagedetection",
        path="languagedetection",
        kind="tfjs",
        signature="serving_default",
        feeds=lambda: {"inputs": np.array([PYTHON, C], object)},
        fetches=("scores", "classes"),
    ),
    Case(
        name="guesslang",
        path="guesslang/model",
        kind="saved_model",
        signature="predict",
        feeds=_languages,
        fetches=("classes", "class_ids", "probabilities", "logits"),
    ),
    Case(
        name="basic-pitch",
        path="basic-pitch",
        kind="saved_model",
        signature="serving_default",
        feeds=_tone,
        fetches=("note", "onset", "contour"),
        every=4,
        # It takes logarithms of what is nearly silent: the answers of TensorFlow with oneDNN and
        # without differ by 7e-4.
        tolerance=1e-3,
    ),
    Case(
        name="musicnn",
        path="musicnn/.meta",
        kind="meta_graph",
        feeds=_spectrogram,
        fetches=("model/Sigmoid:0", "model/dense/BiasAdd:0"),
    ),
    Case(
        name="cutkum",
        path="cutkum/frozen_model.pb",
        kind="graph",
        feeds=_sentence,
        fetches=("probs:0",),
    ),
    Case(
        name="deepbrain",
        path="deepbrain/graph.pb",
        kind="graph",
        feeds=_head,
        fetches=("prob:0",),
        every=5,
    ),
    Case(
        name="tox-block",
        path="tox-block/lstm_model_0.1.2.h5",
        kind="keras",
        feeds=_comments,
        fetches=("dense_1",),
    ),
)  # fmt: skip
