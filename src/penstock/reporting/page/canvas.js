// Draws a picture on a canvas: only what is to be seen of it.
//
// In:   places, looks, the camera, the colours of the theme.
// Out:  pixels.
// Not:  answers no clicks and no keys; the elements above it do.

import { BOX } from "./layout.js";
import { fitCanvas } from "./dom.js";

// Smaller than this, no text can be read.
const READABLE = 0.38;

export function draw(canvas, { layout, looks, camera, colours }) {
  if (!fitCanvas(canvas)) return;
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  context.save();
  context.translate(camera.x, camera.y);
  context.scale(camera.scale, camera.scale);
  const seen = seenPart(canvas, camera);
  drawEdges(context, layout.edges, looks.edges, colours, seen);
  layout.boxes.forEach((place, at) => {
    if (overlaps(place, seen)) {
      drawBox(context, place, looks.boxes[at], colours, camera.scale, at === looks.selected);
    }
  });
  context.restore();
}

function seenPart(canvas, { x, y, scale }) {
  const left = -x / scale;
  const top = -y / scale;
  const right = left + canvas.clientWidth / scale;
  return { left, top, right, bottom: top + canvas.clientHeight / scale };
}

function overlaps({ x, y, width, height }, seen) {
  return x < seen.right && x + width > seen.left && y < seen.bottom && y + height > seen.top;
}

// Plain edges first, so that those that matter lie above.
function drawEdges(context, routes, looks, colours, seen) {
  const layers = [
    ["edge", 1, (look) => !look.isSelected && !look.isCritical && !look.isOnWay],
    ["critical", 2, (look) => look.isCritical],
    ["way", 3, (look) => look.isOnWay],
    ["selected", 2, (look) => look.isSelected],
  ];
  for (const [name, width, isMeant] of layers) {
    context.strokeStyle = context.fillStyle = colours[name];
    routes.forEach((points, at) => {
      if (!isMeant(looks[at]) || !mayBeSeen(points, seen)) return;
      context.lineWidth = width + Math.min(2, Math.log10(looks[at].count));
      context.setLineDash(looks[at].isControl ? [4, 4] : []);
      context.stroke(new Path2D(pathOf(points)));
      drawHead(context, points);
    });
  }
  context.setLineDash([]);
}

function mayBeSeen(points, seen) {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const place = { x: Math.min(...xs) - 1, y: Math.min(...ys) - 1 };
  const width = Math.max(...xs) - place.x + 2;
  return overlaps({ ...place, width, height: Math.max(...ys) - place.y + 2 }, seen);
}

// A curve through points that leaves and enters boxes straight up or down, as SVG writes it.
export function pathOf(points) {
  let text = `M${round(points[0])}`;
  for (let at = 1; at < points.length; at++) {
    const [from, to] = [points[at - 1], points[at]];
    const middle = (from[1] + to[1]) / 2;
    text += `C${round([from[0], middle])} ${round([to[0], middle])} ${round(to)}`;
  }
  return text;
}

function round([x, y]) {
  return `${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`;
}

function drawHead(context, points) {
  const [x, y] = points[points.length - 1];
  const isUp = points[points.length - 2][1] > y;
  const size = isUp ? -6 : 6;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 4, y - size);
  context.lineTo(x + 4, y - size);
  context.fill();
}

function drawBox(context, place, look, colours, scale, isSelected) {
  const { x, y, width, height } = place;
  context.fillStyle = look.isPort ? colours.ground : colours.box;
  context.strokeStyle = colours[frameOf(look, isSelected)];
  context.lineWidth = isSelected ? 3 : look.isCritical || look.isOnWay ? 2 : 1;
  context.setLineDash(look.isPort ? [5, 3] : []);
  if (look.isScope) rounded(context, x + 4, y + 4, width, height);
  rounded(context, x, y, width, height);
  context.setLineDash([]);
  drawShares(context, place, look.shares, colours);
  if (scale < READABLE) return;
  context.textBaseline = "middle";
  context.fillStyle = colours.ink;
  context.font = "600 12px system-ui, sans-serif";
  context.fillText(look.title, x + 14, y + 16, width - 20);
  context.fillStyle = colours.faint;
  context.font = "11px system-ui, sans-serif";
  context.fillText(look.subtitle, x + 14, y + 33, width - 20);
}

export function frameOf(look, isSelected) {
  if (isSelected) return "selected";
  if (look.isOnWay) return "way";
  return look.isCritical ? "critical" : "frame";
}

function rounded(context, x, y, width, height) {
  context.beginPath();
  context.roundRect(x, y, width, height, 6);
  context.fill();
  context.stroke();
}

// At the left side, each colour as high as it has nodes.
function drawShares(context, { x, y }, shares, colours) {
  for (const { at, size, hue } of stacked(shares, BOX.height - 8)) {
    context.fillStyle = colours[hue];
    context.fillRect(x + 4, y + 4 + at, 5, size);
  }
}

export function stacked(shares, height) {
  const total = shares.reduce((sum, [, count]) => sum + count, 0);
  let at = 0;
  return shares.map(([hue, count]) => {
    const part = { at, size: (count / total) * height, hue };
    at += part.size;
    return part;
  });
}
