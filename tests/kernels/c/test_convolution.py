"""Convolutions in C are sums of products, whatever the vectors, threads and shapes."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.values import Array
from penstock.kernels.c import convolution as module
from penstock.kernels.c import filters as filters_module
from penstock.kernels.c.convolution import BY_CHANNEL, OF_VOLUMES, Convolver, correlate
from penstock.kernels.c.filters import factors_of
from penstock.kernels.c.library import Library, library, loaded
from penstock.kernels.values.windows import Window, pad, slide
from support.convolutions import Watched, check, expected, floats, use
from support.shared_library import KINDS

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")


def windows_of(sizes: tuple[int, int], **facts: Any) -> tuple[Window, ...]:
    """The same for rows and columns."""
    return tuple(Window(size, **facts) for size in sizes)


# -- what is computed ----------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.integers(1, 3), st.integers(1, 20), st.integers(1, 35), st.integers(1, 9),
    st.integers(1, 70), st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.integers(1, 3), st.integers(1, 2), st.booleans(), st.booleans(),
)  # fmt: skip
def test_windows_over_all_of_the_depth(
    batch: int, rows: int, columns: int, depth: int, count: int, sizes: tuple[int, int],
    stride: int, dilation: int, is_same: bool, is_by_channel: bool,
) -> None:  # fmt: skip
    """Any number of places, channels and filters: tiles of all widths, blocks that are not full."""
    margins = None if is_same else (0, 0)
    windows = windows_of(sizes, stride=stride, dilation=dilation, margins=margins)
    if min(rows - windows[0].extent, columns - windows[1].extent) < 0 and not is_same:
        return
    images = floats(batch, rows, columns, depth)
    filters = floats(*sizes, depth) if is_by_channel else floats(*sizes, depth, count)
    bias = floats(filters.shape[-1])
    for number in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            use(Library(loaded(), number), patch)
            convolver = Convolver(lambda _sizes: windows, rank=filters.ndim)
            wanted = expected(images, filters, windows, bias)
            check(convolver(images, filters, bias), images, filters, wanted)


@settings(max_examples=60)
@given(
    st.integers(1, 2), st.integers(1, 12), st.integers(1, 20),
    st.sampled_from([1, 7, 8, 16, 21, 32, 37, 70]), st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.integers(1, 3), st.integers(1, 2), st.sampled_from([None, (0, 0), (7, 1), (2, 9)]),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_windows_of_one_channel_each(
    batch: int, rows: int, columns: int, depth: int, sizes: tuple[int, int], stride: int,
    dilation: int, margins: tuple[int, int] | None, is_view: bool, has_more: bool,
) -> None:  # fmt: skip
    """Strips of all widths, places at edges and beyond them, and images of any steps."""
    windows = windows_of(sizes, stride=stride, dilation=dilation, margins=margins)
    room = 0 if margins is None else sum(margins)
    if margins and min(rows - windows[0].extent, columns - windows[1].extent) + room < 0:
        return
    images = floats(batch, rows, columns, depth)
    if is_view:
        images = floats(batch, columns, rows, depth + 3).transpose(0, 2, 1, 3)[:, ::-1, :, 3:]
    filters, bias = floats(*sizes, depth), floats(depth) if has_more else None
    wanted = expected(images, filters, windows, *([] if bias is None else [bias]))
    added = floats(*wanted.shape) if has_more else None
    wanted = wanted if added is None else wanted + added
    found = []
    for number in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            use(Library(loaded(), number), patch)
            convolver = Convolver(lambda _sizes: windows, rank=BY_CHANNEL)
            found.append(convolver(images, filters, bias, added))
            check(found[-1], images, filters, wanted)
    # Processors that multiply and add at once agree on all bits.
    assert len({got.tobytes() for got in found[1:] if got is not None}) <= 1


@pytest.mark.usefixtures("watched")
def test_zeros_beyond_the_edges_are_multiplied() -> None:
    """By weights that are no numbers, too, as TensorFlow does."""
    images, filters = np.ones((1, 6, 9, 40), np.float32), np.ones((3, 3, 40), np.float32)
    filters[0, 1] = np.nan
    filters[1, 0, 5] = np.inf
    convolver = Convolver(lambda _sizes: windows_of((3, 3), margins=None), rank=BY_CHANNEL)
    for depth in (40, 3):
        got = convolver(images[..., :depth], filters[..., :depth])
        assert got is not None
        assert np.isnan(got).all()


@settings(max_examples=40)
@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 17), st.integers(1, 6),
    st.sampled_from([1, 3, 7, 8, 9, 16, 17, 33]),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    st.integers(1, 3), st.integers(1, 2), st.sampled_from([None, (0, 0), (2, 1)]),
)  # fmt: skip
def test_windows_over_volumes(
    planes: int, rows: int, columns: int, depth: int, count: int, sizes: tuple[int, int, int],
    stride: int, dilation: int, margins: tuple[int, int] | None,
) -> None:  # fmt: skip
    """Of planes that follow each other, with zeros before the first and behind the last."""
    windows = windows_of(sizes, stride=stride, dilation=dilation, margins=margins)
    room = 0 if margins is None else sum(margins)
    lengths = planes, rows, columns
    if margins is not None and any(
        n + room < w.extent for n, w in zip(lengths, windows, strict=True)
    ):
        return
    volume, filters = floats(*lengths, depth), floats(*sizes, depth, count)
    bias = floats(count)
    wanted = expected(volume[np.newaxis], filters, windows, bias)[0]
    found = []
    for number in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            use(Library(loaded(), number), patch)
            convolver = Convolver(lambda _sizes: windows, rank=OF_VOLUMES)
            into = np.full((*wanted.shape[:3], 2, count), np.nan, np.float32)[..., 1, :]
            result = convolver(volume, filters, bias, into=into)
            assert result is into
            check(result, volume[np.newaxis], filters, wanted)
            found.append(into)
    for other in found[2:]:
        np.testing.assert_array_equal(other, found[1])  # all that multiply and add at once


@pytest.mark.parametrize(
    ("window", "depth", "count"), [(3, 16, 32), (1, 5, 40), (2, 4, 7), (2, 3, 16), (3, 1, 33)]
)
def test_results_with_gaps(window: int, depth: int, count: int) -> None:
    """Each goes where it belongs, and nothing between them is written."""
    images, filters = floats(2, 13, 14, depth), floats(window, window, depth, count)
    windows = windows_of((window, window), margins=None)
    wanted = expected(images, filters, windows)
    batch, rows, columns, _ = wanted.shape
    for number in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            use(Library(loaded(), number), patch)
            whole = np.full((batch, 2 * rows, 3 * columns + 1, count + 2), 777, np.float32)
            into = whole[:, 1::2, 1::3, :count]
            convolver = Convolver(lambda _sizes: windows)
            own = filters.copy()  # what is kept of a constant is for one kind
            own.flags.writeable = False  # so that windows of three by three have fewer products
            assert convolver(images, own, into=into) is into
            check(into, images, filters, wanted)
            into[...] = 777
            assert (whole == 777).all()


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("depth", [1, 3, 4, 8, 15, 16, 17, 31, 32, 33, 47, 48, 50])
def test_each_channel_by_itself(depth: int) -> None:
    """Channels for vectors in pairs, alone, and fewer than one has."""
    images, filters = floats(2, 7, 10, depth), floats(3, 5, depth)
    windows = windows_of((3, 5), margins=None)
    convolver = Convolver(lambda _sizes: windows, rank=BY_CHANNEL)
    check(convolver(images, filters), images, filters, expected(images, filters, windows))


@pytest.mark.usefixtures("watched")
def test_sums_are_kept_between_limits_and_nan_stays() -> None:
    """After the bias, and what is added; an infinity spoils no neighbour that does not see it."""
    images, filters = floats(1, 5, 30, 3), floats(1, 1, 3, 40)
    images[0, 0, 0], images[0, 1, 1] = np.nan, np.inf
    bias, added = floats(40), floats(1, 5, 30, 40)
    windows = windows_of((1, 1))
    got = Convolver(lambda _sizes: windows, (0.0, 0.5))(images, filters, bias, added)
    assert got is not None
    assert np.isnan(got[0, 0, 0]).all()
    assert np.isin(got[0, 1, 1], [0, 0.5]).all() or np.isnan(got[0, 1, 1]).any()
    usual = np.ones((5, 30), bool)
    usual[0, 0] = usual[1, 1] = False
    wanted = np.clip(expected(images, filters, windows, bias, added), 0, 0.5)
    np.testing.assert_allclose(got[0, usual], wanted[0, usual], rtol=0, atol=1e-5)
    assert ((got[0, usual] == 0).any(), (got[0, usual] == 0.5).any()) == (True, True)


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, ::2, ::-1],
        lambda x: x[..., ::2],
        lambda x: x.transpose(0, 2, 1, 3),
        lambda x: np.broadcast_to(x[:, :1], x.shape),
        lambda x: x[:, :, 3:4],
        lambda x: x[::-1, 2:3],
    ],
)
@pytest.mark.parametrize(("size", "margins"), [(1, (0, 0)), (3, None)])
def test_images_may_be_views(view: Any, size: int, margins: tuple[int, int] | None) -> None:
    """Of other steps than those of a new array, backwards and in place, too."""
    images = view(floats(2, 8, 9, 6))
    filters, windows = (
        floats(size, size, images.shape[3], 5),
        windows_of((size, size), margins=margins),
    )
    got = Convolver(lambda _sizes: windows)(images, filters)
    check(got, images, filters, expected(images, filters, windows))


def test_bits_do_not_depend_on_vectors_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all kinds that multiply and add at once."""
    images, filters = floats(2, 21, 23, 40), floats(3, 3, 40, 75)
    windows, found = windows_of((3, 3), margins=None), set()
    for number, helpers in itertools.product(list(KINDS)[1:] or KINDS, (0, 1, 3)):
        use(Watched(number, helpers), monkeypatch)
        got = Convolver(lambda _sizes: windows)(images, filters)
        assert got is not None
        back = correlate(images, got, windows, filters.shape)
        assert back is not None
        found.add(got.tobytes() + back.tobytes())
    assert len(found) == 1


@pytest.mark.usefixtures("watched")
def test_nothing_is_written_beside_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before nor after it, nor beside images with zeros around them."""
    guard, made = 64, []

    def guarded(shape: Any, dtype: Any) -> Array:
        size = math.prod(np.atleast_1d(shape).tolist())
        whole = np.full(size + 2 * guard, 777, dtype)
        made.append(whole)
        part: Array = whole[guard : guard + size].reshape(shape)
        return part

    for count, depth, is_by_channel in [
        (1, 3, False),
        (33, 5, False),
        (7, 4, False),
        (12, 4, False),
        (48, 1, False),
        (1, 21, True),
    ]:
        made.clear()
        windows = windows_of((3, 2), margins=None)
        images = floats(2, 5, 17, depth)
        filters = floats(3, 2, depth) if is_by_channel else floats(3, 2, depth, count)
        convolver = Convolver(lambda _sizes, w=windows: w, rank=filters.ndim)
        with monkeypatch.context() as patch:
            patch.setattr(module.np, "empty", guarded)
            got = convolver(images, filters)
        check(got, images, filters, expected(images, filters, windows))
        assert len(made) >= (1 if is_by_channel else 2)
        if not is_by_channel:
            assert got is not None
            with monkeypatch.context() as patch:
                patch.setattr(module.np, "empty", guarded)
                correlate(images, got, windows, filters.shape)
            assert len(made) >= 4
        for whole in made:
            assert (whole[:guard] == 777).all()
            assert (whole[-guard:] == 777).all()


# -- gradients of filters --------------------------------------------------------------------------


def gradient(
    images: Array, grads: Array, windows: tuple[Window, ...], shape: tuple[int, ...]
) -> Array:
    """The definition, in float64: what an element saw times what its place got, over all places."""
    fits = [w.fit(n) for w, n in zip(windows, images.shape[1:3], strict=True)]
    inner = [Window(w.size, w.stride, w.dilation) for w in windows]
    seen = slide(pad(images.astype(np.float64), fits, 0), inner)
    return np.einsum("nhwijd,nhwk->ijdk", seen, grads.astype(np.float64)).reshape(shape)


def check_gradient(
    images: Array, windows: tuple[Window, ...], shape: tuple[int, ...], kinds: Any = KINDS
) -> None:
    """Equal for each kind of vectors, but for rounding."""
    fits = [w.fit(n) for w, n in zip(windows, images.shape[1:3], strict=True)]
    grads = floats(len(images), *(fit.places for fit in fits), shape[-1])
    wanted = gradient(images, grads, windows, shape)
    terms = math.prod(grads.shape[:3])
    for number in kinds:
        with pytest.MonkeyPatch.context() as patch:
            use(Library(loaded(), number), patch)
            got = correlate(images, grads, windows, shape)
            assert got is not None
            atol = 2**-24 * (terms + 4 * math.sqrt(terms) + 4)
            np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)


@settings(max_examples=60)
@given(
    st.integers(1, 3), st.integers(1, 20), st.integers(1, 35), st.integers(1, 19),
    st.integers(1, 70), st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.integers(1, 3), st.integers(1, 2), st.booleans(),
)  # fmt: skip
def test_gradients_of_filters(
    batch: int, rows: int, columns: int, depth: int, count: int, sizes: tuple[int, int],
    stride: int, dilation: int, is_same: bool,
) -> None:  # fmt: skip
    """Runs of all lengths, vectors that are not full, and places between those of a row."""
    margins = None if is_same else (0, 0)
    windows = windows_of(sizes, stride=stride, dilation=dilation, margins=margins)
    if min(rows - windows[0].extent, columns - windows[1].extent) < 0 and not is_same:
        return
    check_gradient(floats(batch, rows, columns, depth), windows, (*sizes, depth, count))


def test_gradients_of_many_places() -> None:
    """Sums of some of them are added up: of ones, and of a row that is longer than such a sum."""
    for shape in ((1, 3, 1000, 4), (300, 2, 2, 3), (40, 30, 30, 1)):
        check_gradient(np.ones(shape, np.float32), windows_of((1, 1)), (1, 1, shape[-1], 20))
        check_gradient(floats(*shape), windows_of((2, 2), margins=None), (2, 2, shape[-1], 33))


def test_gradients_of_views() -> None:
    """Images of other steps than those of a new array; gradients that are turned."""
    images, windows = floats(2, 9, 8, 6)[:, ::2, ::-1], windows_of((2, 2))
    grads = floats(2, 7, 4, 20).transpose(0, 2, 1, 3)
    got = correlate(images, grads, windows, (2, 2, 6, 20))
    wanted = gradient(images, grads, windows, (2, 2, 6, 20))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)  # type: ignore[arg-type]


def test_other_gradients_are_for_others() -> None:
    """Other types and shapes, and nothing to do."""
    images, grads, windows = floats(2, 5, 5, 3), floats(2, 5, 5, 4), windows_of((1, 1))
    shape = 1, 1, 3, 4
    assert correlate(images, grads, windows, shape) is not None
    assert correlate(images.astype(np.float64), grads, windows, shape) is None
    assert correlate(images, grads.astype(np.float64), windows, shape) is None
    assert correlate(images, grads[:, :4], windows, shape) is None
    assert correlate(images, grads, windows, (1, 1, 1, 4)) is None
    assert correlate(images, grads, windows, (1, 1, 3, 5)) is None
    assert correlate(images, grads, windows, (1, 3, 4)) is None
    assert correlate(images[:0], grads[:0], windows, shape) is None
    assert correlate(images[0], grads, windows, shape) is None


# -- threads ---------------------------------------------------------------------------------------


def test_many_threads_convolve_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them has the helpers at a time; all have the right results."""
    use(Watched(len(KINDS) - 1, 3), monkeypatch)
    windows = windows_of((3, 3), margins=None)
    inputs = [(floats(1, 20 + i, 20, 16), floats(3, 3, 16, 40)) for i in range(8)]
    convolver = Convolver(lambda _sizes: windows)
    alone = [convolver(*pair) for pair in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            got = convolver(*inputs[number])
            if got is None or not np.array_equal(got, alone[number]):  # type: ignore[arg-type]
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- what is left to others ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("images", "filters", "bias"),
    [
        (np.ones((1, 4, 4, 2)), np.ones((1, 1, 2, 3), np.float32), None),
        (np.ones((1, 4, 4, 2), np.float32), np.ones((1, 1, 3, 3), np.float32), None),
        (np.ones((4, 4, 2), np.float32), np.ones((1, 1, 2, 3), np.float32), None),
        (np.ones((0, 4, 4, 2), np.float32), np.ones((1, 1, 2, 3), np.float32), None),
        (np.ones((1, 4, 4, 2), np.float32), np.ones((1, 1, 2, 3), np.float32), np.ones(3)),
        (
            np.ones((1, 4, 4, 2), np.float32), np.ones((1, 1, 2, 3), np.float32),
            np.ones(2, np.float32),
        ),
        (np.ones((1, 4, 4, 2), ">f4"), np.ones((1, 1, 2, 3), np.float32), None),
    ],
)  # fmt: skip
def test_other_inputs_are_for_others(images: Array, filters: Array, bias: Array | None) -> None:
    """Other types, shapes that do not fit, nothing to do."""
    assert Convolver(lambda _sizes: windows_of((1, 1)))(images, filters, bias) is None


def test_what_is_added_is_as_large_as_the_result() -> None:
    """Anything else is for numpy to repeat or to refuse."""
    convolver = Convolver(lambda _sizes: windows_of((1, 1)))
    images, filters, bias = floats(1, 4, 4, 2), floats(1, 1, 2, 3), floats(3)
    assert convolver(images, filters, bias, floats(1, 4, 4, 1)) is None
    assert convolver(images, filters, bias, floats(1, 4, 4, 3)) is not None


def test_constants_are_packed_once_and_for_all_nodes() -> None:
    """For the second who asks, and what was made of them goes with them."""
    filters = floats(3, 3, 2, 40)
    filters.flags.writeable = False
    before = len(filters_module._kept)
    assert factors_of(filters).packing is not None
    first, packing, _ = factors_of(filters)
    assert packing is None
    assert factors_of(filters).numbers is first
    square = filters[0, 0, :, :2]
    for _ in range(2):
        both = factors_of(square), factors_of(square, is_turned=True)
    assert both[0].numbers is not both[1].numbers
    del square
    assert len(filters_module._kept) == before + 1
    del filters
    assert len(filters_module._kept) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [1, 3])
def test_filters_are_read_where_they_are_for_each_image(
    batch: int, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By few places; later, where they were packed: the same bits."""
    use(Library(loaded(), kind), monkeypatch)
    windows = windows_of((2, 3))
    images, filters = floats(batch, 3, 7, 5), floats(2, 3, 5, 64)
    again = filters.copy()
    again.flags.writeable = False
    convolver = Convolver(lambda _sizes: windows)
    first = convolver(images, filters)
    check(first, images, filters, expected(images, filters, windows))
    for _ in range(3):
        np.testing.assert_array_equal(convolver(images, again), first)  # type: ignore[arg-type]


def test_large_constants_are_packed_at_once() -> None:
    """To pack them takes long, and is not to be done twice."""
    filters = floats(1, 1, 600, 500)
    filters.flags.writeable = False
    first, packing, _ = factors_of(filters)
    assert packing is None
    assert factors_of(filters).numbers is first


def test_filters_that_may_change_are_packed_anew() -> None:
    """Only what is read-only is remembered."""
    convolver = Convolver(lambda _sizes: windows_of((1, 1)))
    images, filters = floats(1, 4, 4, 2), floats(1, 1, 2, 3)
    before = convolver(images, filters)
    filters *= 2
    np.testing.assert_array_equal(convolver(images, filters), 2 * before)  # type: ignore[operator]
