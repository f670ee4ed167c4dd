"""Models over Dask's collections; without Dask these are skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.cluster import map_batches

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
bags = pytest.importorskip("dask.bag")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = EXAMPLES / "digits_cnn.pb"
DIGITS = dict(np.load(EXAMPLES / "digits_test.npz"))
EXPECTED = DIGITS["digits_cnn_logits"].argmax(axis=1)


def test_an_array_becomes_an_array() -> None:
    """Chunk by chunk, with the type and the chunks known beforehand; other axes may be cut, too."""
    images = da.from_array(DIGITS["images"], chunks=(100, 4, 8))
    digits = map_batches(MODEL, images, outputs="digit:0")
    assert (digits.dtype, digits.chunks) == (np.int32, ((100, 100, 100, 97),))
    assert digits.compute().tolist() == EXPECTED.tolist()


def test_several_outputs_are_several_arrays() -> None:
    """Of one computation; shapes of rows are known."""
    images = da.from_array(DIGITS["images"], chunks=(150, 8, 8))
    found = map_batches(MODEL, images, outputs=["digit:0", "probabilities:0"])
    digits, probabilities = dask.compute(found["digit"], found["probabilities"])
    assert found["probabilities"].shape == (397, 10)
    assert digits.tolist() == probabilities.argmax(axis=1).tolist() == EXPECTED.tolist()


def test_rows_that_nobody_has_counted() -> None:
    """A selection leaves chunks of unknown length, empty ones among them."""
    keep = DIGITS["labels"] == 3
    keep[:100] = False
    images = da.from_array(DIGITS["images"], chunks=(50, 8, 8))
    chosen = images[da.from_array(keep, chunks=50)]
    found = map_batches(MODEL, chosen, outputs="digit:0").compute()
    assert found.tolist() == EXPECTED[keep].tolist()


def test_arrays_for_several_inputs(tmp_path: Path) -> None:
    """By the names of columns; chunks must agree."""
    graph = ps.Graph()
    with graph.as_default():
        a, b = (ps.placeholder("float32", [None, 2], name=name) for name in "ab")
        ps.ops.mul(a, b, name="product")
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    rows = np.arange(20, dtype=np.float32).reshape(10, 2)
    arrays = {"a": da.from_array(rows, chunks=(4, 2)), "b": da.from_array(rows, chunks=(4, 1))}
    found = map_batches(tmp_path / "graph.pb", arrays, outputs="product:0")
    assert (found.compute() == rows**2).all()
    with pytest.raises(errors.InvalidArgumentError, match="chunks differ"):
        map_batches(tmp_path / "graph.pb", {**arrays, "b": arrays["b"][1:]}, outputs="product:0")
    with pytest.raises(errors.InvalidArgumentError, match="one array was given"):
        map_batches(tmp_path / "graph.pb", arrays["a"], outputs="product:0")


def test_a_frame_gets_columns() -> None:
    """Numbers are numbers, rows of them arrays; what was there stays, the index included."""
    table = pd.DataFrame({"image": list(DIGITS["images"]), "label": DIGITS["labels"]})
    table.index = pd.Index(np.arange(397) * 2 + 1)
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(table, npartitions=3)
        outputs = {"guess": "digit:0", "p": "probabilities:0"}
        mapped = map_batches(MODEL, frame, inputs="image", outputs=outputs)
        found = mapped.compute(scheduler="threads")
    assert list(mapped.columns) == list(found.columns) == ["image", "label", "guess", "p"]
    assert (found.guess.dtype, mapped.guess.dtype) == (np.int32, np.int32)
    assert (found.guess.to_numpy() == EXPECTED).all()
    assert found.index.tolist() == table.index.tolist()
    assert (np.stack(found.p).argmax(axis=1) == EXPECTED).all()


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_a_bag_of_values_and_one_of_dictionaries(scheduler: str) -> None:
    """Values become values, dictionaries get outputs; in whichever threads or processes."""
    values = bags.from_sequence(list(DIGITS["images"][:60]), npartitions=3)
    rows = values.map(lambda image: {"id": 1, "image": image})
    with dask.config.set(scheduler=scheduler, num_workers=2):
        digits = map_batches(MODEL, values, outputs="digit:0").compute()
        records = map_batches(MODEL, rows, inputs="image", outputs="digit:0").compute()
    assert digits == EXPECTED[:60].tolist()
    assert [(row["id"], row["digit"]) for row in records] == [(1, d) for d in EXPECTED[:60]]


def test_equal_computations_have_equal_names() -> None:
    """So Dask computes them once; another model or output is another computation."""
    images = da.from_array(DIGITS["images"], chunks=(100, 8, 8))

    def name(outputs: Any, model: str = "digits_cnn.pb") -> str:
        found: str = map_batches(EXAMPLES / model, images, outputs=outputs).name
        return found

    assert name("digit:0") == name("digit:0")
    assert len({name("digit:0"), name("probabilities:0"), name("digit:0", "digits_rnn.pb")}) == 3


def test_options_of_another_engine_are_refused() -> None:
    """Dask takes none."""
    images = da.from_array(DIGITS["images"], chunks=(100, 8, 8))
    with pytest.raises(errors.InvalidArgumentError, match="concurrency"):
        map_batches(MODEL, images, outputs="digit:0", concurrency=2)
    with pytest.raises(errors.InvalidArgumentError, match="Array, DataFrame, Bag"):
        map_batches(MODEL, bags.from_sequence([1]).sum(), outputs="digit:0")


@pytest.mark.slow
def test_processes_of_a_cluster() -> None:
    """Workers of ``dask.distributed`` open one model each, however many parts they get."""
    distributed = pytest.importorskip("distributed")
    images = da.from_array(DIGITS["images"], chunks=(10, 8, 8))
    options = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        found = map_batches(MODEL, images, outputs="digit:0").compute()
        opened = client.run(_open_models)
    assert found.tolist() == EXPECTED.tolist()
    assert set(opened.values()) <= {0, 1}
    assert 1 in opened.values()


def _open_models() -> int:
    from penstock.cluster import shared_model

    return len(shared_model._open)
