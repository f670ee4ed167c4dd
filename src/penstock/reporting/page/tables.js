// The tables of a report: ops, nodes, iterations, what was optimised away and left out.
//
// In:   the model.
// Out:  elements, for each tab that is a table.
// Not:  sorts nothing itself.

import { make } from "./dom.js";
import { bytes, counted, shortDevice, time } from "./format.js";
import { table } from "./table.js";

const amount = (title, value, text) => ({ title, value, text, isNumber: true });
const count = (title, value) => amount(title, value, (row) => value(row).toLocaleString("en"));
const duration = (title, value) =>
  amount(title, value, (row) => (value(row) ? time(value(row)) : ""));

export function opTables({ graph, step }, show) {
  const ops = byOp(step.costs);
  const common = costColumns(total(ops));
  const op = { title: "op", value: (row) => row.op };
  const name = { title: "node", value: (row) => graph.names[row.name], node: (row) => row.name };
  const nodes = count("nodes", (row) => row.nodes);
  return [
    make("h2", {}, "Ops"),
    ...table("Ops by time and memory", [op, nodes, ...common], ops, show),
    make("h2", {}, "Nodes"),
    ...table("Nodes by time and memory", [name, op, ...common], step.costs, show),
  ];
}

function costColumns(all) {
  const share = (row) => `${((100 * row.nanos) / Math.max(1, all)).toFixed(1)} %`;
  return [
    count("runs", (row) => row.runs),
    count("dead", (row) => row.dead),
    duration("time", (row) => row.nanos),
    duration("waits", (row) => row.waited),
    amount("share", (row) => row.nanos, share),
    amount(
      "makes",
      (row) => row.bytes,
      (row) => bytes(row.bytes),
    ),
  ];
}

function total(ops) {
  return ops.reduce((sum, row) => sum + row.nanos, 0);
}

function byOp(costs) {
  const found = new Map();
  for (const { op, runs, dead, nanos, waited, bytes: made } of costs) {
    const row = found.get(op) ?? { op, nodes: 0, runs: 0, dead: 0, nanos: 0, waited: 0, bytes: 0 };
    found.set(op, row);
    row.nodes++;
    row.runs += runs;
    row.dead += dead;
    row.nanos += nanos;
    row.waited += waited;
    row.bytes += made;
  }
  return [...found.values()].sort((a, b) => b.nanos - a.nanos);
}

export function loopTables(model, show) {
  const { iterations } = model.step;
  if (!iterations.length) return [make("p", {}, "No loop ran in this step.")];
  const columns = [
    { title: "loop", value: (row) => row.frame },
    amount("iteration", (row) => row.number),
    { title: "device", value: (row) => shortDevice(row.device) },
    duration("begins", (row) => row.start),
    duration("takes", (row) => row.duration),
    amount("nodes run", (row) => row.runs),
    amount("dead", (row) => row.dead),
  ];
  return table("Iterations of loops", columns, iterations, show);
}

export function optimisedTables(model, show) {
  const { graph, fates, leftOut, left } = model;
  const instead = (row) => row.instead.map((node) => graph.names[node]).join(", ");
  const fateColumns = [
    { title: "node", value: (row) => graph.names[row.name], node: (row) => row.name },
    { title: "op", value: (row) => row.op },
    { title: "pass", value: (row) => row.by },
    { title: "what and why", value: (row) => row.text },
    { title: "instead", value: instead, node: (row) => row.instead[0] ?? -1 },
  ];
  const nameColumns = [
    { title: "node", value: (row) => row.name },
    { title: "op", value: (row) => row.op },
  ];
  const leftColumns = [
    { title: "node", value: (row) => graph.names[row.name], node: (row) => row.name },
    { title: "op", value: (row) => row.op },
    { title: "why", value: (row) => row.reason },
  ];
  return [
    make("h2", {}, `Optimised away: ${counted(fates.length, "change")}`),
    ...table("What the optimiser did", fateColumns, fates, show),
    make("h2", {}, `Pruned: ${counted(leftOut.length, "node")} that nothing here needs`),
    ...table("Pruned nodes", nameColumns, leftOut, show),
    ...(left.length
      ? [
          make("h2", {}, `Left to the executor: ${counted(left.length, "node")}`),
          ...table("Nodes that are not compiled", leftColumns, left, show),
        ]
      : []),
  ];
}
