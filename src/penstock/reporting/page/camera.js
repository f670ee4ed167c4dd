// Which part of a drawing is to be seen, and how large.
//
// In:   wheels, drags; what is to be shown.
// Out:  a scale and a place, and a call when they change.
// Not:  knows what is drawn.

const LEAST = 0.05;
// Smaller than this, a drawing is not made to fit.
const READABLE = 0.7;
const MOST = 3;

export class Camera {
  constructor(element, onMove) {
    this.element = element;
    this.onMove = onMove;
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    element.addEventListener("pointerdown", (event) => this.drag(event));
  }

  // Shows all of a drawing that can still be read; its top, if that is not all.
  fit({ width, height, top }) {
    const { clientWidth, clientHeight } = this.element;
    const margin = 24;
    const across = (clientWidth - 2 * margin) / width;
    const down = (clientHeight - 2 * margin) / height;
    this.scale = Math.min(1, Math.max(READABLE, Math.min(across, down)));
    const middle = across >= this.scale ? width / 2 : top;
    this.x = clientWidth / 2 - middle * this.scale;
    this.y = down >= this.scale ? (clientHeight - height * this.scale) / 2 : margin;
    this.onMove();
  }

  // Moves as little as is needed for a place to be seen.
  reveal({ x, y, width, height }) {
    const { clientWidth, clientHeight } = this.element;
    const inside = (at, size, offset, length) => {
      const from = at * this.scale + offset;
      const to = (at + size) * this.scale + offset;
      if (from >= 8 && to <= length - 8) return offset;
      return length / 2 - (at + size / 2) * this.scale;
    };
    this.x = inside(x, width, this.x, clientWidth);
    this.y = inside(y, height, this.y, clientHeight);
    this.onMove();
  }

  zoom(factor, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    const scale = Math.min(MOST, Math.max(LEAST, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.onMove();
  }

  wheel(event) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey || !event.shiftKey) {
      const bounds = this.element.getBoundingClientRect();
      const factor = Math.exp(-event.deltaY / 500);
      this.zoom(factor, event.clientX - bounds.left, event.clientY - bounds.top);
    } else {
      this.x -= event.deltaY;
      this.onMove();
    }
  }

  drag(start) {
    if (start.button !== 0) return;
    let { clientX, clientY } = start;
    const move = (event) => {
      this.x += event.clientX - clientX;
      this.y += event.clientY - clientY;
      ({ clientX, clientY } = event);
      this.onMove();
    };
    const end = () => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
  }
}
