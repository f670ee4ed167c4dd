"""An example of what can be fed.

In:   a type and a shape.
Out:  a value as the command line takes it.
Not:  reads no values.
"""

from __future__ import annotations

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape


def sample_value(dtype: DType, shape: TensorShape) -> str:
    """What a feed of the type could be on the command line."""
    dims = shape.dims
    if dtype is dtypes.string:
        return "TEXT"
    if dims == ():
        return "true" if dtype is dtypes.bool_ else "1"
    if dims is not None and len(dims) == 4 and dims[-1] in (1, 3):
        return "FILE.png"
    return "FILE.npy"
