"""Arguments and results of a function, as its structures say.

In:   structures of specifications; what a caller gives; what a function computes.
Out:  the values of a function's own arguments, in order; a result in its structure.
Not:  runs nothing; converts nothing but what no array is, and what feeds convert anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.errors import InvalidArgumentError
from penstock.saved_model.composites import RaggedTensor, SparseTensor
from penstock.saved_model.structured import (
    Fields,
    OtherSpec,
    RaggedSpec,
    SparseSpec,
    TensorSpec,
    is_spec,
    specs_in,
    with_fields,
)

_INT64: Final = dtypes.int64
#: What Python's own values become if nobody says otherwise.
_NATURAL: Final[Mapping[type, DType]] = {
    bool: dtypes.bool_,
    int: dtypes.int32,
    float: dtypes.float32,
    complex: dtypes.complex128,
    str: dtypes.string,
    bytes: dtypes.string,
}


class MismatchError(Exception):
    """An argument does not fit a structure; says which and why."""


def bind(structure: Any, given: Any, *, is_strict: bool, where: str = "") -> Iterator[Any]:
    """The values of the tensors in ``given``, in the order of the function's arguments.

    Args:
        structure: what is wanted; see ``structured``.
        given: a nesting of the same form.
        is_strict: whether a Python number must be of the very type that it naturally becomes,
            so that ``f(1)`` means the function of an int32 and not of a float.
        where: what to call the argument in errors.

    Raises:
        MismatchError: it does not fit.

    """
    if is_spec(structure):
        yield from _tensors(structure, given, where, is_strict=is_strict)
    elif isinstance(structure, dict):
        yield from _bind_mapping(structure, given, where, is_strict=is_strict)
    elif isinstance(structure, (list, tuple)):
        yield from _bind_sequence(structure, given, where, is_strict=is_strict)
    elif not _is_same(structure, given):
        raise MismatchError(f"{where} must be {structure!r}, and is {_shown(given)}")


def _bind_mapping(
    structure: Mapping[str, Any], given: Any, where: str, *, is_strict: bool
) -> Iterator[Any]:
    if not isinstance(given, Mapping) or set(given) != set(structure):
        raise MismatchError(
            f"{where} must be a dictionary with {', '.join(structure) or 'no keys'}"
        )
    for key, part in structure.items():
        inner = f"{where}[{key!r}]" if where else key
        yield from bind(part, given[key], is_strict=is_strict, where=inner)


def _bind_sequence(
    structure: Sequence[Any], given: Any, where: str, *, is_strict: bool
) -> Iterator[Any]:
    is_sequence = isinstance(given, (list, tuple)) or (
        isinstance(given, np.ndarray) and given.ndim > 0
    )
    if not is_sequence or len(given) != len(structure):
        raise MismatchError(f"{where} must have {len(structure)} elements")
    for number, (part, item) in enumerate(zip(structure, given, strict=True)):
        yield from bind(part, item, is_strict=is_strict, where=f"{where}[{number}]")


def _is_same(wanted: Any, given: Any) -> bool:
    """Whether a plain value is the one that the function was traced for; 1 is not True."""
    if isinstance(wanted, np.ndarray) or isinstance(given, np.ndarray):
        return np.array_equal(wanted, given)
    return type(wanted) is type(given) and bool(wanted == given)


def _tensors(spec: Any, given: Any, where: str, *, is_strict: bool) -> Iterator[Any]:
    """The tensors of one leaf."""
    if isinstance(spec, TensorSpec):
        _check_tensor(spec.dtype, spec.shape, given, where, is_strict=is_strict)
        yield given
        return
    parts = _parts(spec, given, where)
    if len(parts) != spec.flat_count:
        raise MismatchError(f"{where} must have {spec.flat_count} parts, and has {len(parts)}")
    for part, dtype in zip(parts, _types(spec), strict=True):
        if dtype is not None:
            _check_tensor(dtype, TensorShape(None), part, where, is_strict=is_strict)
        yield part


def _parts(spec: Any, given: Any, where: str) -> Sequence[Any]:
    """The parts of a value of several tensors."""
    match spec, given:
        case RaggedSpec(), RaggedTensor(values, row_splits):
            return (values, *row_splits)
        case RaggedSpec(ragged_rank=1, dtype=dtype), list():
            made = RaggedTensor.from_rows(given, dtype.numpy)
            return (made.values, made.row_splits[0].astype(spec.splits_dtype.numpy))
        case SparseSpec(), SparseTensor(indices, values, dense_shape):
            return indices, values, dense_shape
        case OtherSpec(), list() | tuple():
            return given
    wanted = {RaggedSpec: "a RaggedTensor", SparseSpec: "a SparseTensor"}.get(
        type(spec), f"the list of the tensors of {spec}"
    )
    raise MismatchError(f"{where} must be {wanted}, and is {_shown(given)}")


def _types(spec: Any) -> Sequence[DType | None]:
    """The types of a leaf's parts; None where any will do."""
    if isinstance(spec, RaggedSpec):
        return (spec.dtype, *[spec.splits_dtype] * spec.ragged_rank)
    if isinstance(spec, SparseSpec):
        return (_INT64, spec.dtype, _INT64)
    return [None] * spec.flat_count


def _check_tensor(
    dtype: DType, shape: TensorShape, given: Any, where: str, *, is_strict: bool
) -> None:
    if isinstance(given, (np.ndarray, np.generic)):
        fits = given.dtype == dtype.numpy or (dtype is dtypes.string and given.dtype.kind in "OSU")
        if not fits or not shape.accepts(given.shape):
            raise MismatchError(f"{where} must be {dtype} of shape {shape}, and is {_shown(given)}")
        return
    if given is None or isinstance(given, (RaggedTensor, SparseTensor, Mapping)):
        raise MismatchError(f"{where} must be a tensor, and is {_shown(given)}")
    if is_strict and _NATURAL.get(type(_first(given)), dtype) is not dtype:
        raise MismatchError(f"{where} must be {dtype}, and is {_shown(given)}")
    if not shape.accepts(_sizes(given)):
        raise MismatchError(f"{where} must have shape {shape}, and is {_shown(given)}")


def _first(given: Any) -> Any:
    """The first element of a nesting of lists."""
    while isinstance(given, (list, tuple)) and given:
        given = given[0]
    return given


def _sizes(given: Any) -> tuple[int, ...]:
    sizes = []
    while isinstance(given, (list, tuple)):
        sizes.append(len(given))
        if not given:
            break
        given = given[0]
    if isinstance(given, np.ndarray):
        sizes += given.shape
    return tuple(sizes)


def _shown(given: Any) -> str:
    if isinstance(given, (np.ndarray, np.generic)):
        return f"{given.dtype}{list(given.shape)}"
    text = repr(given)
    return text if len(text) <= 40 else f"a {type(given).__name__}"


# -- results -----------------------------------------------------------------------------------


def rebuild(structure: Any, tensors: Iterator[Any]) -> Any:
    """A result in its structure; takes as many tensors as that has."""
    if isinstance(structure, TensorSpec):
        return next(tensors)
    if is_spec(structure):
        return _composite(structure, [next(tensors) for _ in range(structure.flat_count)])
    if isinstance(structure, dict):
        return {key: rebuild(part, tensors) for key, part in structure.items()}
    if isinstance(structure, Fields):
        values = [rebuild(part, tensors) for part in structure]
        return with_fields(structure._fields, values)
    if isinstance(structure, (list, tuple)):
        return type(structure)([rebuild(part, tensors) for part in structure])
    return structure


def _composite(spec: Any, parts: list[Any]) -> Any:
    if isinstance(spec, RaggedSpec):
        return RaggedTensor(parts[0], tuple(parts[1:])) if spec.ragged_rank else parts[0]
    return SparseTensor(*parts) if isinstance(spec, SparseSpec) else parts


def check_count(structure: Any, count: int, what: str) -> None:
    """Raise InvalidArgumentError unless a structure has so many tensors."""
    wanted = sum(spec.flat_count for spec in specs_in(structure))
    if wanted != count:
        raise InvalidArgumentError(
            f"the SavedModel is damaged: {what} has {count} tensors, and its structure {wanted}"
        )
