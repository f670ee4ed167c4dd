"""Have TensorFlow save the models of ``tests/saved_models_src``, and answer their calls.

    python tools/make_saved_models.py                  all, the large ones into a temporary folder
    python tools/make_saved_models.py keras_mlp        some
    python tools/make_saved_models.py --folder DIR …   elsewhere than tests/saved_models

Each model becomes a folder with the SavedModel (``model``), the calls (``calls.json``) and all
arrays of their arguments and results (``arrays.npz``).  Needs TensorFlow with Keras 3.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from saved_models_src import graphs_v1, keras_models, modules  # noqa: E402
from saved_models_src.recipe import Call, Ragged, Recipe, Sparse  # noqa: E402

TARGET = ROOT / "tests" / "saved_models"


def main(words: list[str]) -> None:
    folder = Path(words[words.index("--folder") + 1]) if "--folder" in words else TARGET
    wanted = [word for word in words if word != "--folder" and Path(word) != folder]
    recipes = [*keras_models.RECIPES, *modules.RECIPES, *graphs_v1.recipes()]
    for recipe in recipes:
        if recipe.name in wanted or not (wanted or (recipe.is_large and folder == TARGET)):
            make(recipe, folder / recipe.name)


def make(recipe: Recipe, folder: Path) -> None:
    """One folder, as the module's docstring says."""
    shutil.rmtree(folder, ignore_errors=True)
    model = folder / "model"
    recipe.save(str(model))
    arrays: dict[str, Any] = {}
    calls = answers(recipe, str(model), arrays)
    np.savez_compressed(folder / "arrays.npz", **arrays)
    tags = None if recipe.tags is None else list(recipe.tags)
    text = json.dumps({"tags": tags, "calls": calls}, indent=1)
    (folder / "calls.json").write_text(text + "\n", "utf-8")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{recipe.name}: {len(calls)} calls, {size // 1024} KiB", flush=True)


def answers(recipe: Recipe, path: str, arrays: dict[str, Any]) -> list[Any]:
    """Every call with its arguments and TensorFlow's results, as JSON; arrays go into a dictionary."""
    model = tf.saved_model.load(path, tags=recipe.tags)
    found = []
    for call in recipe.calls:
        function = callee(model, call)
        given = [tf.nest.map_structure(tensor, arg) for arg in call.args]
        named = {key: tf.nest.map_structure(tensor, arg) for key, arg in call.kwargs.items()}
        result = function(*given, **named)
        found.append(
            {
                "signature": call.signature,
                "path": call.path,
                "args": [plain(arg, arrays) for arg in call.args],
                "kwargs": {key: plain(arg, arrays) for key, arg in call.kwargs.items()},
                "result": plain(result, arrays),
            }
        )
    return found


def callee(model: Any, call: Call) -> Any:
    """The function that a call means."""
    if call.signature:
        return model.signatures[call.signature]
    found = model
    for part in call.path.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    return found


def tensor(leaf: Any) -> Any:
    """A leaf of an argument as TensorFlow takes it."""
    if isinstance(leaf, Ragged):
        return tf.RaggedTensor.from_nested_row_splits(leaf.values, leaf.row_splits)
    if isinstance(leaf, Sparse):
        return tf.SparseTensor(leaf.indices, leaf.values, leaf.dense_shape)
    return tf.constant(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf


def plain(value: Any, arrays: dict[str, Any]) -> Any:
    """A nesting as JSON; an array is ``{"$": its name in arrays.npz}``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (Ragged, tf.RaggedTensor)):
        is_ours = isinstance(value, Ragged)
        splits = value.row_splits if is_ours else value.nested_row_splits
        values = value.values if is_ours else value.flat_values
        return {"$ragged": [plain(part, arrays) for part in (values, *splits)]}
    if isinstance(value, (Sparse, tf.SparseTensor)):
        parts = (value.indices, value.values, value.dense_shape)
        return {"$sparse": [plain(part, arrays) for part in parts]}
    if isinstance(value, dict):
        return {key: plain(item, arrays) for key, item in value.items()}
    if hasattr(value, "_fields"):
        return {"$fields": [[n, plain(getattr(value, n), arrays)] for n in value._fields]}
    if isinstance(value, tuple):
        return {"$tuple": [plain(item, arrays) for item in value]}
    if isinstance(value, list) or type(value).__name__ == "ListWrapper":
        return [plain(item, arrays) for item in value]
    array = np.asarray(value)
    if array.dtype.hasobject:
        return {"$bytes": [list(array.shape), [item.hex() for item in array.ravel().tolist()]]}
    name = f"a{len(arrays)}"
    arrays[name] = array
    return {"$": name}


if __name__ == "__main__":
    main(sys.argv[1:])
