"""GraphDef → Graph: read a whole definition, or merge one into a graph.

In:   a GraphDef message and ``ImportOptions``.
Out:  nodes added to a graph, and ``ImportResults``.
Not:  places nothing, runs nothing, infers no shapes.

Nodes may come in any order and refer to later ones.  They are created in the order of the
definition, as far as their inputs allow; only an edge from a NextIteration to a Merge may
close a cycle.  If any step fails, every node created so far is taken away again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.catalogue.op_def import OpDef
from penstock.core.collector import collector_paused
from penstock.core.names import (
    CONTROL_SLOT,
    Endpoint,
    first_free,
    is_legal_internal_name,
    is_legal_name,
    parse_endpoint,
    scopes_of,
)
from penstock.defs.attrs import Attr, PlaceholderAttr
from penstock.defs.large_contents import NO_CONTENTS, LargeContents
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError, OpError, UnimplementedError, Where
from penstock.graph.check_versions import check_versions
from penstock.graph.definition import MERGE, Definition
from penstock.graph.graph import Graph, Node, Versions
from penstock.graph.import_options import ImportOptions, ImportResults
from penstock.graph.validate import check_input_count, validated_attrs

_COLOCATE: Final = b"loc:@"
#: Ops that TensorFlow's front end gives more outputs when it wants a gradient.  A graph that was
#: written before does not have them.
_GROWING: Final = frozenset({"If", "StatelessIf", "While", "StatelessWhile"})
_INTERMEDIATES: Final = " Try using tf.compat.v1.experimental.output_all_intermediates(True)."
#: How many different attributes are kept for comparison.
_MAX_KNOWN: Final = 4096


def graph_from_def(
    graph_def: Message, contents: LargeContents = NO_CONTENTS, *, allow_internal_names: bool = False
) -> Graph:
    """A new graph of a whole definition; raises OpError if it is not acceptable."""
    graph = Graph()
    options = ImportOptions(contents=contents, allow_internal_names=allow_internal_names)
    import_graph_def(graph, graph_def, options)
    return graph


@collector_paused
def import_graph_def(
    graph: Graph, graph_def: Message, options: ImportOptions | None = None
) -> ImportResults:
    """Merge a definition into ``graph``; on error the graph is left as it was.

    Raises:
        InvalidArgumentError: a version, name, input, attribute or cycle is not acceptable.
        NotFoundError: an op is neither in the catalogue nor in the library.
        UnimplementedError: an op was removed before the graph's version.

    """
    with graph.lock:
        return _Import(graph, graph_def, options or ImportOptions()).run()


class _Import:
    """One import under way: the definition, and what was created of it so far."""

    def __init__(self, graph: Graph, graph_def: Message, options: ImportOptions) -> None:
        self.graph = graph
        self.options = options
        self.graph_def = graph_def
        self.prefix = options.prefix.rstrip("/") + "/" if options.prefix else ""
        #: The definition's nodes; read by ``run``, after what must be checked first.
        self.defs: Definition
        #: Signatures of the ops that were met, none of them removed before the graph was made.
        self.op_defs: dict[str, OpDef] = {}
        #: Attributes that were read and found good, by op and encoding.  Most nodes of a large
        #: graph have those of an earlier one, and share them.
        self.known_attrs: dict[tuple[str, bytes], dict[str, Attr]] = {}
        #: Created nodes by their name in the definition.
        self.created: dict[str, Node] = {}
        #: Data edges whose source did not exist yet: (source endpoint, node, slot).
        self.back_edges: list[tuple[Endpoint, Node, int]] = []
        self.input_map = {
            parse_endpoint(k): parse_endpoint(v) for k, v in options.input_map.items()
        }
        self.used_keys: set[Endpoint] = set()
        #: Names of nodes and scopes in the graph, kept up to date while names are made unique.
        self.taken: set[str] = set()

    def run(self) -> ImportResults:
        """The whole import, step by step."""
        versions_before = self.graph.versions
        check_versions(self.graph_def.versions)
        self.check_collisions()
        self.check_maps()
        is_legal = is_legal_internal_name if self.options.allow_internal_names else is_legal_name
        self.defs = Definition(
            self.graph_def.node, is_legal, needs_devices=self.options.expect_device
        )
        order = self.defs.order(self.input_map)
        self.graph.library.add_library(self.graph_def.library)
        try:
            for index in order:
                if not self.is_skipped(index):
                    self.create_node(index)
            self.add_back_edges()
            self.merge_versions()
            results = self.collect_results()
            self.repair_colocation()
        except BaseException:
            for node in reversed(list(self.created.values())):
                self.graph.remove_node(node)
            self.graph.versions = versions_before
            raise
        return results

    # -- names and maps ------------------------------------------------------------

    def check_collisions(self) -> None:
        """Settle the prefix, and refuse names that the graph has already."""
        options = self.options
        names = set(self.graph.names())
        scopes = {scope for name in names for scope in scopes_of(name)}
        self.taken = names | scopes
        if self.prefix:
            bare = self.prefix[:-1]
            if not is_legal_name(bare):
                raise InvalidArgumentError(
                    f"Imported node name prefix '{self.prefix}' would lead to invalid node names"
                )
            if options.uniquify_prefix:
                self.prefix = first_free(bare, self.taken) + "/"
        elif names and not options.uniquify_names:
            for node in self.graph_def.node:
                if node.name in self.graph or node.name in scopes:
                    raise InvalidArgumentError(
                        f"Node name '{node.name}' already exists in the Graph",
                        next_step="import with a prefix, or with uniquify_names",
                    )

    def check_maps(self) -> None:
        """Every mapped-to endpoint and control dependency must exist in the graph."""
        for key, value in self.input_map.items():
            entry = f"input_map entry {key}->{value}"
            if (key.slot == CONTROL_SLOT) != (value.slot == CONTROL_SLOT):
                raise InvalidArgumentError(f"{entry} between control edge and non-control edge")
            if value.node not in self.graph:
                raise InvalidArgumentError(
                    f"node '{value.node}' in input_map does not exist in graph ({entry})"
                )
        for name in self.options.control_dependencies:
            if name not in self.graph:
                raise InvalidArgumentError(
                    f"node '{name}' in control_dependencies does not exist in graph"
                )

    # -- one node ------------------------------------------------------------------

    def is_skipped(self, index: int) -> bool:
        """Whether all outputs of a def are mapped, and such defs are left out."""
        if not self.options.skip_mapped_nodes or not self.input_map:
            return False
        node = self.defs.protos[index]
        op = self.graph.op_def(node.op)
        outputs = len(op.output_types(validated_attrs(node, op)))
        return all(Endpoint(node.name, slot) in self.input_map for slot in range(outputs))

    def create_node(self, index: int) -> None:
        """Create one node with all edges whose sources exist."""
        proto = self.defs.protos[index]
        try:
            attrs = self.attrs_of(index, proto)
            op = self.op_defs[self.defs.ops[index]]
            data = [e for e in self.defs.inputs[index] if e.slot != CONTROL_SLOT]
            node = self.created[self.defs.names[index]] = self.add_node(index, op, attrs)
            check_input_count(proto, node.input_types, len(data))
            self.add_data_edges(index, node, data)
            if len(data) < len(self.defs.inputs[index]) or self.options.control_dependencies:
                self.add_control_edges(index, node)
        except OpError as error:
            raise error.at(Where(proto.name, proto.op, proto.device)) from None

    def attrs_of(self, index: int, proto: Message) -> dict[str, Attr]:
        """The attributes of a def, checked; those of earlier defs that are alike."""
        op = self.defs.ops[index]
        content = self.options.contents.get(index)
        encoded = self.defs.encoded_attrs(index) if content is None else b""
        known = self.known_attrs.get((op, encoded))
        if known is not None:
            return known
        self.check_colocation(proto)
        op_def = self.op_defs.get(op) or self.op_def(op)
        attrs = validated_attrs(proto, op_def)
        self.check_bound(proto, op_def, attrs)
        attrs = self.with_prefix(attrs)
        if content is not None:
            attrs["value"] = attrs["value"].with_content(content)
        if encoded and len(self.known_attrs) < _MAX_KNOWN:
            self.known_attrs[op, encoded] = attrs
        return attrs

    def check_colocation(self, proto: Message) -> None:
        """Every ``loc:@NAME`` must name a node of the definition."""
        attrs = proto.attr
        if "_class" not in attrs or not self.options.validate_colocation:
            return
        for group in attrs["_class"].list.s:
            target = group.removeprefix(_COLOCATE).decode("utf-8", "replace")
            if group.startswith(_COLOCATE) and target not in self.defs.position:
                raise InvalidArgumentError(
                    f"Node '{proto.name}' expects to be colocated with unknown node '{target}'"
                )

    def check_bound(self, proto: Message, op: OpDef, attrs: Mapping[str, Attr]) -> None:
        """Refuse attributes that stand for those of an enclosing function: there is none."""
        for name, value in attrs.items():
            if type(value) is PlaceholderAttr and name in op.attrs:
                raise InvalidArgumentError(
                    f"Node '{proto.name}': attr '{name}' is a placeholder for '{value.name}', "
                    "which only the body of a function may have"
                )

    def op_def(self, name: str) -> OpDef:
        """The signature of an op; refuses those that were removed before the graph was made."""
        op = self.graph.op_def(name)
        producer = self.graph_def.versions.producer
        if 0 < op.deprecated_in <= producer:
            raise UnimplementedError(
                f"Op {op.name} is not available in GraphDef version {producer}. It has been "
                f"removed in version {op.deprecated_in}.",
                next_step="regenerate the graph with the op's successor",
            )
        self.op_defs[name] = op
        return op

    def add_node(self, index: int, op: OpDef, attrs: dict[str, Attr]) -> Node:
        """Create the node under its final name."""
        device = self.defs.devices[index] or self.options.default_device
        return self.graph.add_node(
            self.final_name(self.defs.names[index]),
            op,
            attrs,
            device=device,
            assigned_device=device if self.options.expect_device else "",
            requested_inputs=self.defs.input_texts[index],
        )

    def with_prefix(self, attrs: dict[str, Attr]) -> dict[str, Attr]:
        """The attributes, with the prefix before the names of nodes to lie with."""
        if not self.prefix or "_class" not in attrs:
            return attrs
        groups = [
            _COLOCATE + self.prefix.encode() + group.removeprefix(_COLOCATE)
            if group.startswith(_COLOCATE)
            else group
            for group in attrs["_class"]
        ]
        return {**attrs, "_class": tuple(groups)}

    def final_name(self, name: str) -> str:
        """The name with prefix, made unique if that was asked for."""
        name = self.prefix + name if self.prefix else name
        if not self.options.uniquify_names or (self.prefix and self.options.uniquify_prefix):
            return name
        if name in self.taken:
            # A number that we choose must not be a later name of the definition either.
            name = first_free(name, self.taken | {self.prefix + n for n in self.defs.position})
        self.taken |= {name, *scopes_of(name)}
        return name

    def add_data_edges(self, index: int, node: Node, data: list[Endpoint]) -> None:
        """Join the data inputs; those whose source is still to come are noted."""
        for slot, endpoint in enumerate(data):
            source, source_slot = self.created.get(endpoint.node), endpoint.slot
            if self.input_map and endpoint in self.input_map:
                self.used_keys.add(endpoint)
                mapped = self.input_map[endpoint]
                source, source_slot = self.graph.node(mapped.node), mapped.slot
            if source is None:
                if node.op.name not in MERGE:
                    raise InvalidArgumentError(
                        f"Node '{node.name}' had a back edge, but only Merge nodes can have back "
                        "edges."
                    )
                self.back_edges.append((endpoint, node, slot))
                continue
            if source_slot >= len(source.output_types):
                raise InvalidArgumentError(
                    f"Node '{self.defs.names[index]}': Connecting to invalid output {source_slot} "
                    f"of source node {source.name} which has {len(source.output_types)} outputs."
                    f"{_INTERMEDIATES if source.op.name in _GROWING else ''}"
                )
            self.graph.add_edge(source, source_slot, node, slot)

    def add_control_edges(self, index: int, node: Node) -> None:
        """Join the control inputs, and the control dependencies of the whole import."""
        sources, inherits = [], False
        for endpoint in self.defs.inputs[index]:
            if endpoint in self.input_map:
                if endpoint.slot == CONTROL_SLOT:
                    self.used_keys.add(endpoint)
                    sources.append(self.graph.node(self.input_map[endpoint].node))
            elif endpoint.node in self.created:
                inherits = True
                if endpoint.slot == CONTROL_SLOT:
                    sources.append(self.created[endpoint.node])
        if not inherits:
            sources += map(self.graph.node, self.options.control_dependencies)
        if sources:
            self.graph.add_control_edges(sources, node)

    def add_back_edges(self) -> None:
        """Join the loops' back edges, now that all nodes exist."""
        for endpoint, node, slot in self.back_edges:
            source = self.created.get(endpoint.node)
            if source is None:
                raise InvalidArgumentError(
                    f"Node '{node.name}': the back edge from '{endpoint}' has no source"
                )
            self.graph.add_edge(source, endpoint.slot, node, slot)

    # -- afterwards ----------------------------------------------------------------

    def merge_versions(self) -> None:
        """Lower the producer, raise the demands on consumers, join the bad ones."""
        new, old = self.graph_def.versions, self.graph.versions
        if len(self.graph) == len(self.created):
            merged = (new.producer, new.min_consumer, tuple(new.bad_consumers))
        else:
            merged = (
                min(new.producer, old.producer),
                max(new.min_consumer, old.min_consumer),
                tuple(sorted({*new.bad_consumers, *old.bad_consumers})),
            )
        self.graph.versions = Versions(*merged)

    def collect_results(self) -> ImportResults:
        """Look up what the caller wanted back."""
        if self.options.return_nodes and self.options.skip_mapped_nodes:
            raise InvalidArgumentError("Requested return nodes cannot be combined with skipping")
        tensors = tuple(self.returned_tensor(t) for t in self.options.return_tensors)
        nodes = []
        for name in self.options.return_nodes:
            if name not in self.created:
                raise InvalidArgumentError(f"Requested return node '{name}' not found in graph def")
            nodes.append(self.created[name])
        return ImportResults(tensors, tuple(nodes), self.unused_keys(), self.created)

    def returned_tensor(self, text: str) -> tuple[Node, int]:
        """A requested endpoint, mapped ones included."""
        endpoint = parse_endpoint(text)
        if endpoint in self.input_map:
            self.used_keys.add(endpoint)
            return self.graph.endpoint(self.input_map[endpoint])
        node = self.created.get(endpoint.node)
        if node is None:
            raise InvalidArgumentError(f"Requested return tensor '{text}' not found in graph def")
        if endpoint.slot >= len(node.output_types):
            raise InvalidArgumentError(
                f"Invalid return output {endpoint.slot} of node '{endpoint.node}', which has "
                f"{len(node.output_types)} output(s)"
            )
        return node, endpoint.slot

    def unused_keys(self) -> tuple[str, ...]:
        """Keys of the input map that were not used, and name nothing in the definition."""
        missing = []
        for key in self.input_map.keys() - self.used_keys:
            node = self.created.get(key.node)
            if key.node not in self.defs.position or (
                node is not None and key.slot >= len(node.output_types)
            ):
                missing.append(str(key))
        return tuple(sorted(missing))

    def repair_colocation(self) -> None:
        """Point ``loc:@`` at the new names of nodes that were renamed."""
        if not self.options.uniquify_names:
            return
        renamed = {
            (_COLOCATE + (self.prefix + old).encode()): _COLOCATE + node.name.encode()
            for old, node in self.created.items()
        }
        for node in self.created.values():
            groups = node.attrs.get("_class")
            if groups:
                node.attrs = {**node.attrs, "_class": tuple(renamed.get(g, g) for g in groups)}
