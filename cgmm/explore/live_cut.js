// The price of a cut: the mixture that a straight line makes of the points. Chapter 1.
//
// angle  of the cut, in degrees; gain: its log-evidence a point, less the upright cut's, NaN if a
//        side of either has no Gaussian of its own

// Two halves on either side of a line through the centre, and the mixture that they make. A chunklet
// lies wholly on the side of its middle.
function cut(X, [cx, cy], angle, chunklet = range(X.length)) {
  const [c, s] = [Math.cos(angle), Math.sin(angle)], middle = X.map(() => 0);
  X.forEach(([x, y], i) => { middle[chunklet[i]] += (x - cx) * c + (y - cy) * s; });
  const z = chunklet.map((j) => (middle[j] > 0 ? 1 : 0));
  const r = z.map((k) => [1 - k, k]), { N, mu, S } = moments(X, r);
  const theta = { weights: N.map((x) => x / X.length), means: mu, covariances: POOLS.full(N, S) };
  const u = logDensities(X, theta).map((row) => row.map((x, k) => x + Math.log(theta.weights[k])));
  const isFlat = ([[a, b], [, d]]) => !(a * d - b * b > 1e-9 * a * d);
  return { z, r, theta, logEvidence: theta.covariances.some(isFlat) ? NaN : sum(u.map(logSumExp)) };
}

const TURNS = range(181);

const CUT = {
  tools: () => ["move", "add", "remove"],
  controls: ({ slider }) => slider("turn of the cut", "angle", TURNS, (a) => `${a}°`),

  refresh(s) {
    s.cut = (angle) => cut(s.X, [0, 0], (angle * Math.PI) / 180);
    const upright = s.cut(0).logEvidence;
    s.price = (one) => (one.logEvidence - upright) / s.X.length;
    s.curve = TURNS.filter((a) => a % 5 === 0).map((a) => [a, s.price(s.cut(a))]);
    CUT.turn(s);
  },

  turn(s) {
    const one = s.cut(s.angle);
    Object.assign(s, { theta: one.theta, r: one.r, gain: s.price(one) });
  },

  // A handle of the line is dragged: it stands across the direction in which the cut is turned.
  grab(s, [x, y]) {
    s.angle = Math.round((Math.atan2(y, x) * 180) / Math.PI + 270) % 180;
    CUT.turn(s);
  },

  under({ s, spec, pin }) {
    const [left, bottom, right, top] = spec.view, size = Math.min(right - left, top - bottom);
    const handle = (y) => `<g class="handle" ${pin([0, y])}><circle r="18"/><circle r="9"/></g>`;
    return `<g transform="rotate(${s.angle})"><path class="cut" d="M0 ${-9 * size}V${9 * size}"/>${
      handle(0.42 * size)}${handle(-0.42 * size)}</g>`;
  },

  side({ s }) {
    const ys = s.curve.map(([, y]) => y).filter(Number.isFinite);
    return chart("log-evidence a point, less the upright cut's", "turn of the cut", [
      { line: [[0, 0], [180, 0]], look: 'class="grid"' }, { line: s.curve, look: 'class="curve"' },
    ], {
      dots: [[s.angle, s.gain, 'r="6"']], floor: [Math.min(-1.3, ...ys), Math.max(1.5, ...ys)],
      ticks: [0, 45, 90, 135, 180].map((a) => [a, `${a}°`]),
    });
  },

  say: (s) => (Number.isNaN(s.gain)
    ? "On one side too few points are left for a Gaussian, or all on one line: no price."
    : s.angle % 180
    ? `Cut at ${s.angle} degrees: ${s.gain < 0 ? "" : "+"}${signed(s.gain, 2)} nats a point against the upright one.`
    : "The upright cut itself."),
};
