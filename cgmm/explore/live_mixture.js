// A mixture of Gaussians in the plane: the primer's functions, by the primer's names.
// tests/explore/test_live_em.py holds each of them to cgmm/primer. Chapters 1 and 2.
//
// X      points [x, y], one a row
// theta  {weights, means, covariances}: π_k, μ_k, Σ_k of K components
// r      responsibilities, a row for each point

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
  diag: (N, S) => S.map(([[a], [, d]], k) => [[a / N[k], 0], [0, d / N[k]]]),
  spherical: (N, S) => S.map(([[a], [, d]], k) => {
    const variance = (a + d) / (2 * N[k]);
    return [[variance, 0], [0, variance]];
  }),
};
