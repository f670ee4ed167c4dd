// All scopes and nodes as a tree of elements, made as far as it is unfolded.
//
// In:   the state; keys and clicks.
// Out:  elements; calls of the state.
// Not:  draws nothing.
//
// One element can be reached by Tab.  Arrows go up and down, unfold and fold, as in other trees.

import { $, fill, make } from "./dom.js";
import { isScope, sizeOf, wayTo } from "./fold.js";

export class Outline {
  constructor(state) {
    this.state = state;
    this.root = $("outline");
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("click", (event) => this.click(event));
    this.itemOf = new WeakMap();
    state.onChange((changed) => this.changed(changed));
    this.rebuild();
  }

  changed(changed) {
    if (changed.has("tree")) this.rebuild();
    else if (changed.has("item") || changed.has("scope")) this.follow();
  }

  rebuild() {
    this.elementOf = new Map();
    this.current = null;
    const elements = this.state.tree.root.children.map((item, at, all) => this.made(item, at, all));
    fill(this.root, ...elements);
    this.follow();
    if (!this.current && elements.length) this.setCurrent(elements[0], false);
  }

  made(item, at, siblings) {
    const label = make("span", { class: "label" }, item.name);
    const count = isScope(item) ? make("span", { class: "count" }, String(sizeOf(item))) : null;
    const element = make(
      "li",
      {
        role: "treeitem",
        tabindex: "-1",
        "aria-level": String(item.depth),
        "aria-setsize": String(siblings.length),
        "aria-posinset": String(at + 1),
        "aria-expanded": isScope(item) ? "false" : undefined,
        "aria-selected": "false",
      },
      make("span", { class: "row" }, label, count),
    );
    this.itemOf.set(element, item);
    this.elementOf.set(item, element);
    return element;
  }

  unfold(item) {
    const element = this.elementOf.get(item);
    if (!element || !isScope(item) || element.getAttribute("aria-expanded") === "true") return;
    const children = item.children.map((child, at, all) => this.made(child, at, all));
    element.append(make("ul", { role: "group" }, ...children));
    element.setAttribute("aria-expanded", "true");
  }

  foldUp(item) {
    const element = this.elementOf.get(item);
    element.querySelector(":scope > ul")?.remove();
    element.setAttribute("aria-expanded", "false");
  }

  // Unfolds down to what is selected or open elsewhere.
  follow() {
    const item = this.state.item ?? this.state.scope;
    const way = wayTo(item).slice(1);
    for (const above of way.slice(0, -1)) this.unfold(above);
    const element = this.elementOf.get(item);
    if (!element?.isConnected) return;
    this.setCurrent(element, this.root.contains(document.activeElement));
    element.firstChild.scrollIntoView({ block: "nearest" });
  }

  setCurrent(element, takesFocus) {
    if (this.current) {
      this.current.tabIndex = -1;
      this.current.setAttribute("aria-selected", "false");
    }
    this.current = element;
    element.tabIndex = 0;
    element.setAttribute("aria-selected", "true");
    if (takesFocus) element.focus();
  }

  click(event) {
    const element = event.target.closest("[role=treeitem]");
    const item = this.itemOf.get(element);
    if (!item) return;
    this.setCurrent(element, true);
    if (!isScope(item)) this.state.showNode(item.node);
    else if (element.getAttribute("aria-expanded") === "true") this.foldUp(item);
    else {
      this.unfold(item);
      this.state.open(item);
    }
  }

  key(event) {
    const element = event.target.closest("[role=treeitem]");
    const item = this.itemOf.get(element);
    if (!item) return;
    const isUnfolded = element.getAttribute("aria-expanded") === "true";
    const action = {
      ArrowDown: () => this.step(element, 1),
      ArrowUp: () => this.step(element, -1),
      ArrowRight: () => (isUnfolded ? this.step(element, 1) : this.unfold(item)),
      ArrowLeft: () => (isUnfolded ? this.foldUp(item) : this.up(item)),
      Home: () => this.setCurrent(this.all()[0], true),
      End: () => this.setCurrent(this.all().at(-1), true),
      Enter: () => (isScope(item) ? this.state.open(item) : this.state.showNode(item.node)),
      " ": () => this.state.selectItem(item),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  all() {
    return [...this.root.querySelectorAll("[role=treeitem]")];
  }

  step(element, by) {
    const all = this.all();
    const next = all[all.indexOf(element) + by];
    if (next) this.setCurrent(next, true);
  }

  up(item) {
    const element = this.elementOf.get(item.parent);
    if (element) this.setCurrent(element, true);
  }
}
