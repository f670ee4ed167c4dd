"""Graphs that are broken, and the true cause of each by code, node and words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.checks import Finding, Severity, check
from penstock.checks.check_graph import NAMES
from penstock.cli.main import main
from penstock.graph.export import graph_to_def
from support.sketch import sketch

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Broken:
    """A graph with one mistake."""

    code: str
    #: The node that the finding is about.
    node: str
    #: What the finding says, among other things.
    says: str
    rows: str
    fetches: tuple[str, ...] = ()


LOOP = """
zero = Const() value=0
ten = Const() value=10
enter = Enter(zero) frame_name="loop" T=int32
merge = Merge(enter, next) T=int32 N=2
"""
COUNTER = (
    LOOP
    + """
end = Enter(ten) frame_name="loop" is_constant=True T=int32
less = Less(merge, end) T=int32
go = LoopCond(less)
switch = Switch(merge, go) T=int32
one = Const(^switch) value=1
sum = AddV2(switch:1, one) T=int32
next = NextIteration(sum) T=int32
exit = Exit(switch:0) T=int32
"""
)
QUEUE = """
q = FIFOQueueV2() component_types=['float32'] shapes=[[]] capacity=2
x = Const() value=1.0
"""
TWO = QUEUE + "other = FIFOQueueV2() component_types=['float32'] shapes=[[]] capacity=2\n"
VARIABLE = """
v = VariableV2() dtype=float32 shape=[]
one = Const() value=1.0
"""
HANDLE = """
v = VarHandleOp() dtype=float32 shape=[]
one = Const() value=1.0
"""

BROKEN = {
    "a read beside a write of a reference": Broken(
        "PS101", "write", "'v', which 'sum' reads",
        VARIABLE + "read = Identity(v)\nwrite = Assign(v, one)\nsum = AddV2(read, one)\n"
        "both = AddV2(sum, write)",
    ),
    "a read beside a write of a resource": Broken(
        "PS101", "write", "'v', which 'read' reads",
        HANDLE + "read = ReadVariableOp(v) dtype=float32\n"
        "write = AssignVariableOp(v, one) dtype=float32\nboth = Identity(read, ^write)",
    ),
    "two writes": Broken(
        "PS101", "first", "'v', which 'second' writes",
        HANDLE + "two = Const() value=2.0\nfirst = AssignVariableOp(v, one) dtype=float32\n"
        "second = AssignVariableOp(v, two) dtype=float32\nboth = NoOp(^first, ^second)",
    ),
    "a sum beside an assignment": Broken(
        "PS101", "add", "'set' writes",
        HANDLE + "add = AssignAddVariableOp(v, one) dtype=float32\n"
        "set = AssignVariableOp(v, one) dtype=float32\nboth = NoOp(^add, ^set)",
    ),
    "two fetches that race": Broken(
        "PS101", "write", "'read' reads",
        HANDLE + "read = ReadVariableOp(v) dtype=float32\n"
        "write = AssignVariableOp(v, one) dtype=float32",
        ("read:0", "write"),
    ),
    "both sides of a Switch": Broken(
        "PS102", "sum", "both sides of the Switches on 'p:0'",
        "p = Placeholder() dtype=bool\nx = Const() value=1.0\ns = Switch(x, p)\n"
        "sum = AddV2(s:0, s:1)",
    ),
    "both sides, far apart": Broken(
        "PS102", "sum", "'p:0'",
        "p = Placeholder() dtype=bool\nq = Identity(p)\nx = Const() value=1.0\n"
        "s = Switch(x, p)\nt = Switch(x, q)\na = Neg(s:0)\nb = Neg(t:1)\nc = Neg(b)\n"
        "sum = AddV2(a, c)",
    ),
    "a control edge from the other side": Broken(
        "PS102", "y", "'p:0'",
        "p = Placeholder() dtype=bool\nx = Const() value=1.0\ns = Switch(x, p)\n"
        "a = Neg(s:0)\ny = Neg(s:1, ^a)",
    ),
    "a branch that is never taken": Broken(
        "PS102", "y", "'p:0' is the constant False",
        "p = Const() value=False\nx = Const() value=1.0\ns = Switch(x, p)\ny = Neg(s:1)",
        ("y:0",),
    ),
    "a predicate that is computed from constants": Broken(
        "PS102", "y", "'p:0' is the constant True",
        "a = Const() value=3\nb = Const() value=2\np = Greater(a, b)\nx = Const() value=1.0\n"
        "s = Switch(x, p)\ny = Neg(s:0)",
        ("y:0",),
    ),
    "a loop that nothing ends": Broken(
        "PS103", "go", "cannot end: no iteration changes what its predicate",
        LOOP + "true = Const(^merge) value=True\ngo = LoopCond(true)\n"
        "switch = Switch(merge, go) T=int32\nnext = NextIteration(switch:1) T=int32\n"
        "exit = Exit(switch:0) T=int32",
    ),
    "a loop whose counter stands still": Broken(
        "PS103", "go", "no iteration changes",
        LOOP + 'end = Enter(ten) frame_name="loop" is_constant=True T=int32\n'
        "less = Less(merge, end) T=int32\ngo = LoopCond(less)\n"
        "switch = Switch(merge, go) T=int32\nsame = Identity(switch:1) T=int32\n"
        "next = NextIteration(same) T=int32\nexit = Exit(switch:0) T=int32",
    ),
    "a loop that counts the wrong way": Broken(
        "PS103", "go", "moves away from the end",
        LOOP + 'end = Enter(ten) frame_name="loop" is_constant=True T=int32\n'
        "less = Less(merge, end) T=int32\ngo = LoopCond(less)\n"
        "switch = Switch(merge, go) T=int32\none = Const(^switch) value=1\n"
        "sub = Sub(switch:1, one) T=int32\nnext = NextIteration(sub) T=int32\n"
        "exit = Exit(switch:0) T=int32",
    ),
    "a loop that adds nothing": Broken(
        "PS103", "go", "moves away from the end",
        LOOP + 'end = Enter(ten) frame_name="loop" is_constant=True T=int32\n'
        "more = Greater(end, merge) T=int32\ngo = LoopCond(more)\n"
        "switch = Switch(merge, go) T=int32\nnone = Const(^switch) value=0\n"
        "sum = AddV2(none, switch:1) T=int32\nnext = NextIteration(sum) T=int32\n"
        "exit = Exit(switch:0) T=int32",
    ),
    "a frame without a Switch": Broken(
        "PS103", "merge", "the frame never finishes",
        LOOP + "one = Const(^merge) value=1\nsum = AddV2(merge, one) T=int32\n"
        "next = NextIteration(sum) T=int32\nexit = Exit(merge) T=int32",
    ),
    "a loop that never begins": Broken(
        "PS104", "go", "never runs: its predicate 'more' is false",
        LOOP + 'end = Enter(ten) frame_name="loop" is_constant=True T=int32\n'
        "more = Greater(merge, end) T=int32\ngo = LoopCond(more)\n"
        "switch = Switch(merge, go) T=int32\none = Const(^switch) value=1\n"
        "sum = AddV2(switch:1, one) T=int32\nnext = NextIteration(sum) T=int32\n"
        "exit = Exit(switch:0) T=int32",
    ),
    "a queue that nothing fills": Broken(
        "PS105", "take", "nothing in the graph fills it",
        QUEUE + "take = QueueDequeueV2(q) component_types=['float32']",
    ),
    "a queue that is filled from itself": Broken(
        "PS105", "take", "('put') waits for something like this first",
        QUEUE + "take = QueueDequeueV2(q) component_types=['float32']\n"
        "more = AddV2(take, x)\nput = QueueEnqueueV2(q, more) Tcomponents=['float32']",
    ),
    "two queues that wait for each other": Broken(
        "PS105", "take", "waits for something like this first",
        TWO + "take = QueueDequeueV2(q) component_types=['float32']\n"
        "put = QueueEnqueueV2(other, take) Tcomponents=['float32']\n"
        "back = QueueDequeueV2(other) component_types=['float32']\n"
        "return = QueueEnqueueV2(q, back) Tcomponents=['float32']",
    ),
    "a control edge that comes too early": Broken(
        "PS105", "take", "('put') waits for something like this first",
        QUEUE + "take = QueueDequeueV2(q) component_types=['float32']\n"
        "put = QueueEnqueueV2(q, x, ^take) Tcomponents=['float32']",
    ),
    "more than a queue holds": Broken(
        "PS105", "c", "3 values are put into it before the first is taken, and it holds 2",
        QUEUE + "a = QueueEnqueueV2(q, x) Tcomponents=['float32']\n"
        "b = QueueEnqueueV2(q, x) Tcomponents=['float32']\n"
        "c = QueueEnqueueV2(q, x) Tcomponents=['float32']\n"
        "take = QueueDequeueV2(q, ^a, ^b, ^c) component_types=['float32']",
    ),
    "inputs from two frames": Broken(
        "PS106", "sum", "inputs from different frames",
        LOOP + "sum = AddV2(merge, ten) T=int32\nnext = NextIteration(sum) T=int32",
    ),
    "an Exit outside": Broken(
        "PS106", "exit", "Cannot find a corresponding Enter",
        "x = Const() value=1.0\nexit = Exit(x) T=float32",
    ),
    "two ends of one loop": Broken(
        "PS106", "", "more than one LoopCond",
        LOOP + "true = Const(^merge) value=True\ngo = LoopCond(true)\nagain = LoopCond(true)\n"
        "switch = Switch(merge, go) T=int32\nnext = NextIteration(switch:1) T=int32",
    ),
    "an op that nothing computes": Broken(
        "PS107", "tpu", "TPUReplicateMetadata has no kernel",
        "tpu = TPUReplicateMetadata() num_replicas=1",
    ),
    "a device that is none": Broken(
        "PS108", "x", "Malformed device specification",
        'x = Const() value=1.0 device="/device:CPU:zero?"\ny = Neg(x)',
    ),
    "shapes that do not fit": Broken(
        "PS109", "y", "Dimensions must be equal, but are 3 and 4",
        "a = Const() value=[1.0,2.0,3.0]\nb = Const() value=[1.0,2.0,3.0,4.0]\ny = AddV2(a, b)",
    ),
    "a control edge for nothing": Broken(
        "PS110", "y", "the control edge from 'x' does nothing",
        "x = Const() value=1.0\ny = Neg(x, ^x)",
    ),
    "a list that grows by copies": Broken(
        "PS111", "longer", "copies all of the loop variable 'list'",
        COUNTER + "none = Const() value=[0.0]\n"
        'in = Enter(none) frame_name="loop"\nlist = Merge(in, more) N=2\n'
        "old = Switch(list, go)\npiece = Const(^switch) value=[1.0]\n"
        "axis = Const(^switch) value=0\n"
        "longer = ConcatV2(old:1, piece, axis) N=2 T=float32 Tidx=int32\n"
        "more = NextIteration(longer)\nresult = Exit(old:0)",
    ),
    "the logarithm of a Softmax": Broken(
        "PS112", "y", "the logarithm of the Softmax 's'",
        "x = Placeholder() dtype=float32\ns = Softmax(x)\ny = Log(s)",
    ),
    "the logarithm of a Sigmoid": Broken(
        "PS112", "y", "the logarithm of the Sigmoid 's'",
        "x = Placeholder() dtype=float32\ns = Sigmoid(x)\ni = Identity(s)\ny = Log(i)",
    ),
    "a quotient by a difference": Broken(
        "PS112", "y", "divides by the difference 'd'",
        "a = Placeholder() dtype=float32\nb = Placeholder() dtype=float32\nd = Sub(a, b)\n"
        "y = RealDiv(a, d)",
    ),
    "the root of a difference": Broken(
        "PS112", "y", "takes the root of the difference 'd'",
        "a = Placeholder() dtype=float32\nb = Placeholder() dtype=float32\nd = Sub(a, b)\n"
        "y = Rsqrt(d)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_the_cause_is_named(name: str) -> None:
    """Its code, its node, its reason; and nothing else is said to be wrong."""
    broken = BROKEN[name]
    found = check(sketch(broken.rows), broken.fetches)
    assert {finding.code for finding in found} == {broken.code}, found
    assert any(
        finding.node == broken.node and broken.says in finding.message for finding in found
    ), found


SOUND = {
    "a write after a read": HANDLE + "read = ReadVariableOp(v) dtype=float32\n"
    "write = AssignVariableOp(v, one, ^read) dtype=float32\nboth = Identity(read, ^write)",
    "reads after a write": VARIABLE + "write = Assign(v, one)\nread = Identity(v, ^write)\n"
    "sum = AddV2(read, one)\nboth = AddV2(sum, write)",
    "two sums": HANDLE + "a = AssignAddVariableOp(v, one) dtype=float32\n"
    "b = AssignSubVariableOp(v, one) dtype=float32\nboth = NoOp(^a, ^b)",
    "writes in two branches": HANDLE + "p = Placeholder() dtype=bool\ns = Switch(one, p)\n"
    "a = AssignVariableOp(v, s:0) dtype=float32\nb = AssignVariableOp(v, s:1) dtype=float32\n"
    "m = Merge(s:0, s:1) N=2\nboth = Identity(m)",
    "a Merge of both sides": "p = Placeholder() dtype=bool\nx = Const() value=1.0\n"
    "s = Switch(x, p)\na = Neg(s:0)\nm = Merge(a, s:1) N=2\ny = Neg(m)",
    "an untaken branch behind a Merge": "p = Const() value=False\nx = Const() value=1.0\n"
    "s = Switch(x, p)\na = Neg(s:1)\nm = Merge(a, s:0) N=2",
    "a ControlTrigger": "p = Placeholder() dtype=bool\nx = Const() value=1.0\ns = Switch(x, p)\n"
    "a = Neg(s:0)\nb = Neg(s:1)\nt = ControlTrigger(^a, ^b)\ny = Neg(x, ^t)",
    "a loop that counts": COUNTER,
    "a queue that is filled elsewhere": QUEUE
    + "take = QueueDequeueV2(q) component_types=['float32']\n"
    "put = QueueEnqueueV2(q, x) Tcomponents=['float32']",
    "a queue that others may fill": QUEUE.replace("capacity=2", 'capacity=2 shared_name="s"')
    + "take = QueueDequeueV2(q) component_types=['float32']",
    "a queue that is closed": QUEUE + "take = QueueDequeueV2(q) component_types=['float32']\n"
    "end = QueueCloseV2(q)",
    "a queue that feeds itself once it is filled": QUEUE
    + "take = QueueDequeueV2(q) component_types=['float32']\n"
    "back = QueueEnqueueV2(q, take) Tcomponents=['float32']\n"
    "first = QueueEnqueueV2(q, x) Tcomponents=['float32']",
    "a quotient by what is bounded": "a = Placeholder() dtype=float32\n"
    "b = Placeholder() dtype=float32\nd = Sub(a, b)\ne = Const() value=0.1\n"
    "m = Maximum(d, e)\ny = RealDiv(a, m)",
    "one less something": "a = Placeholder() dtype=float32\none = Const() value=1.0\n"
    "d = Sub(one, a)\ny = RealDiv(a, d)",
}


@pytest.mark.parametrize("name", SOUND)
def test_what_is_right_is_not_said_to_be_wrong(name: str) -> None:
    """The neighbours of the broken graphs that have no mistake."""
    assert check(sketch(SOUND[name])) == []


def test_a_body_is_looked_at_where_it_is_called() -> None:
    """A finding inside a While says which function it is in, by the node of the call."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [2], name="x")
        ps.while_loop(
            lambda i, _: i < 3,
            lambda i, y: (i + 1, ps.ops.Log(x=ps.ops.Softmax(logits=y))),
            [ps.constant(0), x],
        )
    (found,) = check(graph)
    assert found.code == "PS112"


def test_every_code_has_its_place_in_the_docs() -> None:
    """A section with the code and the name, and a broken graph; or it is a loader's error."""
    page = (ROOT / "docs/check.md").read_text("utf-8")
    for code, name in NAMES.items():
        assert f"## {code} {name}\n" in page
    assert {broken.code for broken in BROKEN.values()} == set(NAMES) - {"PS100"}


# -- the command -------------------------------------------------------------------------


def _run(tmp_path: Path, name: str, *options: str) -> Any:
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_to_def(sketch(BROKEN[name].rows)).SerializeToString())
    return CliRunner().invoke(main, ["check", str(path), *options])


def test_the_command_says_what_it_found_and_fails(tmp_path: Path) -> None:
    """One finding, and a count; the exit status is 1 only because of an error."""
    result = _run(tmp_path, "a queue that nothing fills")
    assert result.exit_code == 1
    assert result.stdout.startswith("PS105 error  take  waits for ever")
    assert result.stdout.endswith("1 error\n")
    result = _run(tmp_path, "the logarithm of a Softmax")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "1 warning")
    assert _run(tmp_path, "the logarithm of a Softmax", "--strict").exit_code == 1


def test_other_tools_read_the_findings(tmp_path: Path) -> None:
    """As JSON, and as SARIF with the rule that each result is of."""
    (found,) = json.loads(_run(tmp_path, "an Exit outside", "--format", "json").stdout)
    assert (found["code"], found["severity"], found["node"]) == ("PS106", "error", "exit")
    log = json.loads(_run(tmp_path, "an Exit outside", "--format", "sarif").stdout)
    (run,) = log["runs"]
    (result,) = run["results"]
    assert log["version"] == "2.1.0"
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "exit"
    assert result["level"] == "error"


def test_what_cannot_be_loaded_is_a_finding() -> None:
    """With the loader's message."""
    definition = graph_to_def(sketch("x = Const() value=1.0\ny = Neg(x)"))
    definition.node[1].input[0] = "nothing"
    (found,) = check(definition)
    assert (found.code, found.severity) == ("PS100", Severity.ERROR)
    assert "nothing" in found.message
    assert isinstance(found, Finding)


def test_names_of_a_graph_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """What would be obeyed there is shown."""
    definition = graph_to_def(sketch("x = Const() value=1.0\nexit = Exit(x) T=float32"))
    definition.node[1].device = "/device:\x1b[31m"
    path = tmp_path / "graph.pb"
    path.write_bytes(definition.SerializeToString())
    assert "\x1b[31m" not in CliRunner().invoke(main, ["check", str(path)]).output
