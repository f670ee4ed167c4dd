"""Functions of TensorFlow 2: loops, branches and calls as functions, with and without effects."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, graph, i32, s, steps


def fibonacci(tf: Any) -> Any:
    """A loop over several variables, and what it gives for any number of turns."""

    @tf.function
    def run(n: Any) -> Any:
        a, b = tf.constant(0, tf.int64), tf.constant(1, tf.int64)
        while n > 0:
            a, b, n = b, a + b, n - 1
        return a, b, n

    n = tf.placeholder(tf.int32, [])
    found = run(n)
    return steps(*(({n: np.int32(turns)}, list(found)) for turns in (0, 1, 2, 50)))


def collatz(tf: Any) -> Any:
    """Branches in a loop in a loop, with an early end."""

    @tf.function
    def run(last: Any) -> Any:
        longest, at = tf.constant(0), tf.constant(0)
        for start in tf.range(1, last):
            length, x = tf.constant(0), start
            while length < 10_000:
                if tf.equal(x, 1):
                    break
                if tf.equal(x % 2, 0):
                    x = x // 2
                else:
                    x = 3 * x + 1
                    if length > 1000:
                        continue
                length += 1
            if length > longest:
                longest, at = length, start
        return longest, at

    last = tf.placeholder(tf.int32, [])
    found = list(run(last))
    return steps(*(({last: np.int32(n)}, found) for n in (1, 2, 30)))


def constants_in_loops(tf: Any) -> Any:
    """What never changes, in the condition, in the body, and in a loop inside of it."""

    @tf.function
    def run(limit: Any, rows: Any) -> Any:
        table = tf.reshape(tf.range(6.0), [2, 3])

        def turn(i: Any, limit: Any, fixed: Any, total: Any) -> Any:
            inner = tf.while_loop(
                lambda j, _t, f: j < tf.size(f),
                lambda j, t, f: (j + 1, t + tf.fill([2, 3], 0.5) * f[j], f),
                (0, table, fixed),
            )[1]
            return i + 1, limit, fixed, total + inner + tf.ones([2, 3])

        return tf.while_loop(
            lambda i, n, _f, _t: i < n, turn, (tf.constant(0), limit, rows, tf.zeros([2, 3]))
        )

    limit = tf.placeholder(tf.int32, [])
    found = list(run(limit, tf.constant([1.0, 2.0])))
    return steps(*(({limit: np.int32(n)}, found) for n in (0, 1, 3)))


def swapped(tf: Any) -> Any:
    """Variables that change places, one that stays, one that becomes another."""

    @tf.function
    def run(n: Any) -> Any:
        return tf.while_loop(
            lambda i, *_: i < n,
            lambda i, a, b, kept, _c: (i + 1, b, a, kept, kept),
            (tf.constant(0), 1.0, 2.0, 3.0, 4.0),
        )

    n = tf.placeholder(tf.int32, [])
    found = list(run(n))
    return steps(*(({n: np.int32(turns)}, found) for turns in (0, 1, 2, 3)))


def branches(tf: Any) -> Any:
    """Branches that give constants, what they got, what others computed, and nested ones."""

    @tf.function
    def run(p: Any, q: Any, x: Any) -> Any:
        outside = x * 2.0
        one, two = tf.cond(p, lambda: (tf.constant(7.0), x), lambda: (outside, x + 1.0))
        three = tf.cond(
            p,
            lambda: tf.cond(q, lambda: one + 1.0, lambda: two),
            lambda: tf.cond(q, lambda: tf.constant(-1.0), lambda: x),
        )
        return one, two, three, tf.cond(tf.reduce_any([p, q]), lambda: b"any", lambda: b"none")

    p, q = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    found = list(run(p, q, tf.constant(0.5)))
    cases = [(one, other) for one in (True, False) for other in (True, False)]
    return steps(*(({p: np.bool_(one), q: np.bool_(other)}, found) for one, other in cases))


def not_taken(tf: Any) -> Any:
    """The branch that is not taken may be as wrong as it likes."""

    @tf.function
    def run(p: Any, x: Any) -> Any:
        wrong = tf.zeros([3])
        return tf.cond(p, lambda: x, lambda: tf.raw_ops.Add(x=x, y=wrong))

    p = tf.placeholder(tf.bool, [])
    found = run(p, tf.placeholder_with_default(f32([1, 2]), None))
    return steps(({p: np.bool_(True)}, [found]))


def taken(tf: Any) -> Any:
    """The same, when it is taken."""

    @tf.function
    def run(p: Any, x: Any) -> Any:
        wrong = tf.zeros([3])
        return tf.cond(p, lambda: x, lambda: tf.raw_ops.Add(x=x, y=wrong))

    p = tf.placeholder(tf.bool, [])
    return steps(({p: np.bool_(False)}, [run(p, tf.placeholder_with_default(f32([1, 2]), None))]))


def _variable(tf: Any, value: Any) -> Any:
    return tf.Variable(value, use_resource=True)


def counted(tf: Any) -> Any:
    """Effects in a loop happen turn by turn, and before what comes after the loop."""
    count, log = _variable(tf, 0), _variable(tf, np.zeros(4, np.int32))

    @tf.function
    def run(n: Any) -> Any:
        total = tf.constant(0)
        for i in tf.range(n):
            before = count.read_value()
            count.assign_add(i + 1)
            if tf.equal(i % 2, 0):
                log.scatter_update(tf.IndexedSlices(count.read_value(), i))
            total += before
        count.assign(count.read_value() * 10)
        return total, count.read_value()

    n = tf.placeholder(tf.int32, [])
    found = list(run(n))
    init = tf.global_variables_initializer()
    runs = [({n: np.int32(turns)}, found) for turns in (0, 1, 4)]
    return steps([init], *runs, [count.read_value(), log.read_value()])


def effects_of_branches(tf: Any) -> Any:
    """Only the branch that is taken has effects, and what comes after sees them."""
    seen = _variable(tf, 1.0)

    @tf.function
    def run(p: Any, x: Any) -> Any:
        if p:
            seen.assign_add(x)
        else:
            seen.assign(-1.0)
        now = seen.read_value()
        if p and now > 3.0:
            seen.assign(100.0)
        return now, seen.read_value()

    p, x = tf.placeholder(tf.bool, []), tf.placeholder(tf.float32, [])
    found = list(run(p, x))
    runs = [(True, 1.5), (False, 9.0), (True, 2.0), (True, 5.0)]
    fed = [({p: np.bool_(one), x: np.float32(other)}, found) for one, other in runs]
    return steps([tf.global_variables_initializer()], *fed, [seen.read_value()])


def effects_of_calls(tf: Any) -> Any:
    """A call waits for what it must wait for, and others for all that it does."""
    seen = _variable(tf, 1.0)

    @tf.function
    def twice() -> Any:
        return seen.assign(seen.read_value() * 2.0)

    @tf.function
    def run(x: Any) -> Any:
        first = twice()
        seen.assign_add(x)
        second = twice()
        with tf.control_dependencies([tf.no_op()]):
            seen.assign_sub(1.0)
        return first, second, seen.read_value()

    @tf.function
    def far() -> Any:
        seen.assign_add(1000.0)
        return 0

    with tf.control_dependencies([far()]):
        after = seen.read_value()
    found = list(run(tf.constant(3.0)))
    return steps([tf.global_variables_initializer()], found, found, [after], [seen.read_value()])


def lists_in_loops(tf: Any) -> Any:
    """Arrays of tensors that a loop writes, another reads, and stacks."""

    @tf.function
    def run(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2])
        for i in tf.range(tf.shape(x)[0]):
            array = array.write(i, x[i] * tf.cast(i, tf.float32))
        total = tf.zeros([2])
        for i in tf.range(array.size()):
            total += array.read(i)
        return array.stack(), total

    return list(
        run(tf.placeholder_with_default(np.arange(8, dtype=np.float32).reshape(4, 2), None))
    )


def gradient_of_loop(tf: Any) -> Any:
    """The gradient of a loop is a loop that takes from lists what the first one put there."""

    @tf.function
    def run(x: Any, n: Any) -> Any:
        y = x
        for i in tf.range(n):
            y = tf.cond(
                tf.reduce_sum(y) > 3.0,
                lambda y=y: tf.sin(y) * x,
                lambda y=y, i=i: y * y + tf.cast(i, tf.float32),
            )
        return [y, *tf.gradients(y, [x])]

    n = tf.placeholder(tf.int32, [])
    found = list(run(tf.constant([0.5, 1.25]), n))
    return steps(*(({n: np.int32(turns)}, found) for turns in (0, 1, 4)))


def mapped(tf: Any) -> Any:
    """What TensorFlow makes loops of: maps, folds and scans."""

    @tf.function
    def run(x: Any) -> Any:
        squares = tf.map_fn(lambda row: tf.reduce_sum(row * row), x)
        sums = tf.scan(lambda a, row: a + row, x)
        last = tf.foldl(lambda a, row: a * 0.5 + row, x)
        first = tf.foldr(lambda a, row: a * 0.5 + row, x)
        return squares, sums, last, first

    return list(
        run(tf.placeholder_with_default(np.arange(6, dtype=np.float32).reshape(3, 2), None))
    )


def cases(tf: Any) -> Any:
    """One of several functions, by a number; any other number means the last."""

    @tf.function
    def run(which: Any, x: Any) -> Any:
        return tf.switch_case(which, [lambda: x + 1.0, lambda: x * 10.0, lambda: -x])

    which = tf.placeholder(tf.int32, [])
    found = run(which, tf.constant(2.0))
    return steps(*(({which: np.int32(n)}, [found]) for n in (0, 1, 2, 7, -1)))


def case_in_loop(tf: Any) -> Any:
    """The same in each turn of a loop."""

    @tf.function
    def run(n: Any) -> Any:
        x = tf.constant(1.0)
        for i in tf.range(n):
            x = tf.switch_case(i % 3, [lambda x=x: x + 1.0, lambda x=x: x * 10.0, lambda x=x: -x])
        return x

    return run(tf.placeholder_with_default(i32(8), []))


def recursive(tf: Any) -> Any:
    """Functions in functions in functions, some of them called from several places."""

    @tf.function
    def inner(x: Any) -> Any:
        return tf.where(x > 0.0, x * 2.0, x - 1.0)

    @tf.function
    def middle(x: Any, n: Any) -> Any:
        for _ in tf.range(n):
            x = inner(x)
        return inner(x) + x

    @tf.function
    def outer(x: Any, n: Any) -> Any:
        return middle(x, n) + middle(-x, n + 1) + inner(inner(x))

    n = tf.placeholder(tf.int32, [])
    found = outer(tf.constant([0.5, -0.25]), n)
    return steps(*(({n: np.int32(turns)}, [found]) for turns in (0, 1, 3)))


def texts(tf: Any) -> Any:
    """A loop over strings, whose condition asks for them."""

    @tf.function
    def run(text: Any) -> Any:
        turns = tf.constant(0)
        while tf.strings.length(text) < 12:
            text = tf.strings.join([text, tf.strings.as_string(turns)])
            turns += 1
        return text, turns

    return list(run(tf.placeholder_with_default(s(b"ab"), [])))


def checked(tf: Any, last: int) -> Any:
    """An assertion in a loop holds for some turns."""

    @tf.function
    def run(n: Any) -> Any:
        total = tf.constant(0)
        for i in tf.range(n):
            tf.debugging.assert_less(i, 3, message="too far")
            total += i
        return total

    return run(tf.placeholder_with_default(i32(last), []))


def waiting_for_a_loop(tf: Any) -> Any:
    """What only waits for a loop or a branch, and reads nothing of it."""
    seen = _variable(tf, 0)

    @tf.function
    def run(n: Any, p: Any) -> Any:
        if p:
            for _ in tf.range(n):
                seen.assign_add(1)
        elif n > 2:
            seen.assign(-5)
        return tf.constant(1)

    n, p = tf.placeholder(tf.int32, []), tf.placeholder(tf.bool, [])
    done = run(n, p)
    with tf.control_dependencies([done]):
        after = seen.read_value() + 0
    fed = [
        ({n: np.int32(turns), p: np.bool_(flag)}, [after, done])
        for turns, flag in ((3, True), (0, True), (2, False), (3, False))
    ]
    return steps([tf.global_variables_initializer()], *fed)


def datasets_in_loops(tf: Any) -> Any:
    """A loop over a dataset, and one in a loop, with variables that they change."""
    total = _variable(tf, np.float32(0))

    @tf.function
    def run(n: Any) -> Any:
        seen = tf.constant(0)
        for batch in tf.data.Dataset.range(10).map(lambda i: tf.cast(i, tf.float32)).batch(4):
            total.assign_add(tf.reduce_sum(batch))
            seen += tf.size(batch)
        for _ in tf.range(n):
            for row in tf.data.Dataset.from_tensor_slices([1.0, 2.0]).take(2):
                if row > 1.5:
                    total.assign(total.read_value() * row)
        return seen, total.read_value()

    n = tf.placeholder(tf.int32, [])
    found = list(run(n))
    init = tf.global_variables_initializer()
    return steps([init], ({n: np.int32(0)}, found), ({n: np.int32(2)}, found))


def queues_in_loops(tf: Any) -> Any:
    """A loop that fills a queue, and one that empties it: kernels that may have to wait."""
    queue = tf.FIFOQueue(10, tf.int32, shapes=[[]], shared_name="queue")
    handle = queue.queue_ref

    @tf.function
    def run(handle: Any, n: Any) -> Any:
        raw = tf.raw_ops
        for i in tf.range(n):
            raw.QueueEnqueueV2(handle=handle, components=[i * i])
        total = tf.constant(0)
        for _ in tf.range(n):
            (taken,) = raw.QueueDequeueV2(handle=handle, component_types=[tf.int32])
            total = total * 10 + tf.ensure_shape(taken, [])
        return total

    n = tf.placeholder(tf.int32, [])
    found = run(handle, n)
    return steps(({n: np.int32(3)}, [found]), ({n: np.int32(0)}, [found]))


def random_in_loops(tf: Any) -> Any:
    """Random numbers go on from turn to turn, each after the last one, and from run to run."""
    tf.set_random_seed(3)

    @tf.function
    def run() -> Any:
        total = tf.zeros([2])
        for _ in tf.range(3):
            with tf.control_dependencies([total]):
                drawn = tf.random.uniform([2], seed=5)
            total = total * 10.0 + tf.round(drawn * 9.0)
        return total

    found = [run()]
    return steps(found, found)


def dropout_in_loops(tf: Any, name: str) -> Any:
    """A recurrence with noise of some kind, of which each row goes on as long as it is told."""
    tf.set_random_seed(4)
    lengths, limit = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.int32, [])
    draw = getattr(tf.raw_ops, name)

    def turn(i: Any, state: Any, seen: Any) -> Any:
        with tf.control_dependencies([state]):
            noise = draw(shape=[3, 5], dtype=tf.float32, seed=8, seed2=9)
        after = tf.tanh(state * 0.5 + noise)
        state = tf.where(i < lengths, after, state)
        return i + 1, state, seen.write(i, state)

    seen = tf.TensorArray(tf.float32, limit, element_shape=[3, 5])
    ends = tf.while_loop(lambda i, *_: i < limit, turn, (0, tf.zeros([3, 5]), seen))
    found = [ends[1], ends[2].stack()]
    return steps(*(({limit: np.int32(n), lengths: np.int32([n, 2, 1])}, found) for n in (4, 2, 3)))


def conditions(tf: Any, kind: str, lowered: str) -> Any:
    """An If by a condition of some type and shape, that is to become a Switch, or is not."""

    @tf.function
    def one() -> Any:
        return tf.constant(1)

    @tf.function
    def two() -> Any:
        return tf.constant(2)

    given = tf.placeholder(kind, None)
    [made] = tf.raw_ops.If(
        cond=given,
        input=[],
        Tout=[tf.int32],
        then_branch=one.get_concrete_function(),
        else_branch=two.get_concrete_function(),
        output_shapes=[],
    )
    made.op._set_attr("_lower_using_switch_merge", tf.AttrValue(b=lowered == "lowered"))
    of = np.dtype(kind).type
    return steps(
        *(({given: of(number)}, [made]) for number in (1, 0)),
        *(({given: np.array(numbers, kind)}, [made]) for numbers in ([], [0], [1, 0], [[0]])),
    )


CASES = [
    graph(fibonacci),
    graph(collatz),
    graph(constants_in_loops),
    graph(swapped),
    graph(branches),
    graph(not_taken),
    graph(taken, says="ncompatible shapes"),
    graph(counted),
    graph(effects_of_branches),
    graph(effects_of_calls),
    graph(lists_in_loops),
    graph(gradient_of_loop),
    graph(mapped),
    graph(cases),
    graph(case_in_loop),
    graph(recursive),
    graph(texts),
    *(graph(checked, last, says="too far" if last > 3 else "") for last in (3, 5)),
    graph(waiting_for_a_loop),
    graph(random_in_loops),
    *(
        graph(dropout_in_loops, name)
        for name in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
    ),
    graph(datasets_in_loops),
    graph(queues_in_loops),
    graph(conditions, "bool", "lowered", says="The second input must be a scalar"),
    graph(conditions, "bool", "kept"),
    graph(conditions, "int32", "kept"),
    graph(conditions, "float32", "kept"),
]
