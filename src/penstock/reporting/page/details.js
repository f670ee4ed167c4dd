// All that is known of the selected node or scope.
//
// In:   the state.
// Out:  a panel of elements; buttons lead to other nodes.
// Not:  finds nothing out that the model does not have.

import { $, fill, make } from "./dom.js";
import { isScope, sizeOf } from "./fold.js";
import { bytes, counted, shortDevice, time } from "./format.js";
import { summaryElements } from "./summaries.js";
import { wayFrom } from "./way.js";

// So many neighbours, and nodes of a way, are listed.
const MOST = 30;
const MOST_TOP = 10;

export class Details {
  constructor(state, show) {
    this.state = state;
    this.show = show;
    this.fatesOf = new Map(state.model.fates.map((fate) => [fate.name, []]));
    for (const fate of state.model.fates) this.fatesOf.get(fate.name).push(fate);
    this.linesOf = linesOf(state.model.code.node);
    state.onChange(() => this.fill());
    this.fill();
  }

  fill() {
    const { node, item } = this.state;
    const content = node >= 0 ? this.node(node) : item ? this.scope(item) : this.overview();
    fill($("details"), ...content);
  }

  // What there is to say of all of it, as long as nothing is selected.
  overview() {
    const { graph, step, fates, leftOut } = this.state.model;
    const most = (step?.costs ?? []).slice(0, MOST_TOP).map(({ name, nanos }) => {
      const share = make("span", { class: "faint" }, ` ${time(nanos)}`);
      return make("li", {}, this.link(name), share);
    });
    return [
      make("h2", {}, "Overview"),
      facts([
        ["graph", counted(graph.count, "node")],
        ["pruned", leftOut.length && counted(leftOut.length, "node")],
        ["optimised", fates.length && counted(fates.length, "change")],
        ["step", step && time(step.nanos)],
        ["ran", step && counted(step.activities.start.length + step.more, "node")],
      ]),
      ...section("Most time", most.length ? make("ol", {}, ...most) : null),
      make("p", { class: "faint" }, "Select a box to see what is known of it."),
    ];
  }

  scope(item) {
    const { step } = this.state.model;
    return [
      make("h2", {}, item.name),
      facts([
        ["holds", counted(sizeOf(item), "node")],
        ["time", step && time(item.nanos)],
        ["makes", step && bytes(item.bytes)],
      ]),
      isScope(item) ? button("Open this scope", () => this.state.open(item)) : null,
    ];
  }

  node(node) {
    const { graph, summaries } = this.state.model;
    const isOwn = node < graph.count;
    return [
      make("h2", {}, graph.names[node]),
      facts([
        ["op", graph.ops[node]],
        ...(isOwn ? placeOf(graph, node) : []),
        ...(this.state.model.step ? costsOf(graph, node) : []),
      ]),
      isOwn ? null : make("p", {}, "Only the step has this node: the optimiser or a cut made it."),
      ...this.fates(node),
      ...(isOwn ? [...this.edges(node), ...this.way(node)] : []),
      ...this.code(node),
      ...summaryElements(summaries, node),
      ...(isOwn ? section("Attributes", list(graph.attrs(node))) : []),
    ];
  }

  fates(node) {
    const fates = this.fatesOf.get(node) ?? [];
    const items = fates.map((fate) => {
      const links = fate.instead.filter((one) => one !== node).map((one) => this.link(one));
      return make("li", {}, make("b", {}, fate.by), ` ${fate.text} `, ...links);
    });
    return section("Optimised away", items.length ? make("ul", {}, ...items) : null);
  }

  edges(node) {
    const { graph } = this.state.model;
    const inputs = [];
    for (let at = graph.first[node]; at < graph.first[node + 1]; at++) {
      const slot = graph.slots[at];
      inputs.push([graph.sources[at], slot < 0 ? "waits for" : slot ? `:${slot}` : ""]);
    }
    const { first, nodes } = graph.readers;
    const readers = [...new Set(nodes.slice(first[node], first[node + 1]))].map((one) => [one, ""]);
    return [
      ...section("Outputs", list(graph.outputs(node))),
      ...section("Reads", this.links(inputs)),
      ...section("Read by", this.links(readers)),
    ];
  }

  links(pairs) {
    if (!pairs.length) return null;
    const items = pairs
      .slice(0, MOST)
      .map(([node, note]) =>
        make("li", {}, this.link(node), note ? make("span", { class: "faint" }, ` ${note}`) : null),
      );
    if (pairs.length > MOST) items.push(make("li", {}, `and ${pairs.length - MOST} more`));
    return make("ul", {}, ...items);
  }

  link(node) {
    const { graph } = this.state.model;
    return button(graph.names[node], () => this.show(node), "link");
  }

  way(node) {
    const { state } = this;
    const { graph } = state.model;
    const from = state.marked >= 0 ? `from ${graph.names[state.marked]}` : "from what is fed";
    const find = () => {
      const way = wayFrom(graph, state.marked, node);
      state.change({ way: way.length ? way : [node] });
    };
    const isShown = state.way.at(-1) === node;
    const found = isShown && state.way.length > 1;
    return section(
      "Path",
      make(
        "p",
        { class: "buttons" },
        button(`Path ${from}`, find),
        button("Begin paths here", () => state.change({ marked: node, way: [] })),
        state.marked >= 0 ? button("Forget", () => state.change({ marked: -1, way: [] })) : null,
      ),
      found ? this.steps(state.way) : isShown ? make("p", {}, `There is no path ${from}.`) : null,
    );
  }

  // The middle of a long way is left out.
  steps(way) {
    const shown = way.map((node) => make("li", {}, this.link(node)));
    const left = shown.length - MOST;
    if (left > 0) shown.splice(MOST / 2, left, make("li", {}, `… ${counted(left, "node")} …`));
    return make("ol", { id: "way" }, ...shown);
  }

  code(node) {
    const lines = this.linesOf.get(node) ?? [];
    const text = lines.slice(0, MOST).map((at) => this.state.model.code.text[at].trim());
    return section("Generated Python", text.length ? make("pre", {}, text.join("\n")) : null);
  }
}

function linesOf(nodes) {
  const found = new Map();
  nodes.forEach((node, at) => {
    if (node < 0) return;
    if (!found.has(node)) found.set(node, []);
    found.get(node).push(at);
  });
  return found;
}

function placeOf(graph, node) {
  return [
    ["device", shortDevice(graph.devices[node])],
    ["loop", graph.frames[node]],
    ["function", graph.functions[node]],
  ];
}

function costsOf({ runs, dead, nanos, waited, bytes: made }, node) {
  const deadText = dead[node] ? `, dead ${counted(dead[node], "time")}` : "";
  const hasRun = runs[node] || dead[node];
  return [
    ["ran", hasRun ? `${counted(runs[node], "time")}${deadText}` : "not by itself"],
    ["time", runs[node] > 0 && time(nanos[node])],
    ["waited", waited[node] > 0 && time(waited[node])],
    ["makes", made[node] > 0 && bytes(made[node])],
  ];
}

function button(text, onclick, kind) {
  return make("button", { type: "button", onclick, class: kind }, text);
}

function facts(pairs) {
  const known = pairs.filter(([, value]) => value);
  return make(
    "dl",
    {},
    ...known.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]),
  );
}

function list(texts) {
  return texts.length ? make("ul", {}, ...texts.map((text) => make("li", {}, text))) : null;
}

function section(title, ...content) {
  return content.some(Boolean) ? [make("h3", {}, title), ...content] : [];
}
