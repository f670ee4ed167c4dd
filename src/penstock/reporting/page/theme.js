// Light and dark: as the system has it, until somebody says otherwise.
//
// In:   clicks.
// Out:  an attribute of the page, which the style looks at; a call when colours change.
// Not:  keeps nothing when the page is closed.

import { $ } from "./dom.js";

const THEMES = ["auto", "light", "dark"];

export function switchTheme(onChange) {
  const button = $("theme");
  const root = document.documentElement;
  let at = 0;
  button.addEventListener("click", () => {
    at = (at + 1) % THEMES.length;
    root.dataset.theme = THEMES[at];
    button.textContent = `Theme: ${THEMES[at]}`;
    onChange();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", onChange);
}
