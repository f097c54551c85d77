// Turn the open page, laid out for paper, into one of the EPUB; return its XHTML.
//
// A formula that the page has broken into lines is put into as many rows: MathML breaks none itself.
// What does nothing in a book is taken out.

() => {
  const MATHML = "http://www.w3.org/1998/Math/MathML";
  const make = name => document.createElementNS(MATHML, name);
  const only = row => row.children.length === 1 && /^m(row|style)$/.test(row.firstElementChild.localName)
    ? only(row.firstElementChild) : row;
  const rows = math => {
    const row = only(math);
    if (row.children.length !== 1 || row.firstElementChild.localName !== "mtable") return [row];
    return [...row.firstElementChild.querySelectorAll("mtd")].filter(cell => !cell.querySelector("mtd")).map(only);
  };
  const cutAsShown = (row, shown) => {
    const pieces = [...shown.children].filter(one => one.localName === "mjx-piece");
    const counts = pieces.map(one => [...one.children].filter(box => box.localName !== "mjx-tstrut").length);
    if (counts.reduce((a, b) => a + b, 0) !== row.children.length) return;
    const boxes = [...row.children], table = make("mtable");
    table.setAttribute("displaystyle", "true");
    table.setAttribute("columnalign", "left");
    let top = -Infinity, cell;
    pieces.forEach((piece, n) => {
      const box = piece.getBoundingClientRect();
      if (box.top + box.height / 2 > top) {
        const line = table.appendChild(make("mtr"));
        cell = line.appendChild(make("mtd"));
        if (table.children.length > 1) cell.appendChild(make("mspace")).setAttribute("width", "1.5em");
        top = box.bottom;
      }
      cell.append(...boxes.splice(0, counts[n]));
    });
    if (table.children.length > 1) row.replaceChildren(table);
    else row.replaceChildren(...cell.children);
  };
  const align = table => {
    const sides = (table.getAttribute("columnalign") || "center").split(" ");
    for (const line of table.children)
      [...line.children].forEach((cell, n) => {
        const gap = n ? (table.getAttribute("columnspacing") || "0.8em").split(" ")[0] : "0";
        cell.setAttribute("style", `text-align: ${sides[n % sides.length]}; padding: 0.15em 0 0.15em ${gap}`);
      });
  };
  const mathml = container => {
    const shown = container.querySelector("mjx-math");
    const math = container.querySelector("mjx-assistive-mml math");
    const cut = rowsOf(shown, true), all = rows(math);
    if (cut.length === all.length)
      cut.forEach((row, n) => row.classList.contains("cgmm-cut") && cutAsShown(all[n], row));
    if (shown.style.fontSize) math.setAttribute("style", `font-size: ${shown.style.fontSize}`);
    math.querySelectorAll("mtable").forEach(align);
    for (const one of [math, ...math.querySelectorAll("*")])
      for (const name of one.getAttributeNames()) if (name.startsWith("data-")) one.removeAttribute(name);
    return math;
  };
  const rename = (element, name, kind) => {
    const other = document.createElement(name);
    if (element.id) other.id = element.id;
    other.className = kind;
    other.append(...element.childNodes);
    element.replaceWith(other);
  };
  const article = document.querySelector(".bd-article");
  for (const one of [...article.querySelectorAll("mjx-container")]) one.replaceWith(mathml(one));
  const unused = `script, style, svg, form, input, button:not(li button), details.above-input, .headerlink,
    .cgmm-explorer-controls, .cgmm-explorer-still, .cgmm-explorer-status, .viewcode-link, .cgmm-live-controls,
    .cgmm-live-status, .cgmm-live-still, .sd-summary-state-marker, .cgmm-read, .cgmm-foot,
    .cgmm-work, .cgmm-other-panel, img.only-dark, source`;
  for (const one of article.querySelectorAll(unused)) one.remove();
  for (const one of article.querySelectorAll("li button")) rename(one, "span", "");
  for (const one of article.querySelectorAll("summary")) rename(one, "p", "fold-title");
  for (const one of article.querySelectorAll("details")) rename(one, "div", "fold");
  for (const one of article.querySelectorAll("a[href], img[src]")) {
    const name = one.matches("a") ? "href" : "src";
    one.setAttribute(name, one[name]);
  }
  for (const stage of article.querySelectorAll("[data-still]")) {
    const image = document.createElement("img");
    image.setAttribute("src", `images/${stage.dataset.still}`);
    image.alt = stage.querySelector("svg")?.getAttribute("aria-label") || "The figure as it begins.";
    stage.replaceChildren(image);
  }
  for (const one of article.querySelectorAll("*"))
    for (const name of one.getAttributeNames())
      if (!/^(id|class|href|src|alt|style|colspan|rowspan|start|scope|lang)$/.test(name)
          && one.namespaceURI !== MATHML) one.removeAttribute(name);
  for (const one of article.querySelectorAll("img")) one.removeAttribute("style");
  for (const one of article.querySelectorAll(".cgmm-pair")) one.replaceWith(...one.querySelectorAll("img"));
  const serial = new XMLSerializer();
  return [...article.childNodes].map(one => serial.serializeToString(one)).join("");
}