// Light and dark: as the system has it, until somebody says otherwise.  On paper, always light.
//
// In:   clicks; what the system and the printer say.
// Out:  an attribute of the page, which the style looks at; a call when colours change.
// Not:  keeps nothing when the page is closed.

import { $ } from "./dom.js";

const THEMES = ["auto", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const paper = matchMedia("print");
let theme = THEMES[0];

function show() {
  const isDark = theme === "dark" || (theme === "auto" && dark.matches);
  document.documentElement.dataset.theme = isDark && !paper.matches ? "dark" : "light";
}

// Before there is a body: nothing is drawn in one theme that is to have the other.
export function followSystem() {
  show();
  for (const query of [dark, paper]) query.addEventListener("change", show);
}

// Listens to the button.
export function switchTheme(onChange) {
  $("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    $("theme").textContent = `Theme: ${theme}`;
    show();
    onChange();
  });
  for (const query of [dark, paper]) query.addEventListener("change", onChange);
}
