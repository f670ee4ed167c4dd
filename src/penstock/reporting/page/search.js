// Finds nodes by a part of their name or op.
//
// In:   what is typed.
// Out:  a list to choose from; the chosen node, shown.
// Not:  knows no patterns: a part of a name is a part of a name, large or small.

import { $, fill, make } from "./dom.js";
import { counted } from "./format.js";

const MOST = 50;

export class Search {
  constructor(state, show) {
    this.graph = state.model.graph;
    this.show = show;
    this.input = $("search");
    this.list = $("found");
    this.lower = null;
    this.nodes = [];
    this.at = -1;
    this.input.addEventListener("input", () => this.look());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.list.addEventListener("pointerdown", (event) => this.click(event));
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.closest("input, select, textarea");
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.input.focus();
    });
  }

  look() {
    const wanted = this.input.value.trim().toLowerCase();
    this.lower ??= this.graph.names
      .slice(0, this.graph.count)
      .map((name, node) => `${name}\n${this.graph.ops[node]}`.toLowerCase());
    const all = wanted ? found(this.lower, wanted) : [];
    this.nodes = all.slice(0, MOST);
    this.at = -1;
    fill(this.list, ...this.nodes.map((node, at) => this.option(node, at)));
    this.list.hidden = !wanted;
    this.input.setAttribute("aria-expanded", String(Boolean(wanted)));
    const more = all.length > MOST ? `, the first ${MOST} are shown` : "";
    $("search-status").textContent = wanted ? `${counted(all.length, "node")} found${more}` : "";
    if (this.nodes.length) this.move(0);
  }

  option(node, at) {
    const op = make("span", { class: "op" }, this.graph.ops[node]);
    return make("li", { role: "option", id: `found-${at}` }, this.graph.names[node], " ", op);
  }

  move(at) {
    this.list.children[this.at]?.setAttribute("aria-selected", "false");
    this.at = at;
    const element = this.list.children[at];
    element.setAttribute("aria-selected", "true");
    element.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", element.id);
  }

  key(event) {
    const count = this.nodes.length;
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && this.at >= 0) this.choose(this.nodes[this.at]);
    else if (event.key === "ArrowDown" && count) this.move((this.at + 1) % count);
    else if (event.key === "ArrowUp" && count) this.move((this.at + count - 1) % count);
    else return;
    event.preventDefault();
  }

  click(event) {
    const element = event.target.closest("[role=option]");
    const at = [...this.list.children].indexOf(element);
    if (at >= 0) this.choose(this.nodes[at]);
  }

  choose(node) {
    this.close();
    this.show(node);
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}

// The node of just that name comes first, then those whose own name begins with it.
function found(lower, wanted) {
  const [same, first, others] = [[], [], []];
  lower.forEach((text, node) => {
    if (!text.includes(wanted)) return;
    if (text.startsWith(`${wanted}\n`)) same.push(node);
    else if (text.startsWith(wanted) || text.includes(`/${wanted}`)) first.push(node);
    else others.push(node);
  });
  return [...same, ...first, ...others];
}
