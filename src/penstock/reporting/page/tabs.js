// Tabs, of which one is open.
//
// In:   elements with role `tab`, each of which names its panel; what to do when one first opens.
// Out:  the panel of the open one is shown.
// Not:  fills panels before somebody opens them.

import { $ } from "./dom.js";

export class Tabs {
  constructor(list, makers) {
    this.tabs = [...list.querySelectorAll("[role=tab]")].filter((tab) => {
      tab.hidden = !makers[panelOf(tab)];
      return !tab.hidden;
    });
    this.makers = makers;
    for (const tab of this.tabs) tab.addEventListener("click", () => this.open(panelOf(tab)));
    list.addEventListener("keydown", (event) => this.key(event));
  }

  open(name) {
    for (const tab of this.tabs) {
      const isOpen = panelOf(tab) === name;
      tab.setAttribute("aria-selected", String(isOpen));
      tab.tabIndex = isOpen ? 0 : -1;
      $(panelOf(tab)).hidden = !isOpen;
    }
    const maker = this.makers[name];
    this.makers[name] = () => {};
    maker();
  }

  key(event) {
    const at = this.tabs.indexOf(event.target);
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (at < 0 || !by) return;
    event.preventDefault();
    const tab = this.tabs[(at + by + this.tabs.length) % this.tabs.length];
    this.open(panelOf(tab));
    tab.focus();
  }
}

function panelOf(tab) {
  return tab.getAttribute("aria-controls");
}
