"""Why nodes are left to the executor is said of each of them."""

from __future__ import annotations

import pytest

from penstock.runtime import KernelBinder
from penstock.runtime.compiler.compile_regions import Compiler
from support.loops import counting_loop
from support.sketch import CPU, sketch

TRANSFER = f'send_device="{CPU}" send_device_incarnation=1 recv_device="{CPU}"'
#: A graph, and why some of its nodes are left.
CASES: dict[str, tuple[str, dict[str, str]]] = {
    "waits": (
        """
        q = FIFOQueueV2() component_types=["float32"]
        d = QueueDequeueV2(q) component_types=["float32"]
        a = Neg(d)
        b = Neg(a)
        """,
        {"d": "it may wait for something else"},
    ),
    "transfers": (
        f"""
        x = Placeholder()
        a = Neg(x)
        b = Neg(a)
        s = _Send(b) tensor_name="s" {TRANSFER}
        """,
        {"s": "it hands values to another device"},
    ),
    "many branches": (
        """
        x = Placeholder()
        i = Placeholder() dtype=int32
        a = Neg(x)
        b = Neg(a)
        s = _SwitchN(b, i) num_outs=3
        """,
        {"s": "it is a Switch of many branches"},
    ),
    "never runs": (
        """
        x = Placeholder()
        a = Neg(x)
        b = Neg(a)
        m = Merge(n, n)
        n = NextIteration(m)
        """,
        {
            "m": "it cannot be reached, and never runs",
            "n": "it cannot be reached, and never runs",
        },
    ),
    "alone": (
        """
        q = FIFOQueueV2() component_types=["float32"]
        d = QueueDequeueV2(q) component_types=["float32"]
        a = Neg(d)
        e = QueueEnqueueV2(q, a) Tcomponents=["float32"]
        """,
        {"a": "alone between others, it is not worth a function"},
    ),
    "irregular": (
        counting_loop() + "use = Neg(merge:1)",
        {
            "merge": "the loop 'loop' is irregular: merge:1 is used",
            "sum": "the loop 'loop' is irregular: merge:1 is used",
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_reason(name: str) -> None:
    """The reason that counts, in words that an author of a graph knows."""
    text, wanted = CASES[name]
    explained = Compiler(device=CPU, make_kernel=KernelBinder(CPU).bind).explain(sketch(text))
    reasons = {node.name: reason for node, reason in explained.reasons.items()}
    assert {name: reasons.get(name) for name in wanted} == wanted


def test_nothing_is_left_of_a_whole() -> None:
    """A graph that is one function has no reasons; one of regions tells them."""
    compiler = Compiler(device=CPU, make_kernel=KernelBinder(CPU).bind)
    whole = compiler.explain(
        sketch("x = _Arg() T=float32 index=0\ny = Neg(x)\nr = _Retval(y) index=0")
    )
    assert (len(whole.regions), whole.reasons) == (1, {})
    parts = compiler.explain(sketch(CASES["waits"][0]))
    assert [region.source.function.__name__ for region in parts.regions] == ["region"]
    assert {node.name for node in parts.reasons} == {"q", "d"}
