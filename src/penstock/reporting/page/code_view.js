// The generated Python beside its nodes: as many lines as there is place for.
//
// In:   the lines of code; the state.
// Out:  elements for the lines that are to be seen; calls of the state.
// Not:  makes elements for others: a graph of 20,000 nodes has twice as many lines.

import { $, fill, make, oncePerFrame } from "./dom.js";

const HEIGHT = 20;
const SPARE = 10;

export class CodeView {
  constructor(state) {
    this.state = state;
    this.code = state.model.code;
    this.count = this.code.text.length;
    this.at = 0;
    this.place = $("code");
    this.lines = $("code-lines");
    this.lines.style.height = `${this.count * HEIGHT}px`;
    this.redraw = oncePerFrame(() => this.draw());
    this.place.addEventListener("scroll", () => this.redraw());
    this.place.addEventListener("keydown", (event) => this.key(event));
    this.place.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.redraw()).observe(this.place);
    state.onChange((changed) => changed.has("node") && this.follow());
  }

  // To the first line of the selected node.
  follow() {
    const at = this.state.node < 0 ? -1 : this.code.node.indexOf(this.state.node);
    if (at >= 0 && this.code.node[this.at] !== this.state.node) this.go(at);
    this.redraw();
  }

  go(at) {
    this.at = Math.min(this.count - 1, Math.max(0, at));
    const top = this.at * HEIGHT;
    const { scrollTop, clientHeight } = this.place;
    if (top < scrollTop || top + HEIGHT > scrollTop + clientHeight) {
      this.place.scrollTop = top - clientHeight / 2;
    }
    this.redraw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.place;
    const first = Math.max(0, Math.floor(scrollTop / HEIGHT) - SPARE);
    const last = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / HEIGHT) + SPARE);
    const elements = [];
    for (let at = first; at < last; at++) elements.push(this.line(at));
    fill(this.lines, ...elements);
    this.place.setAttribute("aria-activedescendant", `line-${this.at}`);
  }

  line(at) {
    const node = this.code.node[at];
    const { graph } = this.state.model;
    const label = node < 0 ? this.code.label[at] : `${graph.names[node]} (${graph.ops[node]})`;
    const element = make(
      "div",
      {
        id: `line-${at}`,
        role: "option",
        class: "line",
        "aria-selected": String(at === this.at),
        "data-at": String(at),
        "data-own": node >= 0 && node === this.state.node,
      },
      make("span", { class: "number" }, String(at + 1)),
      make("code", {}, this.code.text[at]),
      make("span", { class: "node" }, label),
    );
    element.style.top = `${at * HEIGHT}px`;
    return element;
  }

  click(event) {
    const line = event.target.closest(".line");
    if (line) this.choose(Number(line.dataset.at));
  }

  choose(at) {
    this.at = at;
    const node = this.code.node[at];
    if (node >= 0) this.state.showNode(node);
    this.redraw();
  }

  key(event) {
    const page = Math.floor(this.place.clientHeight / HEIGHT);
    const action = {
      ArrowDown: () => this.go(this.at + 1),
      ArrowUp: () => this.go(this.at - 1),
      PageDown: () => this.go(this.at + page),
      PageUp: () => this.go(this.at - page),
      Home: () => this.go(0),
      End: () => this.go(this.count),
      Enter: () => this.choose(this.at),
    }[event.key];
    if (!action || !this.count) return;
    event.preventDefault();
    action();
  }
}
