"""Windows of three by three give what all products give, in one plane or several."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.core.values import Array
from penstock.kernels.c import filters as filters_module
from penstock.kernels.c.convolution import OF_VOLUMES, Convolver
from penstock.kernels.c.filters import transformed
from penstock.kernels.c.library import library
from penstock.kernels.values.windows import Window
from support.convolutions import Watched, expected, floats, use
from support.shared_library import KINDS
from support.side_by_side import side_by_side

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

SAME = (Window(3, margins=None),) * 2
#: The same for volumes.
DEEP = (Window(3, margins=None),) * 3
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
    terms = math.prod(filters.shape[:-1])
    large = 3 * np.sqrt(np.mean(images**2) * np.mean(filters**2) * terms)
    most = 5e-6 * max(1, math.sqrt(terms / _FEW_TERMS))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=most * max(large, np.abs(wanted).max()))


# -- what is computed ----------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    st.integers(1, 3), st.integers(1, 30), st.integers(1, 30),
    st.sampled_from([8, 16, 24, 48, 112]), st.sampled_from([8, 16, 24, 32, 40, 80, 96]),
    st.integers(0, 9), st.integers(0, 3), st.booleans(),
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
    has_tiles = has_tiles and depth * count >= 192
    for kind in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            watched = Watched(kind)
            use(watched, patch)
            filters = remade(filters)
            check(Convolver(lambda _sizes: windows)(images, filters), images, filters, wanted)
            assert watched.taken == ["winograd" if has_tiles else "direct"]


@settings(max_examples=40)
@given(
    st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.sampled_from([8, 16, 24, 48]),
    st.sampled_from([8, 16, 24, 32, 48]), st.integers(1, 4), st.integers(0, 3), st.integers(0, 5),
)  # fmt: skip
def test_windows_may_see_several_planes(
    planes: int, rows: int, columns: int, depth: int, count: int, deep: int, before: int, after: int
) -> None:
    """Each tile in some planes, those before the first one and after the last one, too."""
    windows = Window(deep, margins=(before, after)), *SAME
    if planes + before + after < deep:
        return
    images, filters = floats(planes, rows, columns, depth), constant(deep, 3, 3, depth, count)
    wanted = expected(images[np.newaxis], filters, windows)[0]
    tiles = math.prod(-(-number // 4) for number in wanted.shape[1:3])
    has_tiles = len(wanted) * tiles >= 12 and deep * depth * count >= 192
    for kind in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            watched = Watched(kind)
            use(watched, patch)
            filters = remade(filters)
            got = Convolver(lambda _sizes: windows, rank=OF_VOLUMES)(images, filters)
            check(got, images, filters, wanted)
            assert watched.taken == ["winograd" if has_tiles else "direct"]


@pytest.mark.parametrize("depth", [8, 16])
def test_planes_beyond_the_edges_are_next_to_images(
    monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    """Windows of one plane: of an odd number of tiles each, the last is beside another plane's."""
    windows = Window(1, margins=(2, 1)), *SAME
    images, filters = floats(6, 20, 4, depth), constant(1, 3, 3, depth, 24)
    wanted = expected(images[np.newaxis], filters, windows)[0]
    for kind, helpers in itertools.product(KINDS, (0, 3)):
        watched = Watched(kind, helpers)
        use(watched, monkeypatch)
        filters = remade(filters)
        got = Convolver(lambda _sizes: windows, rank=OF_VOLUMES)(images, filters)
        check(got, images, filters, wanted)
        assert watched.taken == ["winograd"]


def test_planes_of_many_channels(watched: Watched) -> None:
    """Of which a group has fewer, down to one tile in one plane."""
    for depth, count in ((256, 48), (1024, 32)):
        images, filters = floats(7, 8, 9, depth), constant(3, 3, 3, depth, count)
        got = Convolver(lambda _sizes: DEEP, rank=OF_VOLUMES)(images, filters)
        check(got, images, filters, expected(images[np.newaxis], filters, DEEP)[0])
    assert watched.taken == ["winograd"] * 2


@pytest.mark.parametrize("count", [8, 16, 40])
def test_results_may_have_gaps(watched: Watched, count: int) -> None:
    """What is between them stays; bias and limits are those of each filter."""
    images, filters, bias = floats(3, 14, 13, 8), constant(3, 3, 3, 8, count), floats(count)
    whole = np.full((6, 28, 26, count), 7, np.float32)
    into = whole[::2, 1::2, ::2]
    convolve = Convolver(lambda _sizes: DEEP, (-0.5, 1.0), rank=OF_VOLUMES)
    assert convolve(images, filters, bias, into=into) is into
    wanted = expected(images[np.newaxis], filters, DEEP, bias)[0]
    check(into, images, filters, np.clip(wanted, -0.5, 1.0))
    into[...] = 7
    assert (whole == 7).all()
    assert watched.taken == ["winograd"]


@pytest.mark.parametrize("count", [8, 16, 40])
def test_volumes_may_have_something_added(watched: Watched, count: int) -> None:
    """To results of few filters, too, of which two tiles fill a vector."""
    images, filters = floats(3, 9, 13, 8), constant(3, 3, 3, 8, count)
    added = floats(3, 9, 13, count)
    got = Convolver(lambda _sizes: DEEP, rank=OF_VOLUMES)(images, filters, added=added)
    check(got, images, filters, expected(images[np.newaxis], filters, DEEP)[0] + added)
    assert watched.taken == ["winograd"]


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


@pytest.mark.parametrize("depth", [24, 48])
@pytest.mark.parametrize("count", [8, 16, 24, 48, 96])
def test_bits_do_not_depend_on_vectors_threads_and_neighbours(
    monkeypatch: pytest.MonkeyPatch, depth: int, count: int
) -> None:
    """Of all kinds that multiply and add at once; groups of tiles begin elsewhere in a batch."""
    images, filters = floats(3, 21, 23, depth), constant(3, 3, depth, count)
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


@pytest.mark.parametrize("depth", [8, 16, 24])
@pytest.mark.parametrize("count", [8, 16, 24, 48])
def test_bits_of_a_plane_do_not_depend_on_others(
    monkeypatch: pytest.MonkeyPatch, depth: int, count: int
) -> None:
    """Alone with those that it sees, it has the bits that it has in a volume."""
    images, filters = floats(19, 11, 13, depth), constant(3, 3, 3, depth, count)
    found = set()
    for kind, helpers in itertools.product(list(KINDS)[1:] or KINDS, (0, 1, 3)):
        use(Watched(kind, helpers), monkeypatch)
        whole = Convolver(lambda _sizes: DEEP, rank=OF_VOLUMES)(images, filters)
        flat = Convolver(lambda _sizes: (Window(3), *SAME), rank=OF_VOLUMES)
        some = flat(images[4:11], filters)
        assert whole is not None
        assert some is not None
        assert whole[5:10].tobytes() == some.tobytes()
        found.add(whole.tobytes())
        filters = remade(filters)
    assert len(found) == 1


@pytest.mark.parametrize("depth", [8, 16, 24])
@pytest.mark.parametrize("count", [8, 24, 32, 40])
def test_nothing_is_written_beside_the_result(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, depth: int, count: int
) -> None:
    """Neither before nor after it, nor beside transformed filters."""
    guard, made = 64, []

    def guarded(shape: tuple[int, ...], dtype: np.dtype[np.float32]) -> Array:
        size = math.prod(shape)
        whole = np.full(size + 2 * guard, 777, dtype)
        made.append(whole)
        part: Array = whole[guard : guard + size].reshape(shape)
        return part

    images, filters = floats(5, 15, 17, depth), constant(3, 3, 3, depth, count)
    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", guarded)
        got = Convolver(lambda _sizes: DEEP, rank=OF_VOLUMES)(images, filters)
    check(got, images, filters, expected(images[np.newaxis], filters, DEEP)[0])
    assert len(made) == 2
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


@pytest.mark.parametrize("count", [8, 16, 32])
def test_nor_a_neighbour_in_another_plane(watched: Watched, count: int) -> None:
    """Planes that do not see it have the numbers that they had."""
    images, filters = floats(9, 12, 12, 8), constant(3, 3, 3, 8, count)
    images[4, 5, 6, 3] = np.inf
    got = Convolver(lambda _sizes: DEEP, rank=OF_VOLUMES)(images, filters)
    assert got is not None
    sees_it = np.zeros(got.shape[:3], bool)
    sees_it[3:6, 4:7, 5:8] = True
    np.testing.assert_array_equal(np.isfinite(got).all(3), ~sees_it)
    assert watched.taken == ["winograd", "direct"]


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
        (20, 32, Window(3)),
        (1040, 32, Window(3)),
        (16, 36, Window(3)),
        (8, 16, Window(3)),
        (16, 32, Window(3, stride=2)),
        (16, 32, Window(3, dilation=2)),
        (16, 32, Window(2)),
        (16, 32, Window(5)),
    ],
)
def test_others_have_all_products(watched: Watched, depth: int, count: int, window: Window) -> None:
    """Channels that fill half of no vector, are very many or very few, and other windows."""
    images, filters = floats(1, 16, 14, depth), constant(window.size, window.size, depth, count)
    windows = (window, window)
    got = Convolver(lambda _sizes: windows)(images, filters)
    check(got, images, filters, expected(images, filters, windows))
    assert watched.taken == ["direct"]


@pytest.mark.parametrize("deep", [Window(3, stride=2), Window(3, dilation=2)])
def test_so_have_planes_with_others_between(watched: Watched, deep: Window) -> None:
    """Their windows, moved by one plane, see other planes."""
    images, filters, windows = floats(9, 12, 12, 16), constant(3, 3, 3, 16, 16), (deep, *SAME)
    got = Convolver(lambda _sizes: windows, rank=OF_VOLUMES)(images, filters)
    check(got, images, filters, expected(images[np.newaxis], filters, windows)[0])
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

    side_by_side(work, 6)
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
