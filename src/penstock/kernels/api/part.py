"""The kernel of an op that does a part of another op's work.

In:   what is known of a node, and the name of the other op.
Out:  its kernel, as for a node with the same attributes.
Not:  registers no kernel.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from penstock.catalogue.registry import get_op
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, get_kernel


def kernel_of_part(attrs: Attrs, op_name: str, **changed: Any) -> Kernel:
    """The kernel of an op on the CPU.

    Args:
        attrs: of the whole; the part has those attributes of it that its op has, too.
        op_name: the part.
        changed: attributes in which the part differs.

    """
    op = get_op(op_name)
    values = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    values |= {name: value for name, value in attrs.values.items() if name in op.attrs} | changed
    facts = dataclasses.replace(attrs, op=op, values=values)
    return get_kernel(op_name, "CPU", values).make(facts)
