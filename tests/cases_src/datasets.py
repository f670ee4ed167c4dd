"""Datasets in a graph, and iterators that go through them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, graph, s, steps


def _through(tf: Any, dataset: Any, count: int, again: int = 0) -> Any:
    """The first ``count`` elements, and after that the initializer and ``again`` more."""
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    runs = [[following]] * count
    return steps(
        [iterator.initializer], *runs, *([[iterator.initializer]] if again else []),
        *[[following]] * again,
    )  # fmt: skip


def pipeline(tf: Any, name: str) -> Any:
    """One pipeline, to its end and beyond, and once more from its beginning."""
    return _through(tf, made(tf, name), 12, 2)


def made(tf: Any, name: str) -> Any:
    """One of the pipelines."""
    data, extra = tf.data.Dataset, tf.data.experimental
    ten = data.range(10)
    return {
        "range": lambda: data.range(3),
        "range_down": lambda: data.range(7, 0, -3),
        "range_int32": lambda: data.range(3, output_type=tf.int32),
        "tensors": lambda: data.from_tensors((f32([1, 2]), s(b"a"))),
        "slices": lambda: data.from_tensor_slices((f32([[1, 2], [3, 4]]), s([b"a", b"b"]))),
        "map": lambda: ten.take(3).map(lambda x: (x * 2, tf.as_string(x))),
        "map_captured": lambda: ten.take(2).map(lambda x: x + tf.constant(5, tf.int64)),
        "parallel_map": lambda: ten.take(3).map(lambda x: x * x, num_parallel_calls=2),
        "filter": lambda: ten.filter(lambda x: tf.equal(x % 4, 1)),
        "flat_map": lambda: data.range(4).flat_map(data.range),
        "interleave": lambda: data.range(4).interleave(
            lambda x: data.from_tensors(x).repeat(3), cycle_length=2, block_length=2
        ),
        "interleave_uneven": lambda: data.range(5).interleave(data.range, cycle_length=3),
        "batch": lambda: data.range(5).batch(2),
        "batch_drop": lambda: data.range(5).batch(2, drop_remainder=True),
        "batch_text": lambda: data.from_tensor_slices(s([b"a", b"bc", b""])).batch(2),
        "padded": lambda: (
            data.range(1, 5)
            .map(lambda x: (tf.fill([x], x), tf.fill([x, 1], "w")))
            .padded_batch(2, padded_shapes=([None], [None, 2]), padding_values=(np.int64(-1), "-"))
        ),
        "unbatch": lambda: data.range(6).batch(4).unbatch(),
        "window": lambda: (
            data.range(7).window(3, shift=2, stride=2).flat_map(lambda window: window.batch(9))
        ),
        "window_drop": lambda: (
            data.range(5)
            .window(2, shift=3, drop_remainder=True)
            .flat_map(lambda window: window.batch(9))
        ),
        "repeat": lambda: data.range(2).repeat(2),
        "repeat_none": lambda: data.range(0).repeat(),
        "repeat_ever": lambda: data.range(2).repeat().take(5),
        "take_skip": lambda: ten.skip(7).take(9),
        "skip_all": lambda: ten.skip(-1),
        "take_all": lambda: data.range(2).take(-1),
        "shard": lambda: ten.shard(4, 2),
        "concatenate": lambda: data.range(2).concatenate(data.range(5, 6)),
        "zip": lambda: data.zip((data.range(3), data.range(9).batch(2))),
        "enumerate": lambda: data.from_tensor_slices(s([b"x", b"y"])).enumerate(),
        "cache": lambda: data.range(3).cache().prefetch(2),
        "unique": lambda: data.from_tensor_slices([3, 1, 3, 1, 2]).apply(extra.unique()),
        "scan": lambda: ten.apply(extra.scan(np.int64(1), lambda a, x: (a + x, a * x))).take(4),
        "take_while": lambda: ten.apply(extra.take_while(lambda x: x < 3)),
        "map_and_batch": lambda: data.range(5).apply(extra.map_and_batch(lambda x: x + 1, 2)),
        "shuffle": lambda: ten.shuffle(4, seed=7),
        "shuffle_repeat": lambda: data.range(5).shuffle(100, seed=7).repeat(2),
        "shuffle_fixed": lambda: (
            data.range(5).shuffle(3, seed=7, reshuffle_each_iteration=False).repeat(2)
        ),
        "shuffle_and_repeat": lambda: data.range(5).apply(extra.shuffle_and_repeat(4, 2, seed=5)),
        "random": lambda: extra.RandomDataset(seed=5).take(3),
        "error_goes_on": lambda: data.from_tensor_slices(f32([1, 0, 2])).map(
            lambda x: tf.debugging.check_numerics(1 / x, "reciprocal")
        ),
    }[name]()


PIPELINES = (
    "range", "range_down", "range_int32", "tensors", "slices", "map", "map_captured",
    "parallel_map", "filter", "flat_map", "interleave", "interleave_uneven", "batch", "batch_drop",
    "batch_text", "padded", "unbatch", "window", "window_drop", "repeat", "repeat_none",
    "repeat_ever", "take_skip", "skip_all", "take_all", "shard", "concatenate", "zip",
    "enumerate", "cache", "unique", "scan", "take_while", "map_and_batch", "shuffle",
    "shuffle_repeat", "shuffle_fixed", "shuffle_and_repeat", "random", "error_goes_on",
)  # fmt: skip


def one_shot(tf: Any) -> Any:
    """An iterator that is initialised by being asked."""
    dataset = tf.data.Dataset.range(5).map(lambda x: x * 2).batch(3)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    return steps([following], [following], [following])


def never_initialized(tf: Any) -> Any:
    """An iterator must be initialised."""
    return tf.data.make_initializable_iterator(tf.data.Dataset.range(5)).get_next()


def ragged_batch(tf: Any) -> Any:
    """Elements of a batch have one shape."""
    dataset = tf.data.Dataset.range(1, 3).map(lambda x: tf.fill([x], x)).batch(2)
    return _through(tf, dataset, 1)


def bad_argument(tf: Any, name: str) -> Any:
    """Sizes that make no sense."""
    data = tf.data.Dataset
    zero = tf.constant(0, tf.int64)
    made = {
        "batch": lambda: data.range(3).batch(zero),
        "shard": lambda: data.range(3).shard(tf.constant(2, tf.int64), tf.constant(2, tf.int64)),
        "range": lambda: data.range(0, 3, zero),
        "shuffle": lambda: data.range(3).shuffle(zero),
    }[name]()
    return _through(tf, made, 0)


def reduced(tf: Any) -> Any:
    """A sum over all elements, and the last one."""
    dataset = tf.data.Dataset.range(1, 6)
    total = dataset.reduce(
        (np.int64(0), np.int64(1)), lambda state, x: (state[0] + x, state[1] * x)
    )
    return [total, tf.data.experimental.get_single_element(dataset.skip(4))]


def not_single(tf: Any, count: int) -> Any:
    """A dataset that has not exactly one element."""
    return tf.data.experimental.get_single_element(tf.data.Dataset.range(count))


def as_optional(tf: Any) -> Any:
    """The end as an optional without a value."""
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(1))
    found = tf.data.experimental.get_next_as_optional(iterator)
    return steps(
        [iterator.initializer], [found.has_value(), found.get_value()], [found.has_value()]
    )


def by_handle(tf: Any) -> Any:
    """Iterators chosen by the string that stands for one."""
    datasets = [tf.data.Dataset.range(n, n + 3) for n in (0, 10)]
    iterators = [tf.data.make_initializable_iterator(dataset) for dataset in datasets]
    handles = [iterator.string_handle() for iterator in iterators]
    runs = []
    for handle in (handles[1], handles[0], handles[1]):
        made = tf.data.Iterator.from_string_handle(handle, tf.int64, tf.TensorShape([]))
        runs.append([made.get_next()])
    return steps([iterator.initializer for iterator in iterators], *runs)


CASES = [
    *(graph(pipeline, name) for name in PIPELINES),
    graph(one_shot),
    graph(never_initialized, says="the iterator has not been initialized"),
    graph(ragged_batch, says="number of elements does not match"),
    graph(bad_argument, "batch", says="batch size must be greater than zero"),
    graph(bad_argument, "shard", says="index must be between"),
    graph(bad_argument, "range", says="non-zero"),
    graph(bad_argument, "shuffle", says="buffer_size must be greater than zero"),
    graph(reduced),
    graph(not_single, 0, says="Dataset was empty."),
    graph(not_single, 2, says="Dataset had more than one element."),
    graph(as_optional),
    graph(by_handle),
]
