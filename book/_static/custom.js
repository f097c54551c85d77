// The theme's arrows in the table of contents are pictures without words.
function nameArrows() {
  for (const arrow of document.querySelectorAll(".bd-links summary")) {
    const page = arrow.closest("li").querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${page.textContent.trim()}`);
  }
}

window.addEventListener("load", nameArrows);
