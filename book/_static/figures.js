// Open a figure as large as the window, or larger where the window is a telephone's: a tap on it, or its
// button. Escape, a second tap and the button close it; the focus goes back to where it was.

// The width in pixels at which the smallest letters of a figure can be read.
const READABLE = 800;

function showLarge(image) {
  const dialog = document.createElement("dialog");
  dialog.className = "cgmm-large";
  dialog.setAttribute("aria-label", "Figure, enlarged");
  const copy = image.cloneNode();
  copy.removeAttribute("style");
  copy.classList.toggle("keep-colours", image.closest(".tag_keep-colours") !== null);
  copy.addEventListener("click", () => dialog.close());
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "\u00d7";
  close.setAttribute("aria-label", "Close");
  close.addEventListener("click", () => dialog.close());
  dialog.append(copy, close);
  // Within the article, where figures turn dark.
  image.closest(".bd-article").append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  // The copy is the whole figure, also where the page shows it stacked.
  const [ownWidth, ownHeight] = image.width && image.hasAttribute("height")
    ? [Number(image.getAttribute("width")), Number(image.getAttribute("height"))] : [image.naturalWidth, image.naturalHeight];
  const toFit = Math.min(innerWidth / ownWidth, innerHeight / ownHeight);
  const width = Math.max(toFit * ownWidth, Math.min(1.6 * ownWidth, READABLE));
  copy.removeAttribute("height");
  copy.style.width = `${Math.round(width)}px`;
  copy.style.height = "auto";
  dialog.showModal();
  close.focus();
}

function enlargeButton(image, show) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "cgmm-enlarge";
  button.textContent = "\u2922";
  button.setAttribute("aria-label", `Enlarge the figure: ${image.alt}`);
  button.addEventListener("click", show);
  return button;
}

function letFiguresEnlarge() {
  for (const image of document.querySelectorAll(".bd-article :is(figure, div.cell_output) img")) {
    if (image.closest(".cgmm-explorer, .cgmm-live, .cgmm-figure, a, button")) continue;
    // The figure for the light and that for the dark.
    const pair = image.closest(".cgmm-pair"), both = pair ? [...pair.querySelectorAll("img")] : [image];
    const show = () => showLarge(both.find(one => one.offsetWidth));
    const holder = document.createElement("span");
    holder.className = "cgmm-figure";
    const button = enlargeButton(image, show);
    (pair ?? image).before(holder);
    holder.append(pair ?? image, button);
    for (const one of both) one.addEventListener("click", () => {
      button.focus({ preventScroll: true });
      show();
    });
  }
}

// The frame of an explorer, which is redrawn in its place, has the same button.
function letExplorersEnlarge() {
  for (const image of document.querySelectorAll(".cgmm-explorer img.cgmm-explorer-frame")) {
    const holder = document.createElement("span"), frame = document.createElement("span");
    holder.className = "cgmm-figure";
    frame.className = "cgmm-frame";
    image.before(holder);
    frame.append(image);
    addPanels(image);
    holder.append(frame, enlargeButton(image, () => showLarge(image)));
  }
}

// On a telephone the panels of a frame are stacked: the style sheet cuts them out of the same picture, shown once for each.
// cgmm_cut.py writes for each panel its share of the row, the position of the picture behind it, and its ratio.
function addPanels(image) {
  const panels = image.dataset.panels?.split(", ") ?? [];
  const shown = panels.map((panel, n) => {
    const one = n ? new Image() : image;
    if (n) Object.assign(one, { src: image.src, alt: "", decoding: "sync" });
    one.classList.add(n ? "cgmm-other-panel" : "cgmm-first-panel");
    panel.split(" ").forEach((value, i) => one.style.setProperty(["--share", "--at", "--ratio"][i], value));
    return one;
  });
  image.after(...shown.slice(1));
  const follow = () => shown.slice(1).forEach(one => { one.src = image.src; });
  new MutationObserver(follow).observe(image, { attributeFilter: ["src"] });
}

window.addEventListener("load", letFiguresEnlarge);
window.addEventListener("load", letExplorersEnlarge);

// The frames of an explorer are files: fetched when a hand comes near, they are there when it moves.
function fetchFrames(event) {
  const explorer = event.target.closest?.(".cgmm-explorer:not([data-fetched])");
  if (!explorer) return;
  explorer.dataset.fetched = "";
  for (const [, address] of explorer.innerHTML.matchAll(/"([^"]*_images\/frames\/[^"]+)"/g)) new Image().src = address;
}

document.addEventListener("pointerover", fetchFrames);
document.addEventListener("focusin", fetchFrames);
