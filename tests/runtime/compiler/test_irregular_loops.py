"""Loops that prove irregular are found together, and only they are left to the executor."""

from __future__ import annotations

import re

import pytest

import penstock as ps
from penstock.runtime.compiler.compile_regions import Compiler
from support.compiled import compiled
from support.loops import counting_loop
from support.sketch import sketch

#: Why each looks regular, and is not.
ODD = {
    "an index that is used": ("sum = Add(body, one)", "sum = Add(body, one)\nuse = Neg(merge:1)"),
    "a variable that may be dead": (
        "sum = Add(body, one)",
        "stop = Less(body, one)\nonly = Switch(body, stop)\nsum = Add(only:1, one)",
    ),
}


def _many(count: int, odd: str, regular: int = 0) -> str:
    """Loops that count one after the other, each as far as it was told."""
    text = counting_loop()
    odd_text = text.replace(*ODD[odd])
    return "\n".join(
        [
            *(_renamed(odd_text, f"odd{place}") for place in range(count)),
            *(_renamed(text, f"even{place}") for place in range(regular)),
        ]
    )


def _renamed(text: str, prefix: str) -> str:
    """The same nodes, and the frame, under other names."""
    names = re.findall(r"^\s*(\w+) =", text, re.MULTILINE)
    pattern = rf"(?<![\w=.])({'|'.join(names)})\b(?!=)"
    return re.sub(pattern, rf"{prefix}_\1", text).replace('"loop"', f'"{prefix}_loop"')


@pytest.mark.parametrize("odd", ODD)
def test_however_many_loops_are_irregular_a_graph_is_compiled_twice(
    odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once one has proved irregular, all are known; nothing is compiled once for each of them."""
    attempts = []
    compile_ = Compiler._compile
    monkeypatch.setattr(Compiler, "_compile", lambda *given: attempts.append(1) or compile_(*given))
    for count in (1, 2, 12):
        attempts.clear()
        compiled(_many(count, odd))
        assert len(attempts) == 2, count


def test_regular_loops_beside_irregular_ones_are_compiled() -> None:
    """Trying all loops costs none its place in a region, and all count as far as they should."""
    text = _many(3, "an index that is used", regular=2)
    made = compiled(text)
    assert made is not None
    inside = {node.name for node in made.graph}
    assert {f"odd{place}_merge" for place in range(3)} <= inside
    assert not {f"even{place}_merge" for place in range(2)} & inside

    fetches = [f"{kind}_exit:0" for kind in ("odd0", "odd1", "odd2", "even0", "even1")]
    feeds = {fetch.replace("exit:0", "limit"): 3 + i for i, fetch in enumerate(fetches)}
    with ps.Session(sketch(text)) as session:
        assert session.run(fetches, feeds) == [3, 4, 5, 6, 7]
