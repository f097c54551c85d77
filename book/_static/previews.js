// What a link within the book leads to, shown beside it before it is followed: under the mouse and
// on keyboard focus, never on touch, where a tap follows the link. Escape hides it, the mouse may
// move onto it, and it stays until it is left (WCAG 1.4.13).

(() => {
  const AFTER = 250, UNTIL = 300;  // milliseconds
  const root = document.documentElement.dataset.content_root ?? "./";
  const top = new URL(root, location.href);
  const stored = new Map(), waiting = new Map();
  let box, shownFor = null, timer = 0, resting = null;

  // Each file of previews/ calls this with its page and what its anchors mark; previews/pages.js,
  // with the pages of which there is one.
  window.cgmmPreviews = (page, shown) => stored.set(page, shown);

  // The page and anchor of a link within the book, without the ending; null for all others.
  function placeOf(link) {
    const url = new URL(link.href, location.href);
    if (url.hash.length < 2 || !url.href.startsWith(top.href)) return null;
    const page = url.href.slice(top.href.length).split(/[?#]/)[0].replace(/\.html$/, "");
    return [page, decodeURIComponent(url.hash.slice(1))];
  }

  function load(page) {
    if (!waiting.has(page)) waiting.set(page, new Promise(done => {
      const script = document.createElement("script");
      script.src = `${root}_static/previews/${page}.js`;
      script.onload = script.onerror = done;
      document.head.append(script);
    }));
    return waiting.get(page);
  }

  function make() {
    box = document.createElement("div");
    box.id = "cgmm-preview";
    box.setAttribute("role", "tooltip");
    box.hidden = true;
    box.addEventListener("pointerenter", () => clearTimeout(timer));
    box.addEventListener("pointerleave", hideSoon);
    document.querySelector(".bd-article").append(box);
  }

  async function show(link) {
    const [page, anchor] = placeOf(link);
    await load("pages");
    if (page in (stored.get("pages") ?? {})) await load(page);
    const html = stored.get(page)?.[anchor];
    if (!html || resting !== link) return;
    if (!box) make();
    hide();
    box.innerHTML = html;
    for (const image of box.querySelectorAll("img")) image.src = root + image.dataset.fromTop;
    box.hidden = false;
    await window.MathJax?.startup?.promise;
    await window.MathJax?.typesetPromise?.([box]);
    if (resting !== link) return hide();
    shownFor = link;
    link.setAttribute("aria-describedby", box.id);
    place(link);
  }

  // Below the link, or above it where there is more room; within the width of the text.
  function place(link) {
    const column = box.parentElement.getBoundingClientRect();
    const line = [...link.getClientRects()].at(-1), size = box.getBoundingClientRect();
    const left = Math.min(Math.max(line.left, column.left), column.right - size.width);
    const below = line.bottom + size.height + 8 < innerHeight || line.top < size.height + 8;
    box.style.left = `${left - column.left}px`;
    box.style.top = `${(below ? line.bottom + 4 : line.top - size.height - 4) - column.top}px`;
  }

  function hide() {
    clearTimeout(timer);
    if (shownFor) shownFor.removeAttribute("aria-describedby");
    shownFor = null;
    if (box) {
      window.MathJax?.typesetClear?.([box]);
      box.hidden = true;
      box.replaceChildren();
    }
  }

  function hideSoon() {
    resting = null;
    clearTimeout(timer);
    timer = setTimeout(hide, UNTIL);
  }

  function showSoon(link, delay) {
    resting = link;
    clearTimeout(timer);
    if (link !== shownFor) timer = setTimeout(() => show(link), delay);
  }

  const linkOf = event => {
    const link = event.target.closest?.(".bd-article a[href*='#']:not(.headerlink)");
    return link && placeOf(link) ? link : null;
  };
  const leave = link => { if (resting === link || shownFor === link) hideSoon(); };

  document.addEventListener("pointerover", event => {
    const link = event.pointerType === "touch" ? null : linkOf(event);
    if (link) showSoon(link, AFTER);
  });
  document.addEventListener("pointerout", event => {
    const link = event.pointerType === "touch" ? null : linkOf(event);
    if (link && !link.contains(event.relatedTarget)) leave(link);
  });
  document.addEventListener("focusin", event => {
    const link = linkOf(event);
    if (link?.matches(":focus-visible")) showSoon(link, 0);
  });
  document.addEventListener("focusout", event => {
    const link = linkOf(event);
    if (link) leave(link);
  });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && (shownFor || resting)) { resting = null; hide(); }
  });
})();
