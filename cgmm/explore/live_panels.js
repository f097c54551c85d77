// What several modes draw: curves in the panel at the side, components on the points. All chapters.
//
// A mode of the live figure is a handful of functions of the state s and of the pen that draws:
// tools     what the hand can do in a figure of this spec, if not all but labels; hand: what it does
//           first ("move" if not named)
// chosen    the relations that hold, if not all of s.all; model: options of their network
// begin     follows a preset, or the hand of an address; hold: that hand, as numbers
// handles   what else can be dragged, {at, name, colour} each; grab: moves one of them
// controls  adds sliders and choices, each of which sets s by its name
// refresh   what follows once points or relations have changed: sets s.r, the points' colours
// half      one half-step; whether it gained anything
// side      the panel beside the points; over, under: what lies on the points, in their coordinates
// say       the sentence below

const text = (x, y, words, look = "") => `<text x="${x}" y="${y}" ${look}>${words}</text>`;

// Curves over x in a frame, each {line, look} with line a list of [x, y]; dots [x, y, look] on them.
// `span` holds the heights of its highest and lowest value, `across` the range of x; `show` writes a
// value of the y axis.
function chart(title, below, drawn, { dots = [], floor = [], ticks = [], span = [38, 198], across = [], show }) {
  const isThere = ([, y]) => Number.isFinite(y);
  const curves = drawn.map(({ line, look }) => ({ line: line.filter(isThere), look }));
  const all = curves.flatMap(({ line }) => line), xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
  const [x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1e-9)] = across;
  const [low = Math.min(...ys), high = Math.max(...ys, low + 1)] = floor;
  const to = ([x, y]) => [56 + (230 * (x - x0)) / (x1 - x0), base - ((base - span[0]) * (y - low)) / (high - low)]
    .map((v) => v.toFixed(1));
  const digits = high - low < 5 ? 2 : 0, base = span[1], toTheLeft = 'text-anchor="end"';
  const middle = 'text-anchor="middle"', write = show ?? ((y) => signed(y, digits));
  return [
    text(4, span[0] - 20, title), `<path class="axis" d="M56 ${span[0] - 4}V${base + 4}H290"/>`,
    text(52, base + 4, write(low), toTheLeft), text(52, span[0] + 8, write(high), toTheLeft),
    ...ticks.map(([x, words = x]) => text(to([x, low])[0], base + 18, words, middle)),
    text(290, base + 36, below, toTheLeft),
    ...curves.map(({ line, look }) => line.length
      && `<path fill="none" d="M${line.map(to).join("L")}" ${look}/>`),
    ...dots.filter(isThere).map(([x, y, look = 'r="4"']) => {
      const [cx, cy] = to([x, y]);
      return `<circle cx="${cx}" cy="${cy}" ${look}/>`;
    }),
  ].filter(Boolean).join("");
}

// Each component as its mean and its ellipses; the centres of K-means; what Python has fitted.
function components({ s, spec, pin, ellipse }) {
  const one = (mu, k) => {
    // No point is left to it.
    if (!mu.every(Number.isFinite)) return "";
    const Sigma = s.theta.covariances[k], look = `stroke="${spec.colours[k]}"`;
    return ellipse(mu, Sigma, 1, `class="component" ${look}`)
      + ellipse(mu, Sigma, 2, `class="component" opacity="0.45" ${look}`)
      + `<path d="${MARKS[k]}" class="mean" ${look} ${pin(mu, 1.3)}/>`;
  };
  const cross = (mu, k) => `<path d="M-6-6L6 6M-6 6L6-6" class="cross"
    stroke="${spec.colours[k]}" ${pin(mu)}/>`;
  const fitted = s.fitted?.means.map((mu, k) =>
    ellipse(mu, s.fitted.covariances[k], 2, 'class="fitted"'));
  return [...s.theta.means.map(one), ...(s.crosses ? s.mu.map(cross) : []), ...(fitted ?? [])].join("");
}
