"""Windows of three by three with fewer products give what all products give."""

from __future__ import annotations

import itertools
import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.core.values import Array
from penstock.kernels.c import filters as filters_module
from penstock.kernels.c.convolution import Convolver
from penstock.kernels.c.filters import transformed
from penstock.kernels.c.library import library
from penstock.kernels.values.windows import Window
from support.convolutions import Watched, expected, floats, use
from support.shared_library import KINDS

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

SAME = (Window(3, margins=None),) * 2
#: Products of one result for which five millionths are enough.
_FEW_TERMS = 9 * 512


def constant(*shape: int) -> Array:
    """Filters that do not change."""
    return remade(floats(*shape))


def remade(filters: Array) -> Array:
    """The same as another constant: each kind of vectors reads filters in another order."""
    made = filters.copy()
    made.flags.writeable = False
    return made


def check(got: Array | None, images: Array, filters: Array, wanted: Array) -> None:
    """Equal up to five millionths of a large result: sums of all products reach two.

    A running sum's error, over a large result, grows with the root of how many are added up.
    """
    assert got is not None
    terms = math.prod(filters.shape[:3])
    large = 3 * np.sqrt(np.mean(images**2) * np.mean(filters**2) * terms)
    most = 5e-6 * max(1, math.sqrt(terms / _FEW_TERMS))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=most * max(large, np.abs(wanted).max()))


# -- what is computed ----------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.integers(1, 3), st.integers(1, 30), st.integers(1, 30), st.sampled_from([16, 48, 112]),
    st.sampled_from([32, 96]), st.integers(0, 3), st.integers(0, 3), st.booleans(),
)  # fmt: skip
def test_results_are_those_of_all_products(
    batch: int, rows: int, columns: int, depth: int, count: int, before: int, after: int,
    is_same: bool,
) -> None:  # fmt: skip
    """Whatever is left of the last tiles, with margins that are not the same on both sides."""
    windows = SAME if is_same else (Window(3, margins=(before, after)),) * 2
    if not is_same and min(rows, columns) + before + after < 3:
        return
    images, filters = floats(batch, rows, columns, depth), constant(3, 3, depth, count)
    wanted = expected(images, filters, windows)
    places = wanted.shape[1], wanted.shape[2]
    has_tiles = batch * math.prod(-(-number // 4) for number in places) >= 12
    for kind in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            watched = Watched(kind)
            use(watched, patch)
            filters = remade(filters)
            check(Convolver(lambda _sizes: windows)(images, filters), images, filters, wanted)
            assert watched.taken == ["winograd" if has_tiles else "direct"]


def test_what_is_added_and_limits_come_last(watched: Watched) -> None:
    """As with all products."""
    images, filters = floats(1, 18, 14, 32), constant(3, 3, 32, 64)
    bias, added = floats(64), floats(1, 18, 14, 64)
    got = Convolver(lambda _sizes: SAME, (-0.5, 2.0))(images, filters, bias, added)
    wanted = np.clip(expected(images, filters, SAME, bias, added), -0.5, 2.0)
    check(got, images, filters, wanted)
    assert watched.taken == ["winograd"]


def test_images_may_be_views(watched: Watched) -> None:
    """Of other steps than those of a new array, backwards, too."""
    filters, whole = constant(3, 3, 32, 32), floats(2, 30, 28, 70)
    for view in (whole[:, ::2, ::-1, 3:35], whole.transpose(0, 2, 1, 3)[..., 38:]):
        got = Convolver(lambda _sizes: SAME)(view, filters)
        check(got, view, filters, expected(view, filters, SAME))
    assert watched.taken == ["winograd"] * 2


@pytest.mark.parametrize("depth", [16, 64, 256, 1024])
def test_errors_are_about_those_of_all_products(watched: Watched, depth: int) -> None:
    """Not many times as large, whatever the depth: as docs/performance.md says."""
    images = np.maximum(floats(1, 16, 12, depth), 0)
    filters = constant(3, 3, depth, 32)
    wanted = expected(images, filters, SAME)
    largest = np.abs(wanted).max()
    by_tiles = Convolver(lambda _sizes: SAME)(images, filters)
    directly = Convolver(lambda _sizes: SAME)(images, filters.copy())
    assert by_tiles is not None
    assert directly is not None
    assert watched.taken == ["winograd", "direct"]
    rounded = np.sqrt(np.mean((directly - wanted) ** 2)) / largest
    assert np.sqrt(np.mean((by_tiles - wanted) ** 2)) / largest < 4 * rounded + 1e-7


def test_bits_do_not_depend_on_vectors_threads_and_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of all kinds that multiply and add at once; groups of tiles begin elsewhere in a batch."""
    images, filters = floats(3, 21, 23, 48), constant(3, 3, 48, 96)
    found = set()
    for kind, helpers in itertools.product(list(KINDS)[1:] or KINDS, (0, 1, 3)):
        use(Watched(kind, helpers), monkeypatch)
        convolve = Convolver(lambda _sizes: SAME)
        got = convolve(images, filters)
        alone = convolve(images[1:2], filters)
        assert got is not None
        assert alone is not None
        assert got[1:2].tobytes() == alone.tobytes()
        found.add(got.tobytes())
        filters = remade(filters)
    assert len(found) == 1


def test_nothing_is_written_beside_the_result(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before nor after it, nor beside images with zeros around them, nor filters."""
    guard, made = 64, []

    def guarded(shape: tuple[int, ...], dtype: np.dtype[np.float32]) -> Array:
        size = math.prod(shape)
        whole = np.full(size + 2 * guard, 777, dtype)
        made.append(whole)
        part: Array = whole[guard : guard + size].reshape(shape)
        return part

    images, filters = floats(2, 15, 17, 16), constant(3, 3, 16, 32)
    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", guarded)
        got = Convolver(lambda _sizes: SAME)(images, filters)
    check(got, images, filters, expected(images, filters, SAME))
    assert len(made) == 3
    for whole in made:
        assert (whole[:guard] == 777).all()
        assert (whole[-guard:] == 777).all()
    assert watched.taken == ["winograd"]


# -- numbers that spoil others -------------------------------------------------------------------


@pytest.mark.parametrize("spoilt", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("limits", [(-math.inf, math.inf), (0.0, 6.0)])
def test_what_is_not_finite_spoils_no_neighbour(
    watched: Watched, spoilt: float, limits: tuple[float, float]
) -> None:
    """All products are computed after all: only windows that see such a number tell of it."""
    images, filters = floats(1, 20, 20, 16), constant(3, 3, 16, 32)
    images[0, 9, 10, 3] = spoilt
    convolve = Convolver(lambda _sizes: SAME, limits)
    got, directly = convolve(images, filters), convolve(images, filters.copy())
    np.testing.assert_array_equal(got, directly)  # type: ignore[arg-type]
    assert watched.taken == ["winograd", "direct", "direct"]


def test_an_infinite_bias_is_none_of_that(watched: Watched) -> None:
    """It is added to sums that are finite."""
    bias = floats(32)
    bias[5] = np.inf
    got = Convolver(lambda _sizes: SAME)(floats(1, 20, 20, 16), constant(3, 3, 16, 32), bias)
    assert got is not None
    assert np.isinf(got[..., 5]).all()
    assert np.isfinite(np.delete(got, 5, axis=3)).all()
    assert watched.taken == ["winograd"]


# -- what is convolved as ever ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("depth", "count", "window"),
    [
        (24, 32, Window(3)),
        (1040, 32, Window(3)),
        (16, 48, Window(3)),
        (16, 32, Window(3, stride=2)),
        (16, 32, Window(3, dilation=2)),
        (16, 32, Window(2)),
        (16, 32, Window(5)),
    ],
)
def test_others_have_all_products(watched: Watched, depth: int, count: int, window: Window) -> None:
    """Channels that fill no vectors or are very many, and windows of other sizes and steps."""
    images, filters = floats(1, 16, 14, depth), constant(window.size, window.size, depth, count)
    windows = (window, window)
    got = Convolver(lambda _sizes: windows)(images, filters)
    check(got, images, filters, expected(images, filters, windows))
    assert watched.taken == ["direct"]


def test_filters_that_may_change_must_be_worth_it(watched: Watched) -> None:
    """To transform them for one step takes longer than some tiles save."""
    filters = floats(3, 3, 16, 32)
    Convolver(lambda _sizes: SAME)(floats(1, 20, 20, 16), filters)
    images = floats(3, 20, 20, 16)
    got = Convolver(lambda _sizes: SAME)(images, filters)
    assert watched.taken == ["direct", "winograd"]
    check(got, images, filters, expected(images, filters, SAME))
    filters[:] = -filters
    again = Convolver(lambda _sizes: SAME)(images, filters)
    np.testing.assert_array_equal(again, -got)  # type: ignore[operator, arg-type]


def test_constants_are_transformed_once() -> None:
    """And that goes with them."""
    filters = constant(3, 3, 16, 32)
    before = len(filters_module._kept)
    first = transformed(filters)
    assert transformed(filters) is first
    assert len(filters_module._kept) == before + 1
    del filters
    assert len(filters_module._kept) == before


def test_many_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them has the helpers at a time; all have the right results."""
    use(Watched(len(KINDS) - 1, 3), monkeypatch)
    inputs = [(floats(1, 16 + i, 20, 16), constant(3, 3, 16, 32)) for i in range(6)]
    convolve = Convolver(lambda _sizes: SAME)
    alone = [convolve(*pair) for pair in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(100):
            got = convolve(*inputs[number])
            if got is None or not np.array_equal(got, alone[number]):  # type: ignore[arg-type]
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_gradients_of_images_have_fewer_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are convolutions, by filters that are turned anew in each step."""
    watched = Watched(len(KINDS) - 1)
    use(watched, monkeypatch)
    graph, filters, grads = ps.Graph(), floats(3, 3, 32, 64), floats(4, 18, 18, 64)
    with graph.as_default():
        g = ps.placeholder("float32", grads.shape, name="g")
        y = ps.ops.conv2d_backprop_input(
            [4, 18, 18, 32], filters, g, strides=[1, 1, 1, 1], padding="SAME"
        )
    turned = filters[::-1, ::-1].swapaxes(2, 3)
    for config in (ps.Config(accelerate=False), ps.Config()):
        with ps.Session(graph, config=config) as session:
            got = session.run(y.name, {"g:0": grads})
        check(got, grads, turned, expected(grads, turned, SAME))
    assert watched.taken == ["winograd"]


def test_a_graph_without_kernels_in_c_is_exact() -> None:
    """``accelerate=False`` has numpy add up all products, as ever."""
    graph = ps.Graph()
    images, filters = floats(1, 16, 16, 16), floats(3, 3, 16, 32)
    with graph.as_default():
        x = ps.placeholder("float32", images.shape, name="x")
        y = ps.ops.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME")
    wanted = expected(images, filters, SAME)
    for config in (ps.Config(accelerate=False), ps.Config()):
        with ps.Session(graph, config=config) as session:
            check(session.run(y.name, {"x:0": images}), images, filters, wanted)
