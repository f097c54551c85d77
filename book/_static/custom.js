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

// The search box of every page answers while somebody types. Its index, a megabyte, is loaded when the
// box is first used.
const HITS_WHILE_TYPING = 6;
let loading;
const loadScript = source => new Promise((resolve, reject) =>
  document.head.append(Object.assign(document.createElement("script"), {src: source, onload: resolve, onerror: reject})));
function loadSearch() {
  const folder = `${document.documentElement.dataset.content_root ?? "./"}_static/`;
  loading ??= loadScript(`${folder}search_entries.js`).then(() => loadScript(`${folder}search.js`));
  return loading;
}

function answerWhileTyping(field) {
  const box = document.createElement("div");
  box.className = "cgmm-instant";
  box.setAttribute("role", "status");
  field.closest("form").after(box);
  field.addEventListener("focus", loadSearch);
  field.addEventListener("input", async () => {
    await loadSearch();
    const list = document.createElement("ol"), query = field.value.trim();
    const hits = query.length > 1 ? search(query).slice(0, HITS_WHILE_TYPING) : [];
    list.append(...hits.map(entry => item(entry, askedWords(query))));
    box.replaceChildren(...hits.length ? [list] : []);
  });
}

function makeSearchAnswer() {
  const fields = document.querySelectorAll(":is(.search-button__search-container, #pst-search-dialog) input[type=search]");
  if (!document.getElementById("search-results")) fields.forEach(answerWhileTyping);
}

window.addEventListener("load", makeSearchAnswer);
window.addEventListener("load", nameArrows);
window.addEventListener("load", offerEditions);
