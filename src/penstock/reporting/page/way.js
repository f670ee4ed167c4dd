// The shortest way through the graph that ends at a node.
//
// In:   the graph, a node, and where the way is to begin: a node, or anything that is fed.
// Out:  nodes, first to last; none if there is no way.
// Not:  shows nothing.

const FED = new Set(["_Arg", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault"]);

export function wayFrom(graph, start, node) {
  const isStart = start >= 0 ? (one) => one === start : (one) => FED.has(graph.ops[one]);
  const after = new Int32Array(graph.count).fill(-2);
  after[node] = -1;
  const waiting = [node];
  for (const at of waiting) {
    if (isStart(at)) return followed(after, at);
    for (let edge = graph.first[at]; edge < graph.first[at + 1]; edge++) {
      const source = graph.sources[edge];
      if (after[source] !== -2) continue;
      after[source] = at;
      waiting.push(source);
    }
  }
  return [];
}

function followed(after, start) {
  const way = [];
  for (let at = start; at !== -1; at = after[at]) way.push(at);
  return way;
}
