"""Small models of Keras, whose answers Keras itself has recorded."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import penstock as ps

pytest.importorskip("h5py")

from penstock.formats.keras import KerasGraph, read

FOLDER = Path(__file__).resolve().parents[2] / "keras_models"
FILES = sorted(path.name for path in FOLDER.glob("*.*.*") if path.suffix in (".gz", ".keras"))


def opened(name: str) -> KerasGraph:
    """The model in a file of the folder."""
    content = (FOLDER / name).read_bytes()
    return read(gzip.decompress(content) if name.endswith(".gz") else content)


def recorded(name: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """The inputs of a model by name, and its outputs in order."""
    family, generation, *_ = name.split(".")
    with np.load(FOLDER / f"{family}.{generation}.npz") as arrays:
        inputs = {key[3:]: arrays[key] for key in arrays.files if key.startswith("in_")}
        outputs = [arrays[f"out_{place}"] for place in range(len(arrays.files) - len(inputs))]
    for key, value in inputs.items():
        if value.dtype.kind == "U":
            inputs[key] = np.char.encode(value, "utf-8").astype(object)
    return inputs, outputs


def answers(model: KerasGraph, inputs: dict[str, np.ndarray], **config: object) -> list[np.ndarray]:
    """What a model makes of its inputs."""
    if len(inputs) == 1:  # Sequential models name their input themselves
        inputs = dict(zip(model.inputs, inputs.values(), strict=True))
    feeds = {model.inputs[name].tensor: value for name, value in inputs.items()}
    with ps.Session(model.graph, config=ps.Config(**config)) as session:  # type: ignore[arg-type]
        return session.run([output.tensor for output in model.outputs.values()], feeds)


def test_there_are_models_of_both_generations_in_both_forms() -> None:
    """The folder has what Keras 2 and Keras 3 save, as archives and as HDF5 files."""
    assert {tuple(name.split(".")[1:3]) for name in FILES} == {
        (generation, form) for generation in "23" for form in ("h5", "keras")
    }


@pytest.mark.parametrize("name", FILES)
def test_answers_are_those_of_keras(name: str) -> None:
    """Every output of every branch is what the Keras that saved the file computes, to 1e-5.

    What is computed in float16 may differ in its last two bits, which are worth more.
    """
    model = opened(name)
    inputs, expected = recorded(name)
    found = answers(model, inputs, check_outputs=True)

    assert len(found) == len(expected)
    for output, mine, keras in zip(model.outputs, found, expected, strict=True):
        assert np.shape(mine) == keras.shape, output
        if keras.dtype.kind == "U":
            assert np.char.decode(mine.astype(bytes), "utf-8").tolist() == keras.tolist(), output
            continue
        assert np.asarray(mine).dtype == keras.dtype, output
        close = 4e-3 if keras.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(mine, keras, rtol=close, atol=min(close, 1e-3), err_msg=output)


@pytest.mark.parametrize("name", FILES)
def test_shapes_say_what_outputs_have(name: str) -> None:
    """What is known of an output's shape is true of the output that Keras recorded."""
    model = opened(name)
    _, expected = recorded(name)

    for output, keras in zip(model.outputs.values(), expected, strict=True):
        assert output.shape.rank == keras.ndim
        assert output.shape.accepts(keras.shape)
        assert output.dtype.numpy == keras.dtype or keras.dtype.kind == "U"
