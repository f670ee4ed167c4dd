"""``Prediction``: a model as a function of batches, which travels to where they are.

In:   an open model, and which columns are its inputs and outputs.
Out:  a function of columns by name, small when pickled; the types and shapes of what it adds.
Not:  knows no engine; opens no model until it is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from penstock.cluster.shared_model import Route, SharedModel
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.names import parse_endpoint
from penstock.core.shapes import TensorShape
from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.formats.stored_model import DEFAULT_SIGNATURE
from penstock.graph.roles import Role
from penstock.saved_model.inferred_outputs import with_inferred_shapes
from penstock.saved_model.loaded_model import LoadedModel
from penstock.saved_model.structured import Spec, TensorSpec

#: Names of a model's inputs or outputs: one, several, or by name what they are called here.
Names: TypeAlias = str | Sequence[str] | Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """A function from columns to columns; rows stay rows."""

    model: SharedModel
    route: Route
    #: The columns of the data that are the route's inputs, in its order, and their types.
    columns: tuple[str, ...]
    dtypes: tuple[DType, ...]
    #: What the route's outputs are called, in its order, and what they are, rows included.
    names: tuple[str, ...]
    specs: tuple[TensorSpec, ...]
    #: So many rows are computed at a time, at most.
    batch_size: int

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs by name, a row for each row of the columns.

        Raises:
            InvalidArgumentError: a column is missing, or of another type; columns differ in their
                lengths; or the model does not give a row for each row.
            OpError: like ``load_model`` and ``Session.run``.

        """
        columns = [self._column(batch, place) for place in range(len(self.columns))]
        rows = {len(column) for column in columns}
        if len(rows) != 1:
            lengths = dict(zip(self.columns, map(len, columns), strict=True))
            raise InvalidArgumentError(f"The columns differ in their lengths: {lengths}")
        [count] = rows
        if not count:
            return dict(zip(self.names, map(_no_rows, self.specs), strict=True))
        with self.model.computing(self.route) as compute:
            parts = [
                self._checked(compute(pieces), len(pieces[0])) for pieces in self._pieces(columns)
            ]
        found = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return dict(zip(self.names, found, strict=True))

    def __dask_tokenize__(self) -> str:
        """What Dask names the results by: equal for equal models, by their files' content."""
        return repr(self)

    def _column(self, batch: Mapping[str, Any], place: int) -> Array:
        name, dtype = self.columns[place], self.dtypes[place]
        if name not in batch:
            raise InvalidArgumentError(
                f"The model's input {self.route.inputs[place]!r} is the column {name!r}, which the "
                f"data does not have; it has {', '.join(map(repr, batch))}",
                next_step=f"name the column: inputs={{{self.route.inputs[place]!r}: COLUMN}}",
            )
        try:
            values = _stacked(batch[name])
        except ValueError as cause:
            raise InvalidArgumentError(f"The rows of the column {name!r}: {cause}") from None
        if dtype is dtypes.string or values.dtype == dtype.numpy:
            return values
        if values.dtype == object or not np.can_cast(values.dtype, dtype.numpy, "same_kind"):
            raise InvalidArgumentError(
                f"The column {name!r} is of {values.dtype}, and the model's input "
                f"{self.route.inputs[place]!r} of {dtype}"
            )
        return values.astype(dtype.numpy)

    def _pieces(self, columns: Sequence[Array]) -> Iterator[list[Array]]:
        for start in range(0, len(columns[0]), self.batch_size):
            yield [column[start : start + self.batch_size] for column in columns]

    def _checked(self, results: Sequence[Any], rows: int) -> list[Array]:
        found = [np.asarray(value) for value in results]
        for name, value in zip(self.names, found, strict=True):
            if value.shape[:1] != (rows,):
                raise InvalidArgumentError(
                    f"The model's output {name!r} has the shape {value.shape} for {rows} rows, and "
                    "not one row for each"
                )
        return found


def prediction(
    model: LoadedModel,
    inputs: Names,
    outputs: Names,
    *,
    signature: str | None,
    batch_size: int,
    threads: int,
) -> Prediction:
    """What a model computes of columns; see ``map_batches``, which has the same arguments."""
    for name, number in (("batch_size", batch_size), ("threads", threads)):
        if number < 1:
            raise InvalidArgumentError(f"{name} must be at least 1, not {number}")
    kind = _SignatureOffer if model.signatures else _GraphOffer
    offer: _Offer = kind(model, signature)
    columns = _columns(inputs, offer)
    sources = _sources(outputs, offer)
    taken, given = offer.specs(columns, of="input"), offer.specs(sources.values(), of="output")
    return Prediction(
        model=SharedModel(model.recipe(), threads),
        route=Route(offer.name, tuple(columns), tuple(sources.values())),
        columns=tuple(columns.values()),
        dtypes=tuple(spec.dtype for spec in taken),
        names=tuple(sources),
        specs=tuple(given),
        batch_size=batch_size,
    )


# -- what a model offers -----------------------------------------------------------------------


class _Offer(Protocol):
    """What can be asked of a model, and for what."""

    @property
    def name(self) -> str:
        """The signature's name; empty for tensors of a graph."""

    def all_of(self, kind: str) -> list[str]:
        """The inputs, or the outputs, that are meant where none are named."""

    def specs(self, names: Iterable[str], *, of: str) -> list[TensorSpec]:
        """What inputs or outputs are; raises InvalidArgumentError for unknown ones."""


class _SignatureOffer:
    """One of the signatures of a model."""

    def __init__(self, model: LoadedModel, name: str | None) -> None:
        only = next(iter(model.signatures)) if len(model.signatures) == 1 else DEFAULT_SIGNATURE
        self._signature: Final = model.signatures[only if name is None else name]
        self.name: Final = self._signature.name

    def all_of(self, kind: str) -> list[str]:
        if kind == "output":
            return list(self._signature.outputs)
        return [name for name in self._signature.inputs if name not in self._signature.defaults]

    def specs(self, names: Iterable[str], *, of: str) -> list[TensorSpec]:
        known = self._signature.inputs if of == "input" else self._signature.outputs
        return [_tensor_spec(name, known.get(name), of, list(known)) for name in names]


class _GraphOffer:
    """The tensors of a model without signatures."""

    name: Final = ""

    def __init__(self, model: LoadedModel, signature: str | None) -> None:
        if signature is not None:
            raise InvalidArgumentError(f"{model.path} has no signatures, but tensors only")
        self._graph: Final = model.session.graph

    def all_of(self, kind: str) -> list[str]:
        if kind == "output":
            raise InvalidArgumentError(
                "The model has no signatures, so outputs must say which of its tensors are meant",
                next_step="penstock show lists the likely ones",
            )
        return [f"{node.name}:0" for node in self._graph if node.role is Role.PLACEHOLDER]

    def specs(self, names: Iterable[str], *, of: str) -> list[TensorSpec]:
        known = {}
        for name in names:
            node, slot = self._graph.endpoint(parse_endpoint(name))
            spec = TensorSpec(node.output_types[slot].base, TensorShape(None))
            known[name] = (spec, [name])
        found = with_inferred_shapes(self._graph, known)
        return [_tensor_spec(name, found[name], of, []) for name in known]


def _tensor_spec(name: str, spec: Spec | None, kind: str, known: list[str]) -> TensorSpec:
    if isinstance(spec, TensorSpec):
        return spec
    if spec is None:
        raise InvalidArgumentError(
            f"The model has no {kind} {name!r}; it has {', '.join(map(repr, known)) or 'none'}"
        )
    raise UnimplementedError(
        f"The model's {kind} {name!r} is {spec}, and columns hold tensors only",
        next_step="name others by inputs= and outputs=",
    )


# -- what the columns are called -----------------------------------------------------------------


def _columns(inputs: Names, offer: _Offer) -> dict[str, str]:
    """Columns by the inputs that they are."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    all_inputs = offer.all_of("input")
    columns = [inputs] if isinstance(inputs, str) else inputs
    if columns is None:
        return {name: _plain(name) for name in all_inputs}
    if len(columns) != len(all_inputs):
        raise InvalidArgumentError(
            f"The model has {len(all_inputs)} inputs ({', '.join(map(repr, all_inputs))}), and "
            f"inputs names {len(columns)} columns",
            next_step="say which is which: inputs={MODEL_INPUT: COLUMN}",
        )
    return dict(zip(all_inputs, columns, strict=True))


def _sources(outputs: Names, offer: _Offer) -> dict[str, str]:
    """The model's outputs by what they are called here."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    names = [outputs] if isinstance(outputs, str) else outputs
    return {_plain(name): name for name in (offer.all_of("output") if names is None else names)}


def _plain(endpoint: str) -> str:
    """What a column is called that is a tensor of a graph."""
    return endpoint.removesuffix(":0")


# -- values ------------------------------------------------------------------------------------


def _stacked(column: Any) -> Array:
    """A column as one array: of rows that are arrays themselves, all of them together.

    Raises:
        ValueError: rows differ in their shapes.

    """
    values = np.asarray(column)
    has_objects = values.dtype == object and values.ndim == 1 and len(values) > 0
    if has_objects and isinstance(values[0], (np.ndarray, list, tuple)):
        return np.stack([_stacked(row) for row in values])
    return values


def _no_rows(spec: TensorSpec) -> Array:
    sizes = (spec.shape.dims or (None,))[1:]
    return np.empty((0, *(size or 0 for size in sizes)), spec.dtype.numpy)
