"""The choice between numpy's kernel and PyTorch's, by size or by trial.

In:   for an op, a function that offers a faster way for a node's attributes, or None.
Out:  a kernel, registered above numpy's, that takes the faster way where it pays.
Not:  knows no op.

By size the choice is the same each time, and so are the last bits of what is computed.  A session
that does not mind them has both ways tried, and takes whichever proves faster.

The faster way may decline an input by returning NotImplemented or by an error: numpy's
kernel then gives the result, or the error with TensorFlow's words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.kernels.accelerated import library
from penstock.kernels.accelerated.contest import Contest
from penstock.kernels.accelerated.library import Torch
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, MakeKernel, kernel, kernels_of

FLOAT32: Final = frozenset({dtypes.float32})
#: Above numpy's kernels.
PRIORITY: Final = 10


@dataclass(frozen=True, slots=True)
class Offer:
    """A faster way to compute a node."""

    #: Whether it pays for these inputs; they may be anything that the op takes.
    pays: Callable[..., bool]
    #: The function of the inputs, made with PyTorch.
    build: Callable[[Torch], Kernel]


MakeOffer: TypeAlias = Callable[[Attrs], Offer | None]


def accelerated(
    *ops: str,
    types: Mapping[str, Collection[DType]] | None = None,
    otherwise: MakeKernel | None = None,
) -> Callable[[MakeOffer], MakeOffer]:
    """Register what offers a faster way to compute these ops, for float32 unless said.

    ``otherwise`` makes numpy's kernel for an op that has no other.
    """
    constraints = {"T": FLOAT32} if types is None else types

    def register(make_offer: MakeOffer) -> MakeOffer:
        @functools.wraps(make_offer)
        def make(attrs: Attrs) -> Kernel:
            plain = plain_kernel(attrs, otherwise)
            is_wanted = attrs.accelerate and library.is_installed()
            offer = make_offer(attrs) if is_wanted else None
            if offer is None:
                return plain
            return choosing(plain, offer, by_trial=attrs.by_trial)

        kernel(*ops, types=constraints, priority=PRIORITY)(make)
        return make_offer

    return register


def plain_kernel(attrs: Attrs, otherwise: MakeKernel | None = None) -> Kernel:
    """Numpy's kernel for a node."""
    fitting = (k for k in kernels_of(attrs.op.name) if k.device_type == "CPU")
    below = [k for k in fitting if k.priority < PRIORITY and k.fits(attrs.values)]
    if not below and otherwise is not None:
        return otherwise(attrs)
    return max(below, key=lambda k: k.priority).make(attrs)


def choosing(plain: Kernel, offer: Offer, *, by_trial: bool = False) -> Kernel:
    """The faster way where it pays; or, by trial, whichever proves to be faster."""
    pays, fast = offer.pays, (_Tried if by_trial else _Fast)(plain, offer)

    def choose(*inputs: Any) -> Any:
        return fast(*inputs) if pays(*inputs) else plain(*inputs)

    return choose


class _Fast:
    """The faster way, built when it first pays, with numpy's kernel behind it."""

    __slots__ = ("_build", "_compute", "_plain")

    def __init__(self, plain: Kernel, offer: Offer) -> None:
        self._plain, self._build = plain, offer.build
        #: Replaced once; two threads may both build it, and either result is good.
        self._compute: Kernel | None = None

    def __call__(self, *inputs: Any) -> Any:
        compute = self._compute
        if compute is None:
            compute = self._compute = self._built()
        library.stay_alone()
        try:
            result = compute(*inputs)
        except (RuntimeError, ValueError, TypeError):
            if compute is self._plain:
                raise
            result = NotImplemented
        return self._plain(*inputs) if result is NotImplemented else result

    def _built(self) -> Kernel:
        torch = library.load()
        try:
            return self._plain if torch is None else self._build(torch)
        except AttributeError:  # not every build of PyTorch has every library inside
            return self._plain


class _Tried(_Fast):
    """The faster way, unless numpy proves to be faster."""

    __slots__ = ("_contest",)

    def __init__(self, plain: Kernel, offer: Offer) -> None:
        super().__init__(plain, offer)
        self._contest: Final = Contest()

    def __call__(self, *inputs: Any) -> Any:
        return self._contest.run(super().__call__, self._plain, inputs)
