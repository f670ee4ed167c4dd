"""The SavedModels in ``tests/saved_models``, and the calls that TensorFlow answered.

In:   the name of a model.
Out:  its path; calls with arguments and expected results as Penstock has them.
Not:  needs TensorFlow; ``tools/make_saved_models.py`` made it all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import penstock as ps

FOLDER: Final = Path(__file__).parents[1] / "saved_models"
NAMES: Final = sorted(path.name for path in FOLDER.iterdir() if (path / "calls.json").exists())


@dataclass(frozen=True)
class RecordedCall:
    """A call of a signature or of a function, with TensorFlow's result."""

    signature: str
    path: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


@dataclass(frozen=True)
class RecordedModel:
    """A model, and calls in the order in which TensorFlow was asked."""

    path: Path
    tags: list[str] | None
    calls: list[RecordedCall]


def recorded(name: str, folder: Path = FOLDER) -> RecordedModel:
    """The model of a name."""
    facts = json.loads((folder / name / "calls.json").read_text("utf-8"))
    with np.load(folder / name / "arrays.npz") as file:
        arrays = dict(file)
    calls = [
        RecordedCall(
            call["signature"],
            call["path"],
            tuple(value_of(arg, arrays) for arg in call["args"]),
            {key: value_of(arg, arrays) for key, arg in call["kwargs"].items()},
            value_of(call["result"], arrays),
        )
        for call in facts["calls"]
    ]
    return RecordedModel(folder / name / "model", facts["tags"], calls)


def value_of(plain: Any, arrays: dict[str, Any]) -> Any:
    """A nesting out of JSON, with arrays in it."""
    if isinstance(plain, list):
        return [value_of(item, arrays) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if "$" in plain:
        return arrays[plain["$"]]
    if "$bytes" in plain:
        shape, texts = plain["$bytes"]
        found = np.empty(len(texts), object)
        found[:] = [bytes.fromhex(text) for text in texts]
        return found.reshape(shape)
    if "$tuple" in plain:
        return tuple(value_of(item, arrays) for item in plain["$tuple"])
    if "$fields" in plain:
        return tuple(value_of(item, arrays) for _, item in plain["$fields"])
    if "$ragged" in plain:
        values, *splits = (value_of(part, arrays) for part in plain["$ragged"])
        return ps.saved_model.RaggedTensor(values, tuple(splits))
    if "$sparse" in plain:
        return ps.saved_model.SparseTensor(*(value_of(part, arrays) for part in plain["$sparse"]))
    return {key: value_of(item, arrays) for key, item in plain.items()}


def made(model: Any, call: RecordedCall) -> Any:
    """The result of a call of a loaded model."""
    if call.signature:
        return model.signatures[call.signature](*call.args, **call.kwargs)
    return model.functions[call.path](*call.args, **call.kwargs)


def assert_same(given: Any, wanted: Any, where: str = "result") -> None:
    """Fail unless two nestings have the same form and values: to 1e-5, and types exactly."""
    if isinstance(wanted, dict):
        assert set(given) == set(wanted), where
        for key, item in wanted.items():
            assert_same(given[key], item, f"{where}[{key!r}]")
    elif isinstance(wanted, (list, tuple)):
        assert isinstance(given, type(wanted)), where
        assert len(given) == len(wanted), where
        for place, (one, item) in enumerate(zip(given, wanted, strict=True)):
            assert_same(one, item, f"{where}[{place}]")
    elif isinstance(wanted, ps.saved_model.RaggedTensor):
        assert isinstance(given, ps.saved_model.RaggedTensor), where
        assert_same(given.values, wanted.values, f"{where}.values")
        assert_same(given.row_splits, wanted.row_splits, f"{where}.row_splits")
    elif isinstance(wanted, ps.saved_model.SparseTensor):
        assert isinstance(given, ps.saved_model.SparseTensor), where
        for part in ("indices", "values", "dense_shape"):
            assert_same(getattr(given, part), getattr(wanted, part), f"{where}.{part}")
    else:
        _assert_same_array(given, wanted, where)


def _assert_same_array(given: Any, wanted: Any, where: str) -> None:
    one, other = np.asarray(given), np.asarray(wanted)
    if other.dtype.kind in "OS":
        assert np.asarray(given, object).tolist() == other.tolist(), where
        return
    assert one.dtype == other.dtype, where
    assert one.shape == other.shape, where
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=where)
