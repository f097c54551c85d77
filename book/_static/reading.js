// Questions that answer, marks of what is read, and a figure whose parts can be followed.

// In the source a question is a box with a list of options, and a folded list of what each says;
// so it reads in JupyterLab and on paper. Here each option is a button that shows its own item.
function makeQuestion(box) {
  const options = box.querySelectorAll(":scope > ol > li");
  const answers = box.querySelectorAll("details ol > li");
  if (!options.length || options.length !== answers.length) return;
  const said = document.createElement("div");
  said.className = "cgmm-said";
  said.setAttribute("role", "status");
  box.querySelector(":scope > ol").after(said);
  options.forEach((option, n) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    const text = option.querySelector(":scope > p") ?? option;
    button.append(...text.childNodes);
    option.replaceChildren(button);
    nameFormula(button, n);
    button.addEventListener("click", () => {
      for (const other of box.querySelectorAll("button[aria-pressed]")) {
        other.setAttribute("aria-pressed", String(other === button));
      }
      const isRight = answers[n].querySelector("strong")?.textContent.startsWith("Right");
      box.dataset.answer = isRight ? "right" : "wrong";
      const text = (answers[n].querySelector(":scope > p") ?? answers[n]).cloneNode(true);
      if (!isRight) text.prepend(Object.assign(document.createElement("strong"), {textContent: "No."}), " ");
      said.replaceChildren(...text.childNodes);
    });
  });
}

// MathJax hides its drawing from screen readers, and a button takes no name from MathML: an option
// that is only a formula is named by its letter and the formula's source.
function nameFormula(button, n) {
  const words = [...button.childNodes].filter(one => !one.classList?.contains("math"));
  if (words.some(one => /\w/.test(one.textContent))) return;
  const source = button.textContent.replace(/\\[()]/g, "").replace(/[\\{}]/g, " ").replace(/\s+/g, " ").trim();
  button.setAttribute("aria-label", `Option ${n + 1}: ${source}`);
}

// What was read is a list of pages, kept by the browser and sent nowhere.
const READ = "cgmm-read";
const isChapter = page => /(^|\/)\d\d_\w+$/.test(page);
const nameOf = address => address.split(/[?#]/)[0].replace(/\.html$/, "").split("/").at(-1);

function pagesRead() {
  try {
    return new Set(JSON.parse(localStorage.getItem(READ) ?? "[]"));
  } catch {
    return new Set();
  }
}

function remember(page, isRead) {
  const pages = pagesRead();
  if (isRead) pages.add(page); else pages.delete(page);
  try {
    localStorage.setItem(READ, JSON.stringify([...pages].sort()));
  } catch {
    // The browser keeps nothing: the mark lasts as long as the page.
  }
  return pages;
}

function tick(pages) {
  for (const link of document.querySelectorAll(".bd-links a[href]")) {
    const page = nameOf(link.href), old = link.querySelector(".cgmm-tick");
    const isRead = isChapter(page) && pages.has(page);
    if (!isRead) old?.remove();
    else if (!old) link.insertAdjacentHTML("beforeend",
      ' <span class="cgmm-tick"><span aria-hidden="true">✓</span><span class="visually-hidden">read</span></span>');
  }
}

function offerMark() {
  const page = nameOf(location.pathname), article = document.querySelector(".bd-article");
  if (!article || !isChapter(page)) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "cgmm-button cgmm-read";
  button.textContent = "I have read this chapter";
  const show = pages => {
    button.setAttribute("aria-pressed", String(pages.has(page)));
    tick(pages);
  };
  button.addEventListener("click", () => show(remember(page, button.getAttribute("aria-pressed") !== "true")));
  article.append(button);
  show(pagesRead());
}

// The list of links that follows a chart is laid over its picture: an item for each of its rows,
// over the box at the right.
function layLinks(list) {
  const pictures = [...document.querySelectorAll(".bd-article figure img")];
  const follows = Node.DOCUMENT_POSITION_PRECEDING;
  const picture = pictures.findLast(one => list.compareDocumentPosition(one) & follows);
  if (!picture) return;
  const frame = document.createElement("div"), rows = list.children.length;
  frame.className = "cgmm-chart";
  frame.style.maxWidth = `${picture.getAttribute("width")}px`;
  const whole = picture.closest("figure > *") ?? picture;
  whole.before(frame);
  frame.append(whole);
  [...list.children].forEach((item, n) => {
    const from = item.querySelector("a"), link = document.createElement("a");
    link.href = from.href;
    link.ariaLabel = from.textContent;
    link.style.top = `${(100 * (n + 0.17)) / (rows + 0.1)}%`;
    link.style.height = `${66 / (rows + 0.1)}%`;
    frame.append(link);
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".cgmm-question").forEach(makeQuestion);
  document.querySelectorAll(".cgmm-chart-links").forEach(layLinks);
  tick(pagesRead());
  addEventListener("storage", () => tick(pagesRead()));  // another page of the book is open
  offerMark();
});
