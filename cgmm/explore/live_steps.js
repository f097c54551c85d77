// EM, half-step by half-step, with K-means beside it if wished. Chapters 2 and 6.

// Smaller gaps, as powers of ten, are rounding errors of the log-evidence.
const SMALLEST_GAP = -10;
const power = (exponent) => `10<tspan dy="-5" font-size="11">${signed(exponent, 0)}</tspan>`;

const EM = {
  tools: () => ["move", "add", "remove"],

  controls({ spec, radios }) {
    if (spec.beside) radios("beside it", "crosses", { "": "nothing", yes: "K-means (crosses)" });
  },

  refresh(s) {
    s.E = s.now = eStep(s.X, s.theta, s.net);
    const { r, logEvidence } = s.E;
    Object.assign(s, { r, mu: s.theta.means, after: "E", stuck: false, trace: [[logEvidence, logEvidence]] });
  },

  half(s) {
    const before = s.trace.at(-1)[1];
    if (s.after === "E") {
      const theta = mStep(s.X, s.E, s.net, s.spec.pool), now = eStep(s.X, theta, s.net);
      // A component that has shrunk onto points of one line: chapter 3.
      if (!Number.isFinite(now.logEvidence)) return !(s.stuck = true);
      Object.assign(s, { theta, now, after: "M", mu: lloydStep(s.X, s.mu, s.net) });
    } else Object.assign(s, { E: s.now, r: s.now.r, after: "E" });
    s.trace.push([s.now.logEvidence, bound(s.E, s.now)]);
    return s.trace.at(-1)[1] - before > 1e-7;
  },

  // The gap between the two is small beside the climb: below, it has a logarithmic axis of its own.
  side({ s }) {
    const last = (s.trace.length - 1) / 2, ends = s.trace.at(-1).map((y) => [last, y]);
    const title = "log-evidence, and the bound (dashed)";
    if (!last) return text(4, 16, title) + text(56, 60, "No step has been taken yet.");
    const line = (d) => s.trace.map((pair, t) => [t / 2, pair[d]]);
    // After an E-step there is no gap.
    const gaps = s.trace.map(([evidence, F], t) => [t / 2, Math.log10(evidence - F)])
      .filter(([x, y]) => x % 1 && y > SMALLEST_GAP);
    const ys = gaps.map(([, y]) => y), ticks = [...new Set([0, Math.round(last / 2), last])];
    return chart(title, "", [
      { line: line(0), look: 'class="curve"' }, { line: line(1), look: 'class="curve dashed"' },
      { line: ends, look: 'class="gap"' },
    ], { dots: ends, span: [36, 96] })
      + chart("gap after each M-step, logarithmic", "steps", [
        { line: gaps, look: 'class="curve"' },
      ], { dots: gaps.map((gap) => [...gap, 'r="2.5"']), span: [146, 198], across: [0, last], show: power,
        ticks: ticks.map((x) => [x]), floor: [Math.floor(Math.min(0, ...ys)), Math.ceil(Math.max(0, ...ys))] });
  },

  say(s) {
    const [evidence, F] = s.trace.at(-1), steps = (s.trace.length - 1) / 2;
    const weights = s.theta.weights.map((p) => p.toFixed(2)).join(" and ");
    const half = !steps ? "At the start" : `After ${s.after}${Math.ceil(steps)}`;
    return `${half}: log-evidence ${signed(evidence)}, bound ${signed(F)}; weights ${weights}.${
      s.stuck ? " The next step would shrink a component onto points of one line." : ""}`;
  },
};

const RELATIONS = { ...EM, tools: undefined };
