// Numbers as people read them.
//
// In:   nanoseconds, bytes, counts, names.
// Out:  text.
// Not:  rounds what is computed with.

export function time(nanos) {
  if (nanos < 1e3) return `${nanos} ns`;
  if (nanos < 1e6) return `${(nanos / 1e3).toPrecision(3)} µs`;
  if (nanos < 1e9) return `${(nanos / 1e6).toPrecision(3)} ms`;
  return `${(nanos / 1e9).toPrecision(3)} s`;
}

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  const power = Math.min(4, Math.floor(Math.log2(count) / 10));
  return `${(count / 1024 ** power).toFixed(1)} ${"KMGT"[power - 1]}iB`;
}

export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export function number(value) {
  if (value === null) return "–";
  return Number.isInteger(value)
    ? value.toLocaleString("en")
    : String(Number(value.toPrecision(6)));
}

// What tells devices apart: `CPU:1` of `/job:localhost/replica:0/task:0/device:CPU:1`.
export function shortDevice(name) {
  return name.replace(/^.*\/device:/, "") || "no device";
}

// A text that fits: its end tells more than its middle.
export function cut(text, length) {
  if (text.length <= length) return text;
  const head = Math.floor(length / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - head - 1))}`;
}
