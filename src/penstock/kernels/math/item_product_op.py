"""Products of the elements of a list, many of them at once.

In:   an element of a list and the matrix that it is multiplied by; the list, and where in it the
      element is.
Out:  their product.
Not:  reads nothing of the list that is not asked for, but for its neighbours.

Who reads a list in a loop mostly multiplies all of its elements by one matrix, one by one: one
product of all is faster, since the matrix is read once for all of them.  What was made ahead
stays with the list, and goes when that does.  It is bounded, and so is what was made in vain if
the loop ends early; who takes elements from anywhere, or another matrix each time, gets what was
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, freeze
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.math.matmul_ops import new_product
from penstock.kernels.values.arrays import number_in
from penstock.kernels.variant.tensor_list import TensorList

#: Bytes of products that are made at once.
_MOST: Final = 1 << 20


class _Products(NamedTuple):
    """Products of some neighbouring elements, by their places; of none if these are not alike."""

    factor: Value
    by_place: Mapping[int, Array]

    def comes_before(self, place: int, factor: Value) -> bool:
        """Whether a product is the next of a row of such, in either direction."""
        ends = place - 1 in self.by_place, place + 1 in self.by_place
        return factor is self.factor and any(ends) and place not in self.by_place


@kernel("_ItemMatMul", types={"T": {dtypes.float32, dtypes.float64}})
def make_item_mat_mul(attrs: Attrs) -> Kernel:
    """The product of a list's element and a matrix, and of its neighbours by the way."""
    is_turned = attrs.bool("transpose_b")
    own = _Ahead(new_product(attrs, is_b_turned=is_turned), is_turned=is_turned)

    def product(item: Value, factor: Value, source: Any, index: Any) -> Value:
        try:
            known, by_place = source.ahead[own]
            if known is factor:
                return by_place[index]
        except (AttributeError, KeyError, TypeError):  # nothing yet, elsewhere, an odd index
            pass
        return own.product(item, factor, source, number_in(index))

    return product


class _Ahead:
    """What one node multiplies ahead; what it made is the list's, which knows it by this."""

    def __init__(self, multiply: Kernel, *, is_turned: bool) -> None:
        self._multiply: Final = multiply
        self._is_turned: Final = is_turned

    def product(self, item: Value, factor: Value, source: Any, place: int) -> Value:
        """A product that was not made ahead; others are made now, if they may come next."""
        is_good = type(source) is TensorList and np.ndim(item) == np.ndim(factor) == 2
        if not is_good or item.shape[1] != factor.shape[self._is_turned]:
            return self._multiply(item, factor)  # which complains
        made = getattr(source, "ahead", {}).get(self)
        if made is None or made.comes_before(place, factor):
            made = self._made(source, place, item, factor)
        elif made.factor is not factor or (made.by_place and place not in made.by_place):
            # Another factor, or an element from anywhere: more of these would come.
            made = source.ahead[self] = _Products(factor, {})
        return made.by_place[place] if made.by_place else self._multiply(item, factor)

    def _made(self, source: TensorList, place: int, item: Array, factor: Array) -> _Products:
        """The products of an element and its neighbours, which the list has from now on."""
        shape = len(item), factor.shape[not self._is_turned]
        count = max(_MOST // max(prod(shape) * item.itemsize, 1), 1)
        start = place - place % count
        places = range(start, min(start + count, source.items.size))
        items = [source.items.get(each) for each in places]
        made = _Products(factor, {})
        if len(items) > 1 and all(np.shape(each) == item.shape for each in items):
            total = freeze(self._multiply(np.concatenate(items), factor))
            products = total.reshape(len(items), *shape)
            made = _Products(factor, dict(zip(places, products, strict=True)))
        if not hasattr(source, "ahead"):
            source.ahead = {}
        source.ahead[self] = made
        return made
