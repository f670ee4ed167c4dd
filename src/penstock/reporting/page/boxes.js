// The boxes of the open scope as elements above the canvas: for keys, clicks and screen readers.
//
// In:   a picture, its places and looks; keys and clicks.
// Out:  elements that nobody sees but by their focus; calls of the state.
// Not:  draws nothing.
//
// One of them can be reached by Tab, and arrows go from box to box.

import { fill, make } from "./dom.js";
import { isScope, sizeOf } from "./fold.js";
import { counted, shortDevice, time } from "./format.js";
import { canOpen, titleOf } from "./picture.js";

export class Boxes {
  constructor(layer, state, camera) {
    this.layer = layer;
    this.state = state;
    this.camera = camera;
    this.elements = [];
    this.places = [];
    layer.addEventListener("keydown", (event) => this.key(event));
    layer.addEventListener("click", (event) => this.click(event));
    layer.addEventListener("dblclick", (event) => this.open(event));
  }

  show(picture, places) {
    this.picture = picture;
    this.places = places;
    const hadFocus = this.layer.contains(document.activeElement);
    const names = neighbourNames(this.state.model.graph, picture);
    this.elements = picture.boxes.map((box, at) => this.element(box, places[at], names[at]));
    fill(this.layer, ...this.elements);
    this.mark(this.selected(), hadFocus);
  }

  // The place of what is selected; the first box if nothing is.
  selected() {
    const { item, node } = this.state;
    const at = this.picture.boxes.findIndex(
      (box) => (item !== null && box.item === item) || (node >= 0 && box.node === node),
    );
    return Math.max(0, at);
  }

  mark(at, takesFocus) {
    this.elements.forEach((element, number) => {
      element.tabIndex = number === at ? 0 : -1;
      element.setAttribute("aria-selected", String(number === at && this.isChosen()));
    });
    if (takesFocus) this.elements[at]?.focus({ preventScroll: true });
  }

  isChosen() {
    return this.state.item !== null || this.state.node >= 0;
  }

  element(box, place, names) {
    const element = make("div", {
      class: "box",
      role: "option",
      "aria-label": spoken(this.state, box, names),
    });
    Object.assign(element.style, {
      left: `${place.x}px`,
      top: `${place.y}px`,
      width: `${place.width}px`,
      height: `${place.height}px`,
    });
    return element;
  }

  at(event) {
    return this.elements.indexOf(event.target.closest(".box"));
  }

  choose(at) {
    const { item, node } = this.picture.boxes[at];
    if (item) this.state.selectItem(item);
    else if (node >= 0) this.state.change({ node, item: null });
    this.mark(at, true);
    this.camera.reveal(this.places[at]);
  }

  click(event) {
    const at = this.at(event);
    if (at >= 0) this.choose(at);
  }

  open(event) {
    const at = this.at(event);
    if (at >= 0) this.enter(this.picture.boxes[at]);
  }

  // Opens a scope; goes to where a node outside is.
  enter(box) {
    if (canOpen(box)) this.state.open(box.item);
    else if (box.node >= 0) this.state.showNode(box.node);
  }

  key(event) {
    const at = this.at(event);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const box = this.picture.boxes[at];
    const action = {
      Enter: () => this.enter(box),
      " ": () => this.choose(at),
      Backspace: () => this.state.close(),
      Escape: () => this.state.close(),
      Home: () => this.choose(0),
      End: () => this.choose(this.elements.length - 1),
      "+": () => this.camera.zoom(1.25),
      "-": () => this.camera.zoom(0.8),
      ArrowUp: () => this.go(at, 0, -1),
      ArrowDown: () => this.go(at, 0, 1),
      ArrowLeft: () => this.go(at, -1, 0),
      ArrowRight: () => this.go(at, 1, 0),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // To the nearest box in a direction; what lies aside counts as further away.
  go(at, right, down) {
    const from = this.places[at];
    let best = -1;
    let least = Infinity;
    this.places.forEach((place, number) => {
      const [x, y] = [place.x - from.x, place.y - from.y];
      const ahead = x * right + y * down;
      const distance = ahead + 3 * Math.abs(right ? y : x);
      if (ahead > 1 && distance < least) [best, least] = [number, distance];
    });
    if (best >= 0) this.choose(best);
  }

  // Puts the elements where the camera has the boxes.
  move({ x, y, scale }) {
    this.layer.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
  }
}

// By box, the names of what it reads and of who reads it.
function neighbourNames(graph, picture) {
  const names = picture.boxes.map(() => ({ reads: [], readers: [] }));
  for (const { from, to } of picture.edges) {
    names[to].reads.push(titleOf(graph, picture.boxes[from]));
    names[from].readers.push(titleOf(graph, picture.boxes[to]));
  }
  return names;
}

function spoken(state, box, { reads, readers }) {
  const { graph } = state.model;
  const parts = [titleOf(graph, box)];
  if (box.item === null) parts.push("outside of this scope");
  else if (isScope(box.item)) parts.push(`scope of ${counted(sizeOf(box.item), "node")}`);
  else parts.push(graph.ops[box.node], `on ${shortDevice(graph.devices[box.node])}`);
  if (box.item?.nanos) parts.push(time(box.item.nanos));
  if (reads.length) parts.push(`reads ${some(reads)}`);
  if (readers.length) parts.push(`read by ${some(readers)}`);
  return parts.join(", ");
}

function some(names) {
  const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
  return names.slice(0, 3).join(", ") + more;
}
