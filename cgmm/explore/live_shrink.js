// A variance that goes to zero, and the three algorithms that are its limits. Chapter 11.
//
// limits  what each algorithm makes of the same centres: relations not told, at a price, kept

const RADII = range(31).map((i) => 2 * 0.025 ** (i / 30));
const LIMITS = ["K-means", "relations at a price", "relations kept"];

const ONE_SPOT = "All points lie on one spot: they look alike to every algorithm, and the agreement means nothing.";

const KMEANS = {
  strength: (s) => s.beta ** -s.speed,

  controls({ slider, radios }) {
    slider("radius β", "beta", RADII, (x) => x.toFixed(2));
    radios("relations weigh", "speed", { 0: "1, whatever β", 2: "1/β²", 3: "1/β³" });
  },

  refresh(s) {
    const mu = s.starts[0].means, ball = [[s.beta ** 2, 0], [0, s.beta ** 2]];
    s.theta = { means: mu, covariances: mu.map(() => ball) };
    const c = costs(s.X, mu), soft = (beta, net) => softCosts(s.X, mu, beta, net);
    const net = (w) => network(s.X.length, s.links.map(([i, j, v]) => [i, j, w && v * w]), s.spec.K);
    s.r = soft(s.beta, s.net);
    // The last has no answer if no assignment keeps all.
    s.limits = [0, 1, Infinity].map(net).map((one) => one && cheapest(c, one));
    const tied = [...new Set(s.links.flatMap(([i, j]) => [i, j]))];
    const asked = tied.length ? tied : range(s.X.length);
    const agree = (r, z) => sum(asked.map((i) => r[i][z[i]])) / asked.length;
    const radii = RADII.filter((_, i) => i % 3 === 0).map((beta) =>
      [-Math.log(beta), soft(beta, net(KMEANS.strength({ ...s, beta })))]);
    s.curves = s.limits.map((z) => z && radii.map(([x, r]) => [x, agree(r, z)]));
    s.agreement = s.limits.map((z) => z && agree(s.r, z));
  },

  side({ s, spec }) {
    const shown = [0, 1, 2].filter((a) => s.limits[a]), colour = (a) => spec.colours[a + 2];
    const key = (a) => text([4, 76, 208][a], 236, ["K-means", "at a price (dashed)", "kept (dotted)"][a],
      `style="fill: ${colour(a)}; color: ${colour(a)}"`);
    return chart("agreement with each algorithm, by β", "", shown.map((a) => ({
      line: s.curves[a], look: `stroke="${colour(a)}" class="${["", "dashed", "dotted"][a]} curve"`,
    })), {
      dots: shown.map((a) => [-Math.log(s.beta), s.agreement[a], `r="4" fill="${colour(a)}"`]),
      floor: [0.4, 1], ticks: [2, 1, 0.5, 0.2, 0.1, 0.05].map((b) => [-Math.log(b), b]),
    }) + shown.map(key).join("");
  },

  say(s) {
    const [first, ...others] = s.X;
    if (others.every((x) => x[0] === first[0] && x[1] === first[1])) return ONE_SPOT;
    const shares = s.agreement.map((x, a) => x !== null && `${LIMITS[a]} ${percent(x)}`);
    return `Radius ${s.beta.toFixed(2)}; agreement with ${shares.filter(Boolean).join(", ")}.`;
  },
};
