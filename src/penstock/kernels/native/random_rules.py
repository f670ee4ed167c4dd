"""Random numbers that go on in their node's stream, from iteration to iteration.

In:   a known shape; where the node's stream is, which is one of the emitter's states.
Out:  an array; the stream has gone on.
Not:  begins no stream, and tells nobody how far one has come.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.kernels.native.parts import Known, Operand
from penstock.kernels.native.rules import Written, rule
from penstock.kernels.random.random_numbers import FOR_EACH_CUT
from penstock.kernels.random.random_samplers import RESERVED

#: What the operation is called, how far apart the counters are, and nanoseconds for each number.
_WAYS: Final = {
    "RandomUniform": ("draw_fractions", 1, 1),
    "RandomStandardNormal": ("draw_normal", 1, 4),
    "TruncatedNormal": ("draw_cut_normal", FOR_EACH_CUT, 8),
}
#: The ops that draw.
RANDOM: Final = frozenset(_WAYS)
#: How many numbers each counter gives.
_FOUR: Final = 4
#: The type of a stream's place: a key, and a counter's words.
STREAM: Final = np.dtype(np.int64), (3,)


def _is_float32(_attrs: Any, _inputs: Any, outputs: Any) -> bool:
    return outputs[0] is dtypes.float32


@rule(*_WAYS, admits=_is_float32)
def _random(node: Written) -> Operand:
    """The next numbers of a stream, as many counters of which are reserved as by a kernel."""
    shape, emitter = node.known(0), node.emitter
    node.need(shape.ndim == 1 and (shape >= 0).all())
    sizes: list[int] = shape.tolist()
    count = prod(sizes)
    if not count:
        return Known(np.zeros(sizes, np.float32))
    stream, counters = emitter.states[node.name], -(-count // _FOUR)
    what, apart, each = _WAYS[node.op]
    emitter.states[node.name] = emitter.op("draw_later", [stream], *STREAM, [count * RESERVED])
    made = emitter.op(
        what, [stream], np.float32, [counters * _FOUR], [counters, apart], count * each
    )
    return emitter.reshape(emitter.slice(made, [0], [count], [1]), sizes)
