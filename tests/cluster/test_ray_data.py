"""Models over Ray's data; without Ray these are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock import errors
from penstock.cluster import map_batches

# Ray's own modules warn, and its import must not fail by that.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ray: Any = pytest.importorskip("ray")
pytest.importorskip("ray.data")

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = EXAMPLES / "digits_cnn.pb"
DIGITS = dict(np.load(EXAMPLES / "digits_test.npz"))
EXPECTED = DIGITS["digits_cnn_logits"].argmax(axis=1)


@pytest.fixture(scope="module")
def _cluster() -> Iterator[None]:
    """Two cores on this machine, for all tests of the module."""
    source = str(Path(__file__).parents[2] / "src")
    paths = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )
    yield
    ray.shutdown()


@pytest.mark.usefixtures("_cluster")
def test_a_dataset_gets_columns() -> None:
    """Every row keeps what it had, and gets what the model says of it."""
    rows = [{"id": place, "image": image.tolist()} for place, image in enumerate(DIGITS["images"])]
    data = ray.data.from_items(rows, override_num_blocks=4)
    outputs = {"digit": "digit:0", "p": "probabilities:0"}
    mapped = map_batches(MODEL, data, inputs="image", outputs=outputs, batch_size=50)
    found = sorted(mapped.take_all(), key=lambda row: row["id"])
    assert [row["digit"] for row in found] == EXPECTED.tolist()
    assert all(row["p"].argmax() == row["digit"] for row in found)
    images = np.stack([np.stack(row["image"]) for row in found])
    np.testing.assert_array_equal(images, DIGITS["images"])


@pytest.mark.usefixtures("_cluster")
def test_options_are_rays_own() -> None:
    """The number of actors is the caller's, if told; each says which process it is."""
    data = ray.data.from_numpy(list(np.array_split(DIGITS["images"], 8)))
    pool = ray.data.ActorPoolStrategy(size=1)
    mapped = map_batches(MODEL, data, inputs="data", outputs="digit:0", compute=pool)
    assert sorted(row["digit"] for row in mapped.take_all()) == sorted(EXPECTED.tolist())


@pytest.mark.usefixtures("_cluster")
def test_what_is_no_dataset_is_refused() -> None:
    """A reference to an object is Ray's as well."""
    with pytest.raises(errors.InvalidArgumentError, match="takes a Dataset"):
        map_batches(MODEL, ray.put(1), outputs="digit:0")
