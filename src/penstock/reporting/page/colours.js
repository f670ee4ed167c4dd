// What boxes are coloured by.
//
// In:   the model; a way of colouring; the names of what it tells apart.
// Out:  for each node a colour of the theme's palette, and a legend.
// Not:  knows no theme: it names the variables of the style.

import { shortDevice, time, bytes } from "./format.js";

export const COLOURS = ["device", "frame", "function", "op", "time", "memory"];
const HUES = 8;
const HEATS = 5;

// Kinds by how often they occur; the palette's last colour is for all others.
export function colouring(model, way) {
  const graph = model.graph;
  if (way === "time") return heat(graph.nanos, time);
  if (way === "memory") return heat(graph.bytes, bytes);
  const kindOf = {
    device: (node) => shortDevice(graph.devices[node] ?? ""),
    frame: (node) => graph.frames[node] || "no loop",
    function: (node) => graph.functions[node] || "no function",
    op: (node) => graph.ops[node],
  }[way];
  const count = new Map();
  for (let node = 0; node < graph.count; node++) {
    count.set(kindOf(node), (count.get(kindOf(node)) ?? 0) + 1);
  }
  const kinds = [...count.keys()].sort((a, b) => count.get(b) - count.get(a));
  const hueOf = new Map(kinds.map((kind, at) => [kind, `hue-${Math.min(at, HUES - 1)}`]));
  const legend = kinds.slice(0, HUES - 1).map((kind) => ({ label: kind, hue: hueOf.get(kind) }));
  if (kinds.length >= HUES) legend.push({ label: "others", hue: `hue-${HUES - 1}` });
  return { of: (node) => hueOf.get(kindOf(node)), legend };
}

// Steps of a tenth each, down from the node with most.
function heat(values, shown) {
  let most = 0;
  for (const value of values) most = Math.max(most, value);
  const level = (value) =>
    value > 0 ? Math.max(0, HEATS - 1 - Math.floor(Math.log10(most / value) * 1.25)) : 0;
  const legend = Array.from({ length: HEATS }, (_, at) => ({
    label: at === HEATS - 1 ? `up to ${shown(most)}` : at === 0 ? "less" : "",
    hue: `heat-${at}`,
  }));
  return { of: (node) => `heat-${level(values[node])}`, legend };
}

// How many nodes under an item have each colour, most first.
export function shares(tree, item, colourOf) {
  const count = new Map();
  for (let at = item.first; at < item.last; at++) {
    const hue = colourOf(tree.order[at]);
    count.set(hue, (count.get(hue) ?? 0) + 1);
  }
  return [...count].sort((a, b) => b[1] - a[1]);
}

// The colours of the theme that is on.
export function palette() {
  const style = getComputedStyle(document.documentElement);
  return new Proxy({}, { get: (_, name) => style.getPropertyValue(`--${name}`).trim() });
}
