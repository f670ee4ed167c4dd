"""Ray Data: a model in actors, each of which opens it once.

In:   a ``Prediction``, and a Dataset.
Out:  a Dataset with more columns.
Not:  starts no cluster: the Dataset's own is used, as it is.

The actors' processes share the pages of the model's checkpoint where they are on one host.  No
tensor of the model goes through Ray's object store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray
import ray.data

from penstock.cluster.prediction import Prediction
from penstock.errors import InvalidArgumentError


class Predictor:
    """What an actor does: Ray makes it once, and calls it with batches."""

    def __init__(self, predict: Prediction) -> None:
        self._predict = predict
        # Opened before the first batch, so that Ray counts it as part of the actor's start.
        with predict.model.computing(predict.route):
            pass

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch's columns, and the outputs."""
        return {**batch, **self._predict(batch)}


def mapped(predict: Prediction, data: Any, options: Mapping[str, Any]) -> Any:
    """The Dataset with the outputs; its actors ask for as many cores as a call has threads."""
    if not isinstance(data, ray.data.Dataset):
        raise InvalidArgumentError(f"Of Ray, map_batches takes a Dataset, not a {type(data)!r}")
    threads = predict.model.threads
    if not {"compute", "concurrency"} & set(options):
        most = int(ray.cluster_resources().get("CPU", 1)) // threads
        pool = ray.data.ActorPoolStrategy(min_size=1, max_size=max(most, 1))
        options = {**options, "compute": pool}
    return data.map_batches(
        Predictor,
        fn_constructor_args=(predict,),
        batch_format="numpy",
        batch_size=predict.batch_size,
        **{"num_cpus": threads, **options},
    )
