// Fit formulas to their column, and give what is still too wide a box to scroll in.
//
// A formula that is too wide is set smaller, then broken into lines: between its parts, before its
// relations, before its sums, inside brackets. Of a table of two columns, the second then stands below
// the first. What is left scrolls, and fades where more of it is to come.
// MathJax 3 breaks no lines, but it draws a row of boxes, and a line may end between two of them. The names mjx-c,
// mjx-math and so on are those of version 3: version 4, Sphinx 9's default, names and nests its elements differently.

// How small, broken how finely, and whether columns are stacked: what is read best comes first.
const STACKED = true;
const TRIALS = [
  [1, 0], [0.92, 0], [0.85, 0], [1, 1], [1, 2], [0.85, 1], [0.85, 2], [1, 3], [0.85, 3],
  [1, 2, STACKED], [1, 3, STACKED], [0.85, 3, STACKED], [1, 4], [0.85, 4], [0.85, 4, STACKED],
  [0.75, 3], [0.75, 4], [0.75, 4, STACKED], [0.7, 5], [0.7, 5, STACKED],
];

// Unicode of the signs, as MathJax names its glyphs.
const OPENING = new Set(["28", "5B", "7B", "27E8"]);
const CLOSING = new Set(["29", "5D", "7D", "27E9"]);
const RELATIONS = new Set([
  "3D", "3C", "3E", "2264", "2265", "2248", "2243", "2260", "2261", "223C", "221D", "2190", "2192", "21D2",
  "21D4", "27F6", "27F9", "27FA", "2208", "226A", "226B", "3A",
]);
const SUMS = new Set(["2B", "2212", "B1", "22C5", "D7"]);
const COMMA = "2C";
const BAR = "2225";

function glyph(box) {
  return box.querySelector("mjx-c")?.className.match(/mjx-c([0-9A-F]+)/)?.[1];
}

function isWideSpace(box) {
  const space = box?.localName === "mjx-mstyle" ? box.firstElementChild : box;
  return space?.localName === "mjx-mspace" && parseFloat(space.style.width) > 0.9;
}

// Whether a wide space stands there that separates two statements, and not an arrow from its end.
function isBetweenParts(boxes, n) {
  const [arrow, space, next] = [boxes[n - 2], boxes[n - 1], boxes[n]];
  return isWideSpace(space) && !RELATIONS.has(glyph(next)) && !(arrow && RELATIONS.has(glyph(arrow)));
}

// Whether a line may end before a box: 1 between parts, 2 at relations, 3 at sums, 4 within one pair
// of brackets, 5 within two and after commas.
function levelOfBreak(boxes, n, depth) {
  const [before, box] = [boxes[n - 1], boxes[n]];
  if (isBetweenParts(boxes, n)) return depth ? 4 : 1;
  if (before.localName === "mjx-mo" && glyph(before) === COMMA) return 5;
  if (box.localName !== "mjx-mo") return Infinity;
  const sign = glyph(box);
  if (RELATIONS.has(sign) && !RELATIONS.has(glyph(before))) return 2 + 2 * depth;
  return SUMS.has(sign) && box.hasAttribute("space") ? 3 + depth : Infinity;
}

function boxesOf(row) {
  return [...row.children].filter(box => box.localName !== "mjx-tstrut");
}

// Where the boxes of a formula or a cell stand side by side: below what only holds one other.
function inner(row) {
  const boxes = boxesOf(row);
  const isHolder = boxes.length === 1 && /^mjx-(mrow|texatom|mstyle)$/.test(boxes[0].localName);
  return isHolder ? inner(boxes[0]) : row;
}

// The rows of a formula: itself, or the cells of a table that is all of it; what stands at the left of
// relations is broken only where it has a line of its own.
function rowsOf(math, isStacked) {
  const row = inner(math);
  const only = row.childElementCount === 1 ? row.firstElementChild : null;
  if (only?.localName !== "mjx-mtable") return [row];
  const cells = [...only.querySelectorAll("mjx-mtd")];
  const isLeft = cell => cell.style.textAlign === "right" && cell.nextElementSibling !== null;
  return cells.filter(cell => !cell.querySelector("mjx-mtd") && (isStacked || !isLeft(cell))).map(inner);
}

// Put what stands between two breaks of a row into a box each; say whether there were any.
function cut(row, level) {
  const boxes = boxesOf(row);
  const pieces = [];
  let depth = 0, isBetweenBars = false;
  boxes.forEach((box, n) => {
    const isNew = n === 0 || (!isBetweenBars && levelOfBreak(boxes, n, depth) <= level);
    if (isNew) pieces.push([]);
    pieces.at(-1).push(box);
    const kind = box.getAttribute("texclass");
    const sign = box.localName === "mjx-mo" || kind ? glyph(box) : null;
    if (sign === BAR) isBetweenBars = !isBetweenBars;
    if (kind === "OPEN" || OPENING.has(sign)) depth += 1;
    else if (kind === "CLOSE" || CLOSING.has(sign)) [depth, isBetweenBars] = [depth - 1, false];
  });
  if (pieces.length < 2) return false;
  row.classList.add("cgmm-cut");
  for (const piece of pieces) {
    const holder = document.createElement("mjx-piece");
    piece[0].before(holder);
    // What is broken finer than its parts has each of them in lines of its own.
    if (level > 1 && isBetweenParts(boxes, boxes.indexOf(piece[0]))) holder.before(document.createElement("br"));
    holder.append(...piece);
  }
  return true;
}

function join(math) {
  for (const row of [math, ...math.querySelectorAll(".cgmm-cut")]) row.classList.remove("cgmm-cut");
  for (const end of math.querySelectorAll("br")) end.remove();
  for (const piece of math.querySelectorAll("mjx-piece")) piece.replaceWith(...piece.childNodes);
}

// Set a formula in one size, broken at one level.
function setFormula(container, scale, level, isStacked = false) {
  const math = container.querySelector("mjx-math");
  join(math);
  math.style.fontSize = scale === 1 ? "" : `${100 * scale}%`;
  const isCut = level > 0 && rowsOf(math, isStacked).map(row => cut(row, level)).includes(true);
  container.classList.toggle("cgmm-broken", isCut);
  container.classList.toggle("cgmm-stacked", isStacked && math.querySelector("mjx-mtd") !== null);
}

// What stands in a line has no width of its own: the column is the nearest box around that has one.
function columnOf(container) {
  let column = container.parentElement;
  while (getComputedStyle(column).display.startsWith("inline")) column = column.parentElement;
  return column;
}

// How many pixels a formula is too wide. Its own box is wider than the column if it stands in a line.
function excess(container) {
  if (container.hasAttribute("display") || container.classList.contains("cgmm-wide"))
    return container.scrollWidth - container.clientWidth - 1;
  return container.offsetWidth - columnOf(container).clientWidth;
}

function fitFormula(container) {
  container.classList.remove("cgmm-wide");
  for (const trial of TRIALS) {
    setFormula(container, ...trial);
    if (excess(container) <= 0) return;
  }
  if (!container.hasAttribute("display")) container.classList.add("cgmm-wide");
}

// Formulas in a closed fold have no width; they are measured when it opens.
function fitFormulas(root = document) {
  const all = [...root.querySelectorAll(".bd-article mjx-container")];
  const changed = all.filter(one => one.matches(".cgmm-fitted, .cgmm-wide"));
  for (const one of changed) {
    setFormula(one, 1, 0);
    one.classList.remove("cgmm-fitted", "cgmm-wide");
  }
  const wide = all.filter(one => one.offsetWidth && excess(one) > 0);
  for (const one of wide) {
    one.classList.add("cgmm-fitted");
    fitFormula(one);
  }
}

// ------------------------------------------------------------------------- what scrolls

const SCROLLERS =
  "mjx-container:is([display], .cgmm-wide), pre, .pst-scrollable-table-container, .output, div.math, .cgmm-pair, .cgmm-frame, .cgmm-scrolls";

function fade(box) {
  const rest = box.matches(".cgmm-scrolls") ? box.scrollWidth - box.clientWidth - Math.abs(box.scrollLeft) : 0;
  box.classList.toggle("cgmm-more-left", box.scrollLeft > 2);
  box.classList.toggle("cgmm-more-right", rest > 2);
}

// The keyboard reaches every box that scrolls, and no other.
function markScrollers(root = document) {
  const boxes = [...root.querySelectorAll(SCROLLERS)].filter(box => box.closest(".bd-article"));
  // What stands in a line, and all in a window of no width, has no box that could scroll.
  const inLine = box => box.matches("mjx-container:not([display], .cgmm-wide)");
  const scrolls = boxes.map(box => !inLine(box) && box.clientWidth > 0 && box.scrollWidth > box.clientWidth + 1);
  boxes.forEach((box, n) => {
    const wasMarked = box.classList.contains("cgmm-scrolls");
    if (scrolls[n] === wasMarked) return wasMarked && fade(box);
    box.classList.toggle("cgmm-scrolls", scrolls[n]);
    if (scrolls[n]) {
      box.tabIndex = 0;
      box.addEventListener("scroll", () => fade(box), { passive: true });
    } else {
      box.removeAttribute("tabindex");
    }
    fade(box);
  });
}

function fitPage(root = document) {
  fitFormulas(root);
  markScrollers(root);
}

let widthSeen = 0;
function fitAfterResize() {
  if (!innerWidth || innerWidth === widthSeen) return;
  widthSeen = innerWidth;
  fitPage();
}

window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  await document.fonts.ready;
  fitAfterResize();
  window.addEventListener("resize", () => requestAnimationFrame(fitAfterResize));
  // Folds of both kinds: details, and the boxes of sphinx-togglebutton.
  document.addEventListener("toggle", event => fitPage(event.target), true);
  document.addEventListener("click", event => {
    const box = event.target.closest(".toggle-button")?.closest(".admonition");
    if (box) requestAnimationFrame(() => fitPage(box));
  });
});
