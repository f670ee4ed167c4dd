// Puts boxes into layers, so that edges point down.
//
// In:   boxes, and edges by the places of their ends.
// Out:  the place of each box; the points that each edge goes through; the size of it all.
// Not:  knows what boxes mean, and draws nothing.
//
// The steps are those of layered drawings in general: turn edges that close circles, rank by the
// longest way, keep the ways of long edges free by small boxes without content, order each layer by
// where neighbours are, and move boxes above each other.  A fixed number of sweeps, no small boxes
// where there would be too many, and no search for the best: time grows with boxes and edges, but
// for sorting single layers.

export const BOX = { width: 176, height: 46 };
const GAP = { x: 26, y: 44, row: 14 };
// Wider layers are broken into rows.
const MOST_IN_ROW = 12;
const SWEEPS = 4;
const BEND = 12;

export function laidOut(boxCount, edges) {
  const links = withoutCircles(boxCount, edges);
  const rank = ranked(boxCount, links);
  const { count, chains, pairs, ranks } = withBends(boxCount, links, rank);
  const layers = inLayers(count, ranks);
  order(layers, neighbours(count, pairs), count);
  const rows = inRows(layers, boxCount);
  const places = placed(rows, neighbours(count, pairs), count, boxCount);
  return {
    boxes: places.slice(0, boxCount),
    edges: chains.map((chain, at) =>
      route(
        chain.map((one) => places[one]),
        links[at].isTurned,
      ),
    ),
    width: Math.max(BOX.width, ...places.map((one) => one.x + one.width)),
    height: Math.max(BOX.height, ...places.map((one) => one.y + one.height)),
    // The middle of the first row, where one begins to read.
    top: middleOf(rows.length ? rows[0].boxes.map((box) => places[box]) : []),
  };
}

function middleOf(places) {
  const sum = places.reduce((total, one) => total + one.x + one.width / 2, 0);
  return places.length ? sum / places.length : 0;
}

// Edges, of which those that would close a circle are turned round.
function withoutCircles(count, edges) {
  const leaving = Array.from({ length: count }, () => []);
  edges.forEach((edge, at) => leaving[edge.from].push(at));
  const links = edges.map(({ from, to }) => ({ from, to, isTurned: false }));
  const state = new Uint8Array(count); // 0 unseen, 1 on the way, 2 done
  for (let start = 0; start < count; start++) {
    const way = state[start] ? [] : [[start, 0]];
    if (way.length) state[start] = 1;
    while (way.length) {
      const top = way[way.length - 1];
      if (top[1] === leaving[top[0]].length) {
        state[top[0]] = 2;
        way.pop();
        continue;
      }
      const link = links[leaving[top[0]][top[1]++]];
      const to = link.to;
      if (state[to] === 1) Object.assign(link, { from: to, to: link.from, isTurned: true });
      else if (state[to] === 0) {
        state[to] = 1;
        way.push([to, 0]);
      }
    }
  }
  return links;
}

// The length of the longest way to each box; what nothing comes before is drawn to its readers.
function ranked(count, links) {
  const leaving = Array.from({ length: count }, () => []);
  const missing = new Uint32Array(count);
  for (const { from, to } of links) {
    leaving[from].push(to);
    missing[to]++;
  }
  const rank = new Int32Array(count);
  const isSource = Array.from(missing, (number) => number === 0);
  const ready = [...missing.keys()].filter((box) => isSource[box]);
  for (const box of ready) {
    for (const to of leaving[box]) {
      rank[to] = Math.max(rank[to], rank[box] + 1);
      if (--missing[to] === 0) ready.push(to);
    }
  }
  for (let box = 0; box < count; box++) {
    if (!isSource[box] || !leaving[box].length) continue;
    rank[box] = Math.max(0, Math.min(...leaving[box].map((to) => rank[to])) - 1);
  }
  return rank;
}

// Long edges get a small box in each layer between, unless there would be too many of them.
function withBends(count, links, rank) {
  const wanted = links.reduce(
    (sum, { from, to }) => sum + Math.max(0, rank[to] - rank[from] - 1),
    0,
  );
  const isBent = wanted <= 4 * count + 200;
  const ranks = Array.from(rank);
  const pairs = [];
  const chains = links.map(({ from, to }) => {
    const chain = [from];
    for (let at = rank[from] + 1; isBent && at < rank[to]; at++) chain.push(ranks.push(at) - 1);
    chain.push(to);
    for (let i = 1; i < chain.length; i++) pairs.push([chain[i - 1], chain[i]]);
    return chain;
  });
  return { count: ranks.length, chains, pairs, ranks };
}

function inLayers(count, ranks) {
  const layers = [];
  for (let box = 0; box < count; box++) (layers[ranks[box]] ??= []).push(box);
  return layers.filter(Boolean);
}

function neighbours(count, pairs) {
  const above = Array.from({ length: count }, () => []);
  const below = Array.from({ length: count }, () => []);
  for (const [from, to] of pairs) {
    below[from].push(to);
    above[to].push(from);
  }
  return { above, below };
}

// Sorts each layer by the mean place of its neighbours, downwards and upwards in turn.
function order(layers, { above, below }, count) {
  const place = new Float64Array(count);
  const note = (layer) => layer.forEach((box, at) => (place[box] = (at + 0.5) / layer.length));
  layers.forEach(note);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    const near = isDown ? above : below;
    for (const layer of isDown ? layers : [...layers].reverse()) {
      const wanted = new Map(layer.map((box) => [box, mean(near[box], place) ?? place[box]]));
      layer.sort((a, b) => wanted.get(a) - wanted.get(b));
      note(layer);
    }
  }
}

function mean(boxes, place) {
  if (!boxes.length) return undefined;
  return boxes.reduce((sum, box) => sum + place[box], 0) / boxes.length;
}

// Rows of boxes, top to bottom; a layer may be several.
function inRows(layers, boxCount) {
  return layers.flatMap((layer) => {
    const count = layer.filter((box) => box < boxCount).length;
    const parts = Math.max(1, Math.ceil(count / MOST_IN_ROW));
    const size = Math.ceil(layer.length / parts);
    return Array.from({ length: parts }, (_, at) => ({
      boxes: layer.slice(at * size, (at + 1) * size),
      isLast: at === parts - 1,
    })).filter((row) => row.boxes.length);
  });
}

// Places: one row under the other, each box near the middle of its neighbours.
function placed(rows, near, count, boxCount) {
  const places = Array.from({ length: count }, (_, box) => ({
    x: 0,
    y: 0,
    width: box < boxCount ? BOX.width : BEND,
    height: BOX.height,
  }));
  // What values only come from, such as a constant, gives way to what they go through.
  const weight = places.map((_, box) =>
    near.above[box].length && near.below[box].length ? 1 : 0.02,
  );
  let y = 0;
  for (const row of rows) {
    for (const box of row.boxes) places[box].y = y;
    spread(row.boxes, places, weight, () => 0);
    y += BOX.height + (row.isLast ? GAP.y : GAP.row);
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    const side = isDown ? near.above : near.below;
    for (const row of isDown ? rows : [...rows].reverse()) {
      spread(row.boxes, places, weight, (box) => middle(side[box], places, weight));
    }
  }
  const left = Math.min(...places.map((one) => one.x));
  for (const one of places) one.x -= left;
  return places;
}

function middle(boxes, places, weight) {
  if (!boxes.length) return undefined;
  let [sum, total] = [0, 0];
  for (const box of boxes) {
    sum += (places[box].x + places[box].width / 2) * weight[box];
    total += weight[box];
  }
  return sum / total;
}

// Puts the boxes of a row where they want to be, as far as they keep their order and distance: the
// weightiest first, of several the middle one; then those to its right, and those to its left.
function spread(row, places, weight, wanted) {
  const want = row.map((box) => {
    const centre = wanted(box);
    return centre === undefined ? places[box].x : centre - places[box].width / 2;
  });
  const half = (row.length - 1) / 2;
  let anchor = 0;
  row.forEach((box, at) => {
    const more = weight[box] - weight[row[anchor]];
    if (more > 0 || (more === 0 && Math.abs(at - half) < Math.abs(anchor - half))) anchor = at;
  });
  places[row[anchor]].x = want[anchor];
  for (let at = anchor + 1; at < row.length; at++) {
    const before = places[row[at - 1]];
    places[row[at]].x = Math.max(want[at], before.x + before.width + GAP.x);
  }
  for (let at = anchor - 1; at >= 0; at--) {
    const after = places[row[at + 1]].x;
    places[row[at]].x = Math.min(want[at], after - GAP.x - places[row[at]].width);
  }
}

// The points of an edge, from the bottom of its source to the top of its target.
function route(chain, isTurned) {
  const points = [];
  chain.forEach((box, at) => {
    const x = box.x + box.width / 2;
    if (at > 0) points.push([x, box.y]);
    if (at < chain.length - 1) points.push([x, box.y + box.height]);
  });
  return isTurned ? points.reverse() : points;
}
