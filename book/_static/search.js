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
  [/^(thm|theorem|lemma|prop|proposition|cor|corollary|def|definition|assumption|axiom|example|remark)$/,
    (entry, word) => entry.kind === "theorem" && entry.title.toLowerCase().startsWith(word.slice(0, 2))],
  [/^(ex|exercise)$/, entry => entry.kind === "exercise"],
];
const SHOWN = 30;

// What readers call a thing that the book calls otherwise: these words count as if they stood in the
// title. A page, or a place on it, is named by its address without ".html".
const CALLED = {
  "book/using": "install installation installing setup pip colab binder jupyter jupyterlab notebook run download requirements",
  "book/using#keys": "keyboard shortcut hotkey",
  "book/howto#choose-the-number-of-components": "elbow silhouette bic aic how many clusters number",
  "book/howto#save-and-load-a-fit": "save model pickle joblib export persist store",
  "book/howto#save-time-and-memory": "slow fast speed faster memory gpu",
  "book/howto#predict-new-points-with-relations-among-them": "prediction classify new data",
  "book/howto#deal-with-missing-values": "nan impute imputation missing data na incomplete",
  "book/howto#cluster-categorical-data": "discrete latent class bernoulli multinomial",
  "book/howto#mend-relations-that-contradict-each-other": "constraint inconsistent conflict contradiction infeasible contradictory",
  "book/large_data": "large big data out of core memmap dask cluster minibatch streaming parallel huge million row",
  "book/01_mixtures": "gmm mixture model gaussian likelihood density",
  "book/02_em": "expectation maximization elbo variational bound jensen e-step m-step",
  "book/03_practice": "initialization init seed restart start local optimum optima maximum maxima k-means++ kmeans++ singularity singular covariance overfitting convergence collapse different result every time run again unstable random empty regularise reg_covar",
  "book/04_some_labels": "semi-supervised partial label labelled unlabelled classification seed few labels percent",
  "book/05_where_relations_come_from": "side information pairwise constraint supervision come from origin source practice application",
  "book/06_chunklet_em": "must-link chunklet group equivalence",
  "book/07_cannot_links": "cannot-link markov random field junction tree variable elimination treewidth np-hard complexity",
  "book/08_the_normaliser": "log z partition function normalizing constant omega estimate omega",
  "book/09_soft_preferences": "soft constraint noisy uncertain weak penalty ppc penalized probabilistic wrong mistaken strength strong weight confidence",
  "book/10_gibbs_and_mean_field": "mcmc approximate inference loopy message passing sampler potts ising variational belief propagation sampling",
  "book/11_kmeans_limit": "kmeans k-means lloyd cop-kmeans pckmeans hard clustering constrained special case hard instead of soft",
  "book/12_rca": "metric learning distance mahalanobis whitening lda fisher dimension reduction pca",
  "book/13_the_papers_rerun": "replication reproducibility reproduce results paired difference replicate did result hold significance",
  "book/14_choosing_a_method": "which algorithm compare comparison decision guide flowchart best method choose",
  "book/15_the_next_question": "active learning query selection ask oracle",
  "book/16_many_witnesses": "crowdsourcing annotator dawid skene expert disagreement disagree crowd rater label",
  "book/notation": "symbols letters meaning symbol letter stand mean",
  "book/instructors": "teaching course syllabus grading assignment lecture exam teacher",
  "book/benchmarks": "timing performance runtime scaling speed scikit-learn sklearn comparison faster slower",
  "book/api/plot": "draw plot figure ellipse visualise visualize",
  "book/errata": "mistakes misprint correction typo error wrong in original paper misprint",
  "book/bibliography": "references literature papers citation",
  "book/api/mixture/ConstrainedGaussianMixture": "gaussianmixture estimator fit sklearn scikit-learn",
};

// "Cannot-links" is found by cannot-links, cannot-link, cannot and links; a plural by its singular,
// and either spelling of English by the other.
const spelling = word => word.replace(/is(?=(e|ed|er|ing|ation)s?$)/, "iz").replace(/yse/, "yze")
  .replace(/(col|neighb|behavi|fav|lab|harb)our/, "$1or").replace(/centre/, "center").replace(/lling|lled/, one => one.slice(1));
const singular = word => spelling(word.length > 4 && word.endsWith("ies") ? `${word.slice(0, -3)}y`
  : word.length > 3 && /[^s]s$/.test(word) ? word.slice(0, -1) : word);
// Forms of one word: regularise, regularised and regularisation; replicate and replication.
const stem = word => word.length < 7 ? word : word.replace(/(iz)?(ation|ing|ion|ed|er|e|ly)$/, "$1");
const fold = text => text.normalize("NFD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replace("means++", "meanspp");
const JOINT = /[-.'’]/, WORD = /[\p{L}\p{N}_]+(?:[-.'’][\p{L}\p{N}_]+)*/gu;
// Words that say nothing of what is asked, unless there is no other; so do single letters.
const STOP = new Set(("a an and any are as at be been but by can could did do does for from get give had has have how i if in "
  + "into is it its like make me my need of on or our should so than that the their them there these they this to "
  + "use using vs versus was we were what when where which who why will with would you your deal handle take went want work there").split(" "));
function askedWords(query) {
  const all = (fold(query).match(WORD) ?? []).map(singular);
  const telling = all.filter(word => !STOP.has(word) && (word.length > 1 || /\d/.test(word)));
  return (telling.length ? telling : all).map(stem);
}
const wordsOf = text => (fold(text).match(WORD) ?? [])
  .flatMap(word => JOINT.test(word) ? [word, ...word.split(JOINT)] : [word]).map(word => stem(singular(word)));
const counted = words => words.reduce((n, word) => n.set(word, (n.get(word) ?? 0) + 1), new Map());

const total = counts => [...counts.values()].reduce((sum, n) => sum + n, 0);
const mean = numbers => numbers.reduce((sum, n) => sum + n, 0) / numbers.length;

// What a word counts for: in a title (of the package: less), as a reader's word, in the text, elsewhere on the page; then
// the kind of an entry (of the package: less), a title that is the question, and the power of the share of words found.
const W = {title: 1, nameTitle: 0.3, called: 1.6, text: 0.8, spread: 0.8, worth: 0.4, api: 0.3, named: 1, cover: 1.5};
let index;
function indexed() {
  index ??= ENTRIES.map(entry => {
    const title = wordsOf(entry.title), text = wordsOf(`${entry.text} ${entry.kind === "page" ? "" : entry.page}`);
    const called = wordsOf(CALLED[entry.url.replace(".html", "")] ?? "");
    return {entry, title: counted(title), called: new Set(called), length: title.length,
            text: counted(text), size: text.length};
  });
  // A page has the words of all its sections, too, which may be spread over them.
  const pages = Object.groupBy(index, one => one.entry.url.split("#")[0]);
  for (const one of index.filter(({entry}) => entry.kind === "page")) {
    one.spread = new Map();
    for (const {title, text} of pages[one.entry.url]) {
      for (const [word, n] of [...title, ...text]) one.spread.set(word, (one.spread.get(word) ?? 0) + n);
    }
    one.spreadSize = total(one.spread);
  }
  index.usual = mean(index.map(one => one.size));
  index.usualSpread = mean(index.filter(one => one.spread).map(one => one.spreadSize));
  return index;
}

// How much a text is about a word, from 0 to 1: more with each time that it is there, less if the text is long (BM25).
const about = (n, size, usual) => n / (n + 1.2 * (0.3 + 0.7 * size / usual));

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
  // A word counts as the beginning of others only where it is no word itself: "Chang", not "change".
  const has = asked.map(word => {
    if (all.some(one => one.title.has(word) || one.text.has(word) || one.called.has(word))) return (words => words.get(word) ?? 0);
    return words => [...words].reduce((n, [other, k]) => other.startsWith(word) ? n + k : n, 0);
  });
  // What few entries have tells more than what many have.
  const telling = has.map(count => {
    const n = all.filter(({title, text}) => count(title) || count(text)).length;
    return Math.log((1 + all.length) / (1 + n));
  });
  const sum = telling.reduce((one, other) => one + other, 0);
  // Parts of a dotted name are no heading for a question in plain words.
  const isProse = asked.length > 1 && !/[._(]|[a-z][A-Z]/.test(query);
  const functions = [...fold(query).matchAll(/([\w.]+)\(/g)].map(([, name]) => name);
  const hits = [];
  for (const {entry, title, called, length, text, size, spread = new Map(), spreadSize} of all) {
    let score = 0, inTitle = 0, found = 0, covered = 0;
    const isName = isProse && (entry.kind === "name" || entry.url.includes("/api/"));
    has.forEach((count, n) => {
      const heading = count(title), known = called.has(asked[n]), below = count(text), around = count(spread);
      if (heading) inTitle++;
      score += telling[n] * ((isName ? W.nameTitle : W.title) * Boolean(heading) + W.called * known
        + W.text * about(below, size, all.usual) + (around ? W.spread * about(around, spreadSize, all.usualSpread) : 0));
      if (heading || known || below || around) { found++; covered += telling[n]; }
    });
    if (!found) continue;
    const [, worth] = KINDS[entry.kind === "page" && entry.number ? "chapter" : entry.kind];
    // What is named as the question is, and nothing else, is what was meant.
    const named = inTitle === asked.length && !isName ? inTitle / Math.max(length, asked.length) : 0;
    score = (score / sum + W.worth * worth / 70 * (isName ? W.api : 1) + (entry.kind === "term" && asked.length === 1 ? 2 : 1) * W.named * named) * (covered / sum) ** W.cover;
    const isCalled = entry.kind === "name" && functions.some(name => entry.title.toLowerCase().endsWith(name));
    // The class that readers meet first is meant where several have a method of that name.
    if (isCalled) score += CALLED[entry.url.split(".html")[0]] ? 3 : 2;
    hits.push([score, entry, found]);
  }
  // What has few of the words is no hit.
  const most = Math.max(...hits.map(([, , n]) => n));
  const best = hits.filter(([, , n]) => n >= most - 1 && n > asked.length / 3).sort((a, b) => b[0] - a[0]);
  return [...new Set([...first, ...best.map(([, entry]) => entry)])];
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
