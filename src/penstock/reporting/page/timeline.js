// What ran when: a row for each thread of each device, on a canvas that zooms.
//
// In:   the activities of a step; keys, wheels and drags.
// Out:  a drawing; the current activity as text, for who does not see it; calls of the state.
// Not:  draws nothing itself, and measures nothing.

import { palette } from "./colours.js";
import { $, oncePerFrame } from "./dom.js";
import { counted, shortDevice, time } from "./format.js";
import { GAP, HEIGHT, TOP, drawTimeline } from "./timeline_drawing.js";
import { rowsOf } from "./timeline_rows.js";
import { LABELS, Scale } from "./timeline_scale.js";

const HUES = 8;
const ZOOM = 0.6;
// So many points beside an activity still mean it.
const NEAR = 2;

export class Timeline {
  constructor({ model }, show) {
    this.show = show;
    this.names = model.graph.names;
    this.activities = model.step.activities;
    this.count = this.activities.start.length;
    this.critical = new Set(model.step.critical);
    const ops = [...new Set(this.activities.op)];
    this.hueOf = new Map(ops.map((op, at) => [op, `hue-${at % HUES}`]));
    this.rows = rowsOf(this.activities);
    this.at = -1;
    this.canvas = $("timeline-canvas");
    this.canvas.style.height = `${this.place()}px`;
    this.scale = new Scale(this.canvas, endOf(this.activities));
    this.redraw = oncePerFrame(() => this.draw());
    this.listen();
    const left = model.step.more.toLocaleString("en");
    const more = model.step.more ? ` ${left} more are left out.` : "";
    this.say(`${counted(this.count, "node")} ran in ${time(this.scale.end)}.${more}`);
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("dblclick", () => this.enter());
    new ResizeObserver(() => this.redraw()).observe(canvas);
  }

  // Says where each row is; returns the height of all.
  place() {
    let y = TOP;
    for (const row of this.rows) {
      row.y = y;
      y += row.depth * HEIGHT + GAP;
    }
    return Math.max(120, y);
  }

  draw() {
    drawTimeline(this.canvas, { ...this, colours: palette() });
  }

  key(event) {
    const move = (by) => this.select(Math.min(this.count - 1, Math.max(0, this.at + by)), true);
    const action = {
      ArrowRight: () => move(1),
      ArrowLeft: () => move(-1),
      Home: () => move(-this.count),
      End: () => move(this.count),
      "+": () => this.scale.zoom(ZOOM),
      "-": () => this.scale.zoom(1 / ZOOM),
      0: () => this.scale.show(0, this.scale.end),
      Enter: () => this.enter(),
    }[event.key];
    if (!action || !this.count) return;
    event.preventDefault();
    action();
    this.redraw();
  }

  enter() {
    if (this.at >= 0) this.show(this.activities.name[this.at]);
  }

  select(at, isRevealed) {
    const start = this.activities.start[at];
    const duration = this.activities.duration[at];
    this.at = at;
    if (isRevealed && !this.scale.shows(start, duration)) {
      const half = Math.max(this.scale.span, 2 * duration) / 2;
      this.scale.show(start - half, start + half);
    }
    this.say(this.described(at));
    this.redraw();
  }

  described(at) {
    const { name, op, start, duration, device, thread, frame, iteration } = this.activities;
    const loop = frame[at] ? `, iteration ${iteration[at]} of ${frame[at]}` : "";
    const critical = this.critical.has(at) ? ", on the critical path" : "";
    const where = `${shortDevice(device[at])} ${thread[at]}`;
    return (
      `${this.names[name[at]]} (${op[at]}): ${time(duration[at])}, ` +
      `begins at ${time(start[at])} on ${where}${loop}${critical}`
    );
  }

  say(text) {
    $("timeline-status").textContent = text;
  }

  // With Ctrl it zooms, with Shift it moves; otherwise the page scrolls.
  wheel(event) {
    const { scale } = this;
    if (event.ctrlKey || event.metaKey) {
      scale.zoom(Math.exp(event.deltaY / 300), scale.timeAt(event.offsetX));
    } else if (event.shiftKey) {
      const by = (scale.span * event.deltaY) / 1000;
      scale.show(scale.from + by, scale.to + by);
    } else return;
    event.preventDefault();
    this.redraw();
  }

  press(first) {
    const { from, to, span, width } = this.scale;
    const move = (event) => {
      const by = ((first.clientX - event.clientX) / width) * span;
      this.scale.show(from + by, to + by);
      this.redraw();
    };
    const end = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    const at = this.under(first);
    if (at >= 0) this.select(at, false);
  }

  hover(event) {
    const at = this.under(event);
    this.canvas.title = at < 0 ? "" : this.described(at);
  }

  // The activity under the pointer; -1 if there is none.
  under({ offsetX, offsetY }) {
    const { start, duration } = this.activities;
    const row = this.rows.find(({ y, depth }) => offsetY >= y && offsetY < y + depth * HEIGHT);
    if (!row || offsetX < LABELS) return -1;
    const depth = Math.floor((offsetY - row.y) / HEIGHT);
    const from = this.scale.timeAt(offsetX - NEAR);
    const to = this.scale.timeAt(offsetX + NEAR);
    const isMeant = (at, number) =>
      row.depths[number] === depth && start[at] <= to && start[at] + duration[at] >= from;
    return row.items.find(isMeant) ?? -1;
  }
}

function endOf({ start, duration }) {
  return start.reduce((most, from, at) => Math.max(most, from + duration[at]), 1);
}
