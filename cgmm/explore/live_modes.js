// What a live figure shows: one mode a question of the book, each a handful of functions of the
// state. Chapters 1, 2, 6, 9, 11 and 12.
//
// tools     what the hand can do; hand: what it does first ("move" if not named)
// controls  adds sliders and choices
// refresh   what follows once points or relations have changed: sets s.r, the points' colours
// half      one half-step; whether it gained anything
// side      the panel beside the points, 300 wide and 240 high; over, under: what lies on the points
// say       the sentence below

const text = (x, y, words, look = "") => `<text x="${x}" y="${y}" ${look}>${words}</text>`;
const dots = (points, look) => points.map(([x, y]) =>
  `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" ${look}/>`).join("");
const path = (points, look) =>
  `<path fill="none" d="M${points.map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L")}" ${look}/>`;

// Curves over x in a frame: each a list of [x, y]; returns the drawing and the way to its places.
function chart(curves, title, below, { floor, ticks = [] } = {}) {
  const all = curves.flatMap(({ line }) => line), xs = all.map(([x]) => x);
  const ys = all.map(([, y]) => y).filter(Number.isFinite);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1e-9)];
  const low = floor?.[0] ?? Math.min(...ys), high = floor?.[1] ?? Math.max(...ys, low + 1);
  const to = ([x, y]) => [56 + (230 * (x - x0)) / (x1 - x0), 198 - (160 * (y - low)) / (high - low)];
  const digits = high - low < 5 ? 2 : 0;
  const drawn = curves.map(({ line, look }) => (line.length ? path(line.map(to), look) : "")).join("");
  const marks = ticks.map(([x, words]) => text(to([x, low])[0], 216, words, 'text-anchor="middle"'));
  return { to, drawn: `${text(4, 18, title)}<path class="axis" d="M56 34V202H290"/>
    ${text(52, 202, signed(low, digits), 'text-anchor="end"')}
    ${text(52, 46, signed(high, digits), 'text-anchor="end"')}
    ${marks.join("")}${text(290, 234, below, 'text-anchor="end"')}${drawn}` };
}

// ------------------------------------------------------------ what most modes draw

function components({ s, spec, theta, ellipse, at }) {
  const look = (k) => `stroke="${spec.colours[k]}" class="component"`;
  const mean = (mu, k) => `<path d="${MARKS[k % MARKS.length]}" class="mean"
    stroke="${spec.colours[k]}" transform="translate(${at(mu)}) scale(1.3)"/>`;
  const cross = (mu, k) => `<path d="M-6-6L6 6M-6 6L6-6" class="cross"
    stroke="${spec.colours[k]}" transform="translate(${at(mu)})"/>`;
  return [
    ...theta.means.map((mu, k) => ellipse(mu, theta.covariances[k], 1, look(k))
      + ellipse(mu, theta.covariances[k], 2, `${look(k)} opacity="0.45"`) + mean(mu, k)),
    ...(s.beside ? s.mu.map(cross) : []),
    ...(s.fitted?.means ?? []).map((mu, k) =>
      ellipse(mu, s.fitted.covariances[k], 2, 'class="fitted"')),
  ].join("");
}

const evidence = (s) => `log-evidence ${signed(s.now.logEvidence)}`;

// ------------------------------------------------------------ EM, half-step by half-step

const EM = {
  tools: ["move", "add", "remove"],

  refresh(s) {
    s.E = s.now = eStep(s.X, s.theta, s.net);
    Object.assign(s, { r: s.E.r, after: "E", stuck: false, trace: [[s.now.logEvidence, s.now.logEvidence]] });
  },

  half(s) {
    const before = s.trace.at(-1);
    if (s.after === "E") {
      const theta = mStep(s.X, s.E, s.net, s.spec.pool), now = eStep(s.X, theta, s.net);
      // A component that has shrunk onto points of one line: chapter 3.
      if (!Number.isFinite(now.logEvidence)) return !(s.stuck = true);
      Object.assign(s, { theta, now });
      s.mu = lloydStep(s.X, s.mu, s.net);
      s.trace.push([s.now.logEvidence, bound(s.E, s.now)]);
    } else {
      Object.assign(s, { E: s.now, r: s.now.r });
      s.trace.push([s.now.logEvidence, s.now.logEvidence]);
    }
    s.after = s.after === "E" ? "M" : "E";
    return s.trace.at(-1)[1] - before[1] > 1e-7;
  },

  controls({ s, spec, radios, redo }) {
    if (!spec.beside) return;
    radios("beside it", { no: "nothing", yes: "K-means (crosses)" }, "no", (value) => {
      s.beside = value === "yes";
      s.mu = s.theta.means;
      redo();
    });
  },

  // The last twelve steps: the first would hide how far the bound stays behind.
  side({ s }) {
    const first = Math.max(0, s.trace.length - 25), last = (s.trace.length - 1) / 2;
    const line = (d) => s.trace.slice(first).map((pair, t) => [(first + t) / 2, pair[d]]);
    const { to, drawn } = chart([
      { line: line(0), look: 'class="curve"' }, { line: line(1), look: 'class="curve dashed"' },
    ], "log-evidence, and the bound (dashed)", "steps", {
      ticks: first / 2 < last ? [[first / 2, first / 2], [last, last]] : [[0, 0]],
    });
    const ends = [0, 1].map((d) => to(line(d).at(-1)));
    return drawn + path(ends, 'class="gap"') + dots(ends, 'r="4"');
  },

  say(s) {
    const [, F] = s.trace.at(-1), steps = (s.trace.length - 1) / 2;
    const weights = s.theta.weights.map((p) => p.toFixed(2)).join(" and ");
    const half = !steps ? "At the start" : `After ${s.after}${Math.ceil(steps)}`;
    return `${half}: ${evidence(s)}, bound ${signed(F)}; weights ${weights}.${
      s.stuck ? " The next step would shrink a component onto points of one line." : ""}`;
  },
};

const RELATIONS = { ...EM, tools: [...EM.tools, "together", "apart"] };

// ------------------------------------------------------------ the best of some starts, at once

// Every start climbed to its top under the present points and relations.
const climb = (s, net) => s.starts.map((start) =>
  em(s.X, start, net, s.spec.pool, 60, 1e-3));

// Of two starts that arrived at one place the first.
const best = (fits) => {
  const top = Math.max(...fits.map(({ E }) => E.logEvidence));
  return fits.findIndex(({ E }) => E.logEvidence > top - 0.05);
};

const RIVALS = {
  tools: RELATIONS.tools,
  hand: "together",

  refresh(s) {
    s.fits = climb(s, s.net);
    s.winner = best(s.fits);
    const { theta, E } = s.fits[s.winner];
    Object.assign(s, { theta, E, now: E, r: E.r, after: "E" });
  },

  side({ s, spec }) {
    const top = s.fits[s.winner].E.logEvidence;
    const bars = s.fits.map(({ E }, k) => {
      const behind = top - E.logEvidence, long = Math.max(4, 200 - 4 * behind), y = 62 + 76 * k;
      const words = k === s.winner ? "the most likely"
        : behind < 0.05 ? `now ${spec.words[s.winner]} too` : `behind by ${behind.toFixed(1)} nats`;
      return text(4, y - 8, `${spec.words[k]}: ${words}`)
        + `<rect x="4" y="${y}" width="${long}" height="18" class="bar${k === s.winner ? " on" : ""}"/>`;
    });
    return text(4, 18, "which answer is more likely?") + bars.join("");
  },

  say(s) {
    const behind = s.fits.map(({ E }) => s.fits[s.winner].E.logEvidence - E.logEvidence);
    const told = s.links.length === 1 ? "1 relation" : `${s.links.length} relations`;
    const ahead = Math.max(...behind), name = s.spec.words[s.winner];
    return `${told}: ${name}${ahead < 0.05 ? ", from every start" : ` by ${ahead.toFixed(1)} nats`}.`;
  },
};

const WEIGHTS = range(25).map((i) => i / 8);

const AGAINST_DENSITY = {
  ...RIVALS,
  hand: "move",
  strength: (s) => s.weight,
  controls: ({ slider }) => slider("weight w of every relation", "weight", WEIGHTS, (w) => w.toFixed(2)),

  refresh(s) {
    RIVALS.refresh(s);
    // Each rival's evidence at its θ, were the relations believed with another weight.
    s.curves = s.starts.map(() => []);
    for (const w of WEIGHTS.filter((_, i) => i % 4 === 0)) {
      const links = s.links.map(([i, j, v]) => [i, j, v * w]);
      const net = network(s.X.length, links, s.spec.K, s.spec);
      s.fits.forEach(({ theta }, k) =>
        s.curves[k].push([w, eStep(s.X, theta, net).logEvidence]));
    }
  },

  side({ s, spec }) {
    // What is far below would flatten the rest.
    const low = Math.max(...s.curves.flat().map(([, y]) => y)) - 25, seen = ([, y]) => y > low;
    const curves = s.curves.map((line, k) =>
      ({ line: line.filter(seen), look: `class="curve${k ? " dashed" : ""}"` }));
    const { to, drawn } = chart(curves, `log p: ${spec.words[0]}, ${spec.words[1]} (dashed)`, "w",
      { ticks: [0, 1, 2, 3].map((w) => [w, w]) });
    const now = s.fits.map(({ E }) => [s.weight, E.logEvidence]).filter(seen);
    return drawn + dots(now.map(to), 'r="4"');
  },
};

// ------------------------------------------------------------ a variance that goes to zero

const RADII = range(31).map((i) => 2 * 0.025 ** (i / 30));

const SHRINK = {
  tools: RELATIONS.tools,
  strength: (s) => s.beta ** -(s.speed ?? s.spec.speed),

  controls({ s, slider, radios, redo }) {
    slider("radius β", "beta", RADII, (x) => x.toFixed(2));
    radios("relations weigh", { 0: "1, whatever β", 2: "1/β²", 3: "1/β³" }, `${s.spec.speed}`,
      (power) => { s.speed = Number(power); redo(); });
  },

  refresh(s) {
    const c = costs(s.X, s.mu), all = (w) => s.links.map(([i, j, v]) => [i, j, w ? v * w : 0]);
    const net = (w) => network(s.X.length, all(w), s.spec.K);
    s.r = softCosts(s.X, s.mu, s.beta, s.net);
    // What each algorithm makes of the same centres; the last has no answer if none keeps all.
    s.limits = [0, 1, Infinity].map((w) => net(w)).map((one) => one && cheapest(c, one));
    const tied = [...new Set(s.links.flatMap(([i, j]) => [i, j]))];
    s.tied = tied.length ? tied : range(s.X.length);
    s.agree = (r) => s.limits.map((z) => z && sum(s.tied.map((i) => r[i][z[i]])) / s.tied.length);
    const radii = RADII.filter((_, i) => i % 3 === 0);
    const shares = radii.map((beta) => {
      const one = net(SHRINK.strength({ ...s, beta }));
      return s.agree(softCosts(s.X, s.mu, beta, one));
    });
    s.curves = s.limits.map((z, a) => z && radii.map((b, i) => [-Math.log(b), shares[i][a]]));
  },

  over({ s, spec, ellipse, at }) {
    const b = s.beta ** 2;
    return s.mu.map((mu, k) => ellipse(mu, [[b, 0], [0, b]], 1,
      `stroke="${spec.colours[k]}" class="component"`) + `<path d="${MARKS[k]}" class="mean"
      stroke="${spec.colours[k]}" transform="translate(${at(mu)}) scale(1.3)"/>`).join("");
  },

  side({ s, spec }) {
    const shown = s.curves.map((line, a) => line && { line, a }).filter(Boolean);
    const look = (a) => `stroke="${spec.colours[a + 2]}" class="${["", "dashed", "dotted"][a]} curve"`;
    const { to, drawn } = chart(shown.map(({ line, a }) => ({ line, look: look(a) })),
      "agreement with each algorithm, by β", "",
      { floor: [0.4, 1], ticks: [2, 1, 0.5, 0.2, 0.1, 0.05].map((b) => [-Math.log(b), b]) });
    const now = s.agree(s.r);
    return drawn + shown.map(({ a }) => dots([to([-Math.log(s.beta), now[a]])],
      `r="4" fill="${spec.colours[a + 2]}" stroke="none"`)
      + text([4, 76, 208][a], 236, ["K-means", "at a price (dashed)", "kept (dotted)"][a],
        `style="fill: ${spec.colours[a + 2]}; color: ${spec.colours[a + 2]}"`)).join("");
  },

  say(s) {
    const words = ["K-means", "relations at a price", "relations kept"];
    const shares = s.agree(s.r).map((x, a) => x !== null && `${words[a]} ${Math.round(100 * x)} %`);
    return `Radius ${s.beta.toFixed(2)}; agreement with ${shares.filter(Boolean).join(", ")}.`;
  },
};

// ------------------------------------------------------------ a ruler from chunklets

const SHARES = range(21).map((i) => i / 20);
const apply = ([[a, b], [c, d]], [x, y]) => [a * x + b * y, c * x + d * y];

const METRIC = {
  tools: ["move", "add", "remove", "together"],
  controls: ({ slider }) => slider("from Euclid's ruler to that of RCA", "t", SHARES,
    (t) => `${Math.round(100 * t)} %`),

  refresh(s) {
    const N = s.X.length, one = [[1, 0], [0, 1]];
    s.C = withinCovariance(s.X, s.net.chunklet);
    const det = s.C ? s.C[0][0] * s.C[1][1] - s.C[0][1] ** 2 : 0;
    s.learnt = det > 1e-9 * (s.C?.[0][0] * s.C?.[1][1]);
    const W = s.learnt ? whitening(s.C) : one, size = Math.sqrt(W[0][0] * W[1][1] - W[0][1] ** 2);
    s.W = mix(one, W.map((row) => row.map((x) => x / size)), s.t);
    s.centre = [0, 1].map((d) => sum(s.X.map((x) => x[d])) / N);
    s.Y = s.X.map((x) => apply(s.W, x.map((v, d) => v - s.centre[d])));
    s.r = s.y.map((k) => range(s.spec.K).map((l) => (k < 0 ? 1 / s.spec.K : Number(k === l))));
    s.right = purity(s.Y, s.y, 10);
  },

  // A circle of the ruler, as it lies among the points.
  over({ s, ellipse }) {
    const [[a, b], [, d]] = s.W, det = a * d - b * b, M = [[d / det, -b / det], [-b / det, a / det]];
    const square = M.map((row) => M[0].map((_, e) => row[0] * M[0][e] + row[1] * M[1][e]));
    return [1, 2, 3].map((far) => ellipse(s.centre, square, far * 2, 'class="ruler"')).join("");
  },

  side({ s, spec }) {
    const [left, bottom, right, top] = spec.view, far = Math.max(...s.Y.flat().map(Math.abs), 1e-9);
    const to = ([x, y]) => [150 + (108 * x) / far, 128 - (108 * y) / far];
    const bent = (x) => to(apply(s.W, x.map((v, d) => v - s.centre[d])));
    const grid = range(9).flatMap((i) => {
      const x = left + ((right - left) * i) / 8, y = bottom + ((top - bottom) * i) / 8;
      return [[[x, bottom], [x, top]], [[left, y], [right, y]]];
    });
    // An svg within the svg: what lies outside is cut off.
    return `<svg x="36" y="20" width="228" height="216" viewBox="36 20 228 216">${grid.map((ends) => path(ends.map(bent), 'class="grid"')).join("")}
      ${s.Y.map((y, i) => `<path d="${MARKS[Math.max(0, s.y[i])]}" fill="${blend(s.r[i], spec.colours)}"
        transform="translate(${to(y).map((v) => v.toFixed(1)).join()}) scale(.8)"/>`).join("")}</svg>
      ${text(4, 14, "the plane as this ruler sees it")}`;
  },

  say(s) {
    const right = `Of the ten nearest neighbours ${Math.round(100 * s.right)} % are of the own class.`;
    return s.learnt ? right : `${right} Tie points that do not lie on one line: RCA needs them.`;
  },
};

// Of the nearest neighbours of points with a class, how many share it.
function purity(Y, y, near) {
  const shares = Y.map((a, i) => y[i] >= 0 && sum(Y.map((b, j) => [Math.hypot(a[0] - b[0], a[1] - b[1]), j])
    .filter(([, j]) => j !== i && y[j] >= 0).sort((p, q) => p[0] - q[0]).slice(0, near)
    .map(([, j]) => Number(y[j] === y[i]))) / near).filter((x) => x !== false);
  return sum(shares) / shares.length;
}

// ------------------------------------------------------------ the price of a cut

const TURNS = range(181);

const CUT = {
  tools: ["move", "add", "remove"],
  controls: ({ slider }) => slider("turn of the cut", "angle", TURNS, (a) => `${a}°`),

  refresh(s) {
    const at = (angle) => cut(s.X, [0, 0], (angle * Math.PI) / 180);
    const height = (one) => one.logEvidence / s.X.length, upright = height(at(0));
    s.curve = TURNS.filter((a) => a % 5 === 0).map((a) => [a, height(at(a)) - upright]);
    s.turn = (angle) => {
      const one = at(angle);
      s.theta = one.theta;
      s.r = one.z.map((k) => [1 - k, k]);
      s.gain = height(one) - upright;
    };
    s.turn(s.angle);
  },

  // The handles of the line are dragged. The line stands across the direction in which it is turned.
  grab(s, [x, y]) {
    s.angle = Math.round((((Math.atan2(y, x) * 180) / Math.PI + 270) % 180));
    s.turn(s.angle);
  },

  under({ s, spec, line, at }) {
    const [c, d] = [Math.cos, Math.sin].map((f) => f((s.angle * Math.PI) / 180));
    const [left, bottom, right, top] = spec.view;
    const far = (x) => [[-d * x, c * x], [d * x, -c * x]], size = Math.min(right - left, top - bottom);
    return line(...far(9 * size), 'class="cut"') + far(0.42 * size).map((x) =>
      `<circle r="9" class="handle" transform="translate(${at(x)})"/>`).join("");
  },

  side({ s }) {
    const low = Math.min(-1.3, ...s.curve.map(([, y]) => y)), high = Math.max(1.5, ...s.curve.map(([, y]) => y));
    const { to, drawn } = chart([
      { line: [[0, 0], [180, 0]], look: 'class="grid"' }, { line: s.curve, look: 'class="curve"' },
    ], "log-evidence a point, less the upright cut's", "turn of the cut",
      { floor: [low, high], ticks: [0, 45, 90, 135, 180].map((a) => [a, `${a}°`]) });
    return drawn + dots([to([s.angle, s.gain])], 'r="6"');
  },

  say: (s) => (s.angle % 180
    ? `Cut at ${s.angle} degrees: ${s.gain < 0 ? "" : "+"}${signed(s.gain, 2)} nats a point against the upright one.`
    : "The upright cut itself."),
};

const MODES = {
  em: EM, relations: RELATIONS, rivals: RIVALS, weights: AGAINST_DENSITY, kmeans: SHRINK,
  metric: METRIC, cut: CUT,
};
