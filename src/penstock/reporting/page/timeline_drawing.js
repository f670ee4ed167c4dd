// Draws a timeline on a canvas: only what is to be seen of it.
//
// In:   rows, activities, a scale, what is selected and critical, the colours of the theme.
// Out:  pixels.
// Not:  answers no clicks and no keys.

import { fitCanvas } from "./dom.js";
import { shortDevice, time } from "./format.js";
import { LABELS } from "./timeline_scale.js";

export const TOP = 26;
export const HEIGHT = 18;
export const GAP = 10;
const LEAST_NAMED = 40;

export function drawTimeline(canvas, view) {
  if (!fitCanvas(canvas)) return;
  const context = canvas.getContext("2d");
  const { clientWidth: width, clientHeight: height } = canvas;
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  drawTimes(context, view, width, height);
  for (const row of view.rows) {
    context.fillStyle = view.colours.faint;
    const label = `${shortDevice(row.device)} ${row.thread}`;
    context.fillText(label, 4, row.y + HEIGHT / 2, LABELS - 10);
    context.save();
    context.beginPath();
    context.rect(LABELS, row.y - 2, width - LABELS, row.depth * HEIGHT + 4);
    context.clip();
    row.items.forEach((at, number) => {
      drawActivity(context, view, at, row.y + row.depths[number] * HEIGHT);
    });
    context.restore();
  }
}

// Some four to twenty times, at round numbers.
function drawTimes(context, { scale, colours }, width, height) {
  const step = 10 ** Math.floor(Math.log10(scale.span / 4));
  const each = scale.span / step > 20 ? step * 5 : step * 2;
  context.fillStyle = colours.faint;
  for (let at = Math.ceil(scale.from / each) * each; at <= scale.to; at += each) {
    const x = scale.x(at);
    context.fillRect(x, 16, 1, 6);
    context.globalAlpha = 0.15;
    context.fillRect(x, TOP, 1, height - TOP);
    context.globalAlpha = 1;
    if (x < width - LEAST_NAMED) context.fillText(time(Math.round(at)), x + 3, 10);
  }
}

function drawActivity(context, { activities, scale, colours, hueOf, names, critical, at }, one, y) {
  const { start, duration, op, name } = activities;
  const end = start[one] + duration[one];
  if (end < scale.from || start[one] > scale.to) return;
  const x = scale.x(start[one]);
  const width = Math.max(1, scale.x(end) - x);
  context.fillStyle = colours[hueOf.get(op[one])];
  context.fillRect(x, y, width, HEIGHT - 2);
  if (critical.has(one)) {
    context.fillStyle = colours.critical;
    context.fillRect(x, y + HEIGHT - 5, width, 3);
  }
  if (one === at) {
    context.strokeStyle = colours.selected;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, width + 2, HEIGHT);
  }
  if (width > LEAST_NAMED) {
    const text = names[name[one]].split("/").pop();
    context.fillStyle = colours.onhue;
    context.fillText(text, x + 3, y + HEIGHT / 2 - 1, width - 6);
  }
}
