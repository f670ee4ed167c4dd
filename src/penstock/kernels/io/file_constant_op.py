"""Constants that stand in files.

In:   the name of a file, a type and a shape.
Out:  the file's elements.
Not:  no formats: elements lie in the file as in memory.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.core.values import Value, as_value, freeze
from penstock.errors import InternalError, UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel


@kernel("ImmutableConst")
def make_immutable_const(attrs: Attrs) -> Kernel:
    """The first elements that a file holds."""
    path, dtype = attrs.str("memory_region_name"), attrs.dtype("dtype")
    shape = attrs.shape("shape").as_tuple()
    if dtype.is_object:
        raise UnimplementedError(
            f"Sorry, {dtype.proto_name} is not currently supported for ImmutableConstOp."
        )
    size, files = math.prod(shape) * dtype.numpy.itemsize, attrs.host.files

    def constant() -> Value:
        data = files.read(path)
        if len(data) < size:
            raise InternalError(
                f"Readonly memory region has wrong length ({len(data)}) when allocating {size}"
            )
        return freeze(as_value(np.frombuffer(data[:size], dtype.numpy).reshape(shape)))

    return constant
