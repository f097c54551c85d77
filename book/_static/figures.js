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
  const toFit = Math.min(innerWidth / image.naturalWidth, innerHeight / image.naturalHeight);
  const width = Math.max(toFit * image.naturalWidth, Math.min(image.naturalWidth, READABLE));
  copy.removeAttribute("height");
  copy.style.width = `${Math.round(width)}px`;
  copy.style.height = "auto";
  dialog.showModal();
  close.focus();
}

function letFiguresEnlarge() {
  for (const image of document.querySelectorAll(".bd-article :is(figure, div.cell_output) img")) {
    if (image.closest(".cgmm-explorer, .cgmm-live, .cgmm-figure, a, button")) continue;
    // The figure for the light and that for the dark.
    const pair = image.closest(".cgmm-pair"), both = pair ? [...pair.children] : [image];
    const show = () => showLarge(both.find(one => one.offsetWidth));
    const holder = document.createElement("span");
    holder.className = "cgmm-figure";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "cgmm-enlarge";
    button.textContent = "\u2922";
    button.setAttribute("aria-label", `Enlarge the figure: ${image.alt}`);
    button.addEventListener("click", show);
    (pair ?? image).before(holder);
    holder.append(pair ?? image, button);
    for (const one of both) one.addEventListener("click", () => {
      button.focus({ preventScroll: true });
      show();
    });
  }
}

window.addEventListener("load", letFiguresEnlarge);

// The frames of an explorer are files: fetched when a hand comes near, they are there when it moves.
function fetchFrames(event) {
  const explorer = event.target.closest?.(".cgmm-explorer:not([data-fetched])");
  if (!explorer) return;
  explorer.dataset.fetched = "";
  for (const [, address] of explorer.innerHTML.matchAll(/"([^"]*_images\/frames\/[^"]+)"/g)) new Image().src = address;
}

document.addEventListener("pointerover", fetchFrames);
document.addEventListener("focusin", fetchFrames);
