"""Products of the elements of a list, many of them at once.

In:   an element of a list and the matrix that it is multiplied by; the list, and where in it the
      element is.
Out:  their product.
Not:  reads nothing of the list that is not asked for, but for its neighbours.

Who reads a list in a loop mostly multiplies all of its elements by one matrix, one by one: one
product of all is faster, since the matrix is read once for all of them.  What was made ahead
stays with the list, and goes when that does; it is bounded, and so is what was made in vain if the
loop ends early.
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


@kernel("_ItemMatMul", types={"T": {dtypes.float32, dtypes.float64}})
def make_item_mat_mul(attrs: Attrs) -> Kernel:
    """The product of a list's element and a matrix, and of its neighbours by the way."""
    is_turned = attrs.bool("transpose_b")
    multiply = new_product(attrs, is_b_turned=is_turned)
    own = object()

    def product(item: Value, factor: Value, source: Any, index: Any) -> Value:
        try:
            known, by_place = source.ahead[own]
            if known is factor:
                return by_place[index]
        except (AttributeError, KeyError, TypeError):  # nothing yet, elsewhere, an odd index
            pass
        return new(item, factor, source, number_in(index))

    def new(item: Value, factor: Value, source: Any, at: int) -> Value:
        """The same where it was not made ahead; others are made now."""
        is_good = type(source) is TensorList and np.ndim(item) == np.ndim(factor) == 2
        if not is_good or item.shape[1] != factor.shape[is_turned]:
            return multiply(item, factor)  # which complains
        made = getattr(source, "ahead", {}).get(own)
        if made is None or made.by_place:
            made = made_ahead(source, at, item, factor)
        return made.by_place[at] if made.by_place else multiply(item, factor)

    def made_ahead(source: TensorList, at: int, item: Array, factor: Array) -> _Products:
        """The products of an element and its neighbours, which the list has from now on."""
        shape = len(item), factor.shape[not is_turned]
        count = max(_MOST // max(prod(shape) * item.itemsize, 1), 1)
        places = range(at - at % count, min(at - at % count + count, source.items.size))
        items = [source.items.get(place) for place in places]
        made = _Products(factor, {})
        if len(items) > 1 and all(np.shape(one) == item.shape for one in items):
            total = freeze(multiply(np.concatenate(items), factor))
            products = total.reshape(len(items), *shape)
            made = _Products(factor, dict(zip(places, products, strict=True)))
        if not hasattr(source, "ahead"):
            source.ahead = {}
        source.ahead[own] = made
        return made

    return product
