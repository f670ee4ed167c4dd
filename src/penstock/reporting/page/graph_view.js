// The picture of the open scope: canvas, elements above it, scopes on the way to it, legend.
//
// In:   the state.
// Out:  what is drawn anew when it changes.
// Not:  lays out and draws nothing itself.

import { Boxes } from "./boxes.js";
import { Camera } from "./camera.js";
import { draw } from "./canvas.js";
import { palette } from "./colours.js";
import { $, fill, make, oncePerFrame } from "./dom.js";
import { wayTo } from "./fold.js";
import { laidOut } from "./layout.js";
import { looksOf } from "./look.js";
import { pictureOf } from "./picture.js";
import { svgOf } from "./svg.js";

export class GraphView {
  constructor(state) {
    this.state = state;
    this.canvas = $("graph-canvas");
    this.redraw = oncePerFrame(() => this.draw());
    this.camera = new Camera($("stage"), () => this.redraw());
    this.boxes = new Boxes($("boxes"), state, this.camera);
    $("zoom-fit").addEventListener("click", () => this.fit());
    $("zoom-in").addEventListener("click", () => this.camera.zoom(1.25));
    $("zoom-out").addEventListener("click", () => this.camera.zoom(0.8));
    new ResizeObserver(() => this.redraw()).observe($("stage"));
    state.onChange((changed) => this.changed(changed));
    this.open();
  }

  changed(changed) {
    if (changed.has("scope") || changed.has("tree")) this.open();
    else this.look();
  }

  open() {
    const { model, tree, scope } = this.state;
    this.picture = pictureOf(model.graph, tree, scope);
    this.layout = laidOut(this.picture.boxes.length, this.picture.edges);
    this.look();
    this.boxes.show(this.picture, this.layout.boxes);
    this.showWay();
    this.fit();
    if (this.looks.selected >= 0) this.camera.reveal(this.layout.boxes[this.looks.selected]);
  }

  look() {
    this.looks = looksOf(this.state, this.picture);
    this.showLegend();
    this.redraw();
  }

  fit() {
    this.camera.fit(this.layout);
  }

  draw() {
    this.boxes.move(this.camera);
    draw(this.canvas, {
      layout: this.layout,
      looks: this.looks,
      camera: this.camera,
      colours: palette(),
    });
  }

  svg() {
    return svgOf(this.layout, this.looks, palette());
  }

  // The scopes that the open one is in: each opens.
  showWay() {
    const { scope } = this.state;
    const items = wayTo(scope).map((item) =>
      make(
        "li",
        {},
        make(
          "button",
          {
            onclick: () => this.state.open(item),
            "aria-current": item === scope ? "location" : undefined,
          },
          item.parent ? item.name : "graph",
        ),
      ),
    );
    fill($("scopes"), ...items);
  }

  showLegend() {
    const items = this.looks.legend.map(({ label, hue }) => {
      const spot = make("i");
      spot.style.background = `var(--${hue})`;
      return make("li", {}, spot, label);
    });
    const line = make("i", { class: "line" });
    const critical = this.state.model.step ? [make("li", {}, line, "critical path")] : [];
    fill($("legend"), ...items, ...critical);
  }
}
