// What several modes draw: curves in the panel at the side, components on the points. All chapters.
//
// A mode of the live figure is a handful of functions of the state s and of the pen that draws:
// tools     what the hand can do, if not all; hand: what it does first ("move" if not named)
// controls  adds sliders and choices, each of which sets s by its name
// refresh   what follows once points or relations have changed: sets s.r, the points' colours
// half      one half-step; whether it gained anything
// side      the panel beside the points; over, under: what lies on the points, in their coordinates
// say       the sentence below

const text = (x, y, words, look = "") => `<text x="${x}" y="${y}" ${look}>${words}</text>`;

// Curves over x in a frame, each {line, look} with line a list of [x, y]; dots [x, y, look] on them.
function chart(title, below, drawn, { dots = [], floor = [], ticks = [] }) {
  const isThere = ([, y]) => Number.isFinite(y);
  const curves = drawn.map(({ line, look }) => ({ line: line.filter(isThere), look }));
  const all = curves.flatMap(({ line }) => line), xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
  const [x0, x1] = [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1e-9)];
  const [low = Math.min(...ys), high = Math.max(...ys, low + 1)] = floor;
  const to = ([x, y]) => [56 + (230 * (x - x0)) / (x1 - x0), 198 - (160 * (y - low)) / (high - low)]
    .map((v) => v.toFixed(1));
  const digits = high - low < 5 ? 2 : 0, toTheLeft = 'text-anchor="end"';
  const middle = 'text-anchor="middle"';
  return [
    text(4, 18, title), '<path class="axis" d="M56 34V202H290"/>',
    text(52, 202, signed(low, digits), toTheLeft), text(52, 46, signed(high, digits), toTheLeft),
    ...ticks.map(([x, words = x]) => text(to([x, low])[0], 216, words, middle)),
    text(290, 234, below, toTheLeft),
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
