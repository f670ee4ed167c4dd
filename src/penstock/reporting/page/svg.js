// The picture of the open scope as SVG, in the colours of the theme that is on.
//
// In:   places, looks, colours.
// Out:  text.
// Not:  writes no markup itself: the browser does, and escapes what names have in them.

import { frameOf, pathOf, stacked } from "./canvas.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARGIN = 16;

export function svgOf(layout, looks, colours) {
  const width = Math.ceil(layout.width + 2 * MARGIN);
  const height = Math.ceil(layout.height + 2 * MARGIN);
  const root = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  root.append(shape("rect", { width, height, fill: colours.ground }));
  const group = shape("g", { transform: `translate(${MARGIN} ${MARGIN})` });
  group.setAttribute("font-family", "system-ui, sans-serif");
  layout.edges.forEach((points, at) => group.append(edge(points, looks.edges[at], colours)));
  layout.boxes.forEach((place, at) => {
    group.append(box(place, looks.boxes[at], colours, at === looks.selected));
  });
  root.append(group);
  return new XMLSerializer().serializeToString(root);
}

function shape(name, attributes, text) {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function edge(points, look, colours) {
  const colour = look.isOnWay ? "way" : look.isCritical ? "critical" : "edge";
  const dashes = look.isControl ? { "stroke-dasharray": "4 4" } : {};
  return shape("path", { d: pathOf(points), fill: "none", stroke: colours[colour], ...dashes });
}

function box({ x, y, width, height }, look, colours, isSelected) {
  const group = shape("g", { transform: `translate(${x} ${y})` });
  const stroke = colours[frameOf(look, isSelected)];
  const fill = look.isPort ? colours.ground : colours.box;
  if (look.isScope) {
    group.append(shape("rect", { x: 4, y: 4, width, height, rx: 6, fill, stroke }));
  }
  group.append(shape("rect", { width, height, rx: 6, fill, stroke }));
  for (const { at, size, hue } of stacked(look.shares, height - 8)) {
    group.append(shape("rect", { x: 4, y: 4 + at, width: 5, height: size, fill: colours[hue] }));
  }
  const title = { x: 14, y: 20, fill: colours.ink, "font-size": 12, "font-weight": 600 };
  const subtitle = { x: 14, y: 37, fill: colours.faint, "font-size": 11 };
  group.append(shape("text", title, look.title), shape("text", subtitle, look.subtitle));
  return group;
}
