// What ran when: a row for each thread of each device, on a canvas that zooms.
//
// In:   the activities of a step; keys, wheels and drags.
// Out:  pixels; the current activity as text, for who does not see them; calls of the state.
// Not:  measures nothing.

import { palette } from "./colours.js";
import { $, fitCanvas, oncePerFrame } from "./dom.js";
import { shortDevice, time } from "./format.js";
import { rowsOf } from "./timeline_rows.js";

const LABELS = 150;
const TOP = 26;
const HEIGHT = 18;
const GAP = 10;
const HUES = 8;

export class Timeline {
  constructor(state, show) {
    this.show = show;
    this.graph = state.model.graph;
    this.step = state.model.step;
    this.activities = this.step.activities;
    this.count = this.activities.start.length;
    this.critical = new Set(this.step.critical);
    this.rows = rowsOf(this.activities);
    this.order = [...this.activities.start.keys()];
    this.hueOf = new Map([...new Set(this.activities.op)].map((op, at) => [op, `hue-${at % HUES}`]));
    this.end = this.activities.start.reduce(
      (most, start, at) => Math.max(most, start + this.activities.duration[at]),
      1,
    );
    this.from = 0;
    this.to = this.end;
    this.at = -1;
    this.canvas = $("timeline-canvas");
    this.redraw = oncePerFrame(() => this.draw());
    this.listen();
    this.canvas.style.height = `${this.height()}px`;
    this.say(this.summary());
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

  height() {
    const rows = this.rows.reduce((sum, row) => sum + row.depth * HEIGHT + GAP, 0);
    return Math.max(120, TOP + rows);
  }

  summary() {
    const more = this.step.more ? ` ${this.step.more.toLocaleString("en")} more are left out.` : "";
    return `${this.count.toLocaleString("en")} activities in ${time(this.end)}.${more}`;
  }

  x(at) {
    const width = this.canvas.clientWidth - LABELS;
    return LABELS + ((at - this.from) / (this.to - this.from)) * width;
  }

  draw() {
    if (!fitCanvas(this.canvas)) return;
    const context = this.canvas.getContext("2d");
    const colours = palette();
    const { clientWidth: width, clientHeight: height } = this.canvas;
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.drawScale(context, colours, width, height);
    let y = TOP;
    for (const row of this.rows) {
      context.fillStyle = colours.faint;
      context.fillText(`${shortDevice(row.device)} ${row.thread}`, 4, y + HEIGHT / 2, LABELS - 10);
      context.save();
      context.beginPath();
      context.rect(LABELS, y - 2, width - LABELS, row.depth * HEIGHT + 4);
      context.clip();
      row.items.forEach((at, number) => this.drawItem(context, colours, at, y + row.depths[number] * HEIGHT));
      context.restore();
      row.y = y;
      y += row.depth * HEIGHT + GAP;
    }
  }

  drawScale(context, colours, width, height) {
    const span = this.to - this.from;
    const step = 10 ** Math.floor(Math.log10(span / 4));
    const each = span / step > 20 ? step * 5 : step * 2;
    context.fillStyle = colours.faint;
    for (let at = Math.ceil(this.from / each) * each; at <= this.to; at += each) {
      const x = this.x(at);
      context.fillRect(x, 16, 1, 6);
      context.globalAlpha = 0.15;
      context.fillRect(x, TOP, 1, height - TOP);
      context.globalAlpha = 1;
      if (x < width - 40) context.fillText(time(Math.round(at)), x + 3, 10);
    }
  }

  drawItem(context, colours, at, y) {
    const { start, duration, op, name } = this.activities;
    const end = start[at] + duration[at];
    if (end < this.from || start[at] > this.to) return;
    const x = this.x(start[at]);
    const width = Math.max(1, this.x(end) - x);
    context.fillStyle = colours[this.hueOf.get(op[at])];
    context.fillRect(x, y, width, HEIGHT - 2);
    if (this.critical.has(at)) {
      context.fillStyle = colours.critical;
      context.fillRect(x, y + HEIGHT - 5, width, 3);
    }
    if (at === this.at) {
      context.strokeStyle = colours.selected;
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - 1, width + 2, HEIGHT);
    }
    if (width > 40) {
      context.fillStyle = colours.onhue;
      context.fillText(this.graph.names[name[at]].split("/").pop(), x + 3, y + HEIGHT / 2 - 1, width - 6);
    }
  }

  key(event) {
    const move = (by) => this.select(Math.min(this.count - 1, Math.max(0, this.at + by)), true);
    const action = {
      ArrowRight: () => move(1),
      ArrowLeft: () => move(-1),
      Home: () => move(-this.count),
      End: () => move(this.count),
      "+": () => this.zoom(0.6),
      "-": () => this.zoom(1 / 0.6),
      0: () => this.window(0, this.end),
      Enter: () => this.enter(),
    }[event.key];
    if (!action || !this.count) return;
    event.preventDefault();
    action();
  }

  enter() {
    if (this.at >= 0) this.show(this.activities.name[this.at]);
  }

  select(at, isRevealed) {
    this.at = at;
    const { start, duration } = this.activities;
    if (isRevealed && (start[at] < this.from || start[at] + duration[at] > this.to)) {
      const half = Math.max(this.to - this.from, 2 * duration[at]) / 2;
      this.window(start[at] - half, start[at] + half);
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
      `${this.graph.names[name[at]]} (${op[at]}): ${time(duration[at])}, ` +
      `begins at ${time(start[at])} on ${where}${loop}${critical}`
    );
  }

  say(text) {
    $("timeline-status").textContent = text;
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    const from = around - (around - this.from) * factor;
    this.window(from, from + (this.to - this.from) * factor);
  }

  window(from, to) {
    const span = Math.min(this.end, Math.max(1000, to - from));
    this.from = Math.min(Math.max(0, from), this.end - span);
    this.to = this.from + span;
    this.redraw();
  }

  timeAt(x) {
    const width = this.canvas.clientWidth - LABELS;
    return this.from + ((x - LABELS) / width) * (this.to - this.from);
  }

  wheel(event) {
    if (event.shiftKey) {
      const by = ((this.to - this.from) * event.deltaY) / 1000;
      this.window(this.from + by, this.to + by);
    } else if (event.ctrlKey || event.metaKey) {
      this.zoom(Math.exp(event.deltaY / 300), this.timeAt(event.offsetX));
    } else return;
    event.preventDefault();
  }

  press(start) {
    const [from, to] = [this.from, this.to];
    const width = this.canvas.clientWidth - LABELS;
    const move = (event) => {
      const by = ((start.clientX - event.clientX) / width) * (to - from);
      this.window(from + by, to + by);
    };
    const end = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    const at = this.under(start);
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
    const [from, to] = [this.timeAt(offsetX - 2), this.timeAt(offsetX + 2)];
    const found = row.items.findIndex(
      (at, number) => row.depths[number] === depth && start[at] <= to && start[at] + duration[at] >= from,
    );
    return found < 0 ? -1 : row.items[found];
  }
}
