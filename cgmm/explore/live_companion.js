// The figure that accompanies the reader: the home page's points and rivals, and one control more in
// each chapter. Chapters 4, 6 to 9, 12 and 14.
//
// controls  of the spec: labels, together, apart, weight, normaliser, metric
// role      of the links: "fit", they hold in the fit; "ruler", they teach the metric of RCA

const HARD = 4;
const PREFERENCES = [...range(25).map((i) => i / 8), HARD];
const EUCLID = [[1, 0], [0, 1]];

// θ of the points A x, where θ is that of the points x.
function transform({ weights, means, covariances }, A) {
  const columns = ([[a, b], [c, d]]) => [[a, c], [b, d]];
  const both = (Sigma) => columns(columns(Sigma).map((x) => apply(A, x))).map((row) => apply(A, row));
  return { weights, means: means.map((mu) => apply(A, mu)), covariances: covariances.map(both) };
}

// θ with covariances of the fit's type. From others the first M-step would lower the evidence, and EM
// would stop there.
function pooled({ weights, means, covariances }, pool) {
  const S = covariances.map((Sigma, k) => Sigma.map((row) => row.map((x) => weights[k] * x)));
  return { weights, means, covariances: POOLS[pool](weights, S) };
}

const swap = (theta) => Object.fromEntries(Object.entries(theta).map(([name, each]) => [name, [...each].reverse()]));
const count = (n, name) => `${n} ${name}${n === 1 ? "" : "s"}`;

const COMPANION = {
  ...RIVALS,
  asksNothing: true,
  tools: ({ controls }) => Object.keys(TOOLS).filter((tool) =>
    !["label", "together", "apart"].includes(tool) || controls.includes({ label: "labels" }[tool] ?? tool)),
  strength: (s) => (s.spec.controls.includes("weight") && s.weight < HARD ? s.weight : Infinity),
  model: (s) => ({ labels: s.y, normalised: s.normaliser === "kept" }),

  controls({ spec, slider, radios }) {
    const has = (name) => spec.controls.includes(name);
    if (has("normaliser")) radios("normaliser", "normaliser", { kept: "kept", out: "left out" });
    if (has("weight")) slider("weight of every relation", "weight", PREFERENCES, (w) => (w < HARD ? w.toFixed(2) : "∞"));
    if (has("metric")) radios("the links", "role", { fit: "hold in the fit", ruler: "teach a ruler" });
    if (has("metric")) radios("clusters", "shape", { full: "ellipses", spherical: "circles" });
  },

  refresh(s) {
    const teach = s.role === "ruler", mustLinks = s.links.filter(([, , v]) => v > 0);
    const { W, isLearnt } = teach ? ruler(s.X, closure(s.X.length, mustLinks)) : { W: EUCLID, isLearnt: true };
    const [[a, b], [, d]] = W, back = [[d, -b], [-b, a]], Y = s.X.map((x) => apply(W, x));
    const net = teach ? network(s.X.length, [], s.spec.K, COMPANION.model(s)) : s.net;
    const climb = (start) => {
      const top = em(Y, pooled(transform(start, W), s.shape), net, s.shape, 1000, 1e-5);
      return { ...top, theta: transform(top.theta, back) };
    };
    // Labels name the components: either name may suit a start.
    const named = (start) => [start, swap(start)].map(climb)
      .reduce((p, q) => (q.E.logEvidence > p.E.logEvidence ? q : p));
    RIVALS.refresh(s, s.y.some((k) => k >= 0) ? named : climb);
    Object.assign(s, { W, isLearnt });
  },

  // Circles of the ruler, as they lie among the points.
  under({ s, spec, ring }) {
    const [[a, b], [, d]] = s.W, [left, bottom, right, top] = spec.view;
    const centre = [(left + right) / 2, (bottom + top) / 2];
    return s.role === "ruler" ? [2, 4].map((far) => ring([[d, -b], [-b, a]], centre, far, 'class="ruler"')).join("") : "";
  },

  say(s) {
    const labels = s.y.filter((k) => k >= 0).length;
    const answer = [labels && `${count(labels, "label")}, `, RIVALS.say(s)].filter(Boolean).join("");
    const shares = ` Shares ${s.theta.weights.map((p) => p.toFixed(2)).join(" and ")}.`;
    return answer + (s.spec.controls.includes("normaliser") ? shares : "")
      + (s.isLearnt ? "" : " Two or more links that do not lie along one line would teach a ruler.");
  },
};
