// K-means under relations, and the balls that shrink to it: the primer's functions, by the primer's
// names. tests/explore/test_live_em.py holds each of them to cgmm/primer. Chapter 11.

const costs = (X, mu) => X.map((x) => mu.map((m) => ((x[0] - m[0]) ** 2 + (x[1] - m[1]) ** 2) / 2));

// The best assignment of the nodes: a maximum in the place of the sum.
function mostProbable(u, net) {
  const z = [];
  for (const part of net.parts) {
    const best = part.z[argmax(logWeights(u, part))];
    part.nodes.forEach((j, i) => { z[j] = best[i]; });
  }
  return z;
}

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
