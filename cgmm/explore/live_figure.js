// The live figure: points, relations and parameters under the reader's hand. All chapters.
// What is computed stands in files above this one in the page, what a mode shows in one below it.
//
// spec    what Python hands over: K, pool, view, colours, words, presets, where sliders start
// mode    what live_steps.js and its neighbours have: tools, controls, refresh, half, side, say ...
// s       the state: X, y (classes, -1 where unknown), links, net, theta, and what is chosen
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
  move: "move", add: "add a point", remove: "take away", together: "together", apart: "apart",
};
const LETTERS = { a: "add", x: "remove", Delete: "remove", t: "together", d: "apart" };
const HELP = "Drag a point, or reach the points with Tab: Page Up and Page Down go from one to the "
  + "next, arrows move it (with Shift further), A adds one beside it, X takes it away";
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
  const tools = mode.tools ?? Object.keys(TOOLS), title = root.querySelector(".cgmm-live-title").textContent;
  // What is pinned at x keeps its size in pixels.
  const pinned = ([x, y], size = 1) => `matrix(${[size / zoom, 0, 0, -size / zoom, x, y]})`;
  const pin = (x, size) => `transform="${pinned(x, size)}"`;
  main.innerHTML = `<g transform="matrix(${zoom},0,0,${-zoom},${-left * zoom},${top * zoom})">
    <g class="under"/><g class="links"/><g class="points"/><g class="over"/></g>`;
  const [under, links, points, over] = main.firstChild.children;
  const scales = {}, followers = [];

  // ---------------------------------------------------------- what is known, and what follows

  // A link is kept as its sign, 1 for together and -1 for apart; the mode says how strong it is.
  const strength = ([i, j, v]) => [i, j, v * (mode.strength?.(s) ?? Infinity)];

  function relate(links, say) {
    const net = network(s.X.length, links.map(strength), spec.K, spec, (reason) => { say?.(reason); });
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

  function load() {
    // A preset says what differs from the first.
    const { X, y, links, starts } = { ...spec.presets[0], ...spec.presets[s.preset] };
    Object.assign(s, { X: X.map((x) => [...x]), y: [...y], starts, theta: starts[0] });
    Object.assign(s, { picked: null, running: false, fitted: null });
    relate(links);
    points.replaceChildren();
    change();
  }

  // ---------------------------------------------------------- points and links, by hand and key

  function movePoint(i, [x, y]) {
    s.X[i] = [Math.min(right, Math.max(left, x)), Math.min(top, Math.max(bottom, y))];
    mode.refresh(s);
    draw();
  }

  function addPoint(x) {
    s.X.push(x);
    s.y.push(-1);
    relate(s.links);
    change(`Point ${s.X.length} added.`);
    focusPoint(s.X.length - 1);
  }

  function removePoint(i) {
    if (s.X.length <= 3 * spec.K) return tell("That is as few points as the figure can do with.");
    s.X.splice(i, 1);
    s.y.splice(i, 1);
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

  function focusPoint(i) {
    [...points.children].forEach((g, j) => g.setAttribute("tabindex", i === j ? 0 : -1));
    points.children[i].focus({ preventScroll: true });
  }

  function use(tool, i) {
    if (!tools.includes(tool)) return;
    if (tool === "add") addPoint(s.X[i].map((v) => v + 12 / zoom));
    else if (tool === "remove") removePoint(i);
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
    const i = meant(event);
    if (i >= 0) {
      event.preventDefault();
      focusPoint(i);
      if (s.tool === "move" || s.tool === "add") drag(points.children[i], event, (x) => movePoint(i, x));
      else use(s.tool, i);
    } else if (s.tool === "add") addPoint(where(event));
    else if (event.target.closest(".handle")) {
      drag(main, event, (x) => { mode.grab(s, x); sync(); draw(); });
    }
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
      const told = r.map((p, k) => `class ${k + 1} ${percent(p)}`).concat(tiesOf(i));
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
  }

  function send() {
    model?.set({ points: s.X, links: s.links });
    model?.save_changes();
  }

  function step() {
    mode.half(s);
    glide();
    tell();
  }

  function run() {
    s.running = !s.running;
    let t = 0;
    const go = () => {
      if (!s.running) return;
      const more = mode.half(s) || s.after === "M";
      if (!more || t++ > 1000) s.running = false;
      if (!quiet()) draw();
      if (s.running) return quiet() ? go() : requestAnimationFrame(go);
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
    const labels = Object.entries(options).map(([value, text]) => make("label", {},
      make("input", { type: "radio", name, value, checked: value === `${s[name]}` }), ` ${text}`));
    form.append(make("fieldset", {}, make("legend", {}, words), ...labels));
  }

  function slider(words, name, values, show) {
    const output = make("output");
    const input = make("input", { type: "range", name, min: 0, max: values.length - 1 });
    form.append(make("label", {}, make("span", {}, words), input), output);
    scales[name] = values;
    followers.push(() => {
      input.value = argmax(values.map((v) => -Math.abs(v - s[name])));
      output.textContent = show(s[name]);
      input.setAttribute("aria-valuetext", show(s[name]));
    });
  }

  form.onsubmit = () => false;
  form.oninput = ({ target: { name, value } }) => {
    s[name] = scales[name]?.[value] ?? value;
    if (name === "preset") return load();
    main.dataset.tool = s.tool;
    s.picked = null;
    if (name === "tool") return draw();
    relate(s.links);
    change();
  };

  function controls() {
    if (spec.presets.length > 1) radios("example", "preset", { ...spec.presets.map(({ name }) => name) });
    radios("the hand", "tool", Object.fromEntries(tools.map((tool) => [tool, TOOLS[tool]])));
    mode.controls?.({ spec, slider, radios });
    if (mode.half) {
      const next = button("", step);
      followers.push(() => { next.textContent = s.after === "E" ? "M-step" : "E-step"; });
      button("Run or stop", run);
    }
    if (model) button("Ask cgmm", () => model.send({ fit: true }));
    button("Start again", load);
    const more = tools.includes("together") ? HELP_LINKS : "";
    form.append(make("details", {}, make("summary", {}, "Hand and keys"), make("p", {}, `${HELP}${more}.`)));
  }

  main.setAttribute("role", "application");
  side.setAttribute("role", "img");
  side.removeAttribute("aria-hidden");
  model?.on("change:fitted", () => { s.fitted = model.get("fitted"); draw(); });
  controls();
  load();
  // From now on, and not of the first words, a screen reader is to tell.
  status.setAttribute("role", "status");
  root.dataset.ready = "";
}
