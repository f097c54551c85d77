// EM under relations, with the normaliser that weights need: the primer's functions, by the primer's
// names. tests/explore/test_live_em.py holds each of them to cgmm/primer. Chapters 2 and 6 to 9.
//
// E       what an E-step finds at θ: unaries u, marginals q, responsibilities r, log-evidence
// eta, C  log π, and the counts that the posterior expects of each class

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
  net.priors ??= priorTerms(net);
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

// What an E-step finds at θ, and log p(X, labels | θ, relations), or with the relations as answers, or
// without the normaliser.
function eStep(X, theta, net) {
  const u = nodeUnaries(logDensities(X, theta), theta.weights, net);
  const { q, logZ } = marginals(u, net);
  const logPrior = net.answers ? sum(net.edges.map(([, , w]) => Math.log1p(Math.exp(w))))
    : net.normalised ? prior(theta.weights.map(Math.log), net).logZ : 0;
  return { u, q, r: net.chunklet.map((j) => q[j]), logPrior, logEvidence: logZ - logPrior };
}

// The θ on top of the bound that E has made.
function mStep(X, E, net, pool) {
  const { N, mu, S } = moments(X, E.r);
  const C = N.map((_, k) => sum(E.q.map((row, j) => net.n[j] * row[k])));
  const weights = net.answers || !net.normalised ? N.map((x) => x / X.length) : newton(C, net);
  return { weights, means: mu, covariances: POOLS[pool](N, S) };
}

// F(q, θ') of the q that E found at θ, where E′ belongs to θ': only the unaries have moved.
const bound = (E, now) => E.logEvidence + E.logPrior - now.logPrior
  + sum(E.q.map((row, j) => sum(row.map((p, k) => (p > 0 ? p * (now.u[j][k] - E.u[j][k]) : 0)))));

// θ and what its E-step finds, after so many steps; sooner if the evidence stands still, or before
// a component shrinks onto points of one line: then `shrinks` is true.
function em(X, theta, net, pool, nIter, tol = -1) {
  let E = eStep(X, theta, net);
  for (let t = 0; t < nIter; t++) {
    const next = mStep(X, E, net, pool), now = eStep(X, next, net);
    const gain = now.logEvidence - E.logEvidence;
    if (!Number.isFinite(gain)) return { theta, E, shrinks: true };
    [theta, E] = [next, now];
    if (!(gain > tol)) break;
  }
  return { theta, E, shrinks: false };
}
