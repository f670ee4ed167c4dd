"""Products by a list's elements are made ahead, and are what they were, errors included."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.core.shapes import UNKNOWN
from penstock.kernels.variant.persistent_vector import PersistentVector
from penstock.kernels.variant.tensor_list import UNSET, TensorList
from penstock.passes.multiply_ahead import multiply_ahead
from support.drafts import after, both, unchanged
from support.sketch import sketch

#: For each i below ``n``: h = tanh(x[i] w + h); ``y`` is the last h.
LOOP = """
    x = Placeholder() dtype=float32
    n = Placeholder() dtype=int32
    w = Placeholder() dtype=float32
    start = Placeholder() dtype=float32
    any = Const() value=-1
    list = TensorListFromTensor(x, any) element_dtype=float32
    zero = Const() value=0
    i_enter = Enter(zero) frame_name="loop"
    h_enter = Enter(start) frame_name="loop"
    l_enter = Enter(list) frame_name="loop"
    bound = Enter(n) frame_name="loop" is_constant=True
    factor = Enter(w) frame_name="loop" is_constant=True
    i = Merge(i_enter, i_next)
    h = Merge(h_enter, h_next)
    l = Merge(l_enter, l_next)
    less = Less(i, bound)
    go = LoopCond(less)
    i_switch = Switch(i, go)
    h_switch = Switch(h, go)
    l_switch = Switch(l, go)
    i_body = Identity(i_switch:1)
    l_body = Identity(l_switch:1)
    one = Const(^i_body) value=1
    shape = Const(^i_body) value=-1
    item = TensorListGetItem(l_body, i_body, shape) element_dtype=float32
    product = MatMul(item, factor)
    sum = AddV2(product, h_switch:1)
    step = Tanh(sum)
    i_sum = Add(i_body, one)
    i_next = NextIteration(i_sum)
    h_next = NextIteration(step)
    l_next = NextIteration(l_body)
    y = Exit(h_switch)
"""
RANDOM = np.random.default_rng(5)
# Products of one element and of many are added up in other orders, so last bits differ, of numbers
# near zero more; where each step takes up what the one before gave, or thousands of elements are
# compared, ten times as much is let pass.  A wrong element or matrix is off by about 1.


def feeds(length: int, rows: int = 2, n: int | None = None) -> dict[str, Any]:
    """Inputs for some steps."""
    return {
        "x": RANDOM.standard_normal((length, rows, 3), np.float32),
        "w": RANDOM.standard_normal((3, 4), np.float32),
        "start": RANDOM.standard_normal((rows, 4), np.float32),
        "n": np.int32(length if n is None else n),
    }


def recurred(fed: dict[str, Any]) -> Any:
    """The same by numpy."""
    h = fed["start"]
    for x in fed["x"][: fed["n"]]:
        h = np.tanh(x @ fed["w"] + h)
    return h


def test_a_product_is_told_of_the_list() -> None:
    """The element is read as before, and all else stays."""
    made = after(multiply_ahead, LOOP)
    assert "product = _ItemMatMul(item, factor, l_body, i_body)" in made
    assert any(line.startswith("item = TensorListGetItem(l_body, i_body, shape)") for line in made)
    turned = after(
        multiply_ahead,
        LOOP.replace("MatMul(item, factor)", "MatMul(item, factor) transpose_b=True"),
    )
    assert any("_ItemMatMul" in line for line in turned)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("MatMul(item, factor)", "MatMul(item, factor) transpose_a=True"),
        ("MatMul(item, factor)", "MatMul(factor, item)"),
        (
            "l_next = NextIteration(l_body)",
            "other = TensorListSetItem(l_body, i_body, item)\nl_next = NextIteration(other)",
        ),
        ("l_next = NextIteration(l_body)", "l_next = NextIteration(l_switch)"),
        ("(l_body, i_body, shape)", "(l_body, one, shape)"),
        ("(l_body, i_body, shape)", "(l_body, bound, shape)"),
        ("dtype=float32", "dtype=float16"),
    ],
)
def test_others_stay(old: str, new: str) -> None:
    """A list that changes, an element that does not, other products."""
    assert unchanged(multiply_ahead, LOOP.replace(old, new))


def test_outside_of_loops_nothing_is_told() -> None:
    """One element is read once."""
    text = """
        x = Placeholder() dtype=float32
        i = Placeholder() dtype=int32
        any = Const() value=-1
        list = TensorListFromTensor(x, any) element_dtype=float32
        item = TensorListGetItem(list, i, any) element_dtype=float32
        y = MatMul(item, item)
    """
    assert unchanged(multiply_ahead, text)


@pytest.mark.parametrize("rows", [0, 1, 5, 90])
@pytest.mark.parametrize("length", [0, 1, 2, 30, 3000])
def test_answers_are_what_they_were(length: int, rows: int) -> None:
    """Whatever fits into a block, and however many blocks there are."""
    fed = feeds(length, rows)
    with ps.Session(sketch(LOOP)) as session:
        ops = {
            node.op.name for part in session.prepared("y", fed).partitions for node in part.graph
        }
        y = session.run("y:0", fed)
    assert "_ItemMatMul" in ops
    np.testing.assert_allclose(y, recurred(fed), rtol=1e-4, atol=1e-5)


def test_a_list_may_be_read_backwards() -> None:
    """A block is made of what is before an element as well."""
    text = LOOP.replace("item = Tensor", "at = Sub(limit, i_body) T=int32\nitem = Tensor").replace(
        "(l_body, i_body, shape)", "(l_body, at, shape)"
    )
    text += """
        less_one = Const() value=1
        last = Sub(n, less_one) T=int32
        limit = Enter(last) frame_name="loop" is_constant=True
    """
    fed = feeds(2000, 7)
    with ps.Session(sketch(text)) as session:
        y = session.run("y:0", fed)
    np.testing.assert_allclose(y, recurred({**fed, "x": fed["x"][::-1]}), rtol=1e-4, atol=1e-5)


def test_each_step_has_its_own() -> None:
    """What was made ahead is of one list and one factor, also with many threads."""
    many = [feeds(40, rows) for rows in (2, 2, 2, 3)]
    found: dict[int, list[Any]] = {}
    with ps.Session(sketch(LOOP)) as session:

        def work(number: int) -> None:
            found[number] = [session.run("y:0", many[number]) for _ in range(30)]

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(many))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number, fed in enumerate(many):
        for y in found[number]:
            np.testing.assert_allclose(y, recurred(fed), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "changed",
    [
        {"n": np.int32(5)},
        {"w": np.ones((2, 4), np.float32)},
        {"w": np.ones(3, np.float32)},
        {"x": np.ones((4, 3), np.float32)},
        {"x": np.ones((4, 2, 5), np.float32)},
        {"x": np.ones((), np.float32)},
        {"start": np.ones((3, 4), np.float32)},
    ],
)
def test_errors_are_what_they_were(changed: dict[str, Any]) -> None:
    """Of the same node, and in the same words."""
    plain, made = both(LOOP, ["y:0"], {**feeds(4), **changed})
    assert plain[0].dtype.kind == "U"
    assert [str(text).replace("_ItemMatMul", "MatMul") for text in made] == list(map(str, plain))


def test_a_loop_that_ends_at_once_multiplies_nothing() -> None:
    """So it does not complain either."""
    fed = feeds(4, n=0) | {"w": np.ones((2, 4), np.float32)}
    [plain], [made] = both(LOOP, ["y:0"], fed)
    np.testing.assert_array_equal(plain, fed["start"])
    np.testing.assert_array_equal(made, fed["start"])


PRODUCT = """
    a = Placeholder() dtype=float32
    b = Placeholder() dtype=float32
    list = Placeholder() dtype=variant
    i = Placeholder() dtype=int32
    y = _ItemMatMul(a, b, list, i)
"""


@pytest.mark.parametrize("hole", [None, (1, 3), (2, 2)])
def test_elements_that_differ(hole: tuple[int, ...] | None) -> None:
    """Of a list whose elements are not alike, each is multiplied by itself."""
    items: list[Any] = [RANDOM.standard_normal((2, 3), np.float32) for _ in range(4)]
    items[2] = UNSET if hole is None else np.ones(hole, np.float32)
    handle = TensorList(ps.dtypes.float32, UNKNOWN, PersistentVector.of(items))
    b = RANDOM.standard_normal((3, 4), np.float32)
    with ps.Session(sketch(PRODUCT)) as session:
        for place in (0, 1, 3, 0):
            y = session.run(
                "y:0", {"a": items[place], "b": b, "list": handle, "i": np.int32(place)}
            )
            np.testing.assert_allclose(y, items[place] @ b, rtol=1e-5, atol=1e-6)


class _Counting(PersistentVector[Any]):
    """Elements that note how often they are read."""

    reads = 0

    def get(self, index: int) -> Any:
        self.reads += 1
        return super().get(index)


@pytest.mark.parametrize(
    ("places", "is_changed", "reads"),
    [
        (range(2000), False, 2000),
        (range(1999, -1, -1), False, 2000),
        ([0, 1900, 7, 1200, 3, 1901, 0], False, 500),
        ([0, 1, 2, 3, 4, 5], True, 500),
        ([np.array(place) for place in range(300)], False, 500),
    ],
)
def test_little_is_made_in_vain(places: Any, is_changed: bool, reads: int) -> None:
    """In a row all is made once; elsewhere, and with factors that change, one block at most."""
    items = RANDOM.standard_normal((2000, 8, 3), np.float32)
    vector = _Counting.of(items)
    handle = TensorList(ps.dtypes.float32, UNKNOWN, vector)
    b = RANDOM.standard_normal((3, 64), np.float32)
    with ps.Session(sketch(PRODUCT)) as session:
        call = session.make_callable("y:0", ["a:0", "b:0", "list:0", "i:0"])
        for place in places:
            factor = b.copy() if is_changed else b
            index = place.astype(np.int32) if isinstance(place, np.ndarray) else np.int32(place)
            y = call(items[place], factor, handle, index)
            np.testing.assert_allclose(y, items[place] @ b, rtol=1e-4, atol=1e-5)
    assert 0 < vector.reads <= reads + 600


def test_another_factor_makes_others() -> None:
    """A variable may be assigned in the loop."""
    items = [RANDOM.standard_normal((2, 3), np.float32) for _ in range(4)]
    handle = TensorList(ps.dtypes.float32, UNKNOWN, PersistentVector.of(items))
    with ps.Session(sketch(PRODUCT)) as session:
        call = session.make_callable("y:0", ["a:0", "b:0", "list:0", "i:0"])
        for place in (0, 1, 2, 3):
            b = RANDOM.standard_normal((3, 4), np.float32)
            y = call(items[place], b, handle, np.int32(place))
            np.testing.assert_allclose(y, items[place] @ b, rtol=1e-5, atol=1e-6)
