// What is to be seen of one open scope: its children as boxes, what it reads and who reads it.
//
// In:   the graph, a tree of items, the open scope.
// Out:  boxes, and edges between them; each edge stands for all of the nodes inside its ends.
// Not:  says not where boxes are; `layout.js` does.
//
// Takes as long as the scope has nodes and edges; only who reads it is looked up from outside.

import { isScope } from "./fold.js";

// So many nodes outside of the scope have boxes of their own.
const MOST_PORTS = 24;

export function pictureOf(graph, tree, scope) {
  const boxes = scope.children.map((item) => ({ item, port: "", node: item.node, more: 0 }));
  const boxOf = new Int32Array(graph.count).fill(-1);
  scope.children.forEach((item, box) => {
    for (let at = item.first; at < item.last; at++) boxOf[tree.order[at]] = box;
  });
  const edges = new Edges();
  const ports = { in: new Ports(boxes, "in"), out: new Ports(boxes, "out") };
  for (let at = scope.first; at < scope.last; at++) {
    addEdges(graph, tree.order[at], boxOf, edges, ports);
  }
  return { scope, boxes, edges: edges.all(), boxOf };
}

function addEdges(graph, node, boxOf, edges, ports) {
  const box = boxOf[node];
  for (let at = graph.first[node]; at < graph.first[node + 1]; at++) {
    const source = graph.sources[at];
    const from = boxOf[source] >= 0 ? boxOf[source] : ports.in.of(source);
    if (from !== box) edges.add(from, box, graph.slots[at] < 0, source, node);
  }
  const { first, nodes } = graph.readers;
  for (let at = first[node]; at < first[node + 1]; at++) {
    const reader = nodes[at];
    if (boxOf[reader] < 0) edges.add(box, ports.out.of(reader), false, node, reader);
  }
}

// Boxes for nodes outside of the scope; the last stands for all that there are more.
class Ports {
  constructor(boxes, side) {
    this.boxes = boxes;
    this.side = side;
    this.known = new Map();
    this.rest = -1;
  }

  of(node) {
    const known = this.known.get(node);
    if (known !== undefined) return known;
    const isFull = this.known.size >= MOST_PORTS;
    const box = isFull ? this.shared() : this.boxes.push(this.port(node)) - 1;
    if (isFull) this.boxes[box].more++;
    this.known.set(node, box);
    return box;
  }

  shared() {
    if (this.rest < 0) this.rest = this.boxes.push(this.port(-1)) - 1;
    return this.rest;
  }

  port(node) {
    return { item: null, port: this.side, node, more: 0 };
  }
}

class Edges {
  constructor() {
    this.byEnds = new Map();
  }

  add(from, to, isControl, source, target) {
    const key = from * 65536 + to;
    const edge = this.byEnds.get(key);
    if (!edge) this.byEnds.set(key, { from, to, isControl, count: 1, pairs: [[source, target]] });
    else {
      edge.count++;
      edge.isControl &&= isControl;
      edge.pairs.push([source, target]);
    }
  }

  all() {
    return [...this.byEnds.values()];
  }
}

// What a box is called.
export function titleOf(graph, box) {
  if (box.item) return box.item.name;
  return box.node < 0 ? `and ${box.more} more` : graph.names[box.node];
}

export const canOpen = (box) => box.item !== null && isScope(box.item);
