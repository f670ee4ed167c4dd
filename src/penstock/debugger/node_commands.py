"""Commands that show nodes: what they are, what they read, who reads them, why they are dead.

In:   the words of a command.
Out:  text.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.debugger.command import Arguments, Command, Console, Parser
from penstock.debugger.show_tensor import brief, title
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.explanations import explain_node
from penstock.graph.graph import Node
from penstock.printable import printable

#: How far lists of inputs of inputs go, unless somebody says.
_DEPTH: Final = 20
_MOST: Final = 500
_NO_TRACEBACK: Final = (
    "the graph does not say where in Python its nodes were made: GraphDefs hold no tracebacks"
)


def _node_of(console: Console, name: str) -> Node:
    """The node that is meant: by its name, with or without a slot; else where the step stands.

    Raises:
        NotFoundError: the graph has none of that name; its functions may.

    """
    debugger = console.debugger
    if not name:
        stop = debugger.stop
        if stop is None or not stop.node:
            raise InvalidArgumentError("Which node?", next_step="write its name")
        name = stop.node
    node = debugger.graph.find(name) or debugger.graph.find(name.rpartition(":")[0])
    if node is None:
        inlined = any(one.node == name for one in debugger.records())
        reason = "is from a function, so the graph does not know it" if inlined else "is no node"
        hint = "lt -n and pt know it" if inlined else debugger.graph.hint(name)
        raise NotFoundError(f"{name} {reason}", next_step=hint)
    return node


def _info(console: Console, words: Arguments) -> str:
    node = _node_of(console, words.node)
    lines = [printable(f"{node.name} ({node.op.name})")]
    if node.requested_device:
        lines.append(f"  device   {printable(node.requested_device)}")
    lines += [f"  input    {_edge_text(src, slot)}" for src, slot in _inputs(node)]
    lines += [f"  control  {printable(edge.src.name)}" for edge in node.control_inputs]
    lines += [f"  output   {slot}: {dtype}" for slot, dtype in enumerate(node.output_types)]
    readers = dict.fromkeys(edge.dst.name for edge in node.out_edges)
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


def _inputs(node: Node) -> Iterator[tuple[Node, int]]:
    return ((edge.src, edge.src_slot) for edge in node.inputs if edge is not None)


def _edge_text(src: Node, slot: int) -> str:
    return printable(f"{src.name}:{slot} {src.output_types[slot]} ({src.op.name})")


def _list_inputs(console: Console, words: Arguments) -> str:
    node = _node_of(console, words.node)
    lines = [f"what {printable(node.name)} reads"]
    lines += _tree(node, words, console, is_backwards=True)
    return "\n".join(lines)


def _list_outputs(console: Console, words: Arguments) -> str:
    node = _node_of(console, words.node)
    lines = [f"who reads {printable(node.name)}"]
    lines += _tree(node, words, console, is_backwards=False)
    return "\n".join(lines)


def _tree(node: Node, words: Arguments, console: Console, *, is_backwards: bool) -> list[str]:
    """The neighbours of a node, and theirs; each is opened once."""
    lines: list[str] = []
    deepest = words.depth if words.recursive else 1
    pending = [(node, 0, "")]
    opened: set[Node] = set()
    while pending and len(lines) < _MOST:
        at, depth, text = pending.pop()
        if depth:
            again = " …" if at in opened and depth < deepest else ""
            lines.append("  " * depth + text + again)
        if depth < deepest and at not in opened:
            opened.add(at)
            near = list(_near(at, console, words.control, is_backwards))
            pending += [(other, depth + 1, said) for other, said in reversed(near)]
    return lines or ["  nothing"]


def _near(
    node: Node,
    console: Console,
    with_control: bool,  # noqa: FBT001  (as it was typed)
    is_backwards: bool,  # noqa: FBT001
) -> Iterator[tuple[Node, str]]:
    """The neighbours of a node on one side, with what is known of the tensor between."""
    edges = node.in_edges() if is_backwards else node.out_edges
    for edge in edges:
        other = edge.src if is_backwards else edge.dst
        if edge.is_control:
            if with_control:
                yield other, printable(f"^{other.name} ({other.op.name})")
            continue
        said = printable(f"{other.name} ({other.op.name})")
        if is_backwards:
            said = (
                f"{_edge_text(edge.src, edge.src_slot)}{_value(console, edge.src, edge.src_slot)}"
            )
        yield other, said


def _value(console: Console, node: Node, slot: int) -> str:
    """What a tensor is now; nothing if nobody knows."""
    try:
        return f" = {brief(console.debugger.record(f'{node.name}:{slot}'))}"
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
    feeds = [str(getattr(name, "name", name)) for name in debugger.feeds]
    history = debugger.history
    lines = [
        f"step {debugger.run_count}, {'ended' if debugger.has_ended else 'not ended'}",
        f"fetches  {printable(str(debugger.fetches))}",
        f"feeds    {printable(', '.join(feeds)) or 'nothing'}",
        f"nodes    {len(debugger.graph.names())} in the graph",
        f"memory   {history.nbytes} of {history.max_bytes} bytes; {history.forgotten} forgotten",
    ]
    lines += [f"breaks   {printable(str(one))}" for one in debugger.breakpoints]
    lines += [f"override {printable(node)}" for node in debugger.overrides.nodes]
    return "\n".join(lines)


def _explain(console: Console, words: Arguments) -> str:
    debugger, node = console.debugger, _node_of(console, words.node)
    fetches = (
        debugger.fetches if isinstance(debugger.fetches, (list, tuple)) else [debugger.fetches]
    )
    names = [str(getattr(one, "name", one)) for one in fetches]
    feeds = {str(getattr(name, "name", name)): value for name, value in debugger.feeds.items()}
    return str(explain_node.explain(debugger.session, node.name, names, feeds))


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
