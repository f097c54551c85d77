// Before a page is printed: light, unfolded, measured for paper; afterwards as it was.
//
// Paper cannot be unfolded, so that everything folded is printed open, proofs as well as answers; only
// code that draws stays folded. Solutions leave their exercises and stand at the end of the chapter.

// Lower boxes stay on one page; higher ones may be broken, lest half of the page before them is empty.
const KEPT_WHOLE = "div.proof, div.exercise, .admonition:not(.solution), pre, div.cell_input, div.highlight, table, "
  + "div.cell_output > .output, dl.py";
const LARGEST_WHOLE = 280;

let restore = [];

function change(element, name, value) {
  const before = element.getAttribute(name);
  restore.push(() => (before === null ? element.removeAttribute(name) : element.setAttribute(name, before)));
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

function mark(element, name) {
  if (element.classList.contains(name)) return;
  element.classList.add(name);
  restore.push(() => element.classList.remove(name));
}

function moveSolutions(article) {
  const solutions = [...article.querySelectorAll("div.solution")];
  if (!solutions.length) return;
  const end = document.createElement("section");
  end.className = "cgmm-solutions";
  end.innerHTML = "<h2>Solutions</h2>";
  const places = solutions.map(solution => {
    const place = document.createComment("solution");
    solution.replaceWith(place);
    end.append(solution);
    return place;
  });
  article.querySelector("section").append(end);
  restore.push(() => {
    places.forEach((place, n) => place.replaceWith(solutions[n]));
    end.remove();
  });
}

function layForPaper() {
  if (restore.length) return;
  const article = document.querySelector(".bd-article");
  if (!article) return;
  change(document.documentElement, "data-theme", "light");
  for (const fold of article.querySelectorAll("details:not([open], .above-input)")) change(fold, "open", "");
  for (const fold of article.querySelectorAll(".toggle-hidden")) {
    fold.classList.remove("toggle-hidden");
    restore.push(() => fold.classList.add("toggle-hidden"));
  }
  for (const image of article.querySelectorAll("img[loading]")) change(image, "loading", "eager");
  moveSolutions(article);
  mark(document.documentElement, "cgmm-paper");
  fitFormulas();
  for (const box of article.querySelectorAll(KEPT_WHOLE))
    if (box.offsetHeight < LARGEST_WHOLE) mark(box, "cgmm-whole");
}

function layForScreen() {
  for (const one of restore.reverse()) one();
  restore = [];
  fitPage();
}

window.addEventListener("beforeprint", layForPaper);
window.addEventListener("afterprint", layForScreen);
