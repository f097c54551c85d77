// The state of a live figure as the end of a page's address: copied with it, and set by links.
// tests/explore/test_companion.py writes and reads each part of it.
//
//   #figure=links&together=1-17,2-18&apart=4-20&labels=3:1&weight=1.5&steps=4
//
// Points and classes are numbered from 1, as the figure shows them. What the address does not name
// is as the figure begins. `points` lists all places x:y, if one has been moved, added or taken away.

const joinPairs = (pairs, between) => pairs.map((pair) => pair.join(between)).join();
const namesOf = (links, sign) => joinPairs(links.filter(([, , v]) => v === sign).map(([i, j]) => [i + 1, j + 1]), "-");
const labelsOf = (y) => joinPairs(y.flatMap((k, i) => (k < 0 ? [] : [[i + 1, k + 1]])), ":");
const rounded = (x) => Number(x.toFixed(2));
const closest = (values, x) => values[argmax(values.map((v) => -Math.abs(v - x)))];

function writeAddress(s, preset, initial, tools, mode) {
  const parts = { figure: s.spec.name };
  for (const name in initial) if (`${s[name]}` !== `${initial[name]}`) parts[name] = s[name];
  if (s.moved) parts.points = joinPairs(s.X.map((x) => x.map(rounded)), ":");
  const differs = (name, now, before) => { if (now !== before) parts[name] = now; };
  if (tools.includes("label")) differs("labels", labelsOf(s.y), labelsOf(preset.y));
  if (tools.includes("together")) differs("together", namesOf(s.links, 1), namesOf(preset.links, 1));
  if (tools.includes("apart")) differs("apart", namesOf(s.links, -1), namesOf(preset.links, -1));
  const hand = mode.hold?.(s);
  if (hand) parts.hand = hand.map(rounded).join();
  if (s.halves) parts.steps = s.halves;
  return `#${Object.entries(parts).map(([name, value]) => `${name}=${value}`).join("&")}`;
}

const readAddress = (address) => new URLSearchParams(address.replace(/^[^#]*#/, ""));

// Pairs of numbers, without those that are none; undefined where the address has no such part.
const readPairs = (given, name, between) => given.get(name)?.split(",")
  .map((one) => one.split(between).map(Number))
  .filter((pair) => pair.length === 2 && pair.every(Number.isFinite));

// What the address names of points, labels, links and steps, and nothing that does not fit.
function readState(given, preset, K) {
  const state = {}, points = readPairs(given, "points", ":");
  if (points?.length >= 3 * K) state.X = points;
  const { length } = state.X ?? preset.X, isPoint = (i) => Number.isInteger(i) && i >= 1 && i <= length;
  const labels = readPairs(given, "labels", ":");
  if (labels || state.X) state.y = Array(length).fill(-1);
  for (const [i, k] of labels ?? []) if (isPoint(i) && range(K).includes(k - 1)) state.y[i - 1] = k - 1;
  const pairs = (name, sign) => (readPairs(given, name, "-") ?? preset.links.filter(([, , v]) => v === sign)
    .map(([i, j]) => [i + 1, j + 1])).filter(([i, j]) => isPoint(i) && isPoint(j) && i !== j)
    .map(([i, j]) => [i - 1, j - 1, sign]);
  state.links = [...pairs("together", 1), ...pairs("apart", -1)];
  state.hand = given.get("hand")?.split(",").map(Number);
  state.steps = Math.trunc(Number(given.get("steps"))) || 0;
  return state;
}

// Links of the text set a state: in JupyterLab by their clicks.
function listenToLinks(show) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href*='#figure=']");
    if (!link) return;
    event.preventDefault();
    event.stopPropagation();
    show(link.getAttribute("href"));
  }, true);
}
