// The live figure: points, relations and parameters under the reader's hand. All chapters.
// What is computed stands in live_em.js, above this file in the page; here is what is seen.
//
// spec    what Python hands over: mode, K, pool, view, colours, words, presets
// s       the state: X, y (classes, -1 where unknown), links, net, theta, E (what the last E-step found), trace, and what is chosen
// main    the panel with the points; side: the panel beside it, which each mode draws by itself

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
const mix = (a, b, t) =>
  (Array.isArray(a) ? a.map((x, i) => mix(x, b[i], t)) : (1 - t) * a + t * b);
const quiet = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// The mean of the components' colours under r, as cgmm.plot.blend has it.
const blend = (r, colours) => `rgb(${[1, 3, 5].map((at) => Math.round(
  dot(r, r.map((_, k) => parseInt(colours[k].slice(at, at + 2), 16))))).join()})`;

function liveFigure(root, spec, model) {
  const $ = (name) => root.querySelector(`.cgmm-live-${name}`);
  const main = $("main"), side = $("side"), status = $("status"), mode = MODES[spec.mode];
  const [left, bottom, right, top] = spec.view, zoom = 400 / (right - left);
  const place = ([x, y]) => [(x - left) * zoom, (top - y) * zoom];
  const at = (x) => place(x).map((v) => v.toFixed(1)).join(" ");
  const layers = ["under", "links", "points", "over"].map((name) => svg("g", { class: name }));
  const s = { spec, tool: mode.hand ?? "move", preset: 0, weight: spec.weight, beta: spec.beta, angle: 0, t: 1 };
  const followers = [];

  function svg(name, attributes) {
    const element = document.createElementNS(main.namespaceURI, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  }

  // ---------------------------------------------------------- what is known, and what follows

  // A link is kept as its sign, 1 for together and -1 for apart; the mode says how strong it is.
  const strength = ([i, j, v]) => [i, j, v * (mode.strength?.(s) ?? Infinity)];

  function relate(links, say) {
    const net = network(s.X.length, links.map(strength), spec.K, spec);
    if (!net) return say?.("No assignment keeps that, or too many points would hang together.");
    Object.assign(s, { links, net });
    return true;
  }

  function change(say) {
    mode.refresh(s);
    draw();
    tell(say);
    send();
  }

  function load(preset) {
    // A preset says what differs from the first.
    const { X, y, links, starts } = { ...spec.presets[0], ...spec.presets[preset] };
    Object.assign(s, { preset, X: X.map((x) => [...x]), y: [...y], starts, theta: starts[0] });
    Object.assign(s, { picked: null, mu: starts[0].means, running: false, fitted: null });
    relate(links.map((link) => [...link]));
    layers[2].replaceChildren();
    change();
  }

  // ---------------------------------------------------------- points and links, by hand and key

  function movePoint(i, x) {
    s.X[i] = [Math.min(right, Math.max(left, x[0])), Math.min(top, Math.max(bottom, x[1]))];
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
    layers[2].replaceChildren();
    change(`Point ${i + 1} taken away.`);
    focusPoint(Math.min(i, s.X.length - 1));
  }

  function pick(i, tool) {
    if (s.picked === null || s.picked === i) {
      s.picked = s.picked === i ? null : i;
      draw();
      return tell(s.picked === null ? "Let go." : `Point ${i + 1} picked; now the other one.`);
    }
    const [a, b] = [s.picked, i], v = tool === "together" ? 1 : -1;
    const others = s.links.filter(([p, q]) => !((p === a && q === b) || (p === b && q === a)));
    const untie = others.length < s.links.length;
    s.picked = null;
    if (!relate(untie ? others : [...others, [a, b, v]], tell)) return draw();
    change(untie ? `Points ${a + 1} and ${b + 1} untied.`
      : `Points ${a + 1} and ${b + 1} belong ${tool}.`);
  }

  function focusPoint(i) {
    [...layers[2].children].forEach((g, j) => g.setAttribute("tabindex", i === j ? 0 : -1));
    layers[2].children[i].focus({ preventScroll: true });
  }

  function use(tool, i) {
    if (!mode.tools.includes(tool)) return;
    if (tool === "add") addPoint([s.X[i][0] + 12 / zoom, s.X[i][1] + 12 / zoom]);
    else if (tool === "remove") removePoint(i);
    else if (tool !== "move") pick(i, tool);
  }

  function press(event, i) {
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
  }

  function where(event) {
    const box = main.getBoundingClientRect(), scale = (right - left) / box.width;
    return [left + (event.clientX - box.left) * scale, top - (event.clientY - box.top) * scale];
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

  function newPoint() {
    const i = layers[2].children.length, g = svg("g", { role: "button", tabindex: i ? -1 : 0 });
    g.append(svg("circle", { r: 11, fill: "transparent" }), svg("path", {}));
    g.addEventListener("keydown", (event) => press(event, [...layers[2].children].indexOf(g)));
    g.addEventListener("pointerdown", (event) => {
      const mine = [...layers[2].children].indexOf(g);
      event.preventDefault();
      event.stopPropagation();
      focusPoint(mine);
      if (s.tool === "move" || s.tool === "add") drag(g, event, (x) => movePoint(mine, x));
      else use(s.tool, mine);
    });
    layers[2].append(g);
  }

  main.addEventListener("pointerdown", (event) => {
    if (s.tool === "add") addPoint(where(event));
    else if (event.target.closest(".handle")) drag(main, event, (x) => { mode.grab(s, x); sync(); draw(); });
  });

  // ---------------------------------------------------------- drawing

  // An ellipse of so many deviations; its axes from the eigenvalues of Σ.
  function ellipse(mu, [[a, b], [, d]], nStd, look) {
    const half = Math.hypot((a - d) / 2, b), middle = (a + d) / 2;
    const [rx, ry] = [1, -1].map((g) => nStd * zoom * Math.sqrt(Math.max(0, middle + g * half)));
    const turn = (-90 / Math.PI) * Math.atan2(2 * b, a - d);
    return `<ellipse rx="${rx.toFixed(1)}" ry="${ry.toFixed(1)}" fill="none" ${look}
      transform="translate(${at(mu)}) rotate(${turn.toFixed(1)})"/>`;
  }

  const line = (a, b, look) => {
    const [p, q] = [place(a), place(b)].map((v) => v.map((x) => x.toFixed(1)));
    return `<line x1="${p[0]}" y1="${p[1]}" x2="${q[0]}" y2="${q[1]}" ${look}/>`;
  };

  const drawn = { s, spec, line, ellipse, at, place };

  function draw(theta = s.theta) {
    while (layers[2].children.length < s.X.length) newPoint();
    [...layers[2].children].forEach((g, i) => {
      const r = s.r[i], path = g.lastChild;
      g.setAttribute("transform", `translate(${at(s.X[i])})`);
      g.setAttribute("class", s.picked === i ? "picked" : "");
      path.setAttribute("d", MARKS[argmax(r) % MARKS.length]);
      path.setAttribute("fill", blend(r, spec.colours));
      const share = r.map((p, k) => `${Math.round(100 * p)} % ${k + 1}`).join(", ");
      g.setAttribute("aria-label", `Point ${i + 1}: ${share}`);
    });
    layers[1].innerHTML = s.links.map(([i, j, v]) => {
      const broken = (argmax(s.r[i]) === argmax(s.r[j])) !== v > 0;
      return line(s.X[i], s.X[j], `class="${v > 0 ? "together" : "apart"}${broken ? " broken" : ""}"`);
    }).join("");
    layers[0].innerHTML = mode.under?.(drawn) ?? "";
    layers[3].innerHTML = (mode.over ?? components)({ ...drawn, theta });
    side.innerHTML = mode.side(drawn);
  }

  // The half-step has been taken; what is seen glides there.
  function glide(from) {
    if (quiet() || !from) return draw();
    const begin = performance.now();
    const frame = (now) => {
      const t = Math.min(1, Math.max(0, (now - begin) / 300));
      const between = {};
      for (const key in from) between[key] = mix(from[key], s.theta[key], t);
      draw(between);
      if (t < 1 && !s.running) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
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

  const element = (name, words, attributes = {}) =>
    Object.assign(document.createElement(name), { textContent: words, ...attributes });

  function button(words, act) {
    const one = element("button", words, { type: "button", onclick: act });
    $("controls").append(one);
    return one;
  }

  function radios(words, options, chosen, act) {
    const set = element("fieldset", ""), name = `tool${Math.random()}`;
    set.append(element("legend", words));
    for (const [value, text] of Object.entries(options)) {
      const input = element("input", "", { type: "radio", name, value, checked: value === chosen });
      input.dataset.lmSuppressShortcuts = "true";
      input.onchange = () => act(value);
      const label = element("label", "");
      label.append(input, ` ${text}`);
      set.append(label);
    }
    $("controls").append(set);
  }

  function slider(words, key, values, show) {
    const label = element("label", ""), output = element("output", "");
    const input = element("input", "", { type: "range", min: 0, max: values.length - 1 });
    const near = () => argmax(values.map((v) => -Math.abs(v - s[key])));
    input.dataset.lmSuppressShortcuts = "true";
    label.append(element("span", words), input);
    $("controls").append(label, output);
    followers.push(() => {
      input.value = near();
      output.textContent = show(s[key]);
      input.setAttribute("aria-valuetext", show(s[key]));
    });
    input.oninput = () => {
      s[key] = values[input.value];
      relate(s.links);
      change();
    };
  }

  const sync = () => followers.forEach((one) => one());

  function controls() {
    $("controls").replaceChildren();
    if (spec.presets.length > 1) {
      const names = spec.presets.map(({ name }) => name);
      radios("example", { ...names }, "0", (i) => load(Number(i)));
    }
    if (mode.tools.length > 1) {
      const offered = Object.fromEntries(mode.tools.map((tool) => [tool, TOOLS[tool]]));
      radios("the hand", offered, s.tool, (tool) => {
        Object.assign(s, { tool, picked: null });
        main.dataset.tool = tool;
      });
    }
    mode.controls?.({ s, spec, slider, radios, redo: () => { relate(s.links); change(); } });
    if (mode.half) {
      const next = button("", () => { const from = s.theta; mode.half(s); glide(from); tell(); });
      followers.push(() => { next.textContent = s.after === "E" ? "M-step" : "E-step"; });
      button("Run or stop", run);
    }
    if (model) button("Ask cgmm", () => model.send({ fit: true }));
    button("Start again", () => load(s.preset));
    const help = element("details", "");
    const links = mode.tools.includes("together") ? HELP_LINKS : "";
    help.append(element("summary", "Hand and keys"), element("p", `${HELP}${links}.`));
    $("controls").append(help);
  }

  main.replaceChildren(...layers);
  main.setAttribute("role", "application");
  model?.on("change:fitted", () => { s.fitted = model.get("fitted"); draw(); });
  controls();
  load(0);
  root.dataset.ready = "";
}
