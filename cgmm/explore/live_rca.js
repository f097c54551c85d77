// The ruler that relevant component analysis makes of chunklets: the primer's functions, by the
// primer's names. tests/explore/test_live_em.py holds each of them to cgmm/primer. Chapter 12.

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

const apply = ([[a, b], [c, d]], [x, y]) => [a * x + b * y, c * x + d * y];

// W of chunklets, scaled to keep areas; the identity if their points lie on one line.
function ruler(X, chunklet) {
  const C = withinCovariance(X, chunklet), det = C && C[0][0] * C[1][1] - C[0][1] ** 2;
  const isLearnt = det > 1e-9 * C?.[0][0] * C?.[1][1], size = isLearnt ? det ** -0.25 : 1;
  return { isLearnt, W: isLearnt ? whitening(C).map((row) => row.map((x) => x / size)) : [[1, 0], [0, 1]] };
}

// Of the nearest neighbours of points with a class, how many share it.
function purity(Y, y, near) {
  const known = range(Y.length).filter((i) => y[i] >= 0);
  const far = (i, j) => Math.hypot(Y[i][0] - Y[j][0], Y[i][1] - Y[j][1]);
  return sum(known.map((i) => {
    const others = known.filter((j) => j !== i).map((j) => [far(i, j), y[j] === y[i]]);
    const nearest = others.sort((p, q) => p[0] - q[0]).slice(0, near);
    return sum(nearest.map(([, same]) => Number(same))) / near / known.length;
  }));
}
