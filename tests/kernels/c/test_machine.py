"""Programs of instructions: each operation gives what numpy gives, with vectors of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.core import dtypes
from penstock.kernels.c.library import loaded
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.parts import Known, Traced, UnsupportedError
from penstock.kernels.native.products import product
from penstock.kernels.native.program import Program
from penstock.kernels.native.ready_program import ReadyProgram
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.random_numbers import normal, truncated_normal, uniform
from penstock.state.interrupt import NEVER
from support.native import WITHOUT, watched

if loaded() is None:
    pytest.skip("there is no library of kernels in C", allow_module_level=True)

KINDS = range(loaded().penstock_kinds())
SIZES = [1, 3, 15, 16, 17, 64, 131]
RANDOM = np.random.default_rng(5)


def computed(
    write: Callable[..., Any], *arrays: Any, kind: int | None = None, **options: Any
) -> list[Any] | None:
    """What a program gives whose operations are written by a function of an emitter and values."""
    emitter = Emitter()
    inputs = tuple(Traced(array.dtype, array.shape) for array in arrays)
    made = write(emitter, *inputs, **options)
    results = made if isinstance(made, list) else [made]
    given = tuple(map(emitter.traced, results))
    program = Program(inputs, emitter.constants, emitter.block, given)
    found = ReadyProgram(program, kind)(arrays, NEVER)
    return None if found is None else list(found)


def one(write: Callable[..., Any], *arrays: Any, kind: int | None = None, **options: Any) -> Any:
    """The only result."""
    found = computed(write, *arrays, kind=kind, **options)
    assert found is not None
    (result,) = found
    return result


def same(emitter: Emitter, *operands: Any, what: str) -> Any:
    """A function of elements, by its name."""
    return emitter.same(what, *operands)


def compared(emitter: Emitter, x: Any, y: Any, what: str) -> Any:
    """A comparison, by its name."""
    return emitter.compare(what, x, y)


def reduced(emitter: Emitter, x: Any, what: str, axes: Sequence[int]) -> Any:
    """A reduction, by its name."""
    return emitter.reduce(what, x, axes)


def joined(emitter: Emitter, x: Any, y: Any, axis: int) -> Any:
    """One, the other, and the first again."""
    return emitter.concatenate([x, y, x], axis)


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    """Numbers of which some are negative."""
    return RANDOM.standard_normal(shape).astype(dtype)


def sigmoid(x: Any) -> Any:
    """By its definition."""
    return 1 / (1 + np.exp(-x))


# -- element by element --------------------------------------------------------------------------

OF_ONE = {
    "neg": np.negative, "abs": np.abs, "square": np.square, "exp": np.exp, "tanh": np.tanh,
    "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6),
    "sin": np.sin, "cos": np.cos, "floor": np.floor, "ceil": np.ceil, "expm1": np.expm1,
    "reciprocal": np.reciprocal,
}  # fmt: skip
OF_POSITIVE = {"sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "log": np.log, "log1p": np.log1p}
OF_TWO = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "maximum": np.maximum, "minimum": np.minimum,
    "squared_difference": lambda x, y: (x - y) ** 2,
    "relu_grad": lambda g, x: g * (x > 0), "relu6_grad": lambda g, x: g * ((x > 0) & (x < 6)),
    "sigmoid_grad": lambda y, g: g * y * (1 - y),
}  # fmt: skip
COMPARISONS = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*OF_ONE, *OF_POSITIVE, *OF_TWO])
def test_functions_of_floats(name: str, dtype: Any, kind: int) -> None:
    """Up to some units in the last place, whatever the number of elements is."""
    exact = {**OF_ONE, **OF_POSITIVE, **OF_TWO}[name]
    for size in SIZES:
        arrays = [floats(size, dtype=dtype) * 3 for _ in range(1 + (name in OF_TWO))]
        if name in OF_POSITIVE:
            arrays = [np.abs(arrays[0]) + dtype(0.01)]
        got = one(same, *arrays, kind=kind, what=name)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, exact(*arrays), rtol=8 * np.finfo(dtype).eps, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_functions_of_integers(dtype: Any, kind: int) -> None:
    """With the largest and the smallest ones, which begin anew where others would be too large."""
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    x = np.array([0, 1, -1, 7, -7, 7, -7, most, least, least, least, 12], dtype)
    y = np.array([5, -3, 3, 2, 2, -2, -2, 1, -1, 1, 2, -5], dtype)
    for name in ("neg", "abs", "square"):
        np.testing.assert_array_equal(one(same, x, kind=kind, what=name), OF_ONE[name](x))
    with np.errstate(all="ignore"):
        exact = {**OF_TWO, "floor_div": np.floor_divide, "floor_mod": np.mod}
        for name in ("add", "sub", "mul", "maximum", "minimum", "floor_div", "floor_mod"):
            got = one(same, x, y, kind=kind, what=name)
            np.testing.assert_array_equal(got, exact[name](x, y), err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_comparisons_and_choices(dtype: Any, kind: int) -> None:
    """With numbers that are none, where the type has them."""
    x = (floats(37) * 2).astype(dtype)
    y = (floats(37) * 2).astype(dtype)
    y[::3] = x[::3]
    if dtype in (np.float32, np.float64):
        x[5] = y[7] = np.nan
    for name, exact in COMPARISONS.items():
        got = one(compared, x, y, kind=kind, what=name)
        np.testing.assert_array_equal(got, exact(x, y))
    got = one(lambda e, a, b: e.select(e.compare("less", a, b), a, b), x, y, kind=kind)
    np.testing.assert_array_equal(got, np.where(x < y, x, y))


def test_truths() -> None:
    """And, or, not."""
    x, y = (RANDOM.random(20) < 0.5 for _ in range(2))
    np.testing.assert_array_equal(one(lambda e, a, b: e.same("and", a, b), x, y), x & y)
    np.testing.assert_array_equal(one(lambda e, a, b: e.same("or", a, b), x, y), x | y)
    np.testing.assert_array_equal(one(lambda e, a: e.same("not", a), x), ~x)


@pytest.mark.parametrize("into", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.int64, np.float32, np.float64])
def test_types_are_converted(dtype: Any, into: Any) -> None:
    """But floats to integers, of which TensorFlow's have no one meaning."""
    x = (floats(19) * 100).astype(dtype)
    if np.issubdtype(dtype, np.floating) and np.issubdtype(into, np.integer):
        with pytest.raises(UnsupportedError):
            one(lambda e, a: e.convert(a, into), x)
        return
    got = one(lambda e, a: e.convert(a, into), x)
    assert got.dtype == into
    np.testing.assert_array_equal(got, x.astype(into))


# -- parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.int64])
def test_elements_are_moved(dtype: Any) -> None:
    """Turned, cut, repeated and joined, in any shape."""
    x = (floats(3, 4, 5) * 9).astype(dtype)
    for order in ((2, 0, 1), (0, 2, 1), (2, 1, 0), (0, 1, 2)):
        got = one(Emitter.transpose, x, order=order)
        np.testing.assert_array_equal(got, x.transpose(order))
    got = one(lambda e, a: e.slice(a, [1, 0, 1], [3, 4, 5], [1, 2, 3]), x)
    np.testing.assert_array_equal(got, x[1:3, ::2, 1:5:3])
    got = one(lambda e, a: e.broadcast(a, [2, 3, 4, 5]), x)
    np.testing.assert_array_equal(got, np.broadcast_to(x, (2, 3, 4, 5)))
    got = one(lambda e, a: e.broadcast(a, [3, 7], [0]), x[:, 0, 0])
    np.testing.assert_array_equal(got, np.repeat(x[:, :1, 0], 7, 1))
    for axis in range(3):
        got = one(joined, x, x[::-1].copy(), axis=axis)
        np.testing.assert_array_equal(got, np.concatenate([x, x[::-1], x], axis))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_by_their_numbers(kind: Any) -> None:
    """Read one by one or many at a time, and written; a part along another axis."""
    x = floats(6, 3)
    for index in range(6):
        number = np.asarray(index, kind)
        np.testing.assert_array_equal(one(lambda e, a, i: e.row(a, i), x, number), x[index])
        want = x.copy()
        want[index] = 7
        got = one(lambda e, a, i: e.with_row(a, i, Known(np.full(3, 7, np.float32))), x, number)
        np.testing.assert_array_equal(got, want)
    for index in range(3):
        number = np.asarray(index, kind)
        got = one(lambda e, a, i: e.one_at(a, {1: i}), x, number)
        np.testing.assert_array_equal(got, x[:, index : index + 1])
    numbers = np.array([[5, 0], [2, 2]], kind)
    np.testing.assert_array_equal(one(lambda e, a, i: e.rows(a, i), x, numbers), x[numbers])


@pytest.mark.parametrize("index", [-1, 6, 2**31 - 1, -(2**31), 2**62, -(2**62)])
def test_no_index_leads_elsewhere(index: int) -> None:
    """What is out of range fails; who does not ask gets the nearest there is."""
    x, number = floats(6, 3), np.asarray(index, np.int64)
    nearest = 0 if index < 0 else 5

    def guarded(e: Emitter, a: Any, i: Any) -> Any:
        e.need_index(i, 6)
        return e.row(a, i)

    assert computed(guarded, x, number) is None
    np.testing.assert_array_equal(one(lambda e, a, i: e.row(a, i), x, number), x[nearest])
    np.testing.assert_array_equal(one(lambda e, a, i: e.rows(a, i), x, number[None])[0], x[nearest])
    got = one(lambda e, a, i: e.one_at(a, {0: i}), x, number)
    np.testing.assert_array_equal(got[0], x[nearest])
    got = one(lambda e, a, i: e.with_row(a, i, Known(np.zeros(3, np.float32))), x, number)
    assert not got[nearest].any()


# -- reductions and products ---------------------------------------------------------------------

REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, dtype: Any, kind: int) -> None:
    """Along each set of axes, of short rows and long ones; NaN is the result if there is one."""
    for shape in ((2, 3, 5), (1, 70, 3), (4, 1, 150)):
        x = 1 + floats(*shape, dtype=dtype) / 9
        for axes in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)):
            got = one(reduced, x, kind=kind, what=name, axes=axes)
            np.testing.assert_allclose(got, REDUCTIONS[name](x, axes), rtol=2e-5)
        x[0, 0, 1] = np.nan
        got = one(lambda e, a: e.reduce(name, a, (2,)), x, kind=kind)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(x).any(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_place_of_the_largest(dtype: Any) -> None:
    """The first of several; where there is no number, none."""
    x = np.round(floats(5, 9, 4, dtype=dtype))
    for axis in range(3):
        got = one(Emitter.place_of_most, x, axis=axis, dtype=np.dtype(np.int64))
        np.testing.assert_array_equal(got, x.argmax(axis))
    x[2, 8, 3] = np.nan
    got = one(lambda e, a: e.place_of_most(a, 1, np.dtype(np.int32)), x)
    assert got[2, 3] == 9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 4, 15, 16, 17, 33, 64, 130, 257])
def test_products_of_all_shapes(columns: int, kind: int) -> None:
    """However many rows go together, and whatever is left of the last vector."""
    for rows in (1, 2, 3, 4, 5, 7, 8):
        for inner in (0, 1, 6, 31):
            x, y = floats(rows, inner), floats(inner, columns)
            for turn_x, turn_y in ((False, False), (True, False), (False, True), (True, True)):
                given = (x.T.copy() if turn_x else x), (y.T.copy() if turn_y else y)
                turns = {"is_x_turned": turn_x, "is_y_turned": turn_y}
                got = one(product, *given, kind=kind, **turns)
                np.testing.assert_allclose(got, x @ y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [64, 95, 2047, 2048, 4170])
def test_one_row_by_wide_matrices(columns: int, kind: int) -> None:
    """Some rows of which are read at a time, band by band."""
    for inner in (3, 4, 23):
        x, y = floats(1, inner), floats(inner, columns)
        got = one(product, x, y, kind=kind)
        np.testing.assert_allclose(got, x @ y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counter", [0, (5 << 64) + 9, (1 << 64) - 1, (1 << 128) - 3])
def test_random_streams(counter: int, kind: int) -> None:
    """Numbers as kernels draw them, and where the stream goes on, whatever carries over."""
    stream = Philox(0xFEDCBA9876543210, counter)
    words = [stream.key, counter & (1 << 64) - 1, counter >> 64]
    place = np.array(words, np.uint64).view(np.int64)
    for what, draw, apart in (
        ("draw_fractions", uniform, 1), ("draw_normal", normal, 1),
        ("draw_cut_normal", truncated_normal, 256),
    ):  # fmt: skip
        drawn = one(
            lambda e, s, w=what, a=apart: e.op(w, [s], np.float32, [20], [5, a]), place, kind=kind
        )
        np.testing.assert_array_equal(drawn, draw(dtypes.float32)(stream, 20))
    later = one(lambda e, s: e.op("draw_later", [s], np.int64, [3], [7]), place, kind=kind)
    key, low, high = later.view(np.uint64).tolist()
    assert Philox(key, low | high << 64) == stream.skip(7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_batches(dtype: Any) -> None:
    """Of one matrix each."""
    x, y = floats(3, 2, 4, 5, dtype=dtype), floats(3, 2, 5, 6, dtype=dtype)
    got = one(product, x, y)
    np.testing.assert_allclose(got, x @ y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [1, 15, 16, 33, 257])
@pytest.mark.parametrize("has_bias", [False, True])
def test_products_by_what_stays_the_same(columns: int, has_bias: bool) -> None:
    """In a loop, its weights are packed before it."""
    for rows in (1, 3, 4, 5, 17):
        for is_turned in (False, True):
            w = floats(columns, 6) if is_turned else floats(6, columns)
            # What is fed back must not grow, or no two ways of rounding would stay together.
            back, bias = floats(columns, 6) / np.float32(columns**0.5), floats(columns)

            def body(_i: Any, x: Any, w: Any = w, back: Any = back, bias: Any = bias) -> Any:
                y = ps.ops.mat_mul(x, w, transpose_b=w.shape[1] == 6 and w.shape[0] != 6)
                y = ps.ops.bias_add(y, bias) if has_bias else y
                return (ps.ops.tanh(ps.ops.mat_mul(y, back)),)

            looped(body, 3, floats(rows, 6), rtol=1e-4)


def test_heavy_work_is_for_threads() -> None:
    """There is no program for it."""
    x = floats(300, 300)
    with pytest.raises(UnsupportedError):
        one(product, x, x)


# -- loops ---------------------------------------------------------------------------------------


def looped(body: Callable[..., Any], turns: int, *starts: Any, rtol: float = 1e-6) -> None:
    """A loop gives as a program what it gives as text; ``body`` is told the iteration first."""
    graph = ps.Graph()
    with graph.as_default():
        n = ps.placeholder("int32", [], name="n")
        xs = [ps.placeholder("float32", x.shape, name=f"x{k}") for k, x in enumerate(starts)]
        ends = ps.while_loop(lambda i, *_: i < n, lambda i, *v: (i + 1, *body(i, *v)), [0, *xs])
        fetches = [ps.identity(end, name=f"y{k}").name for k, end in enumerate(ends)]
    feeds = {"n:0": turns, **{f"x{k}:0": x for k, x in enumerate(starts)}}
    results, counts = [], []
    for config in (ps.Config(graph_options=WITHOUT), ps.Config()):
        with watched() as given, ps.Session(graph, config=config) as session:
            results.append([session.run(fetches, feeds) for _ in range(2)])
        counts.append(len(given))
        assert None not in given
    assert counts == [0, 2]
    for first, second in zip(*results, strict=True):
        for want, got in zip(first, second, strict=True):
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol / 10)


BODIES: dict[str, Callable[..., Sequence[Any]]] = {
    "two change places": lambda _i, a, b, c: (b, a, c),
    "three change places": lambda _i, a, b, c: (b, c, a),
    "one is read when it has its next value": lambda _i, a, b, c: (a + 1.0, a * 0.5, b - c),
    "Fibonacci's": lambda _i, a, b, c: (b, a + b, c),
    "two become the same": lambda _i, a, b, c: (a + b, a + b, c),
    "all become one that stays": lambda _i, a, _b, _c: (a, a, a),
    "what stays outside comes in": lambda _i, a, b, _c: (a * 0.5, b, ps.ops.tanh(b)),
    "a value is made of itself twice": lambda _i, a, b, c: (a * a - a, b, ps.ops.neg(c)),
    "nothing changes": lambda _i, a, b, c: (a, b, c),
    "the iteration counts": lambda i, a, b, c: (a + ps.ops.cast(i, DstT="float32"), a, c - b),
}


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("turns", [0, 1, 2, 7])
@pytest.mark.parametrize("body", BODIES)
def test_variables_get_their_next_values_at_once(body: str, turns: int, size: int) -> None:
    """Whichever are copied, exchanged, or written where they were."""
    starts = [floats(size) / 2 for _ in range(3)]
    looped(BODIES[body], turns, *starts)


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_loops_in_loops(turns: int) -> None:
    """The inner one begins with what the outer one has, and reads it as well."""

    def body(i: Any, a: Any, b: Any) -> Any:
        ends = ps.while_loop(
            lambda j, *_: j < i, lambda j, x, y: (j + 1, x * 0.5 + a, y + x), [0, a, b]
        )
        return ends[1] - b, ends[2] * 0.25

    looped(body, turns, floats(20), floats(20))


def test_a_list_is_read_after_it_was_written() -> None:
    """As it was before, too."""

    def body(i: Any, table: Any, total: Any) -> Any:
        items = ps.ops.tensor_list_from_tensor(table, np.int32([3]))
        changed = ps.ops.tensor_list_set_item(items, i, total)
        old = ps.ops.tensor_list_get_item(items, i, np.int32([3]), "float32")
        stacked = ps.ops.tensor_list_stack(changed, np.int32([3]), "float32")
        return stacked, total * 0.5 + old

    looped(body, 4, floats(5, 3), floats(3))
