"""What the command line advises is something that can be done on the command line."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner

import penstock as ps
from penstock import advice
from penstock.advice import Advice
from penstock.cli import main
from penstock.cli.advice import in_options
from support.graphs import graph_def

#: Words of Python programs, which mean nothing on the command line.
PYTHON_WORDS = re.compile(
    r"feed_dict|RunOptions|Config\(|timeout_in_ms|session\.|sess\.run|\bps\.|allow_soft_placement"
)
ENDLESS = """
one = Const[value=1; dtype=int32]
yes = Const[value=True; dtype=bool]
enter = Enter[frame_name=f; T=int32](one)
always = Enter[frame_name=f; is_constant=true; T=bool](yes)
merge = Merge[N=2; T=int32](enter, next)
again = LogicalOr(always, always)
cond = LoopCond(again)
switch = Switch[T=int32](merge, cond)
next = NextIteration[T=int32](switch:1)
exit = Exit[T=int32](switch)
"""
WAITING = """
q = FIFOQueueV2[component_types=float32]
got = QueueDequeueV2[component_types=float32](q)
"""


def saved(folder: Path, text: str) -> Path:
    """A graph as a file."""
    path = folder / "graph.pb"
    path.write_bytes(graph_def(text).SerializeToString())
    return path


@pytest.mark.parametrize(
    ("text", "args", "advised"),
    [
        ("x = Placeholder\ny = Neg(x)", ["--fetch", "y"], "--feed x:0=VALUE"),
        ("x = Placeholder", ["--feed", "z=1", "--fetch", "x"], "penstock show --nodes"),
        ("x = Placeholder", ["--feed", "^x=1", "--fetch", "x"], "penstock show --nodes"),
        ("x = Placeholder", ["--feed", "x:1=1", "--fetch", "x"], "penstock show --nodes"),
        ("x = Placeholder", ["--fetch", "model"], "penstock show --nodes"),
        ("x = Placeholder", ["--target", "xx"], "did you mean x? "),
        ("done = NoOp", ["--fetch", "done"], "--target done"),
        (ENDLESS, ["--fetch", "exit", "--timeout", "0.1"], "--timeout SECONDS"),
        (WAITING, ["--fetch", "got", "--timeout", "0.1"], "--timeout SECONDS"),
        (
            "x = Const\ny = PyFunc[token=f7; Tin=float32; Tout=float32](x)",
            ["--fetch", "y"],
            "the function f7 is part of the program",
        ),
        ("x = Const[value=1] @/device:GPU:0", ["--fetch", "x"], ""),
        (
            "p = Const[value='a'; dtype=string]\nx = ReadFile(p)",
            ["--fetch", "x", "--no-files"],
            "without --no-files, graphs read and write files",
        ),
    ],
)
def test_advice_names_options(tmp_path: Path, text: str, args: list[str], advised: str) -> None:
    """What is wrong is said without a word that only Python programs know."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = CliRunner().invoke(main, ["run", str(saved(tmp_path, text)), *args])

    assert done.exit_code == (1 if advised else 0)
    assert advised in done.stderr
    assert not PYTHON_WORDS.search(done.stderr), done.stderr


def test_every_kind_of_advice_can_be_followed_on_the_command_line() -> None:
    """No kind of advice falls back to Python's words."""
    some = {"endpoint": "x:0", "option": "timeout_in_ms", "node": "x", "token": "f", "does": "read"}
    kinds = [kind for kind in vars(advice).values() if _is_kind(kind)]
    assert len(kinds) > 5
    for kind in kinds:
        names = kind.__match_args__
        said = in_options(kind(*[some[name] for name in names if name in some]))
        assert not PYTHON_WORDS.search(said.replace("penstock.register_py_func", "")), said


def _is_kind(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Advice) and value is not Advice


def test_a_python_program_is_advised_in_python() -> None:
    """The same error names arguments to those who call ``Session.run``."""
    graph = ps.Graph()
    with graph.as_default():
        y = -ps.placeholder("float32", name="x")
    with ps.Session(graph) as session, pytest.raises(ps.errors.InvalidArgumentError) as caught:
        session.run(y)

    assert caught.value.next_step == "add it to the feeds of this run: feed_dict={'x:0': value}"
    assert caught.value.next_step in str(caught.value)
    assert caught.value.copy().advice == caught.value.advice == advice.FeedIt("x:0")
