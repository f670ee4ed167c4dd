"""Functions of each element, and the softmax of each row, by PyTorch.

In:   arrays.
Out:  arrays of the same shape.
Not:  none that numpy does as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.accelerated.choice import Offer, accelerated
from penstock.kernels.accelerated.library import Tensor, Torch, in_pieces, tensor, threads
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel

#: A function of a tensor that writes its result into another.
_Into: TypeAlias = Callable[[Tensor, Tensor], Any]
_MakeInto: TypeAlias = Callable[[Torch], _Into]
#: Elements from which on PyTorch is faster: measured.
_HEAVY: Final = {
    "Relu": 1 << 15,
    "Relu6": 1 << 14,
    "Sigmoid": 1 << 14,
    "Erf": 1 << 10,
    "Erfc": 1 << 10,
}
_HEAVY_ROWS: Final = 1 << 13
#: Elements that are worth a thread.
_PIECE: Final = 1 << 18


def _sigmoid(torch: Torch) -> _Into:
    return lambda x, y: torch.sigmoid(x, out=y)


def _erf(torch: Torch) -> _Into:
    return lambda x, y: torch.erf(x, out=y)


def _erfc(torch: Torch) -> _Into:
    return lambda x, y: torch.erfc(x, out=y)


def _relu(torch: Torch) -> _Into:
    return lambda x, y: torch.clamp(x, min=0.0, out=y)


def _relu6(torch: Torch) -> _Into:
    return lambda x, y: torch.clamp(x, min=0.0, max=6.0, out=y)


_ELEMENTWISE: Final[dict[str, _MakeInto]] = {
    "Sigmoid": _sigmoid,
    "Erf": _erf,
    "Erfc": _erfc,
    "Relu": _relu,
    "Relu6": _relu6,
}


@accelerated(*_ELEMENTWISE)
def offer_elementwise(attrs: Attrs) -> Offer:
    """The function of each element that the op is named after."""
    make, heavy = _ELEMENTWISE[attrs.op.name], _HEAVY[attrs.op.name]
    return Offer(lambda x: bool(x.size >= heavy), lambda torch: _elementwise(torch, make(torch)))


def _elementwise(torch: Torch, into: _Into) -> Kernel:
    def compute(x: Array) -> Any:
        if not x.flags.c_contiguous:
            return NotImplemented
        result = np.empty(x.shape, x.dtype)
        _by_parts(torch, into, x.reshape(-1), result.reshape(-1))
        return result

    return compute


def _softmax(torch: Torch) -> _Into:
    return lambda x, y: torch.softmax(x, -1, out=y)


def _log_softmax(torch: Torch) -> _Into:
    return lambda x, y: torch.log_softmax(x, -1, out=y)


_SOFTMAXES: Final[dict[str, _MakeInto]] = {"Softmax": _softmax, "LogSoftmax": _log_softmax}


@accelerated(*_SOFTMAXES)
def offer_softmax(attrs: Attrs) -> Offer:
    """The softmax of each row, or its logarithm."""
    make = _SOFTMAXES[attrs.op.name]

    def pays(logits: Value) -> bool:
        return bool(logits.ndim and logits.size >= _HEAVY_ROWS)

    def build(torch: Torch) -> Kernel:
        into = make(torch)

        def softmax(logits: Array) -> Any:
            rows = logits.reshape(-1, logits.shape[-1])
            result = np.empty(rows.shape, rows.dtype)
            _by_parts(torch, into, rows, result)
            return result.reshape(logits.shape)

        return softmax

    return Offer(pays, build)


def _by_parts(torch: Torch, into: _Into, source: Array, target: Array) -> None:
    """Compute from one array into another, cut along the first axis, on several threads."""
    x, y = tensor(torch, source), tensor(torch, target)
    count = min(threads(torch), source.size // _PIECE, len(source))
    if count < 2:
        into(x, y)
        return
    step = -(-len(source) // count)

    def body(number: int) -> None:
        part = slice(number * step, (number + 1) * step)
        into(x[part], y[part])

    in_pieces(count, body)
