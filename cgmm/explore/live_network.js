// Relations between points as a network, and exact answers about it: the primer's functions, by the
// primer's names. tests/explore/test_live_em.py holds each of them to cgmm/primer. Chapters 5 to 7.
//
// labels    class of each point, -1 where unknown; a label leaves its node one class
// links     [i, j, w]: w = Infinity for a must-link, -Infinity for a cannot-link, else a preference
// chunklet  node of each point: points that must-links connect
// n         multiplicity of each node: how often π_k counts in it
// part      nodes that edges tie together, with every assignment z that no cannot-link forbids
// u, q      unaries and marginals, a row for each node; r = q of each point's node

const sum = (a) => a.reduce((total, x) => total + x, 0);
const dot = (a, b) => a.reduce((total, x, i) => total + x * b[i], 0);
const range = (n) => Array.from({ length: n }, (_, i) => i);
const most = (a) => a.reduce((x, y) => Math.max(x, y), -Infinity);
const argmax = (a) => a.indexOf(most(a));

function logSumExp(logs) {
  const top = most(logs);
  return top === -Infinity ? top : top + Math.log(sum(logs.map((x) => Math.exp(x - top))));
}

// The group of each of N things that pairs join, numbered by its first member.
function closure(N, pairs) {
  const group = range(N);
  for (const [a, b] of pairs) {
    const low = Math.min(group[a], group[b]), high = Math.max(group[a], group[b]);
    group.forEach((g, i) => { if (g === high) group[i] = low; });
  }
  const first = [...new Set(group)];
  return group.map((g) => first.indexOf(g));
}

const MOST_ASSIGNMENTS = 20000;
const CONTRADICTION = "This relation contradicts the others: no assignment satisfies them all.";
const TOO_LARGE = "This relation would connect more points than the figure can sum over.";

// All that depends on the relations alone; null if no assignment keeps them, or too many do. `why` is
// called with the reason.
function network(N, links, K, { sampled = "points", answers = false, labels = [], normalised = true } = {}, why) {
  const chunklet = closure(N, links.filter(([, , w]) => w === Infinity));
  const n = Array(1 + most(chunklet)).fill(0);
  for (const j of chunklet) n[j] = sampled === "points" ? n[j] + 1 : 1;
  const edges = links.filter(([, , w]) => w < Infinity)
    .map(([i, j, w]) => [chunklet[i], chunklet[j], w]);
  const group = closure(n.length, edges), parts = [];
  group.forEach((g, j) => (parts[g] ??= { nodes: [], z: [], logWeight: [] }).nodes.push(j));
  for (const part of parts) {
    part.before = part.nodes.map(() => []);
    for (const [a, b, w] of edges.filter(([a]) => part.nodes.includes(a))) {
      const [early, late] = [part.nodes.indexOf(a), part.nodes.indexOf(b)].sort((p, q) => p - q);
      part.before[late].push([early, w]);
    }
    assignments(part, K, [], 0);
    if (part.z.length > MOST_ASSIGNMENTS) return why?.(TOO_LARGE) ?? null;
    const known = labels.flatMap((k, i) => (k < 0 || !part.nodes.includes(chunklet[i]) ? []
      : [[part.nodes.indexOf(chunklet[i]), k]]));
    part.logLabel = part.z.map((z) => (known.every(([j, k]) => z[j] === k) ? 0 : -Infinity));
    if (!part.logLabel.includes(0)) return why?.(CONTRADICTION) ?? null;
  }
  return { K, chunklet, n, edges, parts, answers, normalised };
}

// Every assignment of a part's nodes, one node after the other, and the weight of its edges.
function assignments(part, K, z, logWeight) {
  if (part.z.length > MOST_ASSIGNMENTS) return;
  if (z.length === part.nodes.length) {
    part.z.push(z);
    part.logWeight.push(logWeight);
    return;
  }
  for (let k = 0; k < K; k++) {
    let weight = logWeight;
    for (const [a, w] of part.before[z.length]) {
      // A cannot-link within a chunklet (a is the node itself) holds for no class.
      if (a === z.length || z[a] === k) weight += w;
    }
    if (weight > -Infinity) assignments(part, K, [...z, k], weight);
  }
}

function nodeUnaries(logP, pi, net) {
  const eta = pi.map(Math.log), u = net.n.map((n) => eta.map((x) => n * x));
  // [lu2007, eqs. 4.2 and 4.3]
  logP.forEach((row, i) => row.forEach((x, k) => { u[net.chunklet[i]][k] += x; }));
  return u;
}

// The log of each assignment's weight, part by part.
const logWeights = (u, part) =>
  part.z.map((z, s) => part.logWeight[s] + part.logLabel[s] + sum(z.map((k, j) => u[part.nodes[j]][k])));

// p(z_j = k) of every node and log Z, by the sum over all assignments of each part.
function marginals(u, net) {
  const q = u.map((row) => row.map(() => 0));
  let logZ = 0;
  for (const part of net.parts) {
    const logs = logWeights(u, part), total = logSumExp(logs);
    logZ += total;
    // [shental2003, eq. 9]
    logs.forEach((x, s) => {
      const p = Math.exp(x - total);
      part.z[s].forEach((k, j) => { q[part.nodes[j]][k] += p; });
    });
  }
  return { q, logZ };
}
