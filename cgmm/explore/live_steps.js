// EM, half-step by half-step, with K-means beside it if wished. Chapters 2 and 6.

const EM = {
  tools: ["move", "add", "remove"],

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

  // The last twelve steps: the first would hide how far the bound stays behind.
  side({ s }) {
    const first = Math.max(0, s.trace.length - 25), last = (s.trace.length - 1) / 2;
    const line = (d) => s.trace.slice(first).map((pair, t) => [(first + t) / 2, pair[d]]);
    const ends = s.trace.at(-1).map((y) => [last, y]);
    return chart("log-evidence, and the bound (dashed)", "steps", [
      { line: line(0), look: 'class="curve"' }, { line: line(1), look: 'class="curve dashed"' },
      { line: ends, look: 'class="gap"' },
    ], { dots: ends, ticks: [...new Set([first / 2, last])].map((x) => [x]) });
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
