// The page of an interview: draws the state that Python sends, and sends what the person does.
// It is an anywidget module; ask_server.py runs it in a page without a notebook.
const REPLIES = [["same", "S", "Same"], ["different", "D", "Different"], ["unsure", "U", "Unsure"]];
const SVG = "http://www.w3.org/2000/svg";

// Create an element. Children that are no elements become text, so no cell can bring HTML.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

function draw(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// ------------------------------------------------------------------ the two rows

function cell(text, share) {
  const td = make("td", {}, make("span", { class: "value" }, text));
  if (share !== null && share !== undefined) {
    const bar = make("span", { class: "range", "aria-hidden": "true" }, make("span"));
    bar.firstChild.style.inlineSize = `${Math.round(100 * share)}%`;
    td.append(bar);
  }
  return td;
}

function line({ name, texts, shares, differs }) {
  const mark = differs ? make("span", { class: "mark" }, " ≠", make("span", { class: "unseen" }, " differs")) : null;
  const row = make("tr", differs ? { class: "differs" } : {}, make("th", { scope: "row" }, name, mark));
  row.append(...texts.map((text, k) => cell(text, shares && shares[k])));
  return row;
}

function special(name, contents) {
  return make("tr", {}, make("th", { scope: "row" }, name), ...contents.map((content) => make("td", {}, content)));
}

function picture(url, row) {
  return make("img", { src: url, alt: `Image of row ${row}` });
}

function trusted(html) {
  const div = make("div");
  div.innerHTML = html;
  return div;
}

function comparison({ rows, lines, html, images }) {
  const head = make("tr", {}, make("td"), ...rows.map((row, k) => make("th", { scope: "col" }, `${"AB"[k]}: row ${row}`)));
  const body = make("tbody");
  if (images) body.append(special("Image", images.map((url, k) => picture(url, rows[k]))));
  if (html) body.append(special("Card", html.map(trusted)));
  body.append(...lines.map(line));
  const caption = make("caption", { class: "unseen" }, `Rows ${rows[0]} and ${rows[1]} side by side`);
  return make("table", {}, caption, make("thead", {}, head), body);
}

// ------------------------------------------------------------------ the map

function chart({ places, groups, n_asked, colours, sizes }) {
  const svg = draw("svg", { viewBox: "-4 -4 108 108", role: "img" });
  const text = sizes.map((size, k) => `group ${k + 1}: ${size} rows`).join(", ");
  svg.setAttribute("aria-label", `Map of the rows, coloured by group. ${text}.`);
  places.forEach(([x, y], k) => {
    const at = { cx: 100 * x, cy: 100 * (1 - y), fill: colours[groups[k] % colours.length] };
    svg.append(draw("circle", { ...at, r: 1.3 }));
    const asked = k - (places.length - n_asked);
    if (asked < 0) return;
    svg.append(draw("circle", { ...at, r: 4, class: "asked" }));
    const label = draw("text", { x: at.cx, y: at.cy + (at.cy < 12 ? 9 : -5), "text-anchor": "middle" });
    label.textContent = "AB"[asked];
    svg.append(label);
  });
  return svg;
}

function legend({ colours, sizes }) {
  return make("ul", { class: "groups" }, ...sizes.map((size, k) => {
    const dot = make("span", { class: "dot", "aria-hidden": "true" });
    dot.style.background = colours[k % colours.length];
    return make("li", {}, dot, `Group ${k + 1}: ${size}`);
  }));
}

// ------------------------------------------------------------------ contradictions

function contradiction({ message, answers }, send) {
  const section = make("div", { class: "contradiction" }, make("p", {}, message));
  for (const { number, rows, answer } of answers) {
    const other = answer === "same" ? "different" : "same";
    const button = make("button", { type: "button" }, `Rows ${rows[0]} and ${rows[1]}: change to "${other}"`);
    button.addEventListener("click", () => send({ revise: number, answer: other }));
    section.append(button);
  }
  return section;
}

// ------------------------------------------------------------------ the whole

function render({ model, el }) {
  let busy = false;
  const send = (message) => {
    if (busy) return;
    busy = true;
    root.setAttribute("aria-busy", "true");
    model.send(message);
  };
  const reply = (answer) => {
    const { question } = model.get("state");
    if (question) send({ answer, rows: question.rows });
  };
  const button = (key, label, act, kind) => {
    const element = make("button", { type: "button", class: kind, "aria-keyshortcuts": key }, label, make("kbd", { "aria-hidden": "true" }, key));
    element.addEventListener("click", act);
    return element;
  };
  const buttons = REPLIES.map(([answer, key, label]) => button(key, label, () => reply(answer), `reply ${answer}`));
  const undo = button("Z", "Undo", () => send({ undo: true }), "undo");
  const title = make("h2"), cards = make("div", { class: "cards", tabindex: "0", role: "region", "aria-label": "The two rows" });
  const progress = make("p", { class: "progress" }), advice = make("p", { class: "advice" });
  const status = make("p", { class: "unseen", role: "status" }), warnings = make("div", { role: "alert" });
  const side = make("div", { class: "side" });
  const controls = make("div", { class: "controls", role: "group", "aria-label": "Your answer" }, ...buttons, undo);
  const main = make("div", { class: "main" }, title, cards, controls, progress, advice, warnings, status);
  // Without this attribute JupyterLab would take D for "delete the cell".
  const root = make("div", { class: "cgmm-interview", "data-lm-suppress-shortcuts": "true", tabindex: "-1" }, main, side);
  el.replaceChildren(root);

  function update() {
    const state = model.get("state"), { question } = state;
    busy = false;
    root.removeAttribute("aria-busy");
    title.textContent = question ? state.title : "No question is left.";
    cards.replaceChildren(...(question ? [comparison(question)] : []));
    cards.scrollTop = 0;
    for (const element of buttons) element.disabled = !question;
    undo.disabled = !state.can_undo;
    progress.textContent = state.progress;
    advice.textContent = state.advice;
    advice.classList.toggle("stop", state.may_stop);
    warnings.replaceChildren(...state.contradictions.map((one) => contradiction(one, send)));
    side.replaceChildren(chart(state.map), legend(state.map));
    const asked = question ? `Rows ${question.rows[0]} and ${question.rows[1]}.` : "";
    status.textContent = `${state.said} ${asked}`;
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const key = event.key.toUpperCase();
    const element = [...buttons, undo].find((one) => one.getAttribute("aria-keyshortcuts") === key);
    if (!element) return;
    event.preventDefault();
    event.stopPropagation();
    if (!element.disabled) element.click();
  }

  // A page of its own takes keys everywhere; in a notebook the element must have the focus.
  const keys = model.get("alone") ? document : root;
  keys.addEventListener("keydown", press);
  model.on("change:state", update);
  update();
  return () => keys.removeEventListener("keydown", press);
}

export default { render };
