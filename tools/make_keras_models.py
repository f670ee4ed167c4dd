"""Write the small models of Keras with which Penstock's reader is compared, and their answers.

    python tools/make_keras_models.py [FAMILY ...]
    python tools/make_keras_models.py --applications

Needs TensorFlow with Keras 3, and the package tf_keras, which is Keras 2.  Each family of
``tests/keras_models_src`` becomes files in ``tests/keras_models``: as each generation saves it, in
both of its forms, and an ``.npz`` with inputs and outputs.  Archives are packed anew, HDF5 files
are packed by gzip, since Keras packs neither.

The second form writes models of ``keras.applications`` in their usual sizes, with weights that are
drawn, into ``models/applications``, which git ignores; tests take them if they are there.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
FOLDER = ROOT / "tests" / "keras_models"
#: Models of ``keras.applications`` whose answers are compared as a whole.
APPLICATIONS = ("MobileNetV2", "EfficientNetB0")

from keras_models_src import FAMILIES  # noqa: E402
from keras_models_src.book import SEED, Family, Given  # noqa: E402


def values(given: Given, batch: int, rng: np.random.Generator) -> np.ndarray:
    shape = (batch, *(8 if size is None else size for size in given.shape))
    if given.dtype == "string":
        words = np.array(["red", "green", "blue fish", "one fish, two fish!", "", "Zürich"])
        return words[rng.integers(0, len(words), shape)].astype(object)
    if given.below is not None:
        made = rng.integers(1 if given.lengths else 0, given.below, shape)
    else:
        made = np.round(rng.normal(size=shape) * 64) / 64
    for row, length in enumerate(given.lengths):
        made[row, length:] = 0
    return made.astype(given.dtype)


def fill(model, rng: np.random.Generator) -> None:
    """Weights that are no zeros and no ones, and short when packed."""
    for weight in model.weights:
        if not hasattr(weight, "shape"):
            continue  # a vocabulary
        name = getattr(weight, "path", weight.name)
        if not str(weight.dtype).replace("<dtype: '", "").startswith("float"):
            continue
        learned = ("mean", "variance", "count", "summary")
        if name.rpartition("/")[2].partition(":")[0] in learned or None in weight.shape:
            continue  # what layers have learned of data, of which they keep copies
        made = np.round(rng.normal(size=tuple(weight.shape)) * 24) / 64
        weight.assign(np.abs(made) + 0.5 if "variance" in name else made)


def save(model, family: Family, generation: int, form: str) -> str:
    path = FOLDER / f"{family.name}.{generation}.{form}"
    model.save(str(path))
    if form == "h5":
        packed = gzip.compress(path.read_bytes(), 9, mtime=0)
        path.unlink()
        path = path.with_name(path.name + ".gz")
        path.write_bytes(packed)
        return path.name
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w") as new:
        for info in old.infolist():
            if not info.is_dir():
                entry = zipfile.ZipInfo(info.filename)
                new.writestr(entry, old.read(info), zipfile.ZIP_DEFLATED, 9)
    path.write_bytes(content.getvalue())
    return path.name


def named(outputs) -> list[np.ndarray]:
    if isinstance(outputs, dict):
        return [leaf for key in outputs for leaf in named(outputs[key])]
    if isinstance(outputs, (list, tuple)):
        return [leaf for item in outputs for leaf in named(item)]
    return [np.asarray(outputs)]


def as_tensors(nest):
    """What a model takes as TensorFlow has it, since Keras takes no arrays of objects."""
    if isinstance(nest, dict):
        return {key: as_tensors(item) for key, item in nest.items()}
    if isinstance(nest, list):
        return [as_tensors(item) for item in nest]
    import tensorflow as tf  # noqa: PLC0415 - importing it takes seconds

    return tf.constant(nest.tolist() if nest.dtype == object else nest)


def make(family: Family, keras, generation: int) -> None:
    keras.utils.set_random_seed(SEED)
    keras.backend.clear_session()
    rng = np.random.default_rng(SEED)
    given = {name: values(g, family.batch, rng) for name, g in family.inputs.items()}
    tensors = {
        name: keras.Input(g.declared or g.shape, dtype=g.dtype, name=name)
        for name, g in family.inputs.items()
    }
    model = family.make(keras, tensors)
    fill(model, rng)
    fed = list(given.values()) if len(given) > 1 else next(iter(given.values()))
    if isinstance(getattr(model, "_inputs_struct", getattr(model, "_nested_inputs", None)), dict):
        fed = given
    if any(value.dtype == object for value in given.values()):
        fed = as_tensors(fed)
    outputs = named(model(fed, training=False))
    for form in ("keras",) if generation in family.without_h5 else ("keras", "h5"):
        save(model, family, generation, form)
    kept = {
        f"in_{name}": value.astype(str) if value.dtype == object else value
        for name, value in given.items()
    }
    for place, value in enumerate(outputs):
        is_text = value.dtype == object
        kept[f"out_{place}"] = np.char.decode(value.astype(bytes), "utf-8") if is_text else value
    np.savez_compressed(FOLDER / f"{family.name}.{generation}.npz", **kept)


def make_cudnn(keras) -> None:
    """A file with cuDNN's layers, and what the plain ones make of its weights.

    The former only run on a GPU; Keras 2 converts weights where it loads them into the latter.
    """
    from tf_keras.src.layers.rnn.cudnn_gru import CuDNNGRU  # noqa: PLC0415
    from tf_keras.src.layers.rnn.cudnn_lstm import CuDNNLSTM  # noqa: PLC0415

    def model(lstm, gru):
        x = keras.Input((5, 3), name="x")
        return keras.Model(x, [lstm(4)(x), gru(3, return_sequences=True)(x)], name="cudnn")

    rng = np.random.default_rng(SEED)
    fast, plain = model(CuDNNLSTM, CuDNNGRU), model(keras.layers.LSTM, keras.layers.GRU)
    fill(fast, rng)
    weights = FOLDER / "cudnn_weights.h5"
    fast.save_weights(str(weights), save_format="h5")
    plain.load_weights(str(weights))
    weights.unlink()
    given = values(Given((5, 3)), 2, rng)
    save(fast, Family("cudnn", None, {}), 2, "h5")
    outputs = {f"out_{place}": y for place, y in enumerate(named(plain(given)))}
    np.savez_compressed(FOLDER / "cudnn.2.npz", in_x=given, **outputs)


def make_applications(keras) -> None:
    folder = ROOT / "models" / "applications"
    folder.mkdir(parents=True, exist_ok=True)
    for name in APPLICATIONS:
        keras.backend.clear_session()
        rng = np.random.default_rng(SEED)
        keras.utils.set_random_seed(SEED)
        model = getattr(keras.applications, name)(weights=None)
        for weight in model.weights:
            draw_statistics(weight, rng)
        x = rng.random((2, *model.input_shape[1:]), np.float32) * 255
        model.save(str(folder / f"{name}.keras"))
        np.savez(folder / f"{name}.npz", x=x, y=np.asarray(model(x, training=False)))
        print(name)


def draw_statistics(weight, rng: np.random.Generator) -> None:
    """Numbers such as training leaves where initializers write zeros and ones.

    Those of Normalization stay: the layer computes with copies of its weights, so that a model of
    which they were assigned answers otherwise than when it is saved and loaded again.
    """
    shape = tuple(weight.shape)
    kind = weight.path.rpartition("/")[2]
    if kind == "moving_variance":
        weight.assign(np.exp(rng.normal(size=shape) * 0.3))
    elif kind == "gamma":
        weight.assign(1 + rng.normal(size=shape) * 0.1)
    elif kind in ("beta", "moving_mean", "bias"):
        weight.assign(rng.normal(size=shape) * 0.1)


def main(names: list[str]) -> None:
    import keras  # noqa: PLC0415 - importing them takes seconds
    import tf_keras  # noqa: PLC0415

    if names == ["--applications"]:
        make_applications(keras)
        return
    FOLDER.mkdir(exist_ok=True)
    for family in FAMILIES:
        if names and family.name not in names:
            continue
        for generation, k in ((2, tf_keras), (3, keras)):
            if generation in family.generations:
                make(family, k, generation)
        print(family.name)
    if not names or "cudnn" in names:
        make_cudnn(tf_keras)
    versions = {"keras": keras.__version__, "tf_keras": tf_keras.__version__}
    (FOLDER / "versions.json").write_text(json.dumps(versions) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
