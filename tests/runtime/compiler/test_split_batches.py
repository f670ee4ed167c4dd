"""Batches are done some entries at a time: which statements, and that nothing changes."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.limits import Limits
from penstock.kernels.api.context import Interrupt
from penstock.kernels.c.library import library
from penstock.kernels.parallel.batches import Argument, Batches
from penstock.runtime import KernelBinder
from penstock.runtime.compiler import code_buffer, compile_regions
from penstock.runtime.compiler.compile_regions import Compiler
from penstock.runtime.compiler.generate import generate
from penstock.runtime.compiler.in_batches import in_batches
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region
from penstock.runtime.references import read
from support.compiled import Bare, text_of
from support.sketch import CPU, sketch

pytestmark = pytest.mark.skipif(library() is None, reason="there was no C compiler")

RANDOM = np.random.default_rng(2)
#: Images of 512 numbers, of which two are worked on at a time.
LIMITS: Final = Limits(entries_at_once=1024)
X: Final = "x = _Arg() T=float32 index=0\n"
POOL: Final = "ksize=[1,2,2,1] strides=[1,2,2,1] padding='VALID'"
SAME: Final = "ksize=[1,3,3,1] strides=[1,1,1,1] padding='SAME'"
#: Two pools, and what is between them.
NETWORK: Final = f"""{X}
    k = Const() value=[0.5,2.0,1.0,-1.0,3.0,0.25,1.5,1.0]
    z = Neg(x)
    a = MaxPool(z) {POOL}
    b = Mul(a, k)
    c = Relu(b)
    d = AvgPool(c) ksize=[1,1,2,1] strides=[1,1,1,1] padding='SAME'
    r = _Retval(d) index=0
"""


def images(batch: int, side: int = 8) -> Any:
    """Random images of eight channels."""
    return RANDOM.standard_normal((batch, side, side, 8), np.float32)


@pytest.fixture(autouse=True)
def statements_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comes after those that it waits for, of which none has gone into a group."""

    def generate_in_order(program: Any, *args: Any) -> Any:
        seen = set[Any]()
        for statement in program.body.statements:
            assert seen.issuperset(statement.waits)
            seen.add(statement)
        return generate(program, *args)

    monkeypatch.setattr(compile_regions, "generate", generate_in_order)


def split(text: str, *args: Any, limits: Limits = LIMITS, accelerate: bool = True) -> Region:
    """What becomes of a graph that has run once with these arguments."""
    graph, profile = sketch(text), Profile()
    binder = KernelBinder(CPU, accelerate=accelerate)
    compiler = Compiler(device=CPU, make_kernel=binder.bind, limits=limits, accelerate=accelerate)
    want = compiler.probing(graph, profile).run(Bare(), *args)
    profile.end()
    better = compiler.improve(graph, profile, threads=1)
    if better is None:
        return compiler.probing(graph, Profile())
    assert better.whole is not None
    same(better.whole, args, want)
    return better.whole


def plain(text: str, *args: Any) -> Any:
    """The results without any of this."""
    bind = KernelBinder(CPU, accelerate=True).bind
    compiler = Compiler(device=CPU, make_kernel=bind, accelerate=True)
    made = compiler.compile(sketch(text))
    assert made is not None
    assert made.whole is not None
    return made.whole.run(Bare(), *args)


def same(region: Region, args: Any, want: Any) -> None:
    """A region gives these results, to the last bit."""
    for found, wanted in zip(region.run(Bare(), *args), want, strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)


def inside(region: Region) -> set[str]:
    """The nodes that are done some entries at a time."""
    lines = region.source.lines
    starts = [i for i, line in enumerate(lines) if line.code.startswith("def entries")]
    found = set[str]()
    for start in starts:
        for line in lines[start + 1 :]:
            if not line.code.startswith(" "):
                break
            found.update([line.node.name] if line.node is not None else [])
    return found


# -- batches -----------------------------------------------------------------------------------


def test_parts_are_about_as_long() -> None:
    """All entries are there once, in their order, and each result has its own shape and type."""
    sizes: list[int] = []

    def function(x: Any, k: Any) -> Any:
        sizes.append(len(x))
        return x * k, x.sum(axis=1).astype(np.int64)

    batches = Batches(4, 8, (Argument(has_entries=True, shape=(3,)), Argument(has_entries=False)))
    x = np.arange(33.0).reshape(11, 3)
    first, second = batches.apply(function, [x, 2.0])
    np.testing.assert_array_equal(first, x * 2.0, strict=True)
    np.testing.assert_array_equal(second, x.sum(axis=1).astype(np.int64), strict=True)
    assert sizes == [3, 4, 4]


@pytest.mark.parametrize(
    "values",
    [
        [np.zeros((7, 3)), np.zeros((7, 2)), 1.0],  # fewer than are worth it
        [np.zeros((9, 4)), np.zeros((9, 2)), 1.0],
        [np.zeros((9, 3)), np.zeros((8, 2)), 1.0],
        [np.zeros((9, 3, 1)), np.zeros((9, 2)), 1.0],
        [np.zeros((9, 3)), np.zeros((9, 2)), np.zeros(2)],
        [np.zeros((0, 3)), np.zeros((0, 2)), 1.0],
        [np.float64(3.0), np.zeros((9, 2)), 1.0],
        [None, np.zeros((9, 2)), 1.0],
    ],
    ids=str,
)
def test_other_arguments_stay_whole(values: list[Any]) -> None:
    """What has other shapes than what was seen, the function gets as it is."""
    kinds = Argument(has_entries=True, shape=(3,)), Argument(has_entries=True, shape=(2,))
    batches = Batches(4, 8, (*kinds, Argument(has_entries=False, shape=())))
    values[2] = np.float64(values[2]) if isinstance(values[2], float) else values[2]
    found = batches.apply(lambda *given: given, values)
    assert all(a is b for a, b in zip(found, values, strict=True))


def test_a_step_that_must_end() -> None:
    """It ends between two parts."""
    run, seen = Bare(), []

    def function(run: Any, x: Any) -> Any:
        seen.append(len(x))
        run.interrupt.end(errors.CancelledError("enough"))
        return (x,)

    batches = Batches(1, 2, (Argument(has_entries=True),))
    with pytest.raises(errors.CancelledError, match="enough"):
        in_batches(function, batches, run, np.zeros((4, 2)))
    assert seen == [1]


# -- groups ------------------------------------------------------------------------------------


def test_a_network_in_parts() -> None:
    """All of it, with other numbers of images as well, and other sizes as they come."""
    region = split(NETWORK, images(16))
    assert inside(region) == {"z", "a", "b", "c", "d"}
    assert text_of(region).count("in_batches(") == 1
    for x in (images(1), images(2), images(7), images(16), images(9, side=10), images(0)):
        same(region, (x,), plain(NETWORK, x))


@pytest.mark.parametrize(("batch", "is_split"), [(7, False), (8, True), (1, False)])
def test_arrays_must_be_large(batch: int, *, is_split: bool) -> None:
    """Below four times what is done at a time, nothing is cut."""
    assert bool(inside(split(NETWORK, images(batch)))) is is_split


def test_one_statement_is_no_group() -> None:
    """There is nothing between it and others."""
    spots = "k = Const() value=[1,2]\nm = Mean(x, k)\nr = _Retval(m) index=0"
    assert not inside(split(f"{X}{spots}", images(16)))


def test_what_comes_between_waits() -> None:
    """A statement that needs all entries comes after, and what reads it as well."""
    text = f"""{X}
        axes = Const() value=[0]
        a = MaxPool(x) {POOL}
        y = MaxPool(x) {SAME}
        z = MaxPool(y) {SAME}
        b = Relu(z)
        m = Mean(b, axes)
        c = Sub(b, m)
        d = MaxPool(c) {POOL}
        e = MaxPool(b) {POOL}
        q = _Retval(a) index=0
        r = _Retval(d) index=1
        s = _Retval(e) index=2
    """
    region = split(text, images(16))
    assert inside(region) == {"a", "y", "z", "b", "e", "c", "d"}
    assert text_of(region).count("in_batches(") == 2
    x = images(11)
    same(region, (x,), plain(text, x))


def test_small_ends_stay_out() -> None:
    """What is small, and not between large ones, is done for all entries."""
    text = f"""{X}
        spots = Const() value=[1,2]
        y = _Arg() T=float32 index=1
        z = MaxPool(y) {SAME}
        a = MaxPool(x) {POOL}
        b = Relu(x)
        m = Mean(b, spots) keep_dims=True
        n = Sigmoid(m)
        o = AddV2(n, z)
        c = Mul(b, o)
        d = Mean(c, spots)
        e = Exp(d)
        q = _Retval(a) index=0
        r = _Retval(e) index=1
    """
    y = RANDOM.standard_normal((16, 1, 1, 8), np.float32)
    region = split(text, images(16), y)
    assert inside(region) == {"a", "b", "m", "n", "o", "c", "d"}
    x = images(9)
    same(region, (x, y[:9]), plain(text, x, y[:9]))
    same(region, (x, y[:1]), plain(text, x, y[:1]))  # which is broadcast


def test_an_operand_without_entries_must_stay_so() -> None:
    """What was a row for all, and has a row for each now, has the whole batch computed at once."""
    text = f"""{X}
        y = _Arg() T=float32 index=1
        a = Mul(x, y)
        b = MaxPool(a) {POOL}
        r = _Retval(b) index=0
    """
    region = split(text, images(16), np.ones(8, np.float32))
    assert inside(region) == {"a", "b"}
    x = images(16)
    for y in (images(16), images(1), images(1)[0], np.float32(3.0), np.arange(8, dtype="f")):
        same(region, (x, y), plain(text, x, y))


@pytest.mark.parametrize("filters", ["f", "g"])
def test_one_array_in_two_roles(filters: str) -> None:
    """What one statement takes by entries, or makes so, no other one of its group takes whole."""
    text = f"""{X}
        f = _Arg() T=float32 index=1
        spots = Const() value=[1,2]
        g = MaxPool(f) {SAME}
        b = Conv2D(x, {filters}) strides=[1,1,1,1] padding='SAME'
        c = MaxPool(f) {SAME}
        h = Mean(b, spots)
        i = Mean(c, spots)
        j = Mean(g, spots)
        r = _Retval(h) index=0
        s = _Retval(i) index=1
        t = _Retval(j) index=2
    """
    args = images(16), RANDOM.standard_normal((16, 1, 8, 16), np.float32)
    region = split(text, *args, limits=Limits(entries_at_once=512))
    assert text_of(region).count("in_batches(") == 1


@pytest.mark.parametrize(("side", "batch"), [(16, 16), (8, 16), (4, 8)])
def test_roundings_stay(side: int, batch: int) -> None:
    """A convolution that few images would be rounded otherwise in has all of them at once."""
    values = RANDOM.standard_normal((3, 3, 16, 32)).round(2).tolist()
    text = f"""{X}
        f = Const() value={values}
        a = Relu(x)
        b = Conv2D(a, f) strides=[1,1,1,1] padding='SAME'
        c = MaxPool(b) {SAME}
        d = MaxPool(c) {SAME}
        e = MaxPool(d) {SAME}
        r = _Retval(e) index=0
    """
    x = RANDOM.standard_normal((16, side, side, 16), np.float32)
    region = split(text, x[:batch])
    assert ("b" in inside(region)) is (side == 16)
    assert "e" in inside(region)
    same(region, (x,), plain(text, x))


#: Rows of random networks: all take and give images of eight channels, but for a sum of them.
ROWS: Final = [
    "{n} = Conv2D({a}, f) strides=[1,1,1,1] padding='SAME'",
    "{n} = DepthwiseConv2dNative({a}, g) strides=[1,1,1,1] padding='SAME'",
    f"{{n}} = MaxPool({{a}}) {SAME}",
    f"{{n}} = AvgPool({{a}}) {SAME}",
    "{n} = Relu({a})",
    "{n} = Mul({a}, k)",
    "{n} = AddV2({a}, {b})",
    "{n} = Sub({a}, y)",
    "{n}c = ConcatV2({a}, {b}, axis) N=2\n{n} = Conv2D({n}c, h) strides=[1,1,1,1] padding='SAME'",
    "{n}m = Mean({a}, spots) keep_dims=True\n{n} = Mul({b}, {n}m)",
    "{n}m = Mean({a}, all) keep_dims=True\n{n} = Sub({b}, {n}m)",
    "{n} = Reverse({a}, turned)",
]


def random_network(seed: int) -> str:
    """Some rows, which read any of those before, and the means of some of their results."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> str:
        return f"Const() value={rng.standard_normal(shape).round(2).tolist()}"

    rows = [
        "x = _Arg() T=float32 index=0",
        "y = _Arg() T=float32 index=1",
        "axis = Const() value=3",
        "spots = Const() value=[1,2]",
        "all = Const() value=[0]",
        "turned = Const() value=[True,False,False,False]",
        *(f"f = {weights(3, 3, 8, 8)}", f"g = {weights(3, 3, 8, 1)}", f"k = {weights(8)}"),
        f"h = {weights(1, 1, 16, 8)}",
    ]
    names = ["x"]
    for number in range(int(rng.integers(4, 16))):
        # Mostly what came last, so that networks are deep.
        a, b = (names[-min(int(rng.geometric(0.6)), len(names))] for _ in range(2))
        names.append(f"n{number}")
        rows.append(ROWS[rng.integers(len(ROWS))].format(n=names[-1], a=a, b=b))
    for index, name in enumerate({names[-1], names[len(names) // 2]}):
        rows.append(f"r{index} = Mean({name}, spots)\no{index} = _Retval(r{index}) index={index}")
    return "\n".join(rows)


@pytest.mark.parametrize("seed", range(40))
def test_random_networks(seed: int) -> None:
    """Whatever is cut, and however many images there are, each bit is as it was."""
    text, row = random_network(seed), images(1)[:, :1, :1]
    region = split(text, images(16), row)
    for batch in (1, 5, 13, 16):
        args = images(batch), row
        same(region, args, plain(text, *args))
    each = images(7), images(7)
    same(region, each, plain(text, *each))


def test_many_random_networks_are_cut() -> None:
    """Or else the test above would tell nothing."""
    regions = [split(random_network(seed), images(16), images(1)[:, :1, :1]) for seed in range(40)]
    assert sum(len(inside(region)) > 1 for region in regions) > 25


def test_a_variable_is_read_once_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another step may write it meanwhile: all images are multiplied by the same numbers."""
    reads: list[str] = []

    def noted(reference: Any, source: str) -> Any:
        reads.append(source)
        return read(reference, source)

    monkeypatch.setitem(code_buffer._OBJECTS, "read", noted)  # type: ignore[index]
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None, 8, 8, 8], name="x")
        filters = ps.ops.variable_v2(shape=[1, 1, 8, 8], dtype="float32", name="v")
        init = ps.ops.assign(filters, images(1)[:, :1])
        pool = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "SAME"}
        a = ps.ops.max_pool(ps.ops.max_pool(x, **pool), **pool)
        b = ps.ops.conv2_d(a, filters, strides=[1] * 4, padding="SAME")
        y = ps.ops.max_pool(ps.ops.max_pool(ps.ops.max_pool(b, **pool), **pool), **pool)
    limits = dataclasses.replace(LIMITS, slow_step=0.0, region_products=1 << 60)
    feeds, found, counts = {x: images(16)}, [], []
    with ps.Session(graph, config=ps.Config(limits=limits)) as session:
        session.run(init)
        for _ in range(8):
            reads.clear()
            found.append(session.run(y, feeds))
            counts.append(len(reads))
    assert max(counts) == 1, counts
    assert all(np.array_equal(each, found[0]) for each in found)


def test_an_error_has_its_node() -> None:
    """It is told as without parts."""
    text = f"""{X}
        y = _Arg() T=float32 index=1
        a = Relu(x)
        b = Conv2D(a, y) strides=[1,1,1,1] padding='SAME'
        r = _Retval(b) index=0
    """
    region = split(text, images(16), np.ones((1, 1, 8, 4), np.float32))
    assert inside(region) == {"a", "b"}
    with pytest.raises(errors.InvalidArgumentError, match=r"node b .*Conv2D|\{\{node b\}\}"):
        region.run(Bare(), images(16), np.ones((1, 1, 8), np.float32))


@pytest.mark.parametrize(("fetched", "is_split"), [("d", True), ("a", True), ("b", False)])
def test_what_others_read_anyway(fetched: str, *, is_split: bool) -> None:
    """Where most of what is made is needed as a whole, nothing is gained."""
    text = f"""{X}
        k = Const() value=[0]
        a = MaxPool(x) {POOL}
        b = MaxPool(x) {SAME}
        c = Softmax(b)
        d = MaxPool(c) {POOL}
        m = Mean({fetched}, k)
        r = _Retval(d) index=0
        s = _Retval(m) index=1
        t = _Retval(a) index=2
    """
    limits = Limits(entries_at_once=512)
    assert bool(inside(split(text, images(16), limits=limits))) is is_split


@pytest.mark.parametrize(("dtype", "is_split"), [("float32", True), ("float64", False)])
def test_sums_in_another_order(dtype: str, *, is_split: bool) -> None:
    """What the library in C does not compute may be rounded otherwise for fewer images."""
    text = f"""
        x = _Arg() T={dtype} index=0
        y = _Arg() T={dtype} index=1
        spots = Const() value=[1,2]
        a = MaxPool(x) T={dtype} {SAME}
        b = Conv2D(a, y) strides=[1,1,1,1] padding='SAME'
        c = Mean(b, spots)
        r = _Retval(c) index=0
    """
    args = [array.astype(dtype) for array in (images(16), RANDOM.standard_normal((1, 1, 8, 4)))]
    assert ("b" in inside(split(text, *args))) is is_split


def test_numpy_has_the_whole_batch() -> None:
    """So has numpy, which may not be helped."""
    assert not inside(split(NETWORK, images(16), accelerate=False))


def test_branches_stay_whole() -> None:
    """What is not always live is no part of a group."""
    text = f"""{X}
        p = _Arg() T=bool index=1
        s = Switch(p, p)
        no = Identity(s:0)
        yes = Identity(s:1)
        a = Relu(x, ^yes)
        b = MaxPool(a) {POOL}
        c = MaxPool(x, ^no) {POOL}
        m = Merge(b, c)
        r = _Retval(m) index=0
    """
    assert not inside(split(text, images(16), np.True_))


def test_interrupts_reach_it() -> None:
    """A step that has been ended does not begin a part."""
    region = split(NETWORK, images(16))
    bare = Bare()
    bare.interrupt = Interrupt()
    bare.interrupt.end(errors.AbortedError("over"))
    with pytest.raises(errors.AbortedError, match="over"):
        region.run(bare, images(16))
