// The search page. ENTRIES, from search_entries.js, has a line for each page, section, term, theorem,
// equation, figure, exercise, name of the package and reference: kind, title, url, page, text, number.

const KINDS = {
  chapter: ["", 70], page: ["Page", 45], term: ["Term", 50], theorem: ["", 40], work: ["Reference", 38],
  section: ["Section", 35], name: ["Name of the package", 33], figure: ["Figure", 25],
  equation: ["Equation", 20], exercise: ["", 20],
};
const FAMILIES = [
  [/^(fig|figure)$/, entry => entry.kind === "figure"],
  [/^(eq|eqn|equation)$/, entry => entry.kind === "equation"],
  [/^(ch|chap|chapter)$/, entry => entry.kind === "page"],
  [/^(thm|theorem|lemma|prop|proposition|cor|corollary|def|definition|assumption|axiom|example|remark|algorithm)$/,
    (entry, word) => entry.kind === "theorem" && entry.title.toLowerCase().startsWith(word.slice(0, 2))],
  [/^(ex|exercise)$/, entry => entry.kind === "exercise"],
];
const SHOWN = 30;

// "Cannot-links" is found by cannot-links, cannot-link, cannot and links; a plural by its singular,
// and either spelling of English by the other.
const spelling = word => word.replace(/is(?=(e|ed|er|ing|ation)s?$)/, "iz").replace(/yse/, "yze")
  .replace(/(col|neighb|behavi|fav|lab|harb)our/, "$1or").replace(/centre/, "center").replace(/lling|lled/, one => one.slice(1));
const singular = owner => { const word = owner.replace(/['’]s$/, ""); return spelling(word.length > 4 && word.endsWith("ies") ? `${word.slice(0, -3)}y`
  : word.length > 3 && /[^s]s$/.test(word) ? word.slice(0, -1) : word); };
// Forms of one word: regularise, regularised and regularisation; slow and slowly; category and categorical.
const stem = word => word.length < 5 ? word : (word.length < 7 ? word : word.replace(/(iz)?(ation|ion)$/, "$1"))
  .replace(/(?<=.{3})(er)?(ing|edly|ed|er|ly)$/, "").replace(/(?<=.{3})e$/, "").replace(/([^aeiouls])\1$/, "$1")
  .replace(/(?<=.{5})(ical|ity|ness|ment|[ae]nce?|[ae]nc|[ae]nt|ive?|[ai]bl|al|y)$/, "");
const fold = text => text.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replace("means++", "meanspp")
  .replace(/\b(must|cannot|can.?t) link/g, "$1-link");
const JOINT = /[-.'’]/, WORD = /[\p{L}\p{N}_]+(?:[-.'’][\p{L}\p{N}_]+)*/gu;
// Words that say nothing of what is asked, unless there is no other; so do single letters.
const STOP = new Set(("a also am an and another any are as at be been but by can cannot could did do does each every for from get give go got had has have how i if in "
  + "into is it its just like make many me more most much must my need of on one only or other our per really should so some than that the their them there these they this then "
  + "to us use using vs versus was we were what when where which while who whom why will with would you your deal handle take went want "
  + "work here tell lot become matter happen something").split(" ").map(singular));
// Words for one thing, from _data/asked.toml; another word of a line counts for less than the word itself.
const alikeLines = () => ALIKE.map(line => line.split(" ").map(word => stem(singular(word))));
const telling = words => words.filter(word => !STOP.has(word) && (word.length > 1 || /\d/.test(word)));
// A question about the meaning of a word is a question for that word, and k is the number of clusters. "Not the same" becomes
// "different", and "not together" becomes "apart".
const DEFINED = /^(?:what (?:do|does|is|are) (?:an? |the )?(?:word |term )?(.+?) (?:means?|stand for|called)|(?:the )?(?:meaning|definition) of (?:an? |the )?(.+?)|defin(?:e|ition) (.+?)|(.+) (?:meaning|definition))\??$/i;
const APART = /\b(?:not|never|n.t|cannot)\b(.{0,25}?)\b(same|together)\b/i;
const plainly = query => query.trim().replace(/(?<![\w-])k(?![\w-])/i, "number of clusters").replace(DEFINED, (all, ...found) => found.slice(0, 4).find(Boolean))
  .replace(APART, (all, between, word) => `${between} ${word.toLowerCase() === "same" ? "different" : "apart"}`);
function askedWords(query) {
  const all = (fold(plainly(query)).match(WORD) ?? []).map(singular);
  return (telling(all).length ? telling(all) : all).map(stem);
}
// "Pseudo-likelihood" is found by its parts and by "pseudolikelihood" as well.
const wordsOf = text => (fold(text).match(WORD) ?? [])
  .flatMap(word => JOINT.test(word) ? [word, word.replace(/[-’']/g, ""), ...word.split(JOINT)] : [word]).map(word => stem(singular(word)));
const counted = words => words.reduce((n, word) => n.set(word, (n.get(word) ?? 0) + 1), new Map());

const mean = numbers => numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
// What a word counts for: in a title (of the package: less), in a question of _data/asked.toml about a place or about a part of it,
// as another word for the same, and in the text (BM25: k and b); how fast more of these add less; the question most like the query;
// the best parts of a page; the kind of an entry (of the package: less); a title that is the query; the power of the share of words
// that are found; a term whose meaning is asked for, or that is the query; a recipe, if a query asks for one; the least share of the
// best entry's words that a hit needs. Chosen by a search over all questions in tests/book/questions.toml but the last list.
const W = {title: 8.6, nameTitle: 13, asked: 6.5, askedPart: 1.7, alike: 0.29, text: 1.5, k: 5.6, b: 0.31, sat: 6.3, line: 2, best: 0.13, second: 0.21, worth: 0.57, api: 0.013, named: 0.52, term: 18, exact: 2.8, cover: 0.36, how: 0.35, least: 0.2};
let index;
function indexed() {
  if (index) return index;
  index = ENTRIES.map(entry => {
    const title = wordsOf(entry.title), text = wordsOf(`${entry.text} ${entry.kind === "page" ? "" : entry.page}`);
    const lines = (entry.asked ?? "").split("\n").map(line => new Set(telling(wordsOf(line))));
    return {entry, title: counted(title), lines, asked: new Set(lines.flatMap(line => [...line])), length: (fold(entry.title).match(WORD) ?? []).length, text: counted(text), size: text.length};
  });
  const pages = Object.groupBy(index, one => one.entry.url.split("#")[0]);
  index.usual = mean(index.map(one => one.size));
  for (const one of index.filter(({entry}) => entry.kind === "page")) {
    // A page has the words of all its sections, which may be spread over them.
    one.parts = pages[one.entry.url].filter(part => part !== one);
    const whole = new Map();
    for (const [word, n] of pages[one.entry.url].flatMap(({title, text}) => [...title, ...text])) whole.set(word, (whole.get(word) ?? 0) + n);
    const below = new Set(one.parts.flatMap(part => [...part.asked]));
    Object.assign(one, {text: whole, below, size: [...whole.values()].reduce((sum, n) => sum + n)});
  }
  index.usualPage = mean(index.filter(one => one.parts).map(one => one.size));
  return index;
}

// How much a text is about a word, from 0 to 1: more with each time that it is there, less if the text is long (BM25).
const about = (n, size, usual) => n / (n + W.k * (1 - W.b + W.b * size / usual));
const times = (words, word) => words.get?.(word) ?? Number(words.has(word));

// "Theorem 7.2", "Fig. 7.1", "(7.1)" and "chapter 7" name one thing.
function named(query) {
  const found = fold(query).trim().match(/^(?:([a-z]+)\.?\s*)?\(?(\d+(?:\.\d+)*)\)?$/);
  if (!found) return [];
  const family = FAMILIES.find(([pattern]) => pattern.test(found[1] ?? ""));
  if (found[1] && !family) return [];
  const all = ENTRIES.filter(one => one.number === found[2] && (!family || family[1](one, found[1])));
  // In brackets stands the number of an equation.
  const isFirst = one => query.includes("(") && one.kind === "equation";
  return all.sort((a, b) => isFirst(b) - isFirst(a));
}

function search(query) {
  // The parts of "cannot-link" are no words of their own here.
  const asked = askedWords(query);
  const all = indexed(), first = named(query);
  if (!asked.length) return first;
  const holds = (one, count) => count(one.title) || count(one.asked) || count(one.text);
  // A word counts as the beginning of others only where it is no word itself: "Chang", not "change".
  const has = asked.map(word => all.some(one => holds(one, words => times(words, word))) ? words => times(words, word)
    : words => [...words.keys()].filter(other => other.startsWith(word)).length);
  const lines = alikeLines();
  const alike = asked.map(word => lines.filter(line => line.includes(word)).flat().filter(other => other !== word));
  // What few entries have tells more than what many have.
  const weights = has.map(count => Math.log((1 + all.length) / (1 + all.filter(one => holds(one, count)).length)));
  const sum = weights.reduce((one, other) => one + other, 0) || 1, usual = mean(weights);
  // How like a question is to the query: the weight of the words of both, by those of each (the cosine).
  const likeness = line => {
    const own = [...line].map(word => weights[asked.indexOf(word)] ?? usual).reduce((one, other) => one + other, 0) || 1;
    const shared = has.map((count, n) => weights[n] * (count(line) ? 1 : alike[n].some(word => line.has(word)) / 2));
    return shared.reduce((one, other) => one + other) / Math.sqrt(sum * own);
  };
  // Parts of a dotted name are no heading for a question in plain words.
  const isProse = asked.length > 1 && !/[._(]|[a-z][A-Z]/.test(query);
  const isDefinition = /^what (is|are) (an? |the )?\S+( \S+)?\??$/i.test(query.trim()) || DEFINED.test(query.trim());
  const isRecipe = /^how (to|do|can)/i.test(query.trim());
  const isWhole = asked.length === fold(plainly(query)).match(WORD).length;
  const functions = [...fold(query).matchAll(/([\w.]+)\(/g)].map(([, name]) => name);
  const ratings = new Map();
  const rate = one => ratings.get(one) ?? ratings.set(one, rateAnew(one)).get(one);
  function rateAnew({entry, title, lines, asked: known, below = new Set(), length, text, size, parts}) {
    const isName = isProse && (entry.kind === "name" || entry.url.includes("/api/"));
    const strength = count => (isName ? W.nameTitle : W.title) * Boolean(count(title))
      + (count(known) ? W.asked : W.askedPart * Boolean(count(below))) + W.text * about(count(text), size, parts ? all.usualPage : all.usual);
    let score = 0, found = 0, covered = 0;
    has.forEach((count, n) => {
      // The word itself, or else the best of the words for the same.
      const own = strength(count), best = own || W.alike * Math.max(0, ...alike[n].map(word => strength(words => times(words, word))));
      if (!best) return;
      found++;
      covered += weights[n] * (own ? 1 : W.alike);
      score += weights[n] * best / (W.sat + best) * (1 + W.sat);
    });
    if (!found) return {entry, found, content: 0};
    const share = (covered / sum) ** W.cover, content = (score / sum + W.line * Math.max(...lines.map(likeness))) * share;
    const [, worth] = KINDS[entry.kind === "page" && entry.number ? "chapter" : entry.kind];
    // What is named as the question is, and nothing else, is what was meant.
    const isNamed = has.every(count => count(title)) && !isName, named = isNamed ? asked.length / Math.max(length, asked.length) : 0;
    const kind = W.worth * worth / 70 * (isName ? W.api : 1) + W.how * (isRecipe && entry.url.includes("howto"));
    let rating = content + (kind + named * (W.named * (entry.kind === "exercise" ? 0.3 : 1) + (entry.kind === "term") * (isDefinition ? W.term : W.exact * (named === 1 && isWhole)))) * share;
    if (parts) {
      const [first = 0, second = 0, third = 0] = parts.map(part => rate(part).content).sort((a, b) => b - a);
      rating += W.best * first + W.second * (second + third);
    }
    // The estimator is meant where several classes have a method of that name.
    if (entry.kind === "name" && functions.some(name => entry.title.toLowerCase().endsWith(name))) rating += entry.url.includes("ConstrainedGaussianMixture") ? 60 : 30;
    return {entry, score: rating, found, covered, content};
  }
  const hits = all.map(rate).filter(({found}) => found);
  // What has little of what was asked for is no hit.
  const most = Math.max(...hits.map(({covered}) => covered));
  const best = hits.filter(({covered}) => covered >= W.least * most).sort((a, b) => b.score - a.score);
  return [...new Set([...first, ...best.map(({entry}) => entry)])];
}

// The words around the first one that was asked for.
function context(entry, asked) {
  const plain = fold(entry.text), text = plain.length === entry.text.length ? entry.text : plain;
  const places = asked.map(word => plain.indexOf(word)).filter(place => place >= 0);
  let start = places.length ? Math.max(0, Math.min(...places) - 70) : 0;
  if (start) start = text.indexOf(" ", start) + 1;
  const end = text.length > start + 190 ? text.lastIndexOf(" ", start + 190) : text.length;
  return (start ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
}

function element(name, text, className) {
  const one = document.createElement(name);
  if (text) one.textContent = text;
  if (className) one.className = className;
  return one;
}

// A line of text in which the words that were asked for stand out.
function marked(text, asked) {
  const line = element("p", "", "cgmm-hit-text"), plain = fold(text);
  if (plain.length !== text.length) return Object.assign(line, {textContent: text});
  const escaped = asked.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  let at = 0;
  for (const found of plain.matchAll(new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join("|")})`, "gu"))) {
    line.append(text.slice(at, found.index), element("mark", text.slice(found.index, at = found.index + found[0].length)));
  }
  line.append(text.slice(at));
  return line;
}

function item(entry, asked) {
  const one = element("li"), link = element("a", entry.title);
  link.href = document.documentElement.dataset.content_root + entry.url;
  const [kind] = KINDS[entry.kind];
  const place = entry.kind === "page" || entry.page === entry.title ? "" : entry.page;
  const number = entry.kind === "page" && entry.number ? `Chapter ${entry.number}` : kind;
  one.append(link, element("span", [number, place].filter(Boolean).join(" · "), "cgmm-hit-kind"));
  if (entry.text) one.append(marked(context(entry, asked), asked));
  return one;
}

function show(query) {
  const box = document.getElementById("search-results");
  const asked = askedWords(query);
  const hits = search(query), list = element("ol");
  const many = hits.length === 1 ? "One place" : `${hits.length || "No"} places`;
  const known = asked.every(word => indexed().some(one => one.title.has(word) || one.text.has(word)));
  const how = known || !hits.length ? "for" : "with words that begin with";
  const said = element("p", `${many} ${how} “${query}”.`);
  said.setAttribute("role", "status");
  if (!hits.length) said.append(" Fewer words find more; the glossary and the index list all terms.");
  list.append(...hits.slice(0, SHOWN).map(entry => item(entry, asked)));
  box.replaceChildren(said, list);
  if (hits.length <= SHOWN) return;
  const more = element("button", `Show the other ${hits.length - SHOWN}`, "cgmm-button");
  more.addEventListener("click", () => {
    const rest = hits.slice(SHOWN).map(entry => item(entry, asked));
    more.remove();
    list.append(...rest);
    rest[0].querySelector("a").focus();
  });
  box.append(more);
}

// While somebody types, the results follow once the fingers rest, and the address keeps the query.
let waiting;
function showSoon(query) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    history.replaceState(null, "", `?q=${encodeURIComponent(query)}`);
    if (query.trim()) show(query); else document.getElementById("search-results").replaceChildren();
  }, 150);
}

document.addEventListener("DOMContentLoaded", () => {
  const query = new URLSearchParams(location.search).get("q") ?? "";
  const field = document.querySelector(".bd-search-container input[type=search]");
  if (field) {
    field.value = query;
    field.addEventListener("input", () => showSoon(field.value));
  }
  if (query.trim()) show(query);
});
