"""Where iterators are: saved, restored in another iterator, and gone on from."""

from __future__ import annotations

from itertools import product
from typing import Any

from cases_src.casebook import graph, steps
from cases_src.datasets import PIPELINES, made


def moved(tf: Any, name: str, count: int, is_encoded: bool) -> Any:
    """An iterator goes on where another one of the same pipeline is, as does that one itself."""
    raw = tf.raw_ops
    first, second = (tf.data.make_initializable_iterator(made(tf, name)) for _ in range(2))
    state = raw.SerializeIterator(resource_handle=first._iterator_resource)
    if is_encoded:
        state = raw.ParseTensor(serialized=raw.SerializeTensor(tensor=state), out_type=tf.variant)
    move = raw.DeserializeIterator(resource_handle=second._iterator_resource, serialized=state)
    following, others = first.get_next(), second.get_next()
    return steps(
        [first.initializer, second.initializer], *[[following]] * count, [others], [move],
        *[[others], [following]] * 7,
    )  # fmt: skip


def not_moved(tf: Any, which: str) -> Any:
    """What has no place has none to go on from, and no iterator goes on in another dataset."""
    raw = tf.raw_ops
    first = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
    second = tf.data.make_initializable_iterator(tf.data.Dataset.range(3).repeat(2))
    state = raw.SerializeIterator(resource_handle=first._iterator_resource)
    move = raw.DeserializeIterator(resource_handle=second._iterator_resource, serialized=state)
    initializers = {"first": first.initializer, "second": second.initializer}
    return steps([item for name, item in initializers.items() if name != which], [move])


_ANOTHER = "Make sure the dataset definition has not changed between the process that saved"
CASES = [
    *(graph(moved, name, count, is_encoded)
      for name, (count, is_encoded) in product(PIPELINES, ((0, True), (1, True), (3, False)))),
    graph(not_moved, "first", says="Save() failed because the iterator has not been initialized."),
    graph(not_moved, "second", says="Restore() failed because the iterator has not been init"),
    graph(not_moved, "neither", says=_ANOTHER),
]  # fmt: skip
