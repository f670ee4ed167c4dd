"""A convolution by constants that comes again: all is known of it but where its arrays are.

In:   what the library was told of the first one; then other images of the same shape.
Out:  the same convolution of these, with a third of the Python.
Not:  keeps no filters alive, and knows one shape of images.

A step of a small network is fifty convolutions of a hundred microseconds, and what has to be looked
up for each of them takes six.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Convolution
from penstock.kernels.c.sliding import Sliding, Way
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: With fewer multiplications no other thread is asked to help: two microseconds of one core.
SHARED: Final = 200_000
#: A function of the library's; False says that its results are of no use.
Compute: TypeAlias = Callable[[Convolution, int], bool | None]


class Repeated:
    """A convolution by some constants of images of some shape."""

    __slots__ = (
        "_bias", "_filters", "_framed", "_function", "_is_shared", "_numbers", "_result", "_shape",
        "_strides", "_work",
    )  # fmt: skip

    def __init__(
        self,
        work: Convolution,
        function: Compute,
        of: tuple[Array, Array, Array | None],
        numbers: Array,
        way: Way,
        facts: Sliding,
    ) -> None:
        """Note what was done.

        Args:
            work: what the library was told.
            function: the library's.
            of: images, and constants: filters, and a number for each of them or None.
            numbers: the filters as the library reads them.
            way: how images were read.
            facts: what follows from shapes.

        """
        images, filters, bias = of
        self._work: Final = Convolution.from_buffer_copy(work)
        self._function: Final = function
        self._shape, self._strides = images.shape, images.strides
        # The work has the addresses of numbers and bias.  What the numbers were made of keeps them.
        self._filters: Final = weakref.ref(filters)
        self._numbers: Final = weakref.ref(numbers)
        self._bias: Final = bias
        self._result: Final = facts.shape
        self._framed: Final = way.framed
        self._is_shared: Final = facts.products >= SHARED

    def __call__(
        self, images: Array, filters: Array, bias: Array | None, added: Array | None
    ) -> Array | None:
        """Convolve; None if it is another convolution, or has to be done in another way.

        Args:
            images: what windows slide over.
            filters: what windows are multiplied by.
            bias: a number for each filter; or None.
            added: as large as the results, to which it is added after the bias; or None.

        """
        numbers = self._numbers()
        if (
            self._filters() is not filters
            or numbers is None
            or bias is not self._bias
            or images.shape != self._shape
            or images.strides != self._strides
            or images.dtype is not FLOAT
            or not (added is None or self._is_like_results(added))
        ):
            return None
        work, result = Convolution.from_buffer_copy(self._work), np.empty(self._result, FLOAT)
        work.images, work.out = address(images), address(result)
        work.added = None if added is None else address(added)
        if self._framed is not None:
            framed = np.empty(self._framed, FLOAT)
            work.framed = address(framed)
        helpers = contention.helpers(HELPERS) if self._is_shared else 0
        return None if self._function(work, helpers) is False else result

    def _is_like_results(self, added: Array) -> bool:
        return added.dtype is FLOAT and added.shape == self._result and added.flags.c_contiguous
