// Begins: unpacks the report, and makes the views.
//
// In:   the page.
// Out:  the page, alive.
// Not:  does anything that a view could do.

import { CodeView } from "./code_view.js";
import { COLOURS } from "./colours.js";
import { showContents } from "./contents.js";
import { decode } from "./decode.js";
import { Details } from "./details.js";
import { $, download, fill, make } from "./dom.js";
import { FOLDS } from "./fold.js";
import { GraphView } from "./graph_view.js";
import { Memory } from "./memory.js";
import { Outline } from "./outline.js";
import { Search } from "./search.js";
import { State } from "./state.js";
import { loopTables, opTables, optimisedTables } from "./tables.js";
import { Tabs } from "./tabs.js";
import { followSystem, switchTheme } from "./theme.js";
import { Timeline } from "./timeline.js";
import { unpack } from "./unpack.js";

function begin(model) {
  const state = new State(model);
  const views = {};
  const show = (node) => {
    if (node < model.graph.count) tabs.open("graph");
    state.showNode(node);
  };
  const makers = makersOf(state, views, show);
  const tabs = new Tabs($("tabs"), makers);
  document.title = `${model.title} · Penstock`;
  $("title").textContent = model.title;
  showContents(model);
  new Details(state, show);
  new Search(state, show);
  choice($("fold"), FOLDS, (fold) => state.foldBy(fold));
  const colours = COLOURS.filter((way) => model.step || !["time", "memory"].includes(way));
  choice($("colour"), colours, (colour) => state.change({ colour }));
  switchTheme(() => Object.values(views).forEach((view) => view.draw()));
  tabs.open("graph");
  $("svg").addEventListener("click", () => {
    download(`${model.title}.svg`, "image/svg+xml", views.graph.svg());
  });
}

// What makes each tab, when it first opens; without a step, some are not there.
function makersOf(state, views, show) {
  const { model } = state;
  const graph = () => {
    views.graph = new GraphView(state);
    new Outline(state);
  };
  const optimised = () => fill($("optimised"), ...optimisedTables(model, show));
  const code = () => {
    views.code = new CodeView(state);
    views.code.follow();
  };
  const always = { graph, optimised, ...(model.code.text.length ? { python: code } : {}) };
  if (!model.step) return always;
  return {
    ...always,
    timeline: () => (views.timeline = new Timeline(state, show)),
    ops: () => fill($("ops"), ...opTables(model, show)),
    memory: () => (views.memory = new Memory(state, show)),
    loops: () => fill($("loops"), ...loopTables(model, show)),
  };
}

function choice(select, values, onChoice) {
  fill(select, ...values.map((value) => make("option", { value }, value)));
  select.addEventListener("change", () => onChoice(select.value));
}

async function main() {
  try {
    begin(decode(await unpack($("report").textContent)));
    requestAnimationFrame(() => {
      performance.mark("ready");
      document.documentElement.dataset.state = "ready";
    });
  } catch (error) {
    $("trouble").hidden = false;
    $("trouble").textContent = `This report cannot be shown: ${error.message}`;
    throw error;
  }
}

followSystem();
addEventListener("DOMContentLoaded", main);
