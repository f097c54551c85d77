// The best of some starts, at once, under answers whose weight the reader sets. Chapter 9.

const SCALE = range(25).map((i) => i / 8);

const WEIGHTS = {
  ...RIVALS,
  hand: "move",
  strength: (s) => s.weight,
  controls: ({ slider }) => slider("weight w of every relation", "weight", SCALE, (w) => w.toFixed(2)),

  refresh(s) {
    RIVALS.refresh(s);
    // Each rival's evidence at its θ, were the relations believed with another weight.
    const nets = SCALE.filter((_, i) => i % 4 === 0).map((w) =>
      [w, network(s.X.length, s.links.map(([i, j, v]) => [i, j, v * w]), s.spec.K, s.spec)]);
    s.curves = s.fits.map(({ theta }) =>
      nets.map(([w, net]) => [w, eStep(s.X, theta, net).logEvidence]));
  },

  side({ s, spec }) {
    // What is far below would flatten the rest.
    const low = most(s.curves.flat().map(([, y]) => y)) - 25, seen = ([, y]) => y > low;
    const curves = s.curves.map((line, k) =>
      ({ line: line.filter(seen), look: `class="curve${k ? " dashed" : ""}"` }));
    return chart(`log p: ${spec.words[0]}, ${spec.words[1]} (dashed)`, "w", curves, {
      dots: s.fits.map(({ E }) => [s.weight, E.logEvidence]).filter(seen),
      ticks: [[0], [1], [2], [3]],
    });
  },
};
