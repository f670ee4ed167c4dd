"""Dask: a model over arrays, data frames and bags, part by part.

In:   a ``Prediction``, and a collection.
Out:  a collection of the same kind.
Not:  imports no part of Dask that the collection is not of; computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np
from dask.base import is_dask_collection

from penstock.cluster.prediction import Prediction
from penstock.core.forks import importing
from penstock.core.values import Array
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.saved_model.structured import TensorSpec

#: What a bag's part holds: rows, which are dictionaries of columns or bare values.
_Rows = Iterable[Any]


def mapped(predict: Prediction, data: Any, options: Mapping[str, Any]) -> Any:
    """The outputs for a collection of whichever kind."""
    if options:
        raise InvalidArgumentError(f"Dask has no options here, such as {next(iter(options))!r}")
    if isinstance(data, Mapping):
        return _of_arrays(predict, data)
    kind = type(data).__name__
    if kind not in _KINDS or not is_dask_collection(data):
        raise InvalidArgumentError(
            f"Of Dask, map_batches takes {', '.join(_KINDS)}, not {type(data)!r}"
        )
    return _KINDS[kind](predict, data)


# -- arrays ------------------------------------------------------------------------------------


def _of_array(predict: Prediction, array: Any) -> Any:
    if len(predict.columns) != 1:
        raise InvalidArgumentError(
            f"The model has the inputs {', '.join(predict.columns)}, and one array was given",
            next_step="give a dictionary of arrays",
        )
    return _of_arrays(predict, {predict.columns[0]: array})


def _of_arrays(predict: Prediction, arrays: Mapping[str, Any]) -> Any:
    """One array, or several by name: computed together, the model runs once for all of them."""
    with importing:
        from dask import array as da  # noqa: PLC0415  (other collections do without)
        from dask.delayed import delayed  # noqa: PLC0415

    whole = {name: _in_rows(array) for name, array in arrays.items()}
    rows = {name: array.chunks[0] for name, array in whole.items()}
    lengths = next(iter(rows.values()))
    if any(str(others) != str(lengths) for others in rows.values()):  # unknown ones are NaN
        raise InvalidArgumentError(f"The arrays' chunks differ along their first axis: {rows}")
    compute = delayed(predict, pure=True, traverse=False)
    parts = zip(*(array.to_delayed().ravel() for array in whole.values()), strict=True)
    results = [compute(dict(zip(whole, blocks, strict=True))) for blocks in parts]

    def array_of(name: str, spec: TensorSpec) -> Any:
        dims = _row_dims(name, spec)
        blocks = [
            da.from_delayed(result[name], (count, *dims), dtype=spec.dtype.numpy)
            for result, count in zip(results, lengths, strict=True)
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    made = {n: array_of(n, spec) for n, spec in zip(predict.names, predict.specs, strict=True)}
    return next(iter(made.values())) if len(made) == 1 else made


def _in_rows(array: Any) -> Any:
    """The array, cut along its first axis only."""
    if not array.ndim:
        raise InvalidArgumentError("An array without dimensions has no rows")
    return array.rechunk(dict.fromkeys(range(1, array.ndim), -1)) if array.ndim > 1 else array


def _row_dims(name: str, spec: TensorSpec) -> tuple[float, ...]:
    if spec.shape.dims is None:
        raise UnimplementedError(
            f"The rank of the model's output {name!r} is not known, and Dask's arrays have one",
            next_step="make a bag of the data, or let the model reshape its output",
        )
    return tuple(np.nan if size is None else size for size in spec.shape.dims[1:])


# -- data frames ---------------------------------------------------------------------------------


def _of_frame(predict: Prediction, frame: Any) -> Any:
    """Columns are added; rows of outputs that are no single values are arrays in a column."""
    meta = frame._meta.assign(  # noqa: SLF001  (Dask documents it for this)
        **{
            name: np.empty(0, spec.dtype.numpy if _is_scalar(spec) else object)
            for name, spec in zip(predict.names, predict.specs, strict=True)
        }
    )
    return frame.map_partitions(_FramePart(predict), meta=meta, enforce_metadata=False)


class _FramePart:
    """A model over one part of a frame."""

    def __init__(self, predict: Prediction) -> None:
        self._predict = predict

    def __dask_tokenize__(self) -> tuple[str, str]:
        return type(self).__name__, repr(self._predict)

    def __call__(self, part: Any) -> Any:
        found = self._predict({str(name): part[name].to_numpy() for name in part.columns})
        return part.assign(**{name: _cells(values) for name, values in found.items()})


def _is_scalar(spec: TensorSpec) -> bool:
    return spec.shape.rank == 1


def _cells(values: Array) -> Any:
    return values if values.ndim == 1 else list(values)


# -- bags ----------------------------------------------------------------------------------------


def _of_bag(predict: Prediction, bag: Any) -> Any:
    return bag.map_partitions(_BagPart(predict))


class _BagPart:
    """A model over one part of a bag."""

    def __init__(self, predict: Prediction) -> None:
        self._predict = predict

    def __dask_tokenize__(self) -> tuple[str, str]:
        return type(self).__name__, repr(self._predict)

    def __call__(self, part: _Rows) -> list[Any]:
        rows = list(part)
        if not rows:
            return []
        if isinstance(rows[0], Mapping):
            found = self._predict({name: _column(rows, name) for name in self._predict.columns})
            return [{**row, **added} for row, added in zip(rows, _records(found), strict=True)]
        if len(self._predict.columns) != 1:
            raise InvalidArgumentError("A model with several inputs wants a bag of dictionaries")
        found = self._predict({self._predict.columns[0]: rows})
        return list(_records(found) if len(found) > 1 else next(iter(found.values())))


def _column(rows: list[Any], name: str) -> list[Any]:
    for row in rows:
        if name not in row:
            raise InvalidArgumentError(
                f"A row has no {name!r}; it has {', '.join(map(repr, row))}",
                next_step="name the column: inputs={MODEL_INPUT: COLUMN}",
            )
    return [row[name] for row in rows]


def _records(found: Mapping[str, Array]) -> Iterable[dict[str, Any]]:
    for values in zip(*found.values(), strict=True):
        yield dict(zip(found, values, strict=True))


_KINDS: Final[Mapping[str, Callable[[Prediction, Any], Any]]] = {
    "Array": _of_array,
    "DataFrame": _of_frame,
    "Bag": _of_bag,
}
