// Give inline formulas that are wider than their column a box of their own to scroll in,
// and let the keyboard reach every box that scrolls.
function markWideBoxes() {
  for (const formula of document.querySelectorAll(".bd-article mjx-container:not([display])")) {
    formula.classList.remove("cgmm-wide");
    const column = formula.closest("p, li, dd, td, th, figcaption") ?? formula.parentElement;
    if (formula.offsetWidth > column.clientWidth) formula.classList.add("cgmm-wide");
  }
  const scrollers = "div.math, mjx-container, pre, .pst-scrollable-table-container, .output";
  for (const box of document.querySelectorAll(scrollers)) {
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
  }
}

// The theme's arrows in the table of contents are pictures without words.
function nameArrows() {
  for (const arrow of document.querySelectorAll(".bd-links summary")) {
    const page = arrow.closest("li").querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${page.textContent.trim()}`);
  }
}

window.addEventListener("load", async () => {
  nameArrows();
  await window.MathJax?.startup?.promise;
  markWideBoxes();
  window.addEventListener("resize", markWideBoxes);
});
