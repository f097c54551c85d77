// The best of some starts, at once, under relations that hold. Chapter 7 and the home page.

const RIVALS = {
  hand: "together",

  // Every start climbed to its top; of two that arrived at one place the first.
  refresh(s) {
    s.fits = s.starts.map((start) => em(s.X, start, s.net, s.spec.pool, 1000, 1e-5));
    const top = most(s.fits.map(({ E }) => E.logEvidence));
    s.behind = s.fits.map(({ E }) => top - E.logEvidence);
    s.winner = s.behind.findIndex((nats) => nats < 0.05);
    const { theta, E } = s.fits[s.winner];
    Object.assign(s, { theta, r: E.r });
  },

  side({ s, spec }) {
    const bars = s.behind.map((nats, k) => {
      const y = 62 + 76 * k, won = k === s.winner;
      const words = won ? "the most likely"
        : nats < 0.05 ? `now ${spec.words[s.winner]} too` : `behind by ${nats.toFixed(1)} nats`;
      return text(4, y - 8, `${spec.words[k]}: ${words}`)
        + `<rect x="4" y="${y}" width="${Math.max(4, 200 - 4 * nats)}" height="18" class="bar${won ? " on" : ""}"/>`;
    });
    return text(4, 18, "which answer is more likely?") + bars.join("");
  },

  say(s) {
    const ahead = most(s.behind), told = `${s.links.length} relation${s.links.length === 1 ? "" : "s"}`;
    return `${told}: ${s.spec.words[s.winner]}${
      ahead < 0.05 ? ", from every start" : ` by ${ahead.toFixed(1)} nats`}.`;
  },
};
