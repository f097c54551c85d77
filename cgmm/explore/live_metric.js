// A ruler from chunklets, and the plane as it sees it. Chapter 12.
//
// W  the ruler, between Euclid's and that of RCA; Y: the points under it

const SHARES = range(21).map((i) => i / 20);

const METRIC = {
  tools: () => ["move", "add", "remove", "together"],
  controls: ({ slider }) => slider("from Euclid's ruler to that of RCA", "t", SHARES, percent),

  refresh(s) {
    const { isLearnt, W: [[a, b], [, d]] } = ruler(s.X, s.net.chunklet);
    s.learnt = isLearnt;
    s.W = [[1 - s.t + s.t * a, s.t * b], [s.t * b, 1 - s.t + s.t * d]];
    s.centre = [0, 1].map((e) => sum(s.X.map((x) => x[e])) / s.X.length);
    s.Y = s.X.map((x) => apply(s.W, x.map((v, e) => v - s.centre[e])));
    s.r = s.y.map((k) => range(s.spec.K).map((l) => (k < 0 ? 1 / s.spec.K : Number(k === l))));
    s.right = purity(s.Y, s.y, 10);
  },

  // Circles of the ruler, as they lie among the points.
  over({ s, ring }) {
    const [[a, b], [, d]] = s.W, det = a * d - b * b;
    const inverse = [[d / det, -b / det], [-b / det, a / det]];
    return [2, 4, 6].map((far) => ring(inverse, s.centre, far, 'class="ruler"')).join("");
  },

  side({ s, spec }) {
    const [left, bottom, right, top] = spec.view, zoom = 102 / (most(s.Y.flat().map(Math.abs)) || 1);
    const [[a, b], [, d]] = s.W, [x, y] = s.centre;
    const grid = range(9).map((i) => i / 8).map((t) =>
      `M${left} ${bottom + t * (top - bottom)}H${right}M${left + t * (right - left)} ${bottom}V${top}`);
    const point = ([h, v], i) => `<path d="${MARKS[argmax(s.r[i])]}" fill="${blend(s.r[i], spec.colours)}"
      transform="translate(${zoom * h} ${-zoom * v}) scale(.8)"/>`;
    // An svg within the svg: what lies outside is cut off.
    return `${text(4, 14, "the plane as this ruler sees it")}
      <svg x="36" y="20" width="228" height="216" viewBox="-114 -108 228 216">
      <path class="grid" d="${grid.join("")}" transform="scale(${zoom} ${-zoom})
        matrix(${[a, b, b, d, 0, 0]}) translate(${-x} ${-y})"/>${s.Y.map(point).join("")}</svg>`;
  },

  say(s) {
    const right = `Of the ten nearest neighbours ${percent(s.right)} are of the own class.`;
    return s.learnt ? right : `${right} Tie points that do not lie on one line: RCA needs them.`;
  },
};
