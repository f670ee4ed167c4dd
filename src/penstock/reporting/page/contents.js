// What the report holds, for whoever wants to share it.
//
// In:   the model.
// Out:  a line at the top of the page, and a list below it.
// Not:  finds out nothing: who made the report knows.

import { $, fill, make } from "./dom.js";

export function showContents({ contents, trouble, step }) {
  const names = (isThere) =>
    contents
      .filter((one) => one.isThere === isThere)
      .map((one) => one.what)
      .join(", ");
  fill(
    $("contents-line"),
    make("b", {}, "Contains "),
    names(true),
    make("b", {}, "; not "),
    names(false),
  );
  const items = contents.map(({ what, isThere, about }) =>
    make("li", {}, make("b", {}, `${isThere ? "✓" : "–"} ${what}`), `: ${about}`),
  );
  fill($("contents-list"), ...items, make("li", {}, `made by Penstock; it loads nothing`));
  const wrong = [trouble, step?.error].filter(Boolean);
  $("trouble").hidden = !wrong.length;
  fill($("trouble"), ...wrong.map((text) => make("p", {}, text)));
}
