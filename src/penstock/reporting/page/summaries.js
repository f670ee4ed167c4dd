// What the values of a node are like: numbers and a histogram for each time that it ran.
//
// In:   the summaries of a report that has some; a node.
// Out:  elements.
// Not:  has any values.

import { make } from "./dom.js";
import { number } from "./format.js";

// So many are shown until somebody asks for all.
const FIRST = 3;

export function summaryElements(summaries, node) {
  const own = (summaries ?? []).filter((one) => one.name === node);
  if (!own.length) return [];
  const rest = make("div", { hidden: true }, ...own.slice(FIRST).map(element));
  const show = () => {
    rest.hidden = false;
    more.remove();
  };
  const more = make("button", { type: "button", onclick: show }, `All ${own.length} values`);
  return [
    make("h3", {}, "Values"),
    ...own.slice(0, FIRST).map(element),
    ...(own.length > FIRST ? [rest, more] : []),
  ];
}

function element(one) {
  const where = one.frame ? `, iteration ${one.iteration} of ${one.frame}` : "";
  const odd =
    one.nans || one.infinite ? `${number(one.nans)} NaN, ${number(one.infinite)} infinite` : "";
  return make(
    "div",
    { class: "summary" },
    make("p", {}, make("b", {}, `:${one.slot} ${one.type}`), where),
    one.least === null
      ? make("p", { class: "faint" }, `${number(one.size)} elements, no finite numbers`)
      : make(
          "p",
          {},
          `min ${number(one.least)}, mean ${number(one.mean)}, max ${number(one.most)}`,
        ),
    odd ? make("p", { class: "odd" }, odd) : null,
    one.histogram.length > 1 ? histogram(one) : null,
  );
}

function histogram({ histogram: counts, least, most }) {
  const highest = Math.max(...counts);
  const bars = counts.map((count) => {
    const bar = make("i");
    bar.style.height = `${Math.max(count ? 4 : 0, (count / highest) * 100)}%`;
    return bar;
  });
  const label = `histogram from ${number(least)} to ${number(most)}: ${counts.join(", ")}`;
  return make(
    "div",
    { class: "histogram", role: "img", "aria-label": label, title: label },
    ...bars,
  );
}
