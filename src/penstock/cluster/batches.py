"""``map_batches``: a model over data that an engine keeps.

In:   a model, and a Ray Dataset or a collection of Dask.
Out:  the same kind of data, with the model's outputs; nothing is computed yet.
Not:  imports no engine: who has such data has imported it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Final

from penstock.cluster.prediction import Names, prediction
from penstock.core.forks import importing
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.saved_model.loaded_model import LoadedModel, load_model

#: The modules that know an engine, by the packages that its data is of.
_ADAPTERS: Final = {
    "ray": "penstock.cluster.ray_data",
    "dask": "penstock.cluster.dask_data",
    # What dask.dataframe's collections were before they were part of dask.
    "dask_expr": "penstock.cluster.dask_data",
}


def map_batches(
    model: LoadedModel | str | os.PathLike[str],
    data: Any,
    *,
    inputs: Names = None,
    outputs: Names = None,
    signature: str | None = None,
    batch_size: int = 256,
    threads: int = 1,
    **options: Any,
) -> Any:
    """Compute a model for every row of a data set, wherever its parts lie.

    The model travels as its path and a fingerprint, so the path must be the same, and lead to the
    same files, in every process.  A process opens it once, however many batches it gets.

    Args:
        model: what ``load_model`` gave, or takes.  What was assigned to variables since it was
            loaded does not travel.
        data: a Ray Dataset; or a Dask Array (a mapping of several, if the model has several
            inputs), DataFrame or Bag of rows, which are dictionaries or, for one input, values.
        inputs: the columns of the data, by the model's inputs that they are; or only the columns,
            in the inputs' order.  None: columns have the inputs' names (``x`` for ``x:0``).
        outputs: the model's outputs, by the names of the columns to be made; or only the outputs,
            which give their names.  None: all of the signature.  Of a model without signatures,
            tensors of its graph, such as ``digit:0``.
        signature: which of the model's is meant, if it has several and not the default one.
        batch_size: rows that are computed at a time; Ray cuts its batches so, of Dask's parts the
            larger ones are computed piece by piece.
        threads: what one call of the model may use.  Engines run as many calls side by side as
            they have cores, so more than one is seldom faster.
        **options: of Ray Data: for ``Dataset.map_batches``, such as ``concurrency``.

    Returns:
        A Ray Dataset, or a Dask DataFrame or Bag of dictionaries, with the columns that there
        were and those of the outputs.  Of arrays, one if ``outputs`` names one or there is only
        one, and otherwise a dictionary of them.  Of a Bag of values, values if there is one output,
        and otherwise dictionaries.

    Raises:
        InvalidArgumentError: the data is of another kind; inputs or outputs are not the model's.
        UnimplementedError: inputs or outputs are ragged, sparse, or of unknown rank where the
            engine wants to know it.
        FailedPreconditionError: the model was changed after it was loaded, or has no path.
        OpError: like ``load_model``.

    """
    adapter = _adapter_of(data)
    if not isinstance(model, LoadedModel):
        with load_model(model) as opened:
            return map_batches(
                opened, data, inputs=inputs, outputs=outputs, signature=signature,
                batch_size=batch_size, threads=threads, **options,
            )  # fmt: skip
    predict = prediction(
        model, inputs, outputs, signature=signature, batch_size=batch_size, threads=threads
    )
    return adapter.mapped(predict, data, options)


def _adapter_of(data: Any) -> Any:
    """The module that knows data of this kind."""
    first = next(iter(data.values()), None) if isinstance(data, dict) else data
    package = type(first).__module__.partition(".")[0]
    if package not in _ADAPTERS:
        raise InvalidArgumentError(
            f"map_batches takes a Ray Dataset, or an Array, DataFrame or Bag of Dask, and not a "
            f"{type(first).__qualname__}",
            next_step="put the data into one of these: pip install 'penstock[ray]', and "
            "ray.data.from_numpy; or pip install 'penstock[dask]', and dask.array.from_array",
        )
    try:
        with importing:
            return importlib.import_module(_ADAPTERS[package])
    except ImportError as cause:
        extra = "ray" if package == "ray" else "dask"
        raise UnimplementedError(
            f"Data of {extra} needs parts of it that are not installed: {cause}",
            next_step=f"pip install 'penstock[{extra}]'",
        ) from cause
