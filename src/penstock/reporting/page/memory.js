// The bytes that are alive over time, by the nodes that made them; and which these are.
//
// In:   the lifetimes of a step's tensors; keys and clicks.
// Out:  a curve on a canvas; a table of the tensors at one moment, the highest at first.
// Not:  measures nothing.

import { palette } from "./colours.js";
import { $, fill, fitCanvas, make, oncePerFrame } from "./dom.js";
import { bytes, time } from "./format.js";
import { table } from "./table.js";

const COLUMNS = 600;
// Nodes with a colour of their own; the last colour is for all others.
const NAMED = 7;
const [LEFT, TOP, BOTTOM] = [70, 10, 20];

export class Memory {
  constructor(state, show) {
    this.graph = state.model.graph;
    this.lives = state.model.step.lifetimes;
    this.more = state.model.step.moreLifetimes;
    this.show = show;
    this.canvas = $("memory-canvas");
    this.series = seriesOf(this.lives);
    this.end = this.lives.start.reduce(
      (most, start, at) => Math.max(most, start + this.lives.duration[at]),
      1,
    );
    this.columns = columnsOf(this.lives, this.series, this.end);
    this.peak = this.columns.reduce(
      (best, column, at, all) => (column.total > all[best].total ? at : best),
      0,
    );
    this.at = this.peak;
    this.redraw = oncePerFrame(() => this.draw());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    this.showLegend();
    this.showTable();
  }

  // Which moment of its column the tensors are of: the one with most bytes.
  moment() {
    return this.columns[this.at].time;
  }

  showLegend() {
    const items = this.series.names.map((node, at) => {
      const spot = make("i");
      spot.style.background = `var(--hue-${at})`;
      return make("li", {}, spot, node < 0 ? "others" : this.graph.names[node]);
    });
    fill($("memory-legend"), ...items);
  }

  showTable() {
    const { name, size, start, duration } = this.lives;
    const now = this.moment();
    const rows = [];
    name.forEach((node, at) => {
      if (start[at] <= now && now < start[at] + duration[at]) rows.push({ node, at });
    });
    rows.sort((a, b) => size[b.at] - size[a.at]);
    const total = rows.reduce((sum, { at }) => sum + size[at], 0);
    const what = this.at === this.peak ? "At the peak, " : "";
    const heading = `${what}${time(Math.round(now))}: ${bytes(total)} in ${rows.length} tensors`;
    const columns = [
      { title: "made by", value: ({ node }) => this.graph.names[node], node: ({ node }) => node },
      { title: "op", value: ({ node }) => this.graph.ops[node] },
      {
        title: "bytes",
        value: ({ at }) => size[at],
        text: ({ at }) => bytes(size[at]),
        isNumber: true,
      },
      {
        title: "from",
        value: ({ at }) => start[at],
        text: ({ at }) => time(start[at]),
        isNumber: true,
      },
      {
        title: "for",
        value: ({ at }) => duration[at],
        text: ({ at }) => time(duration[at]),
        isNumber: true,
      },
    ];
    const left = this.more ? `; ${this.more.toLocaleString("en")} smaller ones are left out` : "";
    $("memory-status").textContent = heading + left;
    fill($("memory-table"), ...table("Tensors that are alive", columns, rows, this.show));
  }

  move(at) {
    this.at = Math.min(COLUMNS - 1, Math.max(0, at));
    this.showTable();
    this.redraw();
  }

  key(event) {
    const by = event.shiftKey ? 20 : 1;
    const action = {
      ArrowRight: () => this.move(this.at + by),
      ArrowLeft: () => this.move(this.at - by),
      Home: () => this.move(0),
      End: () => this.move(COLUMNS),
      p: () => this.move(this.peak),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  click({ offsetX }) {
    const width = this.canvas.clientWidth - LEFT;
    this.move(Math.floor(((offsetX - LEFT) / width) * COLUMNS));
  }

  draw() {
    if (!fitCanvas(this.canvas)) return;
    const context = this.canvas.getContext("2d");
    const colours = palette();
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const most = Math.max(1, this.columns[this.peak].total);
    const bottom = height - BOTTOM;
    const high = (count) => (count / most) * (bottom - TOP);
    const step = (width - LEFT) / COLUMNS;
    context.clearRect(0, 0, width, height);
    this.columns.forEach((column, at) => {
      let y = bottom;
      column.sizes.forEach((size, number) => {
        context.fillStyle = colours[`hue-${number}`];
        context.fillRect(LEFT + at * step, y - high(size), step + 0.5, high(size));
        y -= high(size);
      });
    });
    context.fillStyle = colours.selected;
    context.fillRect(LEFT + this.at * step, TOP, 2, bottom - TOP);
    this.drawLabels(context, colours, { width, height, bottom, most });
  }

  drawLabels(context, colours, { width, height, bottom, most }) {
    context.fillStyle = colours.faint;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const part of [0, 0.5, 1]) {
      const y = bottom - part * (bottom - TOP);
      context.fillText(bytes(Math.round(part * most)), 4, y, LEFT - 8);
      context.fillRect(LEFT, y, width - LEFT, 0.5);
    }
    context.fillText("0", LEFT, height - 8);
    context.textAlign = "right";
    context.fillText(time(this.end), width - 2, height - 8);
    context.textAlign = "left";
  }
}

// Who made most, and the number of the series that each tensor belongs to.
function seriesOf({ name, size }) {
  const total = new Map();
  name.forEach((node, at) => total.set(node, (total.get(node) ?? 0) + size[at]));
  const names = [...total.keys()].sort((a, b) => total.get(b) - total.get(a)).slice(0, NAMED);
  const number = new Map(names.map((node, at) => [node, at]));
  if (total.size > names.length) names.push(-1);
  return { names, of: name.map((node) => number.get(node) ?? names.length - 1) };
}

// For each part of the time, what was alive when it was most.
function columnsOf({ size, start, duration }, series, end) {
  const events = [];
  start.forEach((from, at) => {
    events.push([from, size[at], series.of[at]], [from + duration[at], -size[at], series.of[at]]);
  });
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const sizes = series.names.map(() => 0);
  let [total, next] = [0, 0];
  return Array.from({ length: COLUMNS }, (_, column) => {
    const until = ((column + 1) / COLUMNS) * end;
    let best = { total, sizes: [...sizes], time: (column / COLUMNS) * end };
    while (next < events.length && events[next][0] < until) {
      const [at, change, number] = events[next++];
      total += change;
      sizes[number] += change;
      if (total > best.total) best = { total, sizes: [...sizes], time: at };
    }
    return best;
  });
}
