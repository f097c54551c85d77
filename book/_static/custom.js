// The theme's arrows in the table of contents are pictures without words.
function nameArrows() {
  for (const arrow of document.querySelectorAll(".bd-links summary")) {
    const page = arrow.closest("li").querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${page.textContent.trim()}`);
  }
}

// The editions in one file, where they were made, in the menu of downloads.
function offerEditions() {
  const top = document.documentElement.dataset.content_root ?? "./";
  for (const menu of document.querySelectorAll(".dropdown-download-buttons .dropdown-menu")) {
    for (const [file, name] of EDITIONS) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.className = "btn btn-sm dropdown-item cgmm-edition";
      link.href = top + file;
      link.textContent = name;
      item.append(link);
      menu.append(item);
    }
  }
}

window.addEventListener("load", nameArrows);
window.addEventListener("load", offerEditions);
