"""Models over data: what travels, what is opened, and what each engine gets."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.cluster import map_batches, shared_model
from penstock.cluster.prediction import Prediction, prediction
from penstock.kernels.parallel.contention import contention
from penstock.saved_model.loaded_model import LoadedModel, Recipe

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = EXAMPLES / "digits_cnn.pb"
DIGITS = dict(np.load(EXAMPLES / "digits_test.npz"))
#: TensorFlow's own answers.
EXPECTED = DIGITS["digits_cnn_logits"].argmax(axis=1)


@pytest.fixture(autouse=True)
def _no_model_is_open() -> Iterator[None]:
    """Each test begins as a new process would."""
    shared_model.close_models()
    yield
    shared_model.close_models()


def digits_by(outputs: Any = "digit:0", **options: Any) -> Prediction:
    options = {"signature": None, "batch_size": 64, "threads": 1, **options}
    with ps.load_model(MODEL) as model:
        return prediction(model, options.pop("inputs", None), outputs, **options)


# -- what is computed ------------------------------------------------------------------------


def test_digits_are_tensorflows_however_they_are_cut() -> None:
    """Pieces of one row, of 64 and of more than there are give the answers that were recorded."""
    for batch_size in (1, 64, 1000):
        found = digits_by(batch_size=batch_size)({"images": DIGITS["images"][:130]})
        assert found["digit"].tolist() == EXPECTED[:130].tolist()


def test_columns_and_outputs_are_called_as_the_caller_wants() -> None:
    """Inputs are named by the model, outputs by the caller; several come from one call."""
    predict = digits_by({"guess": "digit:0", "p": "probabilities:0"}, inputs={"images:0": "pixels"})
    found = predict({"pixels": DIGITS["images"], "label": DIGITS["labels"]})

    assert list(found) == ["guess", "p"]
    assert found["guess"].tolist() == EXPECTED.tolist()
    assert (found["p"].argmax(axis=1) == EXPECTED).all()


def test_signatures_are_asked_by_their_own_names() -> None:
    """A model with signatures needs no names at all; values go in as its types."""
    path = Path(__file__).parents[1] / "saved_models/keras_mlp/model"
    with ps.load_model(path) as model:
        predict = prediction(model, None, None, signature=None, batch_size=2, threads=1)
        rows = np.arange(25.0).reshape(5, 5)
        expected = model.signatures["serving_default"](features=rows.astype(np.float32))
    found = predict({"features": rows})

    assert list(found) == list(expected)
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5)


def test_no_rows_are_no_rows_of_the_right_kind() -> None:
    """Of an empty part nothing is computed, and types and shapes are those of the other parts."""
    found = digits_by(["digit:0", "probabilities:0"])({"images": DIGITS["images"][:0]})
    assert (found["digit"].shape, found["digit"].dtype) == ((0,), np.int32)
    assert (found["probabilities"].shape, found["probabilities"].dtype) == ((0, 10), np.float32)


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        ({"image": [1]}, "column 'images', which the data does not have; it has 'image'"),
        ({"images": np.array(["a"])}, "of <U1, and the model's input 'images:0' of float32"),
        ({"images": np.zeros((2, 8, 8), complex)}, "of complex128, and"),
        ({"images": [np.zeros((8, 8)), np.zeros((8, 7))]}, "The rows of the column 'images'"),
    ],
)
def test_data_that_does_not_fit_is_refused(batch: dict[str, Any], says: str) -> None:
    """The error names the column, and what the model wants."""
    with pytest.raises(errors.InvalidArgumentError, match=says):
        digits_by()(batch)


def test_columns_of_different_lengths_are_refused() -> None:
    """Two inputs of one row each, and more rows of one than of the other."""
    graph = ps.Graph()
    with graph.as_default():
        a, b = (ps.placeholder("float32", [None], name=name) for name in "ab")
        ps.ops.add_v2(a, b, name="sum")
    predict = prediction_of(graph, "sum:0")
    assert predict({"a": [1, 2.0], "b": [3, 4.0]})["sum"].tolist() == [4, 6]
    with pytest.raises(errors.InvalidArgumentError, match="differ in their lengths"):
        predict({"a": [1.0], "b": [3, 4.0]})


def test_one_answer_for_all_rows_is_refused() -> None:
    """A mean over the batch would be another one for batches of another size."""
    graph = ps.Graph()
    with graph.as_default():
        ps.ops.sum(ps.placeholder("float32", [None], name="a"), 0, name="total")
    with pytest.raises(errors.InvalidArgumentError, match="not one row for each"):
        prediction_of(graph, "total:0")({"a": [1.0, 2.0]})


def prediction_of(graph: ps.Graph, outputs: Any) -> Prediction:
    """A graph's, from a file of its own."""
    path = Path(_folder) / f"{len(list(Path(_folder).iterdir()))}.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    with ps.load_model(path) as model:
        return prediction(model, None, outputs, signature=None, batch_size=8, threads=1)


_folder = ""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "_folder", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "no signatures, so outputs must say"),
        ({"outputs": "digit:0", "signature": "x"}, "has no signatures"),
        ({"outputs": "digit:0", "inputs": ["a", "b"]}, "inputs names 2 columns"),
        ({"outputs": "digit:0", "batch_size": 0}, "batch_size must be at least 1"),
        ({"outputs": "digit:0", "threads": 0}, "threads must be at least 1"),
    ],
)
def test_what_the_model_does_not_have_is_refused_at_once(
    arguments: dict[str, Any], says: str
) -> None:
    """Before any engine starts to work."""
    with pytest.raises(errors.InvalidArgumentError, match=says):
        digits_by(arguments.pop("outputs", None), **arguments)


def test_other_data_is_refused_with_what_to_install() -> None:
    """An array of numpy is no data set; the error says which there are, and how to get them."""
    with pytest.raises(errors.InvalidArgumentError, match=r"(?s)ndarray.*penstock\[ray\]"):
        map_batches(MODEL, DIGITS["images"], outputs="digit:0")


# -- what travels and is opened ------------------------------------------------------------------


def test_a_prediction_travels_small() -> None:
    """Nothing of the model's 30 KB is in it, and it computes the same where it arrives."""
    predict = digits_by()
    pickled = pickle.dumps(predict)
    found = pickle.loads(pickled)({"images": DIGITS["images"]})
    assert len(pickled) < 3000
    assert found["digit"].tolist() == EXPECTED.tolist()


def test_a_process_opens_one_model_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight threads with predictions of their own, each unpickled anew, share the one model."""
    opened: list[LoadedModel] = []
    open_recipe = Recipe.open

    def counted(self: Recipe, config: Any = None) -> LoadedModel:
        opened.append(open_recipe(self, config))
        return opened[-1]

    monkeypatch.setattr(Recipe, "open", counted)
    pickled = pickle.dumps(digits_by())

    def work(start: int) -> list[int]:
        images = DIGITS["images"][start : start + 10]
        found: list[int] = pickle.loads(pickled)({"images": images})["digit"].tolist()
        return found

    with ThreadPoolExecutor(8) as pool:
        found = [digit for part in pool.map(work, range(0, 390, 10)) for digit in part]
    assert found == EXPECTED[:390].tolist()
    assert len(opened) == 1


def test_models_that_nobody_asked_for_lately_are_given_up() -> None:
    """A process that sees many models, one after the other, keeps a few open."""
    for batch in range(10):
        graph = ps.Graph()
        with graph.as_default():
            x = ps.placeholder("float32", [None], name="a")
            ps.ops.add_v2(x, float(batch), name="y")
        assert prediction_of(graph, "y:0")({"a": [1.0]})["y"].tolist() == [1.0 + batch]
    assert len(shared_model._open) == shared_model._KEPT


def test_models_limit_threads_no_longer_than_they_are_open() -> None:
    """One that is given up while a call uses it is closed when that ends, the others at once."""
    free, predict = contention.threads(1000), digits_by()
    images = {"images": DIGITS["images"][:3]}
    predict(images)
    assert contention.threads(1000) == 1
    with predict.model.computing(predict.route) as compute:
        shared_model.close_models()
        assert compute([DIGITS["images"][:3]])[0].tolist() == EXPECTED[:3].tolist()
        assert contention.threads(1000) == 1
    assert contention.threads(1000) == free
    assert predict(images)["digit"].tolist() == EXPECTED[:3].tolist()


def test_a_model_that_changed_on_the_way_is_refused(tmp_path: Path) -> None:
    """The worker's error names the file."""
    copy = tmp_path / "digits.pb"
    copy.write_bytes(MODEL.read_bytes())
    with ps.load_model(copy) as model:
        predict = prediction(model, None, "digit:0", signature=None, batch_size=8, threads=1)
    copy.write_bytes((EXAMPLES / "digits_rnn.pb").read_bytes())

    with pytest.raises(errors.FailedPreconditionError, match=r"digits\.pb changed"):
        predict({"images": DIGITS["images"]})


_WORKER = """
import os, pickle, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np

def anonymous():
    rows = open("/proc/self/status").read().splitlines()
    return int(next(row for row in rows if row.startswith("RssAnon")).split()[1]) * 1024

predict = pickle.load(sys.stdin.buffer)
batch = {"x": np.ones((4, 1024), np.float32)}
before = len(os.listdir("/proc/self/task")), anonymous()
with ThreadPoolExecutor(2) as pool:
    found = list(pool.map(lambda _: predict(batch)["y"].sum(), range(20)))
    after = len(os.listdir("/proc/self/task")), anonymous()
weights, rows = [], open("/proc/self/smaps").read().splitlines()
for at, row in enumerate(rows):
    if "variables.data-" in row:
        fields = dict(r.split(":") for r in rows[at + 1 : at + 20] if r.endswith("kB"))
        weights.append((row.split()[1], int(fields["Rss"].split()[0]) * 1024))
print({
    "sums": sorted(set(map(float, found))),
    "threads": after[0] - before[0],
    "memory": after[1] - before[1],
    "mapped": sum(size for _, size in weights),
    "rights": sorted({rights for rights, _ in weights}),
})
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="asks Linux about memory")
def test_weights_are_the_files_pages_and_threads_do_not_multiply(tmp_path: Path) -> None:
    """In a worker with two calls at a time: 32 MB of weights are mapped to be read, none copied.

    No threads come but the two of the worker itself.
    """
    size = 32 << 20
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None, 1024], name="x")
        w = ps.Variable(ps.ops.fill([1024, size // 4096], np.float32(1)), name="w")
        y = ps.ops.mat_mul(x, w.value())
        init = ps.global_variables_initializer()
    with ps.Session(graph) as sess:
        sess.run(init)
        signatures = {"serving_default": ({"x": x}, {"y": y})}
        ps.saved_model.save(tmp_path / "model", signatures, session=sess)
    with ps.load_model(tmp_path / "model") as model:
        predict = prediction(model, None, None, signature=None, batch_size=4, threads=1)
    done = subprocess.run(
        [sys.executable, "-c", _WORKER],
        input=pickle.dumps(predict),
        capture_output=True,
        check=True,
    )
    found = eval(done.stdout)

    assert found["sums"] == [4.0 * 1024 * size // 4096]
    assert found["threads"] == 2
    assert found["mapped"] >= size
    assert found["rights"] == ["r--s"]
    assert found["memory"] < size // 2
