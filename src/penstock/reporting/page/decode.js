// Makes of columns what the views ask for: nodes by number, edges both ways, costs, fates.
//
// In:   the columns that `encode.py` writes.
// Out:  a model: plain objects and typed arrays that nobody changes.
// Not:  shows nothing.

const VERSION = 1;

export function decode(raw) {
  if (raw.version !== VERSION) throw new Error(`a report of version ${raw.version}`);
  const text = (numbers) => numbers.map((number) => raw.strings[number]);
  const graph = decodeGraph(raw, text);
  const step = raw.step && decodeStep(raw.step, text);
  if (step) addCosts(graph, step.costs);
  return {
    title: raw.title,
    trouble: raw.trouble,
    contents: raw.contents.map(([what, isThere, about]) => ({ what, isThere, about })),
    graph,
    step,
    fates: decodeFates(raw.fates, text),
    leftOut: rows({ ...raw.leftOut, op: text(raw.leftOut.op) }),
    code: raw.code,
    left: rows({ ...raw.left, op: text(raw.left.op), reason: text(raw.left.reason) }),
    summaries: raw.summaries && decodeSummaries(raw.summaries, text),
  };
}

// Objects of columns: one for each row.
function rows(columns) {
  const names = Object.keys(columns);
  const count = names.length ? columns[names[0]].length : 0;
  return Array.from({ length: count }, (_, at) =>
    Object.fromEntries(names.map((name) => [name, columns[name][at]])),
  );
}

// Numbers, from the distance of each to the one before it.
function summed(distances) {
  let total = 0;
  return distances.map((distance) => (total += distance));
}

// Nodes by number.  Behind the graph's own stand those that only the step has.
function decodeGraph(raw, text) {
  const { name, op, device, frame, function: of, outputs, attrs, inputs } = raw.nodes;
  const count = name.length;
  const total = count + raw.others.length;
  const first = new Uint32Array(count + 1);
  inputs.forEach((number, node) => (first[node + 1] = first[node] + number));
  const sources = new Int32Array(first[count]);
  for (let node = 0; node < count; node++) {
    for (let at = first[node]; at < first[node + 1]; at++) {
      sources[at] = node - raw.nodes.sources[at];
    }
  }
  return {
    count,
    total,
    names: name.concat(raw.others),
    ops: text(op).concat(raw.others.map(() => "")),
    devices: text(device),
    frames: text(frame),
    functions: text(of),
    outputs: (node) => lines(raw.strings[outputs[node]]),
    attrs: (node) => lines(raw.strings[attrs[node]]),
    // The inputs of a node lie from first[node] up to first[node + 1].
    first,
    sources,
    slots: raw.nodes.slots,
    readers: readersOf(count, first, sources),
    nanos: new Float64Array(total),
    waited: new Float64Array(total),
    bytes: new Float64Array(total),
    runs: new Uint32Array(total),
    dead: new Uint32Array(total),
  };
}

function lines(text) {
  return text === undefined || text === "" ? [] : text.split("\n");
}

// By node, who reads it: two arrays like those of inputs.
function readersOf(count, first, sources) {
  const from = new Uint32Array(count + 1);
  for (const source of sources) from[source + 1]++;
  for (let node = 0; node < count; node++) from[node + 1] += from[node];
  const nodes = new Int32Array(sources.length);
  const next = from.slice();
  for (let node = 0; node < count; node++) {
    for (let at = first[node]; at < first[node + 1]; at++) nodes[next[sources[at]]++] = node;
  }
  return { first: from, nodes };
}

function decodeStep(raw, text) {
  const { activities, lifetimes, iterations, costs } = raw;
  return {
    nanos: raw.nanos,
    more: raw.more,
    moreLifetimes: raw.moreLifetimes,
    error: raw.error,
    activities: {
      ...activities,
      op: text(activities.op),
      device: text(activities.device),
      thread: text(activities.thread),
      frame: text(activities.frame),
      start: summed(activities.start),
    },
    costs: rows({ ...costs, op: text(costs.op) }),
    lifetimes: { ...lifetimes, start: summed(lifetimes.start) },
    iterations: rows({
      ...iterations,
      frame: text(iterations.frame),
      device: text(iterations.device),
      start: summed(iterations.start),
    }),
    // Positions in activities, oldest first.
    critical: summed(raw.critical),
  };
}

// A node that the optimiser replaced has two costs under one name: they add up.
function addCosts(graph, costs) {
  for (const cost of costs) {
    graph.nanos[cost.name] += cost.nanos;
    graph.waited[cost.name] += cost.waited;
    graph.bytes[cost.name] += cost.bytes;
    graph.runs[cost.name] += cost.runs;
    graph.dead[cost.name] += cost.dead;
    if (!graph.ops[cost.name]) graph.ops[cost.name] = cost.op;
  }
}

function decodeFates(raw, text) {
  return rows({ ...raw, op: text(raw.op), by: text(raw.by), text: text(raw.text) });
}

function decodeSummaries(raw, text) {
  return rows({ ...raw, frame: text(raw.frame), type: text(raw.type) });
}
