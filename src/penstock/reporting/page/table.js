// A table that can be sorted by each of its columns.
//
// In:   rows; columns, which say what is shown of a row and what it is sorted by.
// Out:  elements.
// Not:  knows what rows are.

import { fill, make } from "./dom.js";

// So many rows are shown at first, and with each wish for more.
const PAGE = 200;

// A column has a `title`, the `value` of a row, perhaps a `text` for it, and whether it `isNode`.
export function table(name, columns, rows, show) {
  const body = make("tbody");
  const more = make("button", { type: "button", onclick: () => fillBody(shown + PAGE) });
  const heads = columns.map((column, at) => head(column, () => sort(at)));
  let sorted = [...rows];
  let [by, isDown] = [-1, false];
  let shown = 0;

  function fillBody(count) {
    shown = Math.min(count, sorted.length);
    fill(body, ...sorted.slice(0, shown).map((row) => rowElement(columns, row, show)));
    more.hidden = shown === sorted.length;
    more.textContent = `${(sorted.length - shown).toLocaleString("en")} more`;
  }

  function sort(at) {
    const { value } = columns[at];
    const isNumber = typeof value(rows[0] ?? {}) === "number";
    isDown = by === at ? !isDown : isNumber;
    by = at;
    const sign = isDown ? -1 : 1;
    sorted = [...rows].sort((a, b) => sign * compared(value(a), value(b)));
    heads.forEach((element, number) => {
      const order = number === at ? (isDown ? "descending" : "ascending") : undefined;
      if (order) element.setAttribute("aria-sort", order);
      else element.removeAttribute("aria-sort");
    });
    fillBody(PAGE);
  }

  fillBody(PAGE);
  const header = make("thead", {}, make("tr", {}, ...heads));
  return [make("table", { "aria-label": name }, header, body), more];
}

function head(column, onclick) {
  const button = make("button", { type: "button", onclick }, column.title);
  return make("th", { scope: "col", class: column.isNumber && "number" }, button);
}

function rowElement(columns, row, show) {
  return make(
    "tr",
    {},
    ...columns.map((column) => {
      const text = column.text ? column.text(row) : String(column.value(row));
      const node = column.node?.(row) ?? -1;
      const onclick = () => show(node);
      const content =
        node < 0 ? text : make("button", { type: "button", class: "link", onclick }, text);
      return make("td", { class: column.isNumber && "number" }, content);
    }),
  );
}

function compared(a, b) {
  return typeof a === "number" ? a - b : String(a).localeCompare(String(b));
}
