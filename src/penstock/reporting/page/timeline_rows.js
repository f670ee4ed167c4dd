// Which row of a timeline each activity is in, and how deep in it.
//
// In:   activities, as columns.
// Out:  rows: one for each thread of each device, with lines below each other for what overlaps.
// Not:  draws nothing.

export function rowsOf({ start, duration, device, thread }) {
  const rows = new Map();
  start.forEach((_, at) => {
    const key = `${device[at]}\n${thread[at]}`;
    if (!rows.has(key)) rows.set(key, { device: device[at], thread: thread[at], items: [] });
    rows.get(key).items.push(at);
  });
  const all = [...rows.values()].sort((a, b) => a.device.localeCompare(b.device));
  for (const row of all) stack(row, start, duration);
  return all;
}

// Each on the first line that is free when it begins.
function stack(row, start, duration) {
  const free = [];
  row.items.sort((a, b) => start[a] - start[b] || duration[b] - duration[a]);
  row.depths = row.items.map((at) => {
    let line = free.findIndex((end) => end <= start[at]);
    if (line < 0) line = free.length < MOST_LINES ? free.length : MOST_LINES - 1;
    free[line] = start[at] + duration[at];
    return line;
  });
  row.depth = Math.max(1, free.length);
  row.y = 0;
}

// What would be further down lies on the last one.
const MOST_LINES = 8;
