// You against EM: two ellipses under the reader's hand, and the landscape in which both search.
// Chapter 1.
//
// hand   the ellipses: share, mean, axis [x, y] and the length of the other axis, of one deviation each
// count  how many of the figure's links hold
// land   a row for each number of links: nats by which the best cut at each turn is less likely than the
//        upright one; trail: where the reader has been in it, [turn, nats]

const BEARINGS = range(37).map((i) => 5 * i);
const DEEPEST = 30;
const turnOf = ([[ax, ay], [bx, by]]) => ((Math.atan2(by - ay, bx - ax) * 180) / Math.PI + 360) % 180;

// The axes of an ellipse, from the eigenvalues of its covariance, and back.
function axesOf([[a, b], [, d]]) {
  const turn = Math.atan2(2 * b, a - d) / 2, root = Math.hypot((a - d) / 2, b);
  const [long, short] = [1, -1].map((sign) => Math.sqrt(Math.max(0, (a + d) / 2 + sign * root)));
  return { axis: [long * Math.cos(turn), long * Math.sin(turn)], width: short };
}

function covarianceOf({ axis: [x, y], width }) {
  const share = width ** 2 / (x * x + y * y);
  const b = x * y * (1 - share);
  return [[x * x + share * y * y, b], [b, y * y + share * x * x]];
}

const handOf = ({ weights, means, covariances }) =>
  means.map((mu, k) => ({ share: weights[k], mu: [...mu], ...axesOf(covariances[k]) }));
const thetaOf = (hand) => ({
  weights: hand.map(({ share }) => share), means: hand.map(({ mu }) => mu), covariances: hand.map(covarianceOf),
});

// The log-evidence of a cut where links hold; NaN if a side has no Gaussian of its own. Many turns make
// the same partition: `known` holds what has been computed.
function priceOf(X, turn, net, known) {
  const one = cut(X, [0, 0], (turn * Math.PI) / 180, net.chunklet);
  return known[one.z.join("")] ??= Number.isNaN(one.logEvidence) ? NaN : eStep(X, one.theta, net).logEvidence;
}

function landscape(X, nets) {
  return nets.map((net) => {
    const known = {}, upright = priceOf(X, 0, net, known);
    return { upright, heights: BEARINGS.map((turn) => upright - priceOf(X, turn, net, known)) };
  });
}

const DUEL = {
  asksNothing: true,
  pause: 150,
  sideHeight: 320,
  stepName: "One step of EM",
  runName: "EM takes over",
  tools: () => ["move"],
  chosen: (s) => s.all.slice(0, s.count),
  controls: ({ spec, slider }) => slider("links", "count", range(1 + spec.presets[0].links.length), (n) => n),

  begin(s, numbers) {
    const isWhole = numbers?.length === 12 && numbers.every(Number.isFinite);
    s.hand = isWhole ? [0, 6].map((at) => numbers.slice(at, at + 6))
      .map(([share, x, y, ax, ay, width]) => ({ share, mu: [x, y], axis: [ax, ay], width })) : handOf(s.starts.at(-1));
    Object.assign(s, { isGrabbed: isWhole, byEM: 0 });
  },

  hold: (s) => (s.isGrabbed ? s.placed : undefined),

  refresh(s) {
    const X = JSON.stringify(s.X);
    if (s.seen !== X) {
      const nets = range(1 + s.all.length).map((n) => network(s.X.length, s.all.slice(0, n).map(DUEL.certain), s.spec.K));
      Object.assign(s, { seen: X, land: landscape(s.X, nets) });
    }
    s.best = most(s.starts.map((start) => em(s.X, start, s.net, s.spec.pool, 500, 1e-5).E.logEvidence));
    DUEL.place(s);
  },

  certain: ([i, j]) => [i, j, Infinity],

  // The reader's ellipses have moved: EM starts anew from here.
  place(s) {
    s.isGrabbed ||= s.byEM > 0;
    s.placed = s.hand.flatMap(({ share, mu, axis, width }) => [share, ...mu, ...axis, width]);
    Object.assign(s, { theta: thetaOf(s.hand), trail: [], halves: 0, stuck: false, byEM: 0 });
    DUEL.look(s, eStep(s.X, s.theta, s.net));
  },

  look(s, E) {
    Object.assign(s, { E, r: E.r, best: Math.max(s.best, E.logEvidence) });
    s.trail.push([turnOf(s.theta.means), s.land[s.count].upright - E.logEvidence]);
  },

  half(s) {
    const theta = mStep(s.X, s.E, s.net, s.spec.pool), E = eStep(s.X, theta, s.net);
    const gain = E.logEvidence - s.E.logEvidence;
    // A component that has shrunk onto points of one line: chapter 3.
    if (!Number.isFinite(gain)) return !(s.stuck = true);
    Object.assign(s, { theta, hand: handOf(theta) });
    s.byEM += 1;
    DUEL.look(s, E);
    return gain > 1e-6;
  },

  // Three handles each: the centre, and the ends of two axes on the outer ellipse.
  handles: (s) => s.hand.flatMap(({ mu, axis, width }, k) => {
    const [x, y] = axis, size = Math.hypot(x, y), name = (what) => `Ellipse ${k + 1}: ${what}`;
    const end = ([h, v]) => [mu[0] + 2 * h, mu[1] + 2 * v], colour = s.spec.colours[k];
    return [{ at: mu, name: name("centre"), colour }, { at: end(axis), name: name("end of the first axis"), colour },
      { at: end([(-y * width) / size, (x * width) / size]), name: name("end of the second axis"), colour }];
  }),

  grab(s, [x, y], at) {
    const one = s.hand[Math.floor(at / 3)], [h, v] = [(x - one.mu[0]) / 2, (y - one.mu[1]) / 2];
    const least = (s.spec.view[2] - s.spec.view[0]) / 100, far = Math.hypot(h, v), size = Math.hypot(...one.axis);
    if (at % 3 === 0) one.mu = [x, y];
    else if (at % 3 === 1) one.axis = far > least ? [h, v] : one.axis;
    else one.width = Math.max(least, Math.abs(v * one.axis[0] - h * one.axis[1]) / size);
    s.isGrabbed = true;
    DUEL.place(s);
  },

  // Above, the valley of as many links as hold; below, all of them, the blue being deep.
  side({ s, spec }) {
    const to = (turn) => Number((44 + (246 * turn) / 180).toFixed(1)), isThere = ([, nats]) => Number.isFinite(nats);
    const within = (nats) => Math.min(DEEPEST, Math.max(-DEEPEST, nats)), deep = 18;
    const down = (nats) => Number((92 - (46 * within(nats)) / DEEPEST).toFixed(1));
    const row = (n) => 172 + deep * (s.land.length - 1 - n), [turn, nats] = s.trail.at(-1);
    const line = (points) => points.filter(isThere).map(([t, x], i) => `${i ? "L" : "M"}${to(t)} ${down(x)}`).join("");
    const rows = s.land.map(({ heights }) => heights.map((x, i) => [BEARINGS[i], x]));
    // Eight steps of one colour, so that valleys have edges.
    const depth = (x) => Math.round(8 * (0.5 - within(x) / (2 * DEEPEST))) / 8;
    // Neighbours of one depth are one rectangle, without a seam.
    const cells = (one, n) => one.filter(isThere).map(([t, x], i, all) => [t, depth(x), i && depth(all[i - 1][1])])
      .filter(([, d, before], i) => !i || d !== before)
      .map(([t, d], i, runs) => {
        const left = to(t) - 3.5, right = runs[i + 1] ? to(runs[i + 1][0]) - 3.5 : to(180) + 3.5;
        return `<rect x="${left}" y="${row(n)}" width="${right - left}" height="${deep}" fill="${spec.colours[0]}" fill-opacity="${d}"/>`;
      });
    const ball = (y) => Number.isFinite(y) && `<circle cx="${to(turn)}" cy="${y}" r="6" class="ball"/>`, end = 'text-anchor="end"';
    const places = { 0: "start", 90: "middle", 180: "end" };
    return text(4, 14, `your log-likelihood: ${signed(s.E.logEvidence)}`)
      + text(4, 32, "nats less likely than the upright cut")
      + '<path class="axis" d="M44 42V142"/><path class="grid" d="M44 92H290"/>'
      + [-DEEPEST, 0, DEEPEST].map((x) => text(40, down(x) + 4, signed(x, 0), end)).join("")
      + `<path class="curve" fill="none" d="${line(rows[s.count])}"/>`
      + (s.trail.length > 1 ? `<path class="trail" d="${line(s.trail)}"/>` : "") + (ball(down(nats)) || "")
      + text(4, 164, "the same by number of links (blue: deep)")
      + rows.flatMap(cells).join("")
      + `<rect x="${to(0) - 3.5}" y="${row(s.count)}" width="253" height="${deep}" class="row"/>`
      + ball(row(s.count) + deep / 2)
      + rows.map((_, n) => (n % 2 ? "" : text(36, row(n) + 14, n, end))).join("")
      + Object.entries(places).map(([t, place]) => text(to(t), row(0) + deep + 16, `${t}°`, `text-anchor="${place}"`)).join("");
  },

  say(s) {
    const behind = s.best - s.E.logEvidence, turn = Math.round(s.trail.at(-1)[0]) % 180;
    const who = s.byEM ? `After ${s.byEM} step${s.byEM === 1 ? "" : "s"} of EM from your ellipses` : "Your ellipses";
    return `${who}: log-likelihood ${signed(s.E.logEvidence)}, ${behind < 0.05 ? "the best that is known"
      : `${behind.toFixed(1)} nats below the best that is known`}; cut turned by ${turn}°, ${s.count} link${s.count === 1 ? "" : "s"}.${
      s.stuck ? " The next step would shrink an ellipse onto points of one line." : ""}`;
  },
};
