"""No text of a graph is ever run as code, wherever it stands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.runtime.compiler.branches import Branches
from penstock.runtime.compiler.source import SourceLine
from security.attack import Attacker, Finding, Way, look_for_any_code, planted, put, watch
from security.payloads import CANARY, PAYLOADS
from security.slots import slots_of
from security.sweep import attacked, cases, plans
from support.corpus import Case
from support.graphs import graph_def
from support.sampling import sampled

CASES = cases()
#: Graphs that have between them nearly all kinds of places for text.
RICH = ("cond_in_while", "function_control_outputs", "while_captured", "init_once")
#: Of so many attacks on a graph, one is made here; ``sweep`` makes them all.
EVERY = 4001


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Attacks are made in a folder of their own, in which nothing may appear."""
    monkeypatch.chdir(tmp_path)
    watch()
    yield
    assert not (tmp_path / CANARY).exists()


def case_of(name: str) -> Case:
    """A graph of the corpus by its name."""
    return next(case for case in CASES if case.name == name)


# -- the ways in that there were -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["node.attr[frame_name].s", "library.function.signature.name"])
def test_a_line_break_ends_no_comment(kind: str, tmp_path: Path) -> None:
    """What follows a line break in the name of a frame or a function is not run: it is a name."""
    payload = f"f\n        break\nopen('{CANARY}','w')\ndef f(count):\n    for turn in count(): #"
    name = "cond_in_while" if "frame" in kind else "function_control_outputs"
    attacker = Attacker(case_of(name), tmp_path)

    assert attacker.attack(kind, payload, Way.EVERYWHERE) == "answered"


def test_names_in_bodies_follow_the_rules(tmp_path: Path) -> None:
    """A node in a function's body cannot be called so; the graph is refused when it is read."""
    attacker = Attacker(case_of("function_control_outputs"), tmp_path)
    kind = "library.function.node_def.name"

    assert attacker.attack(kind, f"n\nopen('{CANARY}','w')", Way.FIRST) == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "name", ["run", "interrupt", "count", "open", "iteration_number", "frame", "__class__"]
)
def test_names_of_the_code_itself_are_names_like_others(name: str, tmp_path: Path) -> None:
    """A frame or a node called like a word of the generated code changes nothing."""
    attacker = Attacker(case_of("cond_in_while"), tmp_path)

    assert attacker.attack("node.attr[frame_name].s", name, Way.EVERYWHERE) == "answered"
    if not name.startswith("_"):
        assert attacker.attack("node.name", name, Way.EVERYWHERE) == "answered"


# -- every place, every payload ------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", sampled(CASES), ids=str)
def test_every_graph_withstands(case: Case) -> None:
    """Some of all attacks on each graph: nothing runs, and answers stay what they are."""
    report = attacked(case, every=EVERY, offset=CASES.index(case))

    assert report.findings == []
    assert report.outcomes.total() > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", sampled(range(8)))
def test_every_payload(part: int, tmp_path: Path) -> None:
    """Each payload, in places of a few graphs that have nearly all kinds between them."""
    met: set[str] = set()
    for name in RICH:
        attacker = Attacker(case_of(name), tmp_path)
        kinds = tuple(kind for kind in attacker.kinds if kind not in met)
        met.update(kinds)
        # A step that shares no factor with the payloads: each comes to stand in many kinds.
        for kind, payload, way in list(plans(kinds))[part * 23 :: 8 * 23]:
            attacker.attack(kind, payload, way)
    assert len(met) > 30


def test_there_are_enough_payloads() -> None:
    """Line breaks of all kinds, quotes, formats, keywords, and one of a million characters."""
    assert len(PAYLOADS) >= 60
    assert max(map(len, PAYLOADS)) == 1_000_000
    assert all(any(brk in text for text in PAYLOADS) for brk in "\n\r\x0b\x0c\x85\u2028\0'\"\\")


def test_every_kind_of_text_in_a_graph_is_a_place() -> None:
    """Names, ops, inputs, devices, attributes, functions, gradients and debug information."""
    graph = planted(case_of("function_control_outputs"))
    graph.node[0].device = "/cpu:0"
    kinds = {slot.kind for slot in slots_of(graph)}

    assert kinds >= {
        "node.name", "node.op", "node.input", "node.device", "node.attr{key}",
        "node.attr[_unheard_of].s", "node.attr[_unheard_of_too].list.s",
        "node.experimental_debug_info.original_node_names", "debug_info.files",
        "debug_info.frames_by_id[].func", "library.gradient.function_name",
        "library.gradient.gradient_func", "library.function.signature.name",
        "library.function.signature.input_arg.name", "library.function.node_def.name",
        "library.function.ret{key}", "library.function.ret{value}",
    }  # fmt: skip
    put(graph, "node.device", "there", Way.FIRST)
    assert graph.node[0].device == "there"


# -- the attacks themselves can succeed ----------------------------------------------------


def test_a_hole_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If names were comments again, an attack would get its text to Python's compiler."""
    attacker = Attacker(case_of("cond_in_while"), tmp_path)

    def line(self: Branches, code: str, _node: object = None, label: str = "") -> None:
        self.lines.append(SourceLine(f"{'    ' * self.level}{code}  # {label}", None, self.loops))

    monkeypatch.setattr(Branches, "line", line)
    with pytest.raises(Finding, match=r"no OpError|given to the compiler|our own mistake"):
        attacker.attack("node.attr[frame_name].s", f"\nopen('{CANARY}','w')\n#", Way.EVERYWHERE)


@pytest.mark.parametrize(
    "payload", [text for text in PAYLOADS if CANARY in text and "\0" not in text]
)
def test_any_payload_would_be_found_in_what_is_compiled(payload: str, tmp_path: Path) -> None:
    """Whatever stands around it; it need not make sense as a whole."""
    with contextlib.suppress(Finding):  # of another test
        look_for_any_code(tmp_path)
    with pytest.raises((SyntaxError, ValueError)):
        compile(f"x = {payload}\n) # {payload}", "payload", "exec")
    with pytest.raises(Finding, match="given to the compiler"):
        look_for_any_code(tmp_path)


def test_the_name_of_a_variable_is_no_code(tmp_path: Path) -> None:
    """A node may be called as payloads are, and a variable of generated text then is, too."""
    look_for_any_code(tmp_path)
    graph = graph_def(
        f"a = Placeholder\n{CANARY} = Neg[T=float32](a)\nb = Neg[T=float32]({CANARY})"
    )
    for node in graph.node:
        node.name = node.name.replace(CANARY, f"../../{CANARY}")
        node.input[:] = [text.replace(CANARY, f"../../{CANARY}") for text in node.input]
    with ps.Session(graph) as session:
        assert session.run("b:0", {"a:0": 2.0}) == 2.0
    look_for_any_code(tmp_path)


def test_a_name_that_is_shown_raw_would_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If errors showed names as they are, an attack would be seen on the terminal."""
    attacker = Attacker(case_of("cond_in_while"), tmp_path)
    monkeypatch.setattr("penstock.errors.printable", str)
    with pytest.raises(Finding, match="control character"):
        attacker.attack("node.op", "\x1b[2J", Way.FIRST)


def test_another_answer_would_be_found(tmp_path: Path) -> None:
    """If other names gave other answers, the attack would notice."""
    attacker = Attacker(case_of("cond_in_while"), tmp_path)
    attacker._answers[0] = [np.float32(0)]
    with pytest.raises(Finding, match="another answer"):
        attacker.attack("node.attr[frame_name].s", "x", Way.EVERYWHERE)


# -- showing ---------------------------------------------------------------------------------


def test_shown_code_has_names_beside_it(tmp_path: Path) -> None:
    """``show --python`` prints what a graph calls its frame on the line of the loop, escaped."""
    path = tmp_path / "graph.pb"
    graph = case_of("cond_in_while").graph_def()
    put(graph, "node.attr[frame_name].s", "a\nb\x1b[2J\u202e", Way.EVERYWHERE)
    path.write_bytes(graph.SerializeToString())
    shown = CliRunner().invoke(main, ["show", str(path), "--python"]).output

    assert r"for iteration_number in count():  # a\nb\x1b[2J\u202e" in shown
