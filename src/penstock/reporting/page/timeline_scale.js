// Which part of a step a timeline shows, and where in it a time is.
//
// In:   the length of the step; wishes to zoom and to move.
// Out:  places across the canvas for times, and the other way round.
// Not:  draws nothing.

// What stands at the left of each row.
export const LABELS = 150;
// No less is shown at a time, in nanoseconds.
const LEAST = 1000;

export class Scale {
  constructor(canvas, end) {
    this.canvas = canvas;
    this.end = end;
    this.from = 0;
    this.to = end;
  }

  get span() {
    return this.to - this.from;
  }

  get width() {
    return this.canvas.clientWidth - LABELS;
  }

  x(at) {
    return LABELS + ((at - this.from) / this.span) * this.width;
  }

  timeAt(x) {
    return this.from + ((x - LABELS) / this.width) * this.span;
  }

  shows(start, duration) {
    return start >= this.from && start + duration <= this.to;
  }

  zoom(factor, around = (this.from + this.to) / 2) {
    const from = around - (around - this.from) * factor;
    this.show(from, from + this.span * factor);
  }

  // Shows a part, as far as the step has it.
  show(from, to) {
    const span = Math.min(this.end, Math.max(LEAST, to - from));
    this.from = Math.min(Math.max(0, from), this.end - span);
    this.to = this.from + span;
  }
}
