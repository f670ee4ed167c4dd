"""Commands that show nodes: what they are, what they read, who reads them, why they are dead.

In:   the words of a command.
Out:  text.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

from penstock.comparison.as_run import FED, inputs_of, readers_of
from penstock.debugger.command import Arguments, Command, Console, Parser
from penstock.debugger.show_tensor import brief, title
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.explanations import explain_node
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.printable import printable

#: How far lists of inputs of inputs go, unless somebody says.
_DEPTH: Final = 20
_MOST: Final = 500
#: The neighbours of a node on one side, and what is said of them.
_Near: TypeAlias = Callable[[Node], Iterator[tuple[Node, str]]]
_NO_TRACEBACK: Final = (
    "the graph does not say where in Python its nodes were made: GraphDefs hold no tracebacks"
)


def _node_of(console: Console, name: str) -> Node:
    """The node that is meant: by its name, with or without a slot; else where the step stands.

    Raises:
        NotFoundError: there is none of that name, or only in a function that stays a call.

    """
    debugger = console.debugger
    if not name:
        stop = debugger.stop
        if stop is None or not stop.node:
            raise InvalidArgumentError("Which node?", next_step="write its name")
        name = stop.node
    node = debugger.nodes.find(name) or debugger.nodes.find(name.rpartition(":")[0])
    if node is not None:
        return node
    debugger.check_name(name)
    raise NotFoundError(
        f"{name} is from a function that stays a call, of which only values are known",
        next_step="lt -n and pt show them",
    )


def _info(console: Console, words: Arguments) -> str:
    node = _node_of(console, words.node)
    lines = [printable(f"{node.name} ({node.op.name})")]
    if node.requested_device:
        lines.append(f"  device   {printable(node.requested_device)}")
    lines += [f"  input    {_tensor_text(name, edge)}" for name, edge in inputs_of(node)]
    lines += [f"  control  {printable(edge.src.name)}" for edge in node.control_inputs]
    lines += [f"  output   {slot}: {dtype}" for slot, dtype in enumerate(node.output_types)]
    readers = dict.fromkeys(edge.dst.name for edge in readers_of(node))
    lines += [f"  read by  {printable(name)}" for name in readers]
    if words.attributes:
        lines += [f"  {printable(f'{n} = {v!r}'[:_MOST])}" for n, v in sorted(node.attrs.items())]
    if words.dumps:
        for slot in range(len(node.output_types)):
            found = console.debugger.records(f"{node.name}:{slot}")[-_MOST:]
            lines += [f"  {title(one)} = {brief(one)}" for one in found] or ["  has not run"]
    if words.traceback:
        lines.append(f"  {_NO_TRACEBACK}")
    return "\n".join(lines)


def _info_arguments(parser: Parser) -> None:
    parser.add_argument("-a", dest="attributes", action="store_true")
    parser.add_argument("-d", dest="dumps", action="store_true")
    parser.add_argument("-t", dest="traceback", action="store_true")
    parser.add_argument("node", nargs="?", default="", metavar="NODE")


def _tensor_text(name: str, edge: Edge) -> str:
    op = FED if edge.src.role is Role.ARG else edge.src.op.name
    return printable(f"{name} {edge.src.output_types[edge.src_slot]} ({op})")


def _list_inputs(console: Console, words: Arguments) -> str:
    node = _node_of(console, words.node)
    lines = [f"what {printable(node.name)} reads"]
    near = partial(_before, console, with_control=words.control)
    lines += _tree(node, near, words.depth if words.recursive else 1)
    return "\n".join(lines)


def _list_outputs(console: Console, words: Arguments) -> str:
    node = _node_of(console, words.node)
    lines = [f"who reads {printable(node.name)}"]
    near = partial(_behind, with_control=words.control)
    lines += _tree(node, near, words.depth if words.recursive else 1)
    return "\n".join(lines)


def _tree(node: Node, near: _Near, deepest: int) -> list[str]:
    """The neighbours of a node, and theirs; each is opened once."""
    lines: list[str] = []
    pending = [(node, 0, "")]
    opened: set[Node] = set()
    while pending and len(lines) < _MOST:
        at, depth, text = pending.pop()
        if depth:
            again = " …" if at in opened and depth < deepest else ""
            lines.append("  " * depth + text + again)
        if depth < deepest and at not in opened:
            opened.add(at)
            pending += [(other, depth + 1, said) for other, said in reversed(list(near(at)))]
    return lines or ["  nothing"]


def _before(console: Console, node: Node, *, with_control: bool) -> Iterator[tuple[Node, str]]:
    """The nodes that a node reads, with what is known of the tensors."""
    for name, edge in inputs_of(node):
        yield edge.src, f"{_tensor_text(name, edge)}{_value(console, name)}"
    if with_control:
        yield from ((edge.src, _control_text(edge.src)) for edge in node.control_inputs)


def _behind(node: Node, *, with_control: bool) -> Iterator[tuple[Node, str]]:
    """The nodes that read a node."""
    for edge in readers_of(node):
        if not edge.is_control:
            yield edge.dst, printable(f"{edge.dst.name} ({edge.dst.op.name})")
        elif with_control:
            yield edge.dst, _control_text(edge.dst)


def _control_text(node: Node) -> str:
    return printable(f"^{node.name} ({node.op.name})")


def _value(console: Console, name: str) -> str:
    """What a tensor is now; nothing if nobody knows."""
    try:
        return f" = {brief(console.debugger.record(name))}"
    except NotFoundError:
        return ""


def _tree_arguments(parser: Parser) -> None:
    parser.add_argument("-r", dest="recursive", action="store_true")
    parser.add_argument("-d", dest="depth", type=int, default=_DEPTH, metavar="DEPTH")
    parser.add_argument("-c", dest="control", action="store_true")
    parser.add_argument("node", nargs="?", default="", metavar="NODE")


def _sources(_console: Console, _words: Arguments) -> str:
    return _NO_TRACEBACK


def _source_arguments(parser: Parser) -> None:
    parser.add_argument("rest", nargs="*", metavar="FILE.py")


def _run_info(console: Console, _words: Arguments) -> str:
    debugger = console.debugger
    feeds = list(debugger.nodes.feeds)
    history = debugger.history
    lines = [
        f"step {debugger.run_count}, {'ended' if debugger.has_ended else 'not ended'}",
        f"fetches  {printable(str(debugger.fetches))}",
        f"feeds    {printable(', '.join(feeds)) or 'nothing'}",
        f"nodes    {len(debugger.nodes.names())}",
        f"memory   {history.nbytes} of {history.max_bytes} bytes; {history.forgotten} forgotten",
    ]
    lines += [f"breaks   {printable(str(one))}" for one in debugger.breakpoints]
    lines += [f"override {printable(node)}" for node in debugger.overrides.nodes]
    return "\n".join(lines)


def _explain(console: Console, words: Arguments) -> str:
    debugger, node = console.debugger, _node_of(console, words.node)
    if debugger.graph.find(node.name) is None:
        raise NotFoundError(
            f"{node.name} is from a function", next_step="ask about the node that calls it"
        )
    wanted, feeds = debugger.nodes.wanted, debugger.nodes.feeds
    return str(explain_node.explain(debugger.session, node.name, wanted, feeds))


def _node_arguments(parser: Parser) -> None:
    parser.add_argument("node", nargs="?", default="", metavar="NODE")


_TREE = """

  -r        recursively
  -d DEPTH  not deeper than that
  -c        control edges, too"""
COMMANDS = (
    Command("ni", """what a node is; without a name, the one where the step stands

  -a  its attributes
  -d  its values so far
  -t  where in Python it was made, if the graph says so""",
        _info, _info_arguments, ("node_info",)),
    Command("li", "list what a node reads, with values" + _TREE,
        _list_inputs, _tree_arguments, ("list_inputs",)),
    Command("lo", "list who reads a node" + _TREE,
        _list_outputs, _tree_arguments, ("list_outputs",)),
    Command("ls", "list Python files that made nodes", _sources, _source_arguments,
        ("list_source",)),
    Command("ps", "print a Python file that made nodes", _sources, _source_arguments,
        ("print_source",)),
    Command("ri", "what is run, and how much is remembered", _run_info, aliases=("run_info",)),
    Command("explain", "why a node is dead, pruned, or on its device", _explain, _node_arguments),
)  # fmt: skip
