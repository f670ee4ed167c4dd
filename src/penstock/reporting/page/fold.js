// Folds nodes into scopes: by the parts of their names, by function, by loop, by device.
//
// In:   the graph; which way of folding.
// Out:  a tree of items; no item has more than MOST children.
// Not:  draws nothing.
//
// An item is a scope or a node.  The nodes under an item lie side by side in `tree.order`, from
// `first` up to `last`, so that to go through them takes as long as there are some.

import { shortDevice } from "./format.js";

export const FOLDS = ["scope", "function", "frame", "device"];
// What a picture can show, and a reader can take in.
const MOST = 400;
// So many siblings whose names differ in their numbers are worth an item of their own.
const ALIKE = 4;

export function folded(graph, way) {
  const root = newItem("", null);
  for (let node = 0; node < graph.count; node++) place(root, pathOf(graph, node, way), node);
  const tree = { root, order: new Int32Array(graph.count), itemOf: new Array(graph.count) };
  group(root);
  number(tree, graph);
  return tree;
}

function newItem(name, parent) {
  return {
    name,
    parent,
    children: [],
    byName: new Map(),
    node: -1,
    // The node that has the scope's own name, if there is one.
    main: -1,
    first: 0,
    last: 0,
    depth: parent ? parent.depth + 1 : 0,
    nanos: 0,
    bytes: 0,
  };
}

// The scopes that a node is in, and then its own name.
function pathOf(graph, node, way) {
  const parts = graph.names[node].split("/");
  if (way === "function") return [graph.functions[node] || "(the graph itself)", ...parts];
  if (way === "device") return [shortDevice(graph.devices[node]), ...parts];
  if (way !== "frame") return parts;
  return [...(graph.frames[node] ? graph.frames[node].split(" › ") : ["(no loop)"]), ...parts];
}

function place(root, path, node) {
  let item = root;
  for (const part of path.slice(0, -1)) item = item.byName.get(part) ?? scopeIn(item, part);
  const leaf = newItem(path[path.length - 1], item);
  leaf.node = node;
  item.children.push(leaf);
}

function scopeIn(parent, name) {
  const scope = newItem(name, parent);
  parent.byName.set(name, scope);
  parent.children.push(scope);
  return scope;
}

// A node whose name is also that of a scope beside it belongs into that: `Conv2D` and
// `Conv2D/filter` are one thing.
function joinNamesakes(item) {
  item.children = item.children.filter((child) => {
    const scope = child.node < 0 ? undefined : item.byName.get(child.name);
    if (!scope) return true;
    scope.children.push(child);
    scope.main = child.node;
    child.parent = scope;
    return false;
  });
}

// Puts siblings into items of their own where there are too many of them.
function group(root) {
  const waiting = [root];
  while (waiting.length) {
    const item = waiting.pop();
    if (item.byName.size) joinNamesakes(item);
    item.byName.clear();
    if (item.children.length > MOST) item.children = alikeTogether(item);
    if (item.children.length > MOST) item.children = sliced(item);
    for (const child of item.children) if (child.node < 0) waiting.push(child);
  }
}

// Siblings whose names differ in their numbers only, as one: `layer_#`.
function alikeTogether(item) {
  const byPattern = new Map();
  for (const child of item.children) {
    const pattern =
      child.name.replace(/\d+/g, "#").replace(/_#$/, "") + (child.node < 0 ? "/" : "");
    if (!byPattern.has(pattern)) byPattern.set(pattern, []);
    byPattern.get(pattern).push(child);
  }
  if (byPattern.size === 1) return item.children;
  return [...byPattern].flatMap(([pattern, children]) =>
    children.length < ALIKE
      ? children
      : [adopted(item, `${pattern.replace(/\/$/, "")} …`, children)],
  );
}

// Siblings in their order, so many at a time.
function sliced(item) {
  const size = Math.max(MOST / 2, Math.ceil(item.children.length / MOST));
  const slices = [];
  for (let at = 0; at < item.children.length; at += size) {
    const part = item.children.slice(at, at + size);
    slices.push(adopted(item, `${part[0].name} … ${part[part.length - 1].name}`, part));
  }
  return slices;
}

function adopted(parent, name, children) {
  const item = newItem(name, parent);
  item.children = children;
  for (const child of children) child.parent = item;
  return item;
}

// Says where the nodes of each item lie in the order, and what they take together.
function number(tree, graph) {
  let at = 0;
  const visit = [[tree.root, false]];
  while (visit.length) {
    const [item, isDone] = visit.pop();
    if (isDone) {
      item.last = at;
      close(item);
      continue;
    }
    item.first = at;
    item.depth = item.parent ? item.parent.depth + 1 : 0;
    if (item.node >= 0) {
      tree.order[at++] = item.node;
      tree.itemOf[item.node] = item;
      item.last = at;
      item.nanos = graph.nanos[item.node];
      item.bytes = graph.bytes[item.node];
    } else {
      visit.push([item, true]);
      for (let i = item.children.length - 1; i >= 0; i--) visit.push([item.children[i], false]);
    }
  }
}

function close(item) {
  for (const child of item.children) {
    item.nanos += child.nanos;
    item.bytes += child.bytes;
  }
}

export const isScope = (item) => item.node < 0;
export const sizeOf = (item) => item.last - item.first;

// The items from the root down to this one.
export function wayTo(item) {
  const way = [];
  for (let at = item; at; at = at.parent) way.unshift(at);
  return way;
}
