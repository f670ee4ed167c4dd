// How each box and each edge of a picture looks: for the canvas and for SVG alike.
//
// In:   the state, a picture.
// Out:  texts, colours by name, and marks.
// Not:  draws nothing.

import { colouring, shares } from "./colours.js";
import { isScope, sizeOf } from "./fold.js";
import { bytes, counted, cut, time } from "./format.js";
import { titleOf } from "./picture.js";

const MOST_CHARS = 24;
// What is drawn beside each other in the bar of a scope.
const MOST_SHARES = 6;

export function looksOf(state, picture) {
  const { model, tree } = state;
  const colours = colouring(model, state.colour);
  const critical = criticalOf(model);
  const way = new Set(state.way);
  const looks = picture.boxes.map((box) => lookOf(state, box, colours));
  const mark = (nodes, name) => {
    for (const node of nodes) {
      const box = picture.boxOf[node];
      if (box >= 0) looks[box][name] = true;
    }
  };
  mark(critical.nodes, "isCritical");
  mark(way, "isOnWay");
  const selected = picture.boxes.findIndex((box) => isSelected(state, box));
  const edges = picture.edges.map((edge) => ({
    isControl: edge.isControl,
    isCritical: edge.pairs.some(([from, to]) => critical.pairs.has(from * model.graph.count + to)),
    isOnWay: edge.pairs.some(([from, to]) => followsOn(state.way, from, to)),
    isSelected: edge.from === selected || edge.to === selected,
    count: edge.count,
  }));
  return { boxes: looks, edges, selected, legend: colours.legend, tree };
}

function isSelected(state, box) {
  return state.node >= 0 ? box.node === state.node : box.item !== null && box.item === state.item;
}

function followsOn(way, from, to) {
  const at = way.indexOf(from);
  return at >= 0 && way[at + 1] === to;
}

function lookOf(state, box, colours) {
  const { graph } = state.model;
  const { item, node } = box;
  return {
    title: cut(titleOf(graph, box), MOST_CHARS),
    subtitle: cut(subtitleOf(state, box), MOST_CHARS + 4),
    isScope: item !== null && isScope(item),
    isPort: item === null,
    isCritical: false,
    isOnWay: false,
    shares:
      item === null
        ? node < 0
          ? []
          : [[colours.of(node), 1]]
        : shares(state.tree, item, colours.of).slice(0, MOST_SHARES),
  };
}

function subtitleOf(state, { item, node, port }) {
  const { graph, step } = state.model;
  if (item === null) return port === "in" ? "from outside" : "outside reads it";
  const cost = !step ? "" : state.colour === "memory" ? bytes(item.bytes) : time(item.nanos);
  const main = item.main >= 0 ? `${graph.ops[item.main]} in ` : "";
  const what = isScope(item) ? main + counted(sizeOf(item), "node") : graph.ops[node];
  return cost && item.nanos ? `${what} · ${cost}` : what;
}

// Nodes and pairs of nodes that the end of the step waited for.
const known = new WeakMap();
function criticalOf(model) {
  if (!known.has(model)) known.set(model, findCritical(model));
  return known.get(model);
}

function findCritical({ graph, step }) {
  // What only the step has, such as a Send, stands between two nodes of the graph.
  const nodes = (step?.critical ?? [])
    .map((at) => step.activities.name[at])
    .filter((node) => node < graph.count);
  const pairs = new Set();
  for (let at = 1; at < nodes.length; at++) pairs.add(nodes[at - 1] * graph.count + nodes[at]);
  return { nodes: new Set(nodes), pairs };
}
