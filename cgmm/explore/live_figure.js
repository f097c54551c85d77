// The live figure: points, relations and parameters under the reader's hand. All chapters.
// What is computed stands in files above this one in the page, what a mode shows in one below it.
//
// spec    what Python hands over: K, pool, view, colours, words, presets, where sliders start
// mode    what live_steps.js and its neighbours have: tools, controls, refresh, half, side, say ...
// s       the state: X, y (classes, -1 where unknown), links, net, theta, and what is chosen
// given   a state as the address of a page has it: live_address.js
// main    the panel with the points, drawn in their own coordinates: the browser maps and turns
// side    the panel beside it, 300 wide and 240 high

const MARKS = [
  "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", "M-4.5-4.5h9v9h-9z", "M0-5.8L5.6 4.4H-5.6z",
  "M0-6.2L6.2 0 0 6.2-6.2 0z", "M0 5.8L-5.6-4.4H5.6z",
];
const KEYS = {
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1],
};
const TOOLS = {
  move: "move", add: "add a point", remove: "delete", label: "label", together: "together", apart: "apart",
};
const LETTERS = { a: "add", x: "remove", Delete: "remove", l: "label", t: "together", d: "apart" };
const EVERYWHERE = Object.keys(TOOLS).filter((tool) => tool !== "label");
const HELP = "Drag a point, or reach the points with Tab: Page Up and Page Down go from one to the "
  + "next, arrows move it (with Shift further)";
const HELP_ADD = ", A adds one beside it, X takes it away";
const HELP_LABEL = "; L gives it a label, another, and none";
const HELP_HANDLES = ". The handles of the ellipses follow the mouse and the arrows too";
const HELP_ADDRESS = ". The address of the page holds what you have set: copy it to show it to others";
const HELP_LINKS = "; T (together) or D (apart) picks it, and the same key on another point ties "
  + "the two, or unties them. Escape lets go";

const signed = (x, digits = 1) => (x < 0 ? "−" : "") + Math.abs(x).toFixed(digits);
const percent = (p) => `${Math.round(100 * p)} %`;
const quiet = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// The mean of the components' colours under r, as cgmm.plot.blend has it.
const blend = (r, colours) => `rgb(${[1, 3, 5].map((at) => Math.round(
  dot(r, r.map((_, k) => parseInt(colours[k].slice(at, at + 2), 16))))).join()})`;

function make(name, attributes, ...inside) {
  const one = Object.assign(document.createElement(name), attributes);
  one.append(...inside);
  return one;
}

function liveFigure(root, spec, mode, model) {
  const [main, side, form, status] = ["main", "side", "controls", "status"].map((name) =>
    root.querySelector(`.cgmm-live-${name}`));
  const [left, bottom, right, top] = spec.view, zoom = 400 / (right - left);
  const s = { ...spec, spec, tool: mode.hand ?? "move", preset: 0, crosses: "", angle: 0, t: 1 };
  const tools = mode.tools?.(spec) ?? EVERYWHERE, title = root.querySelector(".cgmm-live-title").textContent;
  // What is pinned at x keeps its size in pixels.
  const pinned = ([x, y], size = 1) => `matrix(${[size / zoom, 0, 0, -size / zoom, x, y]})`;
  const pin = (x, size) => `transform="${pinned(x, size)}"`;
  main.innerHTML = `<g transform="matrix(${zoom},0,0,${-zoom},${-left * zoom},${top * zoom})">
    <g class="under"/><g class="links"/><g class="points"/><g class="over"/><g class="handles"/></g>`;
  const [under, links, points, over, handles] = main.firstChild.children;
  const scales = {}, followers = [], initial = {};

  // ---------------------------------------------------------- what is known, and what follows

  // A link is kept as its sign, 1 for together and -1 for apart; the mode says how strong it is.
  const strength = ([i, j, v]) => [i, j, v * (mode.strength?.(s) ?? Infinity)];

  function relate(links, say) {
    const options = { ...spec, ...mode.model?.(s) };
    const net = network(s.X.length, links.map(strength), spec.K, options, (reason) => { say?.(reason); });
    if (!net) return false;
    Object.assign(s, { links, net });
    return true;
  }

  function change(say) {
    mode.refresh(s);
    draw();
    tell(say);
    send();
  }

  // A preset names only its differences from the first.
  const presetOf = (which) => ({ ...spec.presets[0], ...spec.presets[which] });

  function load(given = {}) {
    const preset = presetOf(s.preset), { X, y, links } = { ...preset, ...given }, { starts } = preset;
    Object.assign(s, { X: X.map((x) => [...x]), y: [...y], all: links, starts, theta: starts[0] });
    Object.assign(s, { picked: null, running: false, fitted: null, moved: Boolean(given.X), halves: 0 });
    if (!relate(mode.chosen?.(s) ?? links)) relate([]);
    mode.begin?.(s, given.hand);
    points.replaceChildren();
    change();
    takeSteps(given.steps ?? 0);
  }

  // ---------------------------------------------------------- points and links, by hand and key

  function movePoint(i, [x, y]) {
    s.X[i] = [Math.min(right, Math.max(left, x)), Math.min(top, Math.max(bottom, y))];
    s.moved = true;
    mode.refresh(s);
    draw();
  }

  function addPoint(x) {
    s.X.push(x);
    s.y.push(-1);
    s.moved = true;
    relate(s.links);
    change(`Point ${s.X.length} added.`);
    focusPoint(s.X.length - 1);
  }

  function removePoint(i) {
    if (s.X.length <= 3 * spec.K) return tell("That is as few points as the figure can do with.");
    s.X.splice(i, 1);
    s.y.splice(i, 1);
    s.moved = true;
    const shift = (a) => (a > i ? a - 1 : a);
    relate(s.links.filter(([a, b]) => a !== i && b !== i).map(([a, b, v]) => [shift(a), shift(b), v]));
    change(`Point ${i + 1} taken away.`);
    focusPoint(Math.min(i, s.X.length - 1));
  }

  function pick(i, tool) {
    if (s.picked === null || s.picked === i) {
      s.picked = s.picked === i ? null : i;
      draw();
      return tell(s.picked === null ? "Let go." : `Point ${i + 1} picked; now the other one.`);
    }
    const a = s.picked, others = s.links.filter(([p, q]) => ![p, q].includes(a) || ![p, q].includes(i));
    const untie = others.length < s.links.length;
    s.picked = null;
    if (!relate(untie ? others : [...others, [a, i, tool === "together" ? 1 : -1]], tell)) return draw();
    change(`Points ${a + 1} and ${i + 1} ${untie ? "untied" : `belong ${tool}`}.`);
  }

  // The next label that the relations allow: none, class 1, class 2 and so on.
  function giveLabel(i) {
    const before = s.y[i];
    do s.y[i] = s.y[i] + 1 < spec.K ? s.y[i] + 1 : -1; while (!relate(s.links) && s.y[i] !== before);
    change(`Point ${i + 1}: ${s.y[i] < 0 ? "no label" : `label ${s.y[i] + 1}`}.`);
  }

  function focusPoint(i) {
    [...points.children].forEach((g, j) => g.setAttribute("tabindex", i === j ? 0 : -1));
    points.children[i].focus({ preventScroll: true });
  }

  function use(tool, i) {
    if (!tools.includes(tool)) return;
    if (tool === "add") addPoint(s.X[i].map((v) => v + 12 / zoom));
    else if (tool === "remove") removePoint(i);
    else if (tool === "label") giveLabel(i);
    else if (tool !== "move") pick(i, tool);
  }

  points.onkeydown = (event) => {
    const i = [...points.children].indexOf(event.target);
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key, step = KEYS[key];
    const goTo = { PageDown: (i + 1) % s.X.length, PageUp: (i || s.X.length) - 1 }[key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) {
      const far = (event.shiftKey ? 40 : 8) / zoom;
      movePoint(i, s.X[i].map((v, d) => v + far * step[d]));
      tell(`Point ${i + 1} at ${s.X[i].map((v) => signed(v)).join(", ")}.`);
      send();
    } else if (goTo !== undefined) focusPoint(goTo);
    else if (LETTERS[key]) use(LETTERS[key], i);
    else if (key === "Enter" || key === " ") use(s.tool, i);
    else if (key === "Escape" && s.picked !== null) pick(s.picked);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  handles.onkeydown = (event) => {
    const k = [...handles.children].indexOf(event.target), step = KEYS[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    const far = (event.shiftKey ? 40 : 8) / zoom;
    mode.grab(s, mode.handles(s)[k].at.map((v, d) => v + far * step[d]), k);
    draw();
    tell();
    event.preventDefault();
    event.stopPropagation();
  };

  function where({ clientX, clientY }) {
    const x = new DOMPoint(clientX, clientY).matrixTransform(points.getScreenCTM().inverse());
    return [x.x, x.y];
  }

  // Follow the pointer from an element until it lets go; then(x) at each place.
  function drag(element, event, then) {
    element.setPointerCapture(event.pointerId);
    element.onpointermove = (moved) => then(where(moved));
    element.onpointerup = element.onpointercancel = () => {
      element.onpointermove = element.onpointerup = element.onpointercancel = null;
      tell();
      send();
    };
  }

  // The point that a finger or the mouse means: the nearest, if it is near.
  function meant({ clientX, clientY, target, pointerType }) {
    const to = points.getScreenCTM(), reach = pointerType === "mouse" ? 12 : 18;
    const far = s.X.map(([x, y]) => {
      const seen = new DOMPoint(x, y).matrixTransform(to);
      return Math.hypot(seen.x - clientX, seen.y - clientY);
    });
    const nearest = argmax(far.map((d) => -d));
    return far[nearest] <= reach ? nearest : [...points.children].indexOf(target.closest("[role=button]"));
  }

  // A finger on a point or handle moves that, and beside them the page.
  main.addEventListener("touchstart", (event) => {
    const [touch] = event.touches;
    if (meant(touch) >= 0 || touch.target.closest(".handle")) event.preventDefault();
  }, { passive: false });

  main.onpointerdown = (event) => {
    const handle = event.target.closest(".handle"), i = handle ? -1 : meant(event);
    if (i >= 0) {
      event.preventDefault();
      focusPoint(i);
      if (s.tool === "move" || s.tool === "add") drag(points.children[i], event, (x) => movePoint(i, x));
      else use(s.tool, i);
    } else if (handle) {
      const k = [...handles.children].indexOf(handle);
      s.running = false;
      drag(main, event, (x) => { mode.grab(s, x, k); sync(); draw(); });
    } else if (s.tool === "add") addPoint(where(event));
  };

  // ---------------------------------------------------------- drawing

  // The circle of a radius, as A deforms it around a centre.
  const ring = ([[a, b], [c, d]], [x, y], radius, look) =>
    `<circle r="${radius}" fill="none" transform="matrix(${[a, c, b, d, x, y]})" ${look}/>`;

  // An ellipse of so many deviations: Σ = L Lᵀ.
  function ellipse(mu, [[a, b], [, d]], nStd, look) {
    const l = Math.sqrt(a), below = l && b / l;
    return ring([[l, 0], [below, Math.sqrt(Math.max(0, d - below ** 2))]], mu, nStd, look);
  }

  function fitPoints() {
    while (points.children.length > s.X.length) points.lastChild.remove();
    while (points.children.length < s.X.length) {
      points.insertAdjacentHTML("beforeend", `<g role="button"
        tabindex="${points.children.length ? -1 : 0}"><circle r="11" fill="transparent"/><path/></g>`);
    }
  }

  function drawHandles(wanted) {
    while (handles.children.length < wanted.length) {
      handles.insertAdjacentHTML("beforeend",
        '<g class="handle" role="button" tabindex="0"><circle r="14"/><circle r="6"/></g>');
    }
    wanted.forEach(({ at, name, colour }, k) => {
      const g = handles.children[k];
      g.setAttribute("transform", pinned(at));
      g.setAttribute("aria-label", name);
      g.lastChild.setAttribute("style", `stroke: ${colour}`);
    });
  }

  const hasLabel = (i) => tools.includes("label") && s.y[i] >= 0;
  const tiesOf = (i) => s.links.filter(([a, b]) => a === i || b === i)
    .map(([a, b, v]) => `${v > 0 ? "together with" : "apart from"} ${a + b - i + 1}`);

  function draw() {
    fitPoints();
    s.X.forEach((x, i) => {
      const g = points.children[i], r = s.r[i];
      g.setAttribute("transform", pinned(x));
      g.classList.toggle("picked", s.picked === i);
      g.lastChild.setAttribute("d", MARKS[argmax(r)]);
      g.lastChild.setAttribute("fill", blend(r, spec.colours));
      g.firstChild.setAttribute("stroke", hasLabel(i) ? spec.colours[s.y[i]] : "none");
      const told = r.map((p, k) => `class ${k + 1} ${percent(p)}`).concat(tiesOf(i));
      if (hasLabel(i)) told.push(`label ${s.y[i] + 1}`);
      g.setAttribute("aria-label", `Point ${i + 1}: ${told.join(", ")}`);
    });
    links.innerHTML = s.links.map(([i, j, v]) => {
      const broken = (argmax(s.r[i]) === argmax(s.r[j])) !== v > 0;
      const look = `${v > 0 ? "together" : "apart"}${broken ? " broken" : ""}`;
      return `<path d="M${s.X[i]}L${s.X[j]}" class="${look}"/>`;
    }).join("");
    const pen = { s, spec, pin, ring, ellipse };
    under.innerHTML = mode.under?.(pen) ?? "";
    over.innerHTML = (mode.over ?? components)(pen);
    drawHandles(mode.handles?.(s) ?? []);
    side.innerHTML = mode.side(pen);
    side.setAttribute("aria-label", side.querySelector("text").textContent);
    main.setAttribute("aria-label", `${title}: ${s.X.length} points, ${s.links.length} relations`);
  }

  // The half-step has been taken; what is seen glides there.
  function glide() {
    const placeOf = (element) => element.getAttribute("transform");
    const before = [...over.children].map(placeOf);
    draw();
    if (quiet()) return;
    [...over.children].forEach((one, i) =>
      one.animate({ transform: [before[i], placeOf(one)] }, 300));
  }

  // ---------------------------------------------------------- buttons, sliders, words

  function tell(say) {
    status.textContent = [say, mode.say(s)].filter(Boolean).join(" ");
    sync();
    rememberState();
  }

  // ---------------------------------------------------------- the state, in the address of the page

  let waiting;
  // Browsers allow few changes of the address in a second.
  function rememberState() {
    if (!spec.name || model || !("ready" in root.dataset)) return;
    clearTimeout(waiting);
    const write = () => history.replaceState(null, "", writeAddress(s, presetOf(s.preset), initial, tools, mode));
    waiting = setTimeout(write, 250);
  }

  function showState(address) {
    const given = readAddress(address);
    if (!spec.name || given.get("figure") !== spec.name) return;
    clearTimeout(waiting);
    for (const [name, first] of Object.entries(initial)) {
      const value = given.get(name), isThere = [...form.elements].some((one) => one.name === name && one.value === value);
      s[name] = value === null ? first : name in scales ? closest(scales[name], value) ?? first : isThere ? value : first;
    }
    load(readState(given, presetOf(s.preset), spec.K));
    root.scrollIntoView({ block: "nearest" });
  }

  function send() {
    model?.set({ points: s.X, links: s.links });
    model?.save_changes();
  }

  function takeSteps(n) {
    if (!n || !mode.half) return;
    for (const before = s.halves; s.halves < before + Math.min(n, 2000); s.halves++) mode.half(s);
    draw();
    tell();
  }

  function step() {
    mode.half(s);
    s.halves++;
    glide();
    tell();
  }

  function run() {
    s.running = !s.running;
    let t = 0;
    const go = () => {
      if (!s.running) return;
      const more = mode.half(s) || s.after === "M";
      s.halves++;
      if (!more || t++ > 1000) s.running = false;
      if (!quiet()) draw();
      if (s.running) return quiet() ? go() : mode.pause ? setTimeout(go, mode.pause) : requestAnimationFrame(go);
      draw();
      tell();
    };
    go();
  }

  const sync = () => followers.forEach((follow) => follow());

  function button(words, onclick) {
    const one = make("button", { type: "button", textContent: words, onclick });
    form.append(one);
    return one;
  }

  function radios(words, name, options) {
    const inputs = Object.keys(options).map((value) => make("input", { type: "radio", name, value }));
    const labels = Object.values(options).map((text, i) => make("label", {}, inputs[i], ` ${text}`));
    form.append(make("fieldset", {}, make("legend", {}, words), ...labels));
    if (name !== "tool") initial[name] = s[name];
    followers.push(() => inputs.forEach((one) => { one.checked = one.value === `${s[name]}`; }));
  }

  function slider(words, name, values, show) {
    const output = make("output");
    const input = make("input", { type: "range", name, min: 0, max: values.length - 1 });
    form.append(make("label", {}, make("span", {}, words), input), output);
    scales[name] = values;
    initial[name] = s[name];
    followers.push(() => {
      input.value = argmax(values.map((v) => -Math.abs(v - s[name])));
      output.textContent = show(s[name]);
      input.setAttribute("aria-valuetext", show(s[name]));
    });
  }

  form.onsubmit = () => false;
  form.oninput = ({ target: { name, value } }) => {
    const before = s[name];
    let refusal;
    s[name] = scales[name]?.[value] ?? value;
    if (name === "preset") return load();
    main.dataset.tool = s.tool;
    s.picked = null;
    if (name === "tool") return draw();
    if (!relate(mode.chosen?.(s) ?? s.links, (reason) => { refusal = reason; })) s[name] = before;
    change(refusal);
  };

  function controls() {
    if (spec.presets.length > 1) radios("example", "preset", { ...spec.presets.map(({ name }) => name) });
    const offered = Object.fromEntries(tools.map((tool) => [tool, TOOLS[tool]]));
    if (tools.length > 1) radios("tool", "tool", offered);
    mode.controls?.({ spec, slider, radios });
    if (mode.half) {
      const next = button(mode.stepName, step);
      if (!mode.stepName) followers.push(() => { next.textContent = s.after === "E" ? "M-step" : "E-step"; });
      button(mode.runName ?? "Run or stop", run);
    }
    if (model && !mode.asksNothing) button("Ask cgmm", () => model.send({ fit: true }));
    button("Start again", () => load());
    const help = [HELP, tools.includes("add") && HELP_ADD, tools.includes("label") && HELP_LABEL,
      tools.includes("together") && HELP_LINKS, mode.handles && HELP_HANDLES,
      spec.name && !model && HELP_ADDRESS];
    form.append(make("details", {}, make("summary", {}, "Mouse, touch and keys"),
      make("p", {}, `${help.filter(Boolean).join("")}.`)));
  }

  main.setAttribute("role", "application");
  side.setAttribute("role", "img");
  if (mode.sideHeight) side.setAttribute("viewBox", `0 0 300 ${mode.sideHeight}`);
  side.removeAttribute("aria-hidden");
  model?.on("change:fitted", () => { s.fitted = model.get("fitted"); draw(); });
  controls();
  load();
  // From now on, and not of the first words, a screen reader is to tell.
  status.setAttribute("role", "status");
  root.dataset.ready = "";
  // In JupyterLab an address belongs to the application: there the figure listens to the links alone.
  if (model) listenToLinks(showState);
  else {
    // A state that still waits to be written must not replace the one of a link.
    addEventListener("click", (event) => event.target.closest("a") && clearTimeout(waiting), true);
    addEventListener("hashchange", () => showState(location.hash));
    showState(location.hash);
  }
}
