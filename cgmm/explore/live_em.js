// What a live figure computes: the primer's functions, by the primer's names, for the plane.
// tests/explore/test_live_em.py holds each of them to cgmm/primer. All chapters.
//
// X         points [x, y], one a row
// theta     {weights, means, covariances}: π_k, μ_k, Σ_k of K components
// links     [i, j, w]: w = Infinity for a must-link, -Infinity for a cannot-link, else a preference
// chunklet  node of each point: points that must-links tie together
// n         multiplicity of each node: how often π_k counts in it
// part      nodes that edges tie together, with every assignment z that no cannot-link forbids
// u, q      unaries and marginals, a row for each node; r = q of each point's node
// eta, C    log π, and the counts that the posterior expects of each class

const sum = (a) => a.reduce((total, x) => total + x, 0);
const dot = (a, b) => a.reduce((total, x, i) => total + x * b[i], 0);
const range = (n) => Array.from({ length: n }, (_, i) => i);
const argmax = (a) => a.indexOf(Math.max(...a));

function logSumExp(logs) {
  const top = logs.reduce((a, b) => Math.max(a, b), -Infinity);
  return top === -Infinity ? top : top + Math.log(sum(logs.map((x) => Math.exp(x - top))));
}

// ------------------------------------------------------------ the mixture: chapters 1 and 2

function logGaussian(X, [mx, my], [[a, b], [, d]]) {
  const det = a * d - b * b, logVolume = Math.log(4 * Math.PI ** 2 * det);
  return X.map(([x, y]) => {
    const h = x - mx, v = y - my;
    return -0.5 * ((d * h * h - 2 * b * h * v + a * v * v) / det + logVolume);
  });
}

function logDensities(X, theta) {
  const columns = theta.means.map((mu, k) => logGaussian(X, mu, theta.covariances[k]));
  return X.map((_, i) => columns.map((column) => column[i]));
}

function moments(X, r) {
  const N = r[0].map((_, k) => sum(r.map((row) => row[k])));
  const mean = (k, d) => sum(X.map((x, i) => r[i][k] * x[d])) / N[k];
  const mu = N.map((_, k) => [mean(k, 0), mean(k, 1)]);
  const about = (k, d, e) => sum(X.map((x, i) => r[i][k] * (x[d] - mu[k][d]) * (x[e] - mu[k][e])));
  const S = N.map((_, k) => [0, 1].map((d) => [0, 1].map((e) => about(k, d, e))));
  return { N, mu, S };
}

// From counts and scatter to covariances.
const POOLS = {
  full: (N, S) => S.map((Sk, k) => Sk.map((row) => row.map((x) => x / N[k]))),
  tied: (N, S) => N.map(() => [0, 1].map((d) =>
    [0, 1].map((e) => sum(S.map((Sk) => Sk[d][e])) / sum(N)))),
  diag: (N, S) => S.map((Sk, k) => [[Sk[0][0] / N[k], 0], [0, Sk[1][1] / N[k]]]),
  spherical: (N, S) => S.map((Sk, k) => {
    const variance = (Sk[0][0] + Sk[1][1]) / (2 * N[k]);
    return [[variance, 0], [0, variance]];
  }),
};

// ------------------------------------------------------------ the network: chapters 5 to 7

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

// All that depends on the relations alone; null if no assignment keeps them, or too many do.
function network(N, links, K, { sampled = "points", answers = false } = {}) {
  const chunklet = closure(N, links.filter(([, , w]) => w === Infinity));
  const n = Array(Math.max(-1, ...chunklet) + 1).fill(0);
  for (const j of chunklet) n[j] = sampled === "points" ? n[j] + 1 : 1;
  const edges = links.filter(([, , w]) => w < Infinity)
    .map(([i, j, w]) => [chunklet[i], chunklet[j], w]);
  const telling = edges.filter(([, , w]) => w !== 0);
  const group = closure(n.length, telling), parts = [];
  group.forEach((g, j) => (parts[g] ??= { nodes: [], z: [], logWeight: [] }).nodes.push(j));
  for (const part of parts) {
    part.before = part.nodes.map(() => []);
    for (const [a, b, w] of telling.filter(([a]) => part.nodes.includes(a))) {
      const [early, late] = [part.nodes.indexOf(a), part.nodes.indexOf(b)].sort((p, q) => p - q);
      part.before[late].push([early, w]);
    }
    assignments(part, K, [], 0);
    if (!part.z.length || part.z.length > MOST_ASSIGNMENTS) return null;
  }
  const net = { K, chunklet, n, edges, parts, answers };
  return { ...net, priors: answers ? [] : priorTerms(net) };
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
  part.z.map((z, s) => part.logWeight[s] + sum(z.map((k, j) => u[part.nodes[j]][k])));

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

// The best assignment of the nodes: a maximum in the place of the sum.
function mostProbable(u, net) {
  const z = [];
  for (const part of net.parts) {
    const logs = logWeights(u, part);
    const best = part.z[logs.indexOf(logs.reduce((a, b) => Math.max(a, b)))];
    part.nodes.forEach((j, i) => { z[j] = best[i]; });
  }
  return z;
}

// ------------------------------------------------------------ the normaliser: chapter 8

// Without the data a part knows only how often each class occurs; equal parts are counted.
function priorTerms(net) {
  const kinds = {};
  for (const part of net.parts) {
    const terms = {};
    part.z.forEach((z, s) => {
      const counts = Array(net.K).fill(0);
      z.forEach((k, j) => { counts[k] += net.n[part.nodes[j]]; });
      (terms[counts] ??= { counts, logs: [] }).logs.push(part.logWeight[s]);
    });
    const all = Object.values(terms).map((t) => ({ counts: t.counts, w: logSumExp(t.logs) }));
    (kinds[JSON.stringify(all)] ??= { terms: all, times: 0 }).times += 1;
  }
  return Object.values(kinds);
}

// log Z_prior, the counts it expects, and their slope: the first and second derivatives in η.
function prior(eta, net) {
  const counts = eta.map(() => 0), slope = eta.map(() => eta.map(() => 0));
  let logZ = 0;
  for (const { terms, times } of net.priors) {
    const logs = terms.map((t) => dot(t.counts, eta) + t.w), total = logSumExp(logs);
    const p = logs.map((x) => Math.exp(x - total));
    const mean = eta.map((_, k) => sum(terms.map((t, s) => p[s] * t.counts[k])));
    logZ += times * total;
    mean.forEach((m, k) => { counts[k] += times * m; });
    terms.forEach((t, s) => slope.forEach((row, k) => row.forEach((_, l) => {
      row[l] += times * p[s] * (t.counts[k] - mean[k]) * (t.counts[l] - mean[l]);
    })));
  }
  return { logZ, counts, slope };
}

// π with counts(log π) = C, by Newton's steps; long ones cut.
function newton(C, net) {
  let eta = C.map((c) => Math.log(c / sum(C)));
  for (let t = 0; t < 100; t++) {
    // [shental2003, eq. 11]
    const { counts, slope } = prior(eta, net), missing = C.map((c, k) => c - counts[k]);
    if (missing.every((m, k) => Math.abs(m) <= 1e-12 + 1e-8 * C[k])) break;
    const rows = slope.map((row, k) => row.map((x) => x / counts[k] + 1));
    let step = solve(rows, missing.map((m, k) => m / counts[k]));
    const longest = Math.max(1, ...step.map(Math.abs));
    step = step.map((x) => x / longest);
    const move = () => eta.map((x, k) => x + step[k]);
    const uphill = () => dot(step, prior(move(), net).counts.map((now, k) => C[k] - now));
    while (uphill() < -Math.abs(dot(step, missing)) / 2) step = step.map((x) => x / 2);
    eta = move();
  }
  const total = logSumExp(eta);
  return eta.map((x) => Math.exp(x - total));
}

// x with A x = b, by elimination with pivots.
function solve(A, b) {
  const rows = A.map((row, i) => [...row, b[i]]);
  rows.forEach((_, c) => {
    const best = c + argmax(rows.slice(c).map((row) => Math.abs(row[c])));
    [rows[c], rows[best]] = [rows[best], rows[c]];
    rows.forEach((row, i) => {
      const factor = row[c] / rows[c][c];
      if (i !== c) rows[i] = row.map((x, j) => x - factor * rows[c][j]);
    });
  });
  return rows.map((row, i) => row[b.length] / row[i]);
}

// ------------------------------------------------------------ EM: chapters 2, 6 to 9

// What an E-step finds at θ, and log p(X | θ, relations), or with the relations as answers.
function eStep(X, theta, net) {
  const u = nodeUnaries(logDensities(X, theta), theta.weights, net);
  const { q, logZ } = marginals(u, net);
  const logPrior = net.answers
    ? sum(net.edges.map(([, , w]) => Math.log1p(Math.exp(w))))
    : prior(theta.weights.map(Math.log), net).logZ;
  return { u, q, r: net.chunklet.map((j) => q[j]), logPrior, logEvidence: logZ - logPrior };
}

// The θ on top of the bound that E has made.
function mStep(X, E, net, pool) {
  const { N, mu, S } = moments(X, E.r);
  const C = N.map((_, k) => sum(E.q.map((row, j) => net.n[j] * row[k])));
  const weights = net.answers ? N.map((x) => x / X.length) : newton(C, net);
  return { weights, means: mu, covariances: POOLS[pool](N, S) };
}

// F(q, θ') of the q that E found at θ, where E′ belongs to θ': only the unaries have moved.
const bound = (E, now) => E.logEvidence + E.logPrior - now.logPrior
  + sum(E.q.map((row, j) => sum(row.map((p, k) => (p > 0 ? p * (now.u[j][k] - E.u[j][k]) : 0)))));

// θ and what its E-step finds, after so many steps; sooner if the evidence stands still, or before
// a component shrinks onto points of one line.
function em(X, theta, net, pool, nIter, tol = -1) {
  let E = eStep(X, theta, net);
  for (let t = 0; t < nIter; t++) {
    const next = mStep(X, E, net, pool), now = eStep(X, next, net);
    const gain = now.logEvidence - E.logEvidence;
    if (!Number.isFinite(gain)) break;
    [theta, E] = [next, now];
    if (!(gain > tol)) break;
  }
  return { theta, E };
}

// ------------------------------------------------------------ K-means: chapter 11

const costs = (X, mu) => X.map((x) => mu.map((m) => ((x[0] - m[0]) ** 2 + (x[1] - m[1]) ** 2) / 2));

// The cheapest assignment of the points that the network allows; a cost is a log-density turned.
function cheapest(c, net) {
  const ones = c[0].map(() => 1);
  const z = mostProbable(nodeUnaries(c.map((row) => row.map((x) => -x)), ones, net), net);
  return net.chunklet.map((j) => z[j]);
}

// One step of Lloyd: each centre to the mean of its points (one without points stays).
function lloydStep(X, mu, net) {
  const z = cheapest(costs(X, mu), net);
  return mu.map((m, k) => {
    const mine = X.filter((_, i) => z[i] === k);
    return mine.length ? [0, 1].map((d) => sum(mine.map((x) => x[d])) / mine.length) : m;
  });
}

// Responsibilities where every component is a ball of radius β, and all weigh the same.
function softCosts(X, mu, beta, net) {
  const u = costs(X, mu).map((row) => row.map((c) => -c / beta ** 2));
  const { q } = marginals(nodeUnaries(u, mu.map(() => 1), net), net);
  return net.chunklet.map((j) => q[j]);
}

// ------------------------------------------------------------ relevant components: chapter 12

// Ĉ: the mean of h hᵀ over the points in chunklets of two or more; null if there are none.
function withinCovariance(X, chunklet) {
  const h = [];
  for (const j of new Set(chunklet)) {
    const G = X.filter((_, i) => chunklet[i] === j);
    const mean = [0, 1].map((d) => sum(G.map((x) => x[d])) / G.length);
    if (G.length > 1) h.push(...G.map((x) => [x[0] - mean[0], x[1] - mean[1]]));
  }
  // [barhillel2005, eq. 1]
  const C = [0, 1].map((d) => [0, 1].map((e) => sum(h.map((x) => x[d] * x[e])) / h.length));
  return h.length ? C : null;
}

// W = Ĉ^(-½), from its eigenvalues: (Ĉ + √det I) / √(tr + 2 √det) is Ĉ^½.
function whitening([[a, b], [, d]]) {
  const root = Math.sqrt(a * d - b * b), trace = Math.sqrt(a + d + 2 * root) * root;
  // [barhillel2005, Alg. 1, step 3]
  return [[(d + root) / trace, -b / trace], [-b / trace, (a + root) / trace]];
}

// ------------------------------------------------------------ a cut: chapter 1

// Two halves on either side of a line through the centre, and the mixture that they make.
function cut(X, [cx, cy], angle) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  const z = X.map(([x, y]) => ((x - cx) * c + (y - cy) * s > 0 ? 1 : 0));
  const r = z.map((k) => [1 - k, k]), { N, mu, S } = moments(X, r);
  const theta = { weights: N.map((x) => x / X.length), means: mu, covariances: POOLS.full(N, S) };
  const u = logDensities(X, theta).map((row) => row.map((x, k) => x + Math.log(theta.weights[k])));
  return { z, theta, logEvidence: sum(u.map(logSumExp)) };
}
