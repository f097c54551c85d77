// The best of some starts, at once, under relations that hold. Chapter 7 and the home page.

const MOST_NATS = 40;
const SHRUNK = "From one start a component has shrunk onto too few points for a Gaussian, or onto points "
  + "of one line: the two answers cannot be compared.";

// In how many pairs of points two partitions agree on together or apart.
const likeness = (p, q) => sum(p.map((a, i) => sum(p.slice(0, i).map((b, j) => Number((a === b) === (q[i] === q[j]))))));
const partition = (X, theta) => logDensities(X, theta).map((row) =>
  argmax(row.map((x, k) => x + Math.log(theta.weights[k]))));

const RIVALS = {
  hand: "together",

  // Every start climbed to its top; of two that arrived at one place the first.
  refresh(s, climb = (start) => em(s.X, start, s.net, s.spec.pool, 1000, 1e-5)) {
    s.fits = s.starts.map(climb);
    const top = most(s.fits.map(({ E }) => E.logEvidence));
    s.behind = s.fits.map(({ E }) => top - E.logEvidence);
    s.winner = s.behind.findIndex((nats) => nats < 0.05);
    const { theta, E } = s.fits[s.winner];
    Object.assign(s, { theta, r: E.r });
    // Relations can lead a start to another's answer: each is named by the start that it is most like.
    const z = s.starts.map((start) => partition(s.X, start));
    s.ends = s.fits.map(({ E }) => argmax(z.map((one) => likeness(one, E.r.map(argmax)))));
  },

  // The bars' scale is linear up to MOST_NATS; an arrow at the end says that a bar goes on.
  side({ s, spec }) {
    const to = (nats) => 4 + (270 * Math.min(nats, MOST_NATS)) / MOST_NATS;
    const bars = s.behind.map((nats, k) => {
      const y = 62 + 76 * k, won = k === s.winner;
      const name = spec.words[k] + (s.ends[k] === k ? "" : `, which ends ${spec.words[s.ends[k]]}`);
      const words = won ? "the most likely" : nats < 0.05 ? "as likely" : `behind by ${nats.toFixed(1)} nats`;
      return text(8, y - 8, `${name}: ${words}`)
        + `<rect x="4" y="${y}" width="${Math.max(2, to(nats) - 4)}" height="18" class="bar${won ? " on" : ""}"/>`
        + (nats > MOST_NATS ? `<path d="M276 ${y}l12 9l-12 9z" class="bar"/>` : "");
    });
    const ticks = [0, 10, 20, 30, 40].map((nats) => `<path class="axis" d="M${to(nats)} 166v5"/>`
      + text(to(nats), 186, nats, `text-anchor="${nats ? "middle" : "start"}"`));
    return text(4, 18, "which answer is more likely?") + bars.join("")
      + '<path class="axis" d="M4 44V166H274"/>' + ticks.join("")
      + text(290, 206, "nats behind the most likely", 'text-anchor="end"');
  },

  say(s) {
    if (s.fits.some(({ shrinks }) => shrinks)) return SHRUNK;
    const ahead = most(s.behind), told = `${s.links.length} relation${s.links.length === 1 ? "" : "s"}`;
    const names = s.ends.map((k) => s.spec.words[k]), winner = names[s.winner];
    if (ahead >= 0.05) return `${told}: ${winner} by ${ahead.toFixed(1)} nats.`;
    return `${told}: ${new Set(names).size === 1 ? `${winner}, from every start` : `${names.join(" and ")}, equally likely`}.`;
  },
};
